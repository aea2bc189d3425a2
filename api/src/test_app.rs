//! The API with an empty database in a temporary directory, for tests of the layers before the routes.

use std::time::Duration;

use indexer::{IndexBuilder, IndexConfig};
use store::{DatabaseUrl, Store, StoreConfig};

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
        index_dir,
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
