//! Keeps an index up to date with the store.
//!
//! It reads the change feed from the committed position, loads the manifests that changed, and commits documents and position together, so
//! that uncommitted work is repeated with the same result. An index that cannot be continued (because of its version, damage, or another
//! database) is rebuilt while the old one is still served.

use async_recursion::async_recursion as boxed;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use manifest::ManifestId;
use store::{FeedChange, FeedEntry, FeedPosition, OUTAGE, Store, StoreError, StoredManifest};
use tokio_util::sync::CancellationToken;

use crate::build::IndexBuilder;
pub use crate::config::IndexConfig;
use crate::error::IndexError;
use crate::index::{Generations, Opened, Shared, Writer, WriterLock, open_for_writing};
use crate::{metrics, reader, sharing};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Stops at the end of the feed.
    Once,
    /// Stops when it is cancelled.
    Follow,
}

#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A thread of the indexer panicked.
    #[error("indexing failed: {0}")]
    Panicked(String),
}

impl FollowError {
    /// Whether a call to the cluster failed, so that it may succeed later.
    #[cfg_attr(
        not(feature = "cluster"),
        expect(clippy::unused_self, reason = "the error of a cluster is in self")
    )]
    const fn is_of_cluster(&self) -> bool {
        #[cfg(feature = "cluster")]
        {
            matches!(self, Self::Index(IndexError::Cluster(_)))
        }
        #[cfg(not(feature = "cluster"))]
        false
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of indexed or removed manifests. Manifests that are re-indexed only because they share a capability with one of these are not
    /// counted.
    pub manifests: u64,
    /// Indexed.
    pub capabilities: u64,
    pub position: FeedPosition,
    pub was_rebuilt: bool,
}

/// Maximum number of entries per batch; a few statements load their manifests.
const ENTRIES_MAX: u32 = 500;
/// Maximum number of manifests per batch: a manifest may have thousands of capabilities.
const MANIFESTS_MAX: u32 = 100;
/// Number of uncommitted capabilities at which it commits before the end of the feed.
const COMMIT_CAPABILITIES: u64 = 50_000;
/// Time after which it commits before the end of the feed.
const COMMIT_INTERVAL: Duration = Duration::from_secs(5);
/// Poll interval at the end of the feed; the statement reads one indexed row.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Minimum interval between two log lines about progress.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// A file by which another process requests a rebuild.
const REBUILD_FILE: &str = "rebuild-asked";
/// First and longest delay after a failure of the database or of the cluster, with exponential backoff.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// The delay before the next attempt.
struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(RETRY_MIN)
    }
}

impl Backoff {
    fn next(&mut self) -> Duration {
        let delay = self.0;
        self.0 = (delay * 2).min(RETRY_MAX);
        delay
    }
}

/// Follows the feed into the index.
#[boxed]
pub async fn run(
    store: Store,
    config: IndexConfig,
    cancel: CancellationToken,
    mode: Mode,
) -> Result<Summary, FollowError> {
    let mut reopening = Backoff::default();
    loop {
        let error = match follow(&store, &config, &cancel, mode, &mut reopening).await {
            Err(error) if mode == Mode::Follow && error.is_of_cluster() => error,
            ended => return ended,
        };
        // Whatever the cluster has not committed is dropped with the writer, and repeated from the last commit.
        let delay = reopening.next();
        tracing::warn!(
            error = error.to_string(),
            retry.after_ms = delay.as_millis(),
            "the cluster failed: retrying"
        );
        if cancel.run_until_cancelled(tokio::time::sleep(delay)).await.is_none() {
            return Ok(Summary::default());
        }
    }
}

