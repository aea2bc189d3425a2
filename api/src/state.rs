//! State shared by the handlers: configuration, store, index, caches and limits.

use async_recursion::async_recursion as boxed;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use indexer::snapshot::SnapshotError;
use indexer::{Hit, ListedCapability, Searcher};
use manifest::SiteName;
use runtime::Share;
use store::{Store, StoreError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admin::{Admin, AdminTokens};
use crate::answers::claim::OwnerMark;
use crate::answers::crawl::{self, CrawlAnswer, Visit};
use crate::answers::home::{self, Topics};
use crate::answers::search::search_problem;
use crate::answers::semantic_types::{self, SemanticTypesAnswer};
use crate::answers::sitemap;
use crate::answers::sites::{self, SiteListPermits};
use crate::answers::stats::{self, StatsAnswer};
use crate::answers::submit::Submissions;
use crate::capacity::Capacity;
use crate::client::Client;
use crate::concurrency::ConcurrencyLimit;
use crate::config::ApiConfig;
use crate::count_cache::CountCache;
use crate::document_readers::DocumentReaders;
use crate::federation::Federation;
use crate::index::{self, IndexHandle, IndexSource};
use crate::limits::{Limits, LimitsConfig};
use crate::load::Load;
use crate::manifests::{ManifestPermits, ManifestReader};
use crate::page_context::PageContext;
use crate::problem::Problem;
use crate::reader_keys::ReaderKeys;
use crate::replica::Replica;
use crate::response::{HttpResult, RequestContext};
use crate::scan_cache::{self, ScanCache};
use crate::search_counts::SearchCounts;
use crate::server_names::ServerNames;
use crate::ttl_cache::TtlCache;
use crate::{clock, metrics};

/// Maximum time from the first signal to the exit of the process. Open requests finish in this time, and streams are closed.
pub const STOP_MAX: Duration = Duration::from_secs(12);

/// The sitemap is cached this many times longer than a count, which is minutes. Readers of the sitemap cache it for hours.
const SITEMAP_KEPT_TIMES: u32 = 60;

/// Why the API cannot start or run; the text states how to fix it.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error("the database {url} cannot be used: {source}")]
    Store { url: String, source: StoreError },
    #[error("cannot listen on {address}: {source}; {}", listen_advice(source))]
    Listen { address: std::net::SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Snapshots(#[from] SnapshotError),
}

/// Advice if the server cannot listen on an address.
fn listen_advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "ports below 1024 need a privilege: choose a higher port with --listen"
        }
        std::io::ErrorKind::AddrNotAvailable => {
            "this machine does not have this address: choose another with --listen"
        }
        _ => "choose another with --listen, or stop the program that uses it",
    }
}

/// The state of the API. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<State>);

impl Deref for App {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

/// The shared state of [`App`].
pub struct State {
    pub(crate) config: ApiConfig,
    pub(crate) store: Store,
    pub(crate) index: Arc<IndexHandle>,
    pub(crate) replica: Arc<Replica>,
    /// Runs the readiness check's search, independently of waiting clients.
    pub(crate) readiness_limit: ConcurrencyLimit,
    pub(crate) limits: Limits,
    pub(crate) capacity: Capacity,
    pub(crate) load: Load,
    /// Searches that showed capabilities of sites with owners.
    pub(crate) search_counts: SearchCounts,
    pub(crate) admin_tokens: AdminTokens,
    pub(crate) reader_keys: ReaderKeys,
    pub(crate) crawl: ScanCache<CrawlAnswer>,
    pub(crate) latest_visits: ScanCache<Vec<Visit>>,
    pub(crate) stats: ScanCache<StatsAnswer>,
    pub(crate) semantic_types: ScanCache<SemanticTypesAnswer>,
    pub(crate) topics: ScanCache<Topics>,
    pub(crate) sitemap: ScanCache<String>,
    pub(crate) totals: CountCache,
    pub(crate) site_lists: SiteListPermits,
    /// Whether a recent search could run, or why not.
    pub(crate) searchable: TtlCache<Result<(), String>>,
    /// Work that outlives its request: exports and counts.
    pub(crate) tasks: TaskTracker,
    /// Set when the process stops, so that streams end.
    pub(crate) closing: CancellationToken,
    pub(crate) names: ServerNames,
    pub(crate) document_readers: DocumentReaders,
    pub(crate) manifest_permits: ManifestPermits,
    /// The registries that a search also queries.
    pub(crate) federation: Federation,
    /// Limits the concurrent rendering of pages and feeds.
    rendering: ConcurrencyLimit,
}

impl App {
    /// Opens the database, and retries while it is unavailable. The index may appear later.
    #[boxed]
    pub async fn open(config: ApiConfig) -> Result<Self, ApiError> {
        let opened = Store::open_when_available(&config.database).await;
        let store =
            opened.map_err(|source| ApiError::Store { url: config.database.url.to_string(), source })?;
        Ok(Self::with_store(config, store))
    }

