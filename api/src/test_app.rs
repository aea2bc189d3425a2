//! The API with an empty database in a temporary directory, for tests of the layers before the routes.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use indexer::{IndexBuilder, IndexConfig};
use store::{DatabaseUrl, Store, StoreConfig};

use crate::client::Client;
use crate::config::ApiConfig;
use crate::federation::FederationConfig;
use crate::limits::LimitsConfig;
use crate::reader_keys::Reads;
use crate::state::App;
use crate::timeouts::ClientTimeouts;

/// An API with an empty index. The directory must outlive it.
pub(crate) async fn app(limits: LimitsConfig, timeouts: ClientTimeouts) -> (App, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let database = StoreConfig::new(DatabaseUrl::in_data_dir(dir.path()));
    let store = Store::open(&database).await.unwrap();
    let index_dir = IndexConfig::in_data_dir(dir.path()).dir;
    let builder = IndexBuilder::begin(&index_dir, &store.feed_id().await.unwrap()).unwrap();
    builder.finish(store.feed_head().await.unwrap()).unwrap();
    let config = ApiConfig {
        runtime_health: runtime::RuntimeHealth::default(),
        listen: "127.0.0.1:8080".parse().unwrap(),
        public_url: None,
        index: IndexConfig::at(index_dir),
        index_from: None,
        embedder: None,
        database,
        primary: None,
        limits,
        reads: Reads::default(),
        trusted_proxies: Vec::new(),
        admin_tokens: None,
        card_signer: None,
        contact: None,
        styleguide: false,
        feedback: false,
        counts_kept_for: Duration::ZERO,
        timeouts,
        reader: None,
        federation: FederationConfig::default(),
    };
    let app = App::with_store(config, store);
    app.refresh_index().await;
    (app, dir)
}

/// All searches that may run at the same time.
pub(crate) struct HeldSearches {
    end: mpsc::Sender<()>,
    running: tokio::task::JoinSet<()>,
}

impl HeldSearches {
    /// Ends them.
    pub(crate) async fn release(self) {
        drop(self.end);
        self.running.join_all().await;
    }
}

/// Runs as many searches as may run at the same time, so that every other one is refused.
pub(crate) async fn hold_all_searches(app: &App) -> HeldSearches {
    let (end, ended) = mpsc::channel::<()>();
    let ended = Arc::new(Mutex::new(ended));
    let mut running = tokio::task::JoinSet::new();
    while app.index.searches().are_free() {
        let (app, ended) = (app.clone(), Arc::clone(&ended));
        let wait = move || assert!(ended.lock().unwrap().recv().is_err());
        running.spawn(async move {
            drop(app.index.searches().run(Client::on_this_machine(), wait).await);
        });
        tokio::task::yield_now().await;
    }
    HeldSearches { end, running }
}