/// Opens the index and follows the feed, until it is done or the cluster fails.
async fn follow(
    store: &Store,
    config: &IndexConfig,
    cancel: &CancellationToken,
    mode: Mode,
    reopening: &mut Backoff,
) -> Result<Summary, FollowError> {
    let mut follower = if let Some(request) = RebuildRequest::read(config) {
        tracing::info!("rebuilding the index on request");
        let (follower, _) = Follower::rebuilt(store.clone(), config, lock(config).await?).await?;
        request.remove()?;
        follower
    } else {
        Follower::open(store.clone(), config).await?
    };
    let mut retry = Backoff::default();
    loop {
        if let Some(request) = RebuildRequest::read(config) {
            tracing::info!("rebuilding the index on request");
            follower = follower.rebuild(config).await?;
            request.remove()?;
        }
        let began = tokio::time::Instant::now();
        let delay = match follower.catch_up(cancel).await {
            Ok(()) if mode == Mode::Once || cancel.is_cancelled() => break,
            Ok(()) => {
                OUTAGE.answered();
                (retry, *reopening) = (Backoff::default(), Backoff::default());
                follower.log_progress();
                POLL_INTERVAL
            }
            Err(FollowError::Store(error)) if mode == Mode::Follow && error.is_transient() => {
                OUTAGE.failed("read the feed", error, began);
                metrics::database_wait();
                retry.next()
            }
            Err(error) => return Err(error),
        };
        if cancel.run_until_cancelled(tokio::time::sleep(delay)).await.is_none() {
            break;
        }
    }
    follower.finish().await
}

/// Requests a rebuild from the indexer of an index; a running one notices within a second.
pub fn request_rebuild(config: &IndexConfig) -> Result<(), IndexError> {
    let path = config.dir.join(REBUILD_FILE);
    std::fs::write(&path, []).map_err(|source| IndexError::NotWritable { path, source })
}

/// A request to rebuild the index. It remains until the rebuild succeeds, so that an indexer repeats one that failed or was interrupted.
struct RebuildRequest {
    path: PathBuf,
    at: SystemTime,
}

impl RebuildRequest {
    fn read(config: &IndexConfig) -> Option<Self> {
        let path = config.dir.join(REBUILD_FILE);
        let at = std::fs::metadata(&path).and_then(|file| file.modified()).ok()?;
        Some(Self { path, at })
    }

    /// Removes the request, unless another was made during the rebuild.
    fn remove(self) -> Result<(), IndexError> {
        let is_later =
            std::fs::metadata(&self.path).and_then(|file| file.modified()).is_ok_and(|at| at != self.at);
        if is_later {
            return Ok(());
        }
        let Self { path, .. } = self;
        std::fs::remove_file(&path).map_err(|source| IndexError::NotWritable { path, source })
    }
}

/// Rebuilds the index and swaps it in; the old one is served in the meantime.
#[boxed]
pub async fn rebuild(store: Store, config: IndexConfig) -> Result<Summary, FollowError> {
    let lock = lock(&config).await?;
    let (follower, _) = Follower::rebuilt(store, &config, lock).await?;
    follower.finish().await
}

async fn lock(config: &IndexConfig) -> Result<WriterLock, FollowError> {
    let generations = Generations::new(&config.dir);
    blocking(move || generations.lock()).await
}

struct Follower {
    store: Store,
    writer: Option<Writer>,
    lock: WriterLock,
    /// Name of this reader of the feed in the store.
    reader: String,
    summary: Summary,
    /// Capabilities since the last commit.
    uncommitted: u64,
    is_dirty: bool,
    committed_at: tokio::time::Instant,
    /// The position and the time of the last log line about progress, or of the start.
    logged: (FeedPosition, tokio::time::Instant),
}

impl Follower {
    async fn open(store: Store, config: &IndexConfig) -> Result<Self, FollowError> {
        let lock = lock(config).await?;
        let feed_id = store.feed_id().await?;
        let head = store.feed_head().await?;
        let generations = Generations::new(&config.dir);
        let opening = config.clone();
        let opened = blocking(move || {
            let opened = open_for_writing(&generations, &feed_id, head, &opening)?;
            generations.remove_others()?;
            Ok(opened)
        })
        .await;
        match opened {
            Ok(Opened { writer, position }) => {
                let summary = Summary { position, ..Summary::default() };
                let first = store.feed_first().await?;
                let follower = Self::new(store, writer, lock, reader::name(&config.dir), summary);
                if position.0 + 1 < first.0 {
                    tracing::warn!(
                        feed.position = position.0,
                        feed.first = first.0,
                        "the feed no longer has the changes since the last commit: rebuilding the index"
                    );
                    return follower.rebuild(config).await;
                }
                Ok(follower)
            }
            Err(FollowError::Index(
                reason @ (IndexError::Missing { .. }
                | IndexError::SchemaOther { .. }
                | IndexError::FeedOther { .. }
                | IndexError::ExamplesOther { .. }
                | IndexError::OnCluster { .. }
                | IndexError::NotOnCluster { .. }
                | IndexError::Corrupt { .. }),
            )) => {
                if !matches!(reason, IndexError::Missing { .. }) {
                    tracing::warn!(reason = reason.without_advice(), "rebuilding the index");
                }
                Ok(Self::rebuilt(store, config, lock).await?.0)
            }
            Err(error) => Err(error),
        }
    }

