//! The interface as a library: state, routes, and serving until told to stop.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use indexer::snapshot::SnapshotError;
use ipnet::IpNet;
use store::{Store, StoreError};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admin::AdminTokens;
use crate::config::ApiConfig;
use crate::guard::UNDER_WAY_MAX;
use crate::index::{self, IndexHandle};
use crate::kept::Kept;
use crate::limits::{FORGET_EVERY, Limits, LimitsConfig};
use crate::replica::{self, Replica};
use crate::routes::crawl::CrawlAnswer;
use crate::routes::semantic_types::SemanticTypesAnswer;
use crate::routes::stats::StatsAnswer;
use crate::server::PATIENCE;
use crate::slots::Slots;
use crate::suppressed::Suppressed;
use crate::totals::Totals;
use crate::{metrics, middleware, routes, server};

/// What keeps the interface from starting or running; the text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error("the database {url} cannot be used: {source}")]
    Store { url: String, source: StoreError },
    #[error(
        "cannot listen on {address}: {source}; choose another with --listen, or stop the program that uses it"
    )]
    Listen { address: std::net::SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Snapshots(#[from] SnapshotError),
}

/// What the handlers share.
#[derive(Clone)]
pub struct App(Arc<Shared>);

struct Shared {
    config: ApiConfig,
    store: Store,
    index: Arc<IndexHandle>,
    replica: Arc<Replica>,
    slots: Slots,
    limits: Limits,
    admin_tokens: AdminTokens,
    suppressed: Suppressed,
    crawl: Kept<CrawlAnswer>,
    stats: Kept<StatsAnswer>,
    semantic_types: Kept<SemanticTypesAnswer>,
    totals: Totals,
    /// Work that outlives its request: exports.
    tasks: TaskTracker,
    /// Set when the process stops, so that streams end.
    closing: CancellationToken,
    under_way: Semaphore,
    streams: Arc<Semaphore>,
    exports: Arc<Semaphore>,
}

impl App {
    /// Opens the database, and waits for it while it is away; the index may come later.
    pub async fn open(config: ApiConfig) -> Result<Self, ApiError> {
        let opened = Store::open_when_available(&config.database).await;
        let store =
            opened.map_err(|source| ApiError::Store { url: config.database.url.to_string(), source })?;
        Ok(Self::with_store(config, store))
    }

    /// On a database that is open already, as where all three programs share one process.
    pub fn with_store(config: ApiConfig, store: Store) -> Self {
        let slots = Slots::for_this_machine();
        let embedder = config.embedder.clone();
        let index = Arc::new(IndexHandle::new(config.index_dir.clone(), embedder, slots.clone()));
        metrics::start();
        Self(Arc::new(Shared {
            limits: Limits::new(config.limits),
            admin_tokens: AdminTokens::in_file(config.admin_tokens.clone()),
            suppressed: Suppressed::default(),
            crawl: Kept::default(),
            stats: Kept::default(),
            semantic_types: Kept::default(),
            totals: Totals::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            under_way: Semaphore::new(UNDER_WAY_MAX),
            streams: Arc::new(Semaphore::new(routes::STREAMS_MAX)),
            exports: Arc::new(Semaphore::new(routes::EXPORTS_MAX)),
            config,
            store,
            index,
            replica: Arc::default(),
            slots,
        }))
    }

    /// A file that another program of this installation leaves in the data directory.
    pub(crate) fn beside_the_index(&self, name: &str) -> PathBuf {
        self.0.config.index_dir.with_file_name(name)
    }

    /// Opens the index, or makes its newest commit visible, at once. Blocking; `serve` does this every second.
    pub fn refresh_index(&self) {
        self.0.index.refresh();
    }

    /// Keeps the index current until told to stop.
    pub(crate) async fn follow_index(self, until: CancellationToken) {
        index::follow(Arc::clone(&self.0.index), until).await;
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    /// Where blocking work runs.
    pub(crate) fn slots(&self) -> &Slots {
        &self.0.slots
    }

    pub(crate) fn index(&self) -> &IndexHandle {
        &self.0.index
    }

    pub(crate) fn index_dir(&self) -> &Path {
        &self.0.config.index_dir
    }

    /// Other limits for clients from the next request on, as after SIGHUP.
    pub fn set_limits(&self, limits: LimitsConfig) {
        if self.0.limits.set(limits) {
            tracing::warn!(?limits, "the limits of clients are set");
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn trusted_proxies(&self) -> &[IpNet] {
        &self.0.config.trusted_proxies
    }

    pub(crate) fn admin_tokens(&self) -> &AdminTokens {
        &self.0.admin_tokens
    }

    /// Sites whose rows are left out of searches.
    pub(crate) fn suppressed(&self) -> &Suppressed {
        &self.0.suppressed
    }

    /// The last answer about the health of the crawl.
    pub(crate) fn crawl(&self) -> &Kept<CrawlAnswer> {
        &self.0.crawl
    }

    /// The last answer of the store in numbers.
    pub(crate) fn stats(&self) -> &Kept<StatsAnswer> {
        &self.0.stats
    }

    /// The last tree of semantic types.
    pub(crate) fn semantic_types(&self) -> &Kept<SemanticTypesAnswer> {
        &self.0.semantic_types
    }

    /// How many sites are on lists.
    pub(crate) fn totals(&self) -> &Totals {
        &self.0.totals
    }

    /// Lets go of every kept answer, because a site is to disappear from them at once.
    pub(crate) async fn forget_kept(&self) {
        self.0.crawl.forget().await;
        self.0.stats.forget().await;
        self.0.semantic_types.forget().await;
        self.0.totals.forget();
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    pub(crate) fn closing(&self) -> CancellationToken {
        self.0.closing.clone()
    }

    /// Places for requests under way.
    pub(crate) fn under_way(&self) -> &Semaphore {
        &self.0.under_way
    }

    pub(crate) fn stream_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.streams).try_acquire_owned().ok()
    }

    pub(crate) fn export_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.exports).try_acquire_owned().ok()
    }

    /// Whether the world reaches us over TLS.
    pub(crate) fn is_behind_tls(&self) -> bool {
        self.0.config.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
    }

    /// What the interface was told at its start.
    pub(crate) fn config(&self) -> &ApiConfig {
        &self.0.config
    }

    /// Of snapshots, where the index is fetched.
    pub(crate) fn replica(&self) -> &Replica {
        &self.0.replica
    }

    /// How the world reaches us.
    pub(crate) fn base_url(&self) -> String {
        let configured =
            self.0.config.public_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned());
        configured.unwrap_or_else(|| format!("http://{}", self.0.config.listen))
    }
}