    /// Uses an open store, for processes that run all three programs.
    pub fn with_store(config: ApiConfig, store: Store) -> Self {
        metrics::start();
        let store = match &config.primary {
            Some(primary) => store.with_primary(primary.clone()),
            None => store,
        };
        let searches = ConcurrencyLimit::for_this_machine();
        Self(Arc::new(State {
            index: Arc::new(IndexHandle::new(
                config.index.clone(),
                config.embedder.clone(),
                searches,
                if config.index_from.is_some() { IndexSource::Snapshots } else { IndexSource::Indexer },
            )),
            replica: Arc::default(),
            readiness_limit: ConcurrencyLimit::new(1),
            limits: Limits::new(config.limits),
            capacity: Capacity::new(&config.limits),
            load: Load::new(Instant::now()),
            search_counts: SearchCounts::default(),
            admin_tokens: AdminTokens::in_file(config.admin_tokens.clone()),
            reader_keys: ReaderKeys::default(),
            crawl: ScanCache::default(),
            latest_visits: ScanCache::default(),
            stats: ScanCache::default(),
            semantic_types: ScanCache::default(),
            topics: ScanCache::default(),
            sitemap: ScanCache::default(),
            totals: CountCache::default(),
            site_lists: SiteListPermits::default(),
            searchable: TtlCache::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            names: ServerNames::new(config.listen.ip(), config.public_url.as_ref()),
            document_readers: DocumentReaders::for_this_machine(config.reader.clone()),
            manifest_permits: ManifestPermits::for_this_machine(),
            federation: Federation::new(&config.federation),
            rendering: ConcurrencyLimit::for_this_machine(),
            config,
            store: store.with_scan_time_max(scan_cache::TIME_MAX),
        }))
    }

    /// Writes the counts of searches, and reads which sites have owners; `serve` does this every minute.
    pub async fn write_search_counts(&self) -> Result<(), StoreError> {
        self.search_counts.write(&self.store).await
    }

    /// The owner of a site, who proved control of its domain, as of the last minute or two.
    pub(crate) fn owner_of(&self, site: &SiteName) -> Option<OwnerMark> {
        self.search_counts.owners().of(site)
    }

    /// Counts a search that showed these results for the sites that name their documents.
    pub(crate) fn count_search<'a>(&self, shown: impl IntoIterator<Item = &'a Hit>) {
        let shown = shown.into_iter().filter(|hit| hit.is_of_site());
        self.search_counts.count(shown.map(|hit| (&hit.site, &hit.id)), clock::now());
    }

    /// The path of a file that another program of this installation writes to the data directory.
    pub(crate) fn sibling_of_index(&self, name: &str) -> PathBuf {
        self.config.index.dir.with_file_name(name)
    }

    /// Opens the index, or makes its newest commit visible; `serve` does this every second. An index that was built from another database
    /// is not used; searches and the readiness check then report an error.
    pub async fn refresh_index(&self) {
        // `index::follow` reports a failure
        drop(index::refresh(&self.index, &self.store).await);
    }

    /// Changes the limits of clients from the next request on, for example on SIGHUP.
    pub fn set_limits(&self, limits: LimitsConfig) {
        if self.limits.set(limits) {
            self.capacity.set_limits(&limits);
            tracing::warn!(%limits, "client limits changed");
        }
    }

    pub(crate) fn base_url(&self) -> String {
        self.config.base_url()
    }