    /// Closes the writer and continues with a rebuilt index.
    async fn rebuild(self, config: &IndexConfig) -> Result<Self, FollowError> {
        if let Some(writer) = self.writer {
            blocking(move || writer.finish()).await?;
        }
        Ok(Self::rebuilt(self.store, config, self.lock).await?.0)
    }

    fn new(store: Store, writer: Writer, lock: WriterLock, reader: String, summary: Summary) -> Self {
        Self {
            store,
            writer: Some(writer),
            lock,
            reader,
            logged: (summary.position, tokio::time::Instant::now()),
            summary,
            uncommitted: 0,
            is_dirty: false,
            committed_at: tokio::time::Instant::now(),
        }
    }

    /// Indexes every manifest of the store. The feed position is read first, so that later changes are read from the feed.
    async fn rebuilt(
        store: Store,
        config: &IndexConfig,
        lock: WriterLock,
    ) -> Result<(Self, FeedPosition), FollowError> {
        let feed_id = store.feed_id().await?;
        let position = store.feed_head().await?;
        let building = config.clone();
        let begin = move || IndexBuilder::begin_locked(&building, &feed_id, lock);
        let mut builder = blocking(begin).await?;
        let mut summary = Summary { position, was_rebuilt: true, ..Summary::default() };
        let (mut page, mut shared) = page_after(&store, None).await?;
        while let Some(last) = page.last() {
            let after = last.manifest.id.clone();
            summary.manifests += page.len() as u64;
            let built = blocking(move || {
                let capabilities = builder.add_all(&page, &shared)?;
                Ok((builder, capabilities as u64))
            });
            // Read the next page while this one is indexed.
            let (next, built) = tokio::join!(page_after(&store, Some(&after)), built);
            let (returned, capabilities) = built?;
            (builder, (page, shared)) = (returned, next?);
            summary.capabilities += capabilities;
        }
        let (writer, lock) = blocking(move || builder.switch(position)).await?;
        tracing::info!(manifests = summary.manifests, capabilities = summary.capabilities, "index built");
        let reader = reader::name(&config.dir);
        reader::register(&store, &reader, position).await;
        Ok((Self::new(store, writer, lock, reader, summary), position))
    }

    /// Reads the feed to its end or until it is cancelled, and commits.
    async fn catch_up(&mut self, cancel: &CancellationToken) -> Result<(), FollowError> {
        while !cancel.is_cancelled() {
            let page = self.store.feed_page(self.summary.position, ENTRIES_MAX).await?;
            if page.read_to == self.summary.position {
                break;
            }
            for batch in batches(&page.entries) {
                self.apply(batch).await?;
            }
            self.summary.position = page.read_to;
            self.is_dirty = true;
            self.log_progress();
            if self.uncommitted >= COMMIT_CAPABILITIES || self.committed_at.elapsed() >= COMMIT_INTERVAL {
                self.commit().await?;
            }
        }
        if self.is_dirty {
            return self.commit().await;
        }
        metrics::feed_lag(0);
        Ok(())
    }

    /// Logs the progress since the start, if something changed and the last line is old enough.
    fn log_progress(&mut self) {
        let (position, at) = self.logged;
        let Summary { manifests, capabilities, position: now_at, .. } = self.summary;
        if now_at == position || at.elapsed() < LOG_INTERVAL {
            return;
        }
        self.logged = (now_at, tokio::time::Instant::now());
        tracing::info!(
            manifests.updated = manifests,
            capabilities.indexed = capabilities,
            feed.position = now_at.0,
            "following the feed"
        );
    }