/// Every route, with everything that requests pass through.
pub fn router(app: &App) -> Router {
    middleware::wrapped(routes::all(app).with_state(app.clone()), app)
}

/// Binds the configured address.
pub async fn bind(config: &ApiConfig) -> Result<TcpListener, ApiError> {
    let address = config.listen;
    TcpListener::bind(address).await.map_err(|source| ApiError::Listen { address, source })
}

/// Serves until `cancel`, then lets open requests finish for a few seconds.
pub async fn serve(listener: TcpListener, app: App, cancel: CancellationToken) -> Result<(), ApiError> {
    let follow_until = cancel.child_token();
    let place = app.0.config.index_from.as_ref();
    let snapshots = place.map(|place| place.open(follow_until.clone())).transpose()?;
    // An index that is there is open and warm before the first request is answered.
    index::look(&app.0.index).await;
    let tasks = TaskTracker::new();
    tasks.spawn(app.clone().follow_index(follow_until.clone()));
    tasks.spawn(tidy(app.clone(), follow_until.clone()));
    if let Some(from) = snapshots {
        let (to, replica) = (app.0.config.index_dir.clone(), Arc::clone(&app.0.replica));
        // Snapshots carry no vectors: a replica makes its own.
        if let Some(embedder) = &app.0.config.embedder {
            let embedder = Arc::clone(embedder);
            tasks.spawn(indexer::vectors::keep_current(to.clone(), embedder, follow_until.clone()));
        }
        tasks.spawn(replica::follow(Arc::from(from), to, replica, follow_until.clone()));
    }

    // Streams never end by themselves.
    let (stop, closing) = (cancel.clone(), app.closing());
    tasks.spawn(async move {
        stop.cancelled().await;
        closing.cancel();
    });
    tasks.close();
    server::serve(listener, router(&app), cancel, PATIENCE).await;
    follow_until.cancel();
    tasks.wait().await;
    Ok(())
}

/// Forgets clients that are gone, and keeps the numbers about us small.
async fn tidy(app: App, until: CancellationToken) {
    while until.run_until_cancelled(tokio::time::sleep(FORGET_EVERY)).await.is_some() {
        app.limits().forget();
        metrics::upkeep();
    }
}