    /// Reads stored manifests for a client.
    pub(crate) fn manifests(&self, client: Client) -> ManifestReader<'_> {
        let State { store, manifest_permits, capacity, .. } = &**self;
        ManifestReader {
            store,
            permits: manifest_permits,
            buffered: &capacity.buffered_bytes,
            client,
            held: 0,
        }
    }

    /// Queues sites for a client.
    pub(crate) fn submissions(&self, client: Client) -> Submissions<'_> {
        Submissions { store: &self.store, limits: &self.limits, base_url: self.base_url(), client }
    }

    pub(crate) fn stream_share(&self, client: Client) -> Option<Share> {
        self.capacity.streams.take(client.address, 1).ok()
    }

    pub(crate) fn export_share(&self, client: Client) -> Option<Share> {
        self.capacity.exports.take(client.address, 1).ok()
    }

    /// The health of the crawl, at most a second old. Counts that take long may be older; the latest visits are always current.
    pub(crate) async fn crawl(&self) -> Result<CrawlAnswer, Problem> {
        let (app, reader) = (self.clone(), self.clone());
        let count = async move { crawl::crawl(&app.store, clock::now()).await };
        let counted = self.counted(&self.0.crawl, crawl::KEPT_FOR, count).await?;
        let read = async move { crawl::latest_visits(&reader.store).await };
        let visits = self.counted(&self.0.latest_visits, crawl::KEPT_FOR, read).await?;
        Ok(CrawlAnswer { visits: Vec::clone(&visits), ..CrawlAnswer::clone(&counted) })
    }

    /// Statistics of the store, at most a few seconds old unless they take long to count.
    pub(crate) async fn stats(&self) -> Result<Arc<StatsAnswer>, Problem> {
        let app = self.clone();
        let count = async move { stats::stats(&app.store, &app.index, clock::now()).await };
        self.counted(&self.0.stats, self.config.counts_kept_for, count).await
    }

    /// The tree of semantic types, at most a few seconds old unless it takes long to count.
    pub(crate) async fn semantic_types(&self) -> Result<Arc<SemanticTypesAnswer>, Problem> {
        let app = self.clone();
        let count = async move { semantic_types::semantic_types(&app.store).await };
        self.counted(&self.0.semantic_types, self.config.counts_kept_for, count).await
    }

    /// The fields of the index with examples, at most a few seconds old unless they take long to find.
    pub(crate) async fn topics(&self) -> Result<Arc<Topics>, Problem> {
        let app = self.clone();
        let find = async move { home::topics(&app.index, &app.semantic_types().await?.namespaces).await };
        self.counted(&self.0.topics, self.config.counts_kept_for, find).await
    }

    /// The text of the sitemap, at most a few minutes old.
    pub(crate) async fn sitemap(&self) -> Result<Arc<String>, Problem> {
        let (app, kept_for) = (self.clone(), self.config.counts_kept_for);
        let list = async move {
            let sites = sites::with_manifests(&app.store, &app.totals, kept_for, &app.site_lists).await?;
            let capabilities = app.listed_capabilities().await?;
            Ok(sitemap::body(&app.base_url(), &sites, &capabilities))
        };
        self.counted(&self.0.sitemap, kept_for.saturating_mul(SITEMAP_KEPT_TIMES), list).await
    }

    /// The capabilities of the sitemap: none without an index.
    async fn listed_capabilities(&self) -> Result<Vec<ListedCapability>, Problem> {
        if self.index.searcher().is_err() {
            return Ok(Vec::new());
        }
        let without = self.index.suppressed().names();
        let list = move |index: &Searcher| index.list(sitemap::ADDRESSES_MAX, &without);
        let listed = self.index.run(Client::on_this_machine(), list).await?;
        listed.map_err(|error| search_problem(&error))
    }

    /// The context in which pages are rendered.
    pub(crate) fn page_context(&self) -> PageContext {
        PageContext {
            base: self.base_url(),
            now: clock::now(),
            owners: self.search_counts.owners(),
            contact: self.config.contact.clone(),
        }
    }

    /// Renders a page or a feed. Rendering takes time in proportion to the request and to texts of publishers, so it runs on the blocking
    /// pool with limited concurrency, and clients take turns.
    pub(crate) async fn rendered<F>(&self, client: Client, context: &RequestContext, render: F) -> HttpResult
    where
        F: FnOnce(&RequestContext) -> HttpResult + Send + 'static,
    {
        let context = context.clone();
        self.rendering.run(client, move || render(&context)).await?
    }

    /// An answer that is counted from whole tables. Counting ends when the process stops.
    async fn counted<T: Send + Sync + 'static>(
        &self,
        cache: &ScanCache<T>,
        kept_for: Duration,
        count: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<Arc<T>, Problem> {
        let closing = self.closing();
        let stopped = || Err(Problem::unavailable("the service is stopping"));
        let count = async move { closing.run_until_cancelled(count).await.unwrap_or_else(stopped) };
        cache.get(&self.tasks, kept_for, Box::pin(count)).await
    }

    /// Clears the response caches, so that a blocked site disappears from them immediately.
    pub(crate) async fn clear_caches(&self) {
        self.crawl.clear().await;
        self.latest_visits.clear().await;
        self.stats.clear().await;
        self.semantic_types.clear().await;
        self.topics.clear().await;
        self.sitemap.clear().await;
        self.totals.clear();
    }

    pub(crate) fn closing(&self) -> CancellationToken {
        self.closing.clone()
    }
}

impl FromRequestParts<App> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        app.admin_tokens.admit_request(&parts.headers).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_on_a_refused_address_depends_on_the_reason() {
        let advice = |kind: std::io::ErrorKind| {
            let address = ([127, 0, 0, 1], 80).into();
            ApiError::Listen { address, source: kind.into() }.to_string()
        };
        assert!(advice(std::io::ErrorKind::AddrInUse).contains("or stop the program that uses it"));
        let denied = advice(std::io::ErrorKind::PermissionDenied);
        assert!(denied.contains("below 1024") && !denied.contains("stop the program"), "{denied}");
    }
}