    async fn apply(&mut self, batch: Vec<(ManifestId, FeedChange)>) -> Result<(), FollowError> {
        let changed = batch.iter().filter(|(_, change)| *change != FeedChange::Removed);
        let mut present: Vec<ManifestId> = changed.map(|(id, _)| id.clone()).collect();
        self.summary.manifests += batch.len() as u64;
        sharing::add_leading(&self.store, &mut present).await?;
        self.with_writer(move |writer| {
            // also removes manifests that are no longer in the store
            let ids: Vec<ManifestId> = batch.into_iter().map(|(id, _)| id).collect();
            writer.remove_all(&ids)
        })
        .await?;
        for batch in self.store.manifest_batches(&present).await? {
            let shared = sharing::load(&self.store, &batch.ids).await?;
            let stored = self.store.manifests_load(&batch.ids).await?;
            let capabilities =
                self.with_writer(move |writer| Ok(writer.replace_all(&stored, &shared)? as u64)).await?;
            self.summary.capabilities += capabilities;
            self.uncommitted += capabilities;
        }
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), FollowError> {
        let position = self.summary.position;
        let began = tokio::time::Instant::now();
        let documents = self
            .with_writer(move |writer| {
                writer.commit(position)?;
                writer.documents()
            })
            .await?;
        self.report(began.elapsed(), documents).await?;
        tracing::debug!(feed.position = position.0, capabilities = self.uncommitted, "committed");
        reader::register(&self.store, &self.reader, position).await;
        self.uncommitted = 0;
        self.is_dirty = false;
        self.committed_at = tokio::time::Instant::now();
        Ok(())
    }

    /// Sets the metrics after a commit.
    async fn report(&self, commit: Duration, documents: u64) -> Result<(), FollowError> {
        let behind = self.store.feed_head().await?.0 - self.summary.position.0;
        metrics::committed(commit, documents);
        metrics::feed_lag(u64::try_from(behind).unwrap_or_default());
        Ok(())
    }

    /// Runs work with the writer on a thread that may block.
    async fn with_writer<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Writer) -> Result<T, IndexError> + Send + 'static,
    ) -> Result<T, FollowError> {
        let Some(mut writer) = self.writer.take() else {
            return Err(FollowError::Panicked("the writer was lost".to_owned()));
        };
        let (writer, value) = blocking(move || {
            let value = work(&mut writer)?;
            Ok((writer, value))
        })
        .await?;
        self.writer = Some(writer);
        Ok(value)
    }

    async fn finish(self) -> Result<Summary, FollowError> {
        if let Some(writer) = self.writer {
            blocking(move || writer.finish()).await?;
        }
        Ok(self.summary)
    }
}

/// The last change of each manifest, in batches, each loaded with one query.
fn batches(entries: &[FeedEntry]) -> Vec<Vec<(ManifestId, FeedChange)>> {
    let last: BTreeMap<ManifestId, FeedChange> =
        entries.iter().map(|entry| (entry.manifest_id.clone(), entry.change)).collect();
    let all: Vec<(ManifestId, FeedChange)> = last.into_iter().collect();
    all.chunks(MANIFESTS_MAX as usize).map(<[_]>::to_vec).collect()
}

/// The next manifests of the store, with the capabilities that they share.
async fn page_after(
    store: &Store,
    after: Option<&ManifestId>,
) -> Result<(Vec<StoredManifest>, Shared), FollowError> {
    let page = store.manifests_page(after, MANIFESTS_MAX).await?;
    let ids: Vec<ManifestId> = page.iter().map(|stored| stored.manifest.id.clone()).collect();
    let shared = sharing::load(store, &ids).await?;
    Ok((page, shared))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, IndexError> + Send + 'static,
) -> Result<T, FollowError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => Ok(result?),
        Err(error) => Err(FollowError::Panicked(error.to_string())),
    }
}
