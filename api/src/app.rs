//! The interface as a library: state, routes, and serving until it is stopped.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use indexer::snapshot::SnapshotError;
use ipnet::IpNet;
use store::{Store, StoreError};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admin::AdminTokens;
use crate::buffers::BUFFERED_BYTES_MAX;
use crate::client::Client;
use crate::config::ApiConfig;
use crate::guard::UNDER_WAY_MAX;
use crate::index::{self, IndexHandle};
use crate::kept::Kept;
use crate::limits::{FORGET_EVERY, Limits, LimitsConfig, at_once};
use crate::load::Load;
use crate::manifests::{ManifestPermits, Manifests};
use crate::names::OwnNames;
use crate::replica::{self, Replica};
use crate::routes::crawl::CrawlAnswer;
use crate::routes::semantic_types::SemanticTypesAnswer;
use crate::routes::stats::StatsAnswer;
use crate::server::{Admission, CONNECTIONS_MAX};
use crate::slots::Slots;
use crate::suppressed::Suppressed;
use crate::totals::Totals;
use crate::validation::Validation;
use crate::{metrics, middleware, routes, server};
use runtime::{Share, Shares};

/// Longest time from the first signal to the exit of the process: open requests finish, and streams are closed.
pub const STOP_MAX: Duration = Duration::from_secs(12);

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
    /// Where it is tried whether a search runs, however many wait for the others.
    readiness_slot: Slots,
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
    names: OwnNames,
    validation: Validation,
    /// Whether a search could run lately, or why not.
    searchable: Kept<Result<(), String>>,
    connections: Arc<Shares>,
    under_way: Arc<Shares>,
    load: Load,
    buffered: Arc<Shares>,
    streams: Arc<Shares>,
    exports: Arc<Shares>,
    manifest_permits: ManifestPermits,
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
        let limits = config.limits;
        Self(Arc::new(Shared {
            limits: Limits::new(limits),
            admin_tokens: AdminTokens::in_file(config.admin_tokens.clone()),
            suppressed: Suppressed::default(),
            crawl: Kept::default(),
            stats: Kept::default(),
            semantic_types: Kept::default(),
            totals: Totals::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            names: OwnNames::of(&config),
            validation: Validation::for_this_machine(),
            searchable: Kept::default(),
            connections: Shares::new(CONNECTIONS_MAX, at_once(limits.connections_per_client)),
            under_way: Shares::new(UNDER_WAY_MAX, at_once(limits.requests_per_client)),
            load: Load::new(Instant::now()),
            buffered: Shares::new(BUFFERED_BYTES_MAX, limits.buffered_bytes_per_client()),
            streams: Shares::new(routes::STREAMS_MAX, routes::STREAMS_OF_CLIENT_MAX),
            exports: Shares::new(routes::EXPORTS_MAX, routes::EXPORTS_OF_CLIENT_MAX),
            manifest_permits: ManifestPermits::for_this_machine(),
            config,
            store,
            index,
            replica: Arc::default(),
            slots,
            readiness_slot: Slots::new(1),
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

    /// Keeps the index current until it is cancelled.
    pub(crate) async fn follow_index(self, until: CancellationToken) {
        index::follow(Arc::clone(&self.0.index), until).await;
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    /// Reads stored manifests for a client.
    pub(crate) const fn manifests(&self, client: Client) -> Manifests<'_> {
        Manifests::new(self, client)
    }

    /// Permits for the memory of manifests that are read for answers.
    pub(crate) fn manifest_permits(&self) -> &ManifestPermits {
        &self.0.manifest_permits
    }

    /// Where searches and other blocking work of ours run.
    pub(crate) fn slots(&self) -> &Slots {
        &self.0.slots
    }

    /// Where it is tried whether a search runs.
    pub(crate) fn readiness_slot(&self) -> &Slots {
        &self.0.readiness_slot
    }

    /// Where documents of clients are read.
    pub(crate) fn validation(&self) -> &Validation {
        &self.0.validation
    }

    /// Whether a search could run lately, or why not.
    pub(crate) fn searchable(&self) -> &Kept<Result<(), String>> {
        &self.0.searchable
    }

    /// What this interface is called.
    pub(crate) fn names(&self) -> &OwnNames {
        &self.0.names
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
            self.0.connections.set_client_max(at_once(limits.connections_per_client));
            self.0.under_way.set_client_max(at_once(limits.requests_per_client));
            self.0.buffered.set_client_max(limits.buffered_bytes_per_client());
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
    pub(crate) fn under_way(&self) -> &Arc<Shares> {
        &self.0.under_way
    }

    /// Distinguishes a burst from overload.
    pub(crate) fn load(&self) -> &Load {
        &self.0.load
    }

    /// Bytes kept in memory for clients.
    pub(crate) fn buffered(&self) -> &Arc<Shares> {
        &self.0.buffered
    }

    pub(crate) fn stream_share(&self, client: Client) -> Option<Share> {
        self.0.streams.take(client.address, 1).ok()
    }

    pub(crate) fn export_share(&self, client: Client) -> Option<Share> {
        self.0.exports.take(client.address, 1).ok()
    }

    /// What connections and requests are admitted by.
    fn admission(&self) -> Admission {
        Admission {
            connections: Arc::clone(&self.0.connections),
            requests: Arc::clone(&self.0.under_way),
            load: self.0.load.clone(),
            turned_away: middleware::turned_away(self.is_behind_tls()),
            trusted_proxies: self.trusted_proxies().into(),
            names: self.names().clone(),
            admin_tokens: self.admin_tokens().clone(),
            patience: self.0.config.patience,
        }
    }

    /// Whether the world reaches us over TLS.
    pub(crate) fn is_behind_tls(&self) -> bool {
        self.0.config.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
    }

    /// The configuration of this process.
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
    server::serve(listener, router(&app), app.admission(), cancel).await;
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
