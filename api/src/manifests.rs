//! Stored manifests, read for clients within a bounded amount of memory.
//!
//! All responses read manifests through this module. Before a manifest is read, its size is looked up and a permit for the memory of its
//! tree is taken. The permit is held as long as the manifest. Small manifests have separate permits, so that large ones never delay them.
//! Clients get permits in turn (see `fair_permits`). A request that waits for too long is rejected.
//!
//! The time of work on a manifest is proportional to its size. It runs on the blocking pool, so that it does not block a worker of the
//! async runtime. The permit is held until the work ends, even if the client has disconnected, so permits limit concurrent work.
//!
//! A page reads several manifests, and an export reads all of them. They are loaded in compressed form, a few at a time, and decompressed
//! one after the other, so a permit for the largest is enough. A page takes its permit once, so that a page in progress never waits for
//! other pages. It keeps only [`Kept`] content: text, which is counted towards the limit of its client before the permit is released. An
//! export holds no permit while it waits for its client between manifests.

use std::collections::{HashMap, HashSet};
use std::ops::{ControlFlow, Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use manifest::{CapabilityId, ContentHash, Format, Manifest, ManifestId, SiteName};
use store::{
    ManifestBatch, ManifestSize, PackedManifest, SiteManifestSize, SiteReport, Store, StoreError,
    StoredManifest, VersionRecord,
};

use crate::buffers::ByteCount;
use crate::client::Client;
use crate::fair_permits::{FairPermits, Permit};
use crate::overload::capacity_problem;
use crate::permitted::{Permitted, off_runtime};
use crate::problem::{Problem, not_kept, withdrawn};
use runtime::{LimitReached, Share, Shares};

/// Assumed bytes of memory per byte of JSON. The worst case is the tree of many lists with one number each.
const TREE_FACTOR: u64 = 128;
/// Maximum memory of a small manifest, 256 KiB of JSON: most have a few KiB.
const SMALL_BYTES: u64 = 256 * 1024 * TREE_FACTOR;
/// Memory of small manifests held at the same time: four of the largest of them.
const SMALL_TOTAL_BYTES: usize = 128 * 1024 * 1024;
/// Minimum memory that is counted for a manifest, so that each request slot can have one.
const LEAST_BYTES: u64 = 256 * 1024;
/// Memory of large manifests held at the same time, per core; at least two and at most four cores are counted. The largest manifest counts
/// as the whole amount.
const LARGE_BYTES_PER_CORE: usize = 128 * 1024 * 1024;
const CORES: (usize, usize) = (2, 4);
/// Assumed bytes of the visits and hosts of a site, including the beginnings of four robots.txt files.
const HISTORY_BYTES: u64 = 192 * 1024;
/// Maximum number of bytes of manifests that are read for one page, as JSON; the first manifest may exceed it. Decoding them takes a
/// quarter of a second, during which no other client may read large manifests.
pub(crate) const PAGE_READ_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Maximum number of bytes of manifests that are read for the page of a site, as JSON; the first manifest may exceed it. Decoding them
/// takes half a second of processor time.
const SITE_READ_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Maximum wait for a permit: less than the deadline of a request.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The memory of manifests by their bytes of JSON.
const fn memory_of(json_bytes: u64) -> u64 {
    json_bytes.saturating_mul(TREE_FACTOR)
}

/// The content that a page keeps from its manifests: text, because trees of values take many times as much memory.
pub(crate) trait Kept: Send + 'static {
    /// About how many bytes it takes in memory.
    fn bytes(&self) -> usize;
}

/// The kept content of a page, counted for its client.
#[derive(Debug)]
pub(crate) struct Counted<S> {
    kept: S,
    count: ByteCount,
    /// The permit to read manifests, kept until the page has read all of its manifests, and its bytes.
    permit: Option<(Permit, u64)>,
}

impl<S: Kept> Counted<S> {
    /// Content that `count` counts already.
    pub(crate) const fn with(kept: S, count: ByteCount) -> Self {
        Self { kept, count, permit: None }
    }

    /// Counts the additions since the last call.
    pub(crate) fn count(&mut self) -> Result<(), LimitReached> {
        self.count.reach(self.kept.bytes())
    }

    /// A reader for the same request that is not refused because of kept content.
    pub(crate) const fn beside<'r>(&self, manifests: ManifestReader<'r>) -> ManifestReader<'r> {
        manifests.holding(self.count.counted())
    }

    /// Releases the permit. Must be called before the page waits for anything but manifests.
    pub(crate) fn without_permit(self) -> Self {
        Self { permit: None, ..self }
    }

    /// The kept content and the share that counts it, for the response that contains it.
    pub(crate) fn into_parts(self) -> (S, Option<Share>) {
        (self.kept, self.count.into_share())
    }
}

impl<S> Deref for Counted<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.kept
    }
}

impl<S> DerefMut for Counted<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.kept
    }
}

/// The bytes of manifests that are read for a page so far.
#[derive(Debug, Default)]
struct PageBytes(u64);

impl PageBytes {
    /// Whether the page may read another manifest of this size. If so, its bytes are added.
    const fn fits(&mut self, bytes: u64, bytes_max: u64) -> bool {
        let is_first = self.0 == 0;
        self.0 = self.0.saturating_add(bytes);
        is_first || self.0 <= bytes_max
    }
}

/// The first manifests that have at most `bytes_max`, and at least one, in batches; and the ids of the others.
fn first_batches(sizes: Vec<SiteManifestSize>, bytes_max: u64) -> (Vec<ManifestBatch>, HashSet<ManifestId>) {
    let mut page = PageBytes::default();
    let mut sizes: Vec<ManifestSize> = sizes.into_iter().map(ManifestSize::from).collect();
    let readable = sizes.iter().take_while(|size| page.fits(size.bytes, bytes_max)).count();
    let left_out = sizes.split_off(readable).into_iter().map(|size| size.id).collect();
    (ManifestBatch::of(sizes), left_out)
}

/// The permits of this process, in bytes of memory.
#[derive(Debug)]
pub(crate) struct ManifestPermits {
    small: FairPermits,
    large: FairPermits,
}

impl ManifestPermits {
    pub(crate) fn for_this_machine() -> Self {
        let (least, most) = CORES;
        let cores =
            std::thread::available_parallelism().map_or(least, |cores| cores.get().clamp(least, most));
        Self {
            small: FairPermits::new(SMALL_TOTAL_BYTES),
            large: FairPermits::new(cores * LARGE_BYTES_PER_CORE),
        }
    }

    /// Waits for a permit for `bytes` of memory.
    pub(crate) async fn acquire(&self, client: Client, bytes: u64) -> Result<Permit, Problem> {
        let permit = tokio::time::timeout(WAIT_MAX, self.acquire_in_background(client, bytes)).await;
        permit.map_err(|_| capacity_problem("bytes", LimitReached::All))?
    }

    /// Waits for a permit without a time limit, for work that no request waits for.
    async fn acquire_in_background(&self, client: Client, bytes: u64) -> Result<Permit, Problem> {
        let permits = if bytes <= SMALL_BYTES { &self.small } else { &self.large };
        let amount = usize::try_from(bytes.max(LEAST_BYTES)).unwrap_or(usize::MAX);
        permits.acquire(client.address, amount).await.map_err(|error| Problem::internal(&error))
    }
}

/// The data for a response about a site.
#[derive(Debug)]
pub(crate) struct SiteManifests<S> {
    pub(crate) report: SiteReport,
    /// Results for the manifests that were read.
    pub(crate) visited: Vec<S>,
    /// The manifests in the index that were not read.
    pub(crate) left_out: HashSet<ManifestId>,
}

/// Reads manifests for one client.
#[derive(Clone, Copy)]
pub(crate) struct ManifestReader<'a> {
    pub(crate) store: &'a Store,
    pub(crate) permits: &'a ManifestPermits,
    /// Bytes kept in memory for clients.
    pub(crate) buffered: &'a Arc<Shares>,
    pub(crate) client: Client,
    /// The part of these bytes that this request keeps in addition to its current reads.
    pub(crate) held: usize,
}

impl ManifestReader<'_> {
    /// The current version of a manifest, or the last one if it left the index because it is missing. Fails if the site forbids it.
    pub(crate) async fn find(self, id: &ManifestId) -> Result<Option<Permitted<StoredManifest>>, Problem> {
        self.refuse_withdrawn(id).await?;
        self.find_for_tombstone(id).await
    }

    /// The last version of a manifest, also if its site forbids it now. Only its names and its URL may be shown, in a report that it was
    /// removed.
    pub(crate) async fn find_for_tombstone(
        self,
        id: &ManifestId,
    ) -> Result<Option<Permitted<StoredManifest>>, Problem> {
        let Some(size) = self.store.manifest_size_find(id).await? else { return Ok(None) };
        let permit = self.permit(memory_of(size.bytes)).await?;
        let found = self.store.manifest_find(id).await?;
        Ok(found.map(|value| Permitted { value, permit }))
    }

    /// Fails if a manifest left the index because its site forbids it or withdrew it. No function that loads the content of a manifest
    /// outside the index may omit this.
    async fn refuse_withdrawn(self, id: &ManifestId) -> Result<(), Problem> {
        if self.store.manifest_is_withdrawn(id).await? { Err(withdrawn()) } else { Ok(()) }
    }

    /// The latest versions of a manifest, at most `max`. Fails if the site forbids it.
    pub(crate) async fn version_records(
        self,
        id: &ManifestId,
        max: u32,
    ) -> Result<Vec<VersionRecord>, Problem> {
        self.refuse_withdrawn(id).await?;
        Ok(self.store.manifest_versions(id, max).await?)
    }

    /// The manifest that declares a capability.
    pub(crate) async fn of_capability(
        self,
        id: &CapabilityId,
    ) -> Result<Option<Permitted<StoredManifest>>, Problem> {
        let Some(size) = self.store.manifest_size_of_capability(id).await? else { return Ok(None) };
        let permit = self.permit(memory_of(size.bytes)).await?;
        let found = self.store.manifest_of_capability(id).await?;
        Ok(found.map(|value| Permitted { value, permit }))
    }

    /// Two versions of a manifest; only one is read if they are the same; `None` if one of them was deleted. Fails if the site forbids it.
    pub(crate) async fn versions(
        self,
        id: &ManifestId,
        hashes: [&ContentHash; 2],
    ) -> Result<Option<Permitted<[Arc<Manifest>; 2]>>, Problem> {
        self.refuse_withdrawn(id).await?;
        let store = self.store;
        let Some(bytes) = self.versions_bytes(id, hashes).await? else { return Ok(None) };
        let permit = self.permit(memory_of(bytes)).await?;
        let [before, after] = hashes;
        let Some(read) = store.version_find(id, after).await?.map(Arc::new) else { return Ok(None) };
        let earlier = if before == after {
            Some(Arc::clone(&read))
        } else {
            store.version_find(id, before).await?.map(Arc::new)
        };
        Ok(earlier.map(|earlier| Permitted { value: [earlier, read], permit }))
    }

    /// The bytes of two versions of a manifest that are read, as JSON; `None` if one of them was deleted.
    pub(crate) async fn versions_bytes(
        self,
        id: &ManifestId,
        hashes: [&ContentHash; 2],
    ) -> Result<Option<u64>, Problem> {
        let mut bytes = 0_u64;
        let [before, after] = hashes;
        for hash in std::iter::once(before).chain(Some(after).filter(|after| *after != before)) {
            let Some(of_version) = self.store.version_bytes(id, hash).await? else { return Ok(None) };
            bytes = bytes.saturating_add(of_version);
        }
        Ok(Some(bytes))
    }

    /// The history of a site, without its manifests.
    pub(crate) async fn history(
        self,
        site: &SiteName,
        visits_max: u32,
        hosts_max: u32,
    ) -> Result<Option<Permitted<SiteReport>>, Problem> {
        let permit = self.permit(HISTORY_BYTES).await?;
        let report = self.store.site_report_brief(site, visits_max, hosts_max).await?;
        Ok(report.map(|value| Permitted { value, permit }))
    }

    /// The history of a site. Calls `visit` for each manifest that is read for the response, what the site publishes first, to add to a
    /// list. One permit covers all manifests, so a client that holds a permit never waits for another.
    pub(crate) async fn site<S: Send + 'static>(
        self,
        site: &SiteName,
        visits_max: u32,
        hosts_max: u32,
        visit: impl Fn(&mut Vec<S>, StoredManifest) + Send + 'static,
    ) -> Result<Option<Permitted<SiteManifests<S>>>, Problem> {
        let sizes = self.store.manifest_sizes_of_site(site).await?;
        let (batches, left_out) = first_batches(sizes, SITE_READ_BYTES_MAX);
        let largest = batches.iter().map(|batch| memory_of(batch.bytes)).max().unwrap_or(0);
        let mut permit = self.permit(HISTORY_BYTES.saturating_add(largest)).await?;
        let Some(report) = self.store.site_report_brief(site, visits_max, hosts_max).await? else {
            return Ok(None);
        };
        let (mut visited, mut visit) = (Vec::new(), visit);
        for batch in batches {
            let manifests = self.store.manifests_load(&batch.ids).await?;
            (visited, visit, permit) = off_runtime(move || {
                for stored in manifests {
                    visit(&mut visited, stored);
                }
                (visited, visit, permit)
            })
            .await?;
        }
        Ok(Some(Permitted { value: SiteManifests { report, visited, left_out }, permit }))
    }

    /// Counts the content that a page keeps, now and after each of its manifests.
    pub(crate) fn counted<S: Kept>(self, kept: S) -> Result<Counted<S>, Problem> {
        let mut counted = Counted::with(kept, self.byte_count());
        counted.count().map_err(|full| capacity_problem("bytes", full))?;
        Ok(counted)
    }

    /// A count of bytes for the client.
    pub(crate) fn byte_count(self) -> ByteCount {
        ByteCount::new(self.buffered, self.client.address)
    }

    /// The manifests of a site that are read for one page: those that `may_count`, what the site publishes first. Others take no bytes of
    /// the page.
    pub(crate) async fn batches_of_site(
        self,
        site: &SiteName,
        may_count: impl Fn(&SiteManifestSize) -> bool,
    ) -> Result<Vec<ManifestBatch>, Problem> {
        let mut sizes = self.store.manifest_sizes_of_site(site).await?;
        sizes.retain(may_count);
        Ok(first_batches(sizes, PAGE_READ_BYTES_MAX).0)
    }

    /// Calls `visit` with each of these manifests that is in the index, in the given order, until it breaks.
    pub(crate) async fn each_of<S, V>(
        self,
        ids: &[ManifestId],
        state: Counted<S>,
        visit: V,
    ) -> Result<Counted<S>, Problem>
    where
        S: Kept,
        V: Fn(&mut S, StoredManifest) -> ControlFlow<()> + Clone + Send + 'static,
    {
        let batches = self.store.manifest_batches(ids).await?;
        self.each_in(batches, state, visit).await
    }

    /// How many of the first manifests may be read for one page: at most [`PAGE_READ_BYTES_MAX`] in total, and at least one manifest.
    /// Manifests that are no longer in the index count as 0 bytes.
    pub(crate) async fn readable(self, ids: &[&ManifestId]) -> Result<usize, Problem> {
        let mut page = PageBytes::default();
        let each_once: HashSet<&ManifestId> = ids.iter().copied().collect();
        let each_once: Vec<ManifestId> = each_once.into_iter().cloned().collect();
        let sizes = self.store.manifest_sizes(&each_once).await?;
        let mut sizes: HashMap<ManifestId, u64> =
            sizes.into_iter().map(|size| (size.id, size.bytes)).collect();
        let fits = |id: &&&ManifestId| page.fits(sizes.remove(**id).unwrap_or_default(), PAGE_READ_BYTES_MAX);
        Ok(ids.iter().take_while(fits).count())
    }

    /// The sizes of manifests in the index, sorted by id.
    pub(crate) async fn sizes_after(
        self,
        after: Option<&ManifestId>,
        max: u32,
    ) -> Result<Vec<ManifestSize>, Problem> {
        Ok(self.store.manifest_sizes_after(after, max).await?)
    }

    /// The sizes of manifests in the index that have one of these formats, without those that only others name, sorted by id.
    pub(crate) async fn sizes_of_formats_after(
        self,
        formats: &[Format],
        after: Option<&ManifestId>,
        max: u32,
    ) -> Result<Vec<ManifestSize>, Problem> {
        Ok(self.store.manifest_sizes_of_formats_after(formats, after, max).await?)
    }

    /// The listed manifests that are in the index, in the given order and in the compressed form of the database. Needs no permit, because
    /// they take a fraction of the memory of their trees.
    pub(crate) async fn packed(self, ids: &[ManifestId]) -> Result<Vec<PackedManifest>, StoreError> {
        self.store.manifests_packed(ids).await
    }

    /// Runs work that unpacks manifests of at most `json_bytes` bytes, one after the other, on the blocking pool. Waits for the
    /// permit as long as it takes, so no request may wait for it.
    pub(crate) async fn unpacking<R, F>(self, json_bytes: u64, work: F) -> Result<R, Problem>
    where
        R: Send + 'static,
        F: FnOnce() -> R + Send + 'static,
    {
        let permit = self.permits.acquire_in_background(self.client, memory_of(json_bytes)).await?;
        Permitted { value: (), permit }.work(|()| work()).await
    }

    /// Calls `visit` with each manifest of these batches that is in the index, in their order, until it breaks.
    pub(crate) async fn each_in<S, V>(
        self,
        batches: Vec<ManifestBatch>,
        mut state: Counted<S>,
        visit: V,
    ) -> Result<Counted<S>, Problem>
    where
        S: Kept,
        V: Fn(&mut S, StoredManifest) -> ControlFlow<()> + Clone + Send + 'static,
    {
        let needed = batches.iter().map(|batch| memory_of(batch.largest).max(batch.bytes)).max().unwrap_or(0);
        if needed > 0 && state.permit.as_ref().is_none_or(|(_, bytes)| *bytes < needed) {
            state = state.without_permit();
            state.permit = Some((self.holding(state.count.counted()).permit(needed).await?, needed));
        }
        for batch in batches {
            let packed = self.packed(&batch.ids).await?;
            let visit = visit.clone();
            let visited = off_runtime(move || {
                let next = packed.iter().filter_map(PackedManifest::unpacked).try_for_each(|stored| {
                    let next = visit(&mut state.kept, stored);
                    match state.count() {
                        Ok(()) => next.map_break(Ok),
                        Err(full) => ControlFlow::Break(Err(full)),
                    }
                });
                (state, next)
            });
            let next;
            (state, next) = visited.await?;
            if let ControlFlow::Break(ended) = next {
                ended.map_err(|full| capacity_problem("bytes", full))?;
                break;
            }
        }
        Ok(state)
    }

    /// The bytes of a manifest's document as published, with the share that counts them towards the limit of the client. The share is taken
    /// before the bytes are read. Fails if the bytes may not be served: the publisher forbids copies, or did not permit storage.
    pub(crate) async fn document(self, stored: &StoredManifest) -> Result<(Vec<u8>, Share), Problem> {
        let manifest = &stored.manifest;
        self.refuse_withdrawn(&manifest.id).await?;
        if manifest.policies.caching_allowed == Some(false) {
            let detail = "the publisher does not allow others to serve copies (policies.caching.allowed is false); fetch \
                          it from the site itself";
            return Err(Problem::new(StatusCode::FORBIDDEN, detail));
        }
        if !stored.body_kept {
            return Err(not_kept());
        }
        let full = |full| capacity_problem("bytes", full);
        let announced = usize::try_from(manifest.served.bytes).unwrap_or(usize::MAX);
        let mut share = self.buffered.take(self.client.address, announced).map_err(full)?;
        let document = self.store.document_find(&manifest.content_hash).await?;
        let document = document.ok_or_else(not_kept)?;
        share.grow_to(document.len()).map_err(full)?;
        Ok((document, share))
    }

    /// This reader, for a request that keeps more bytes.
    pub(crate) const fn holding(self, bytes: usize) -> Self {
        Self { held: self.held.saturating_add(bytes), ..self }
    }

    /// A permit for `bytes` of memory. Fails if the response could not be sent because the other requests of the client have used up its
    /// limit.
    async fn permit(self, bytes: u64) -> Result<Permit, Problem> {
        self.has_room()?;
        let permit = self.permits.acquire(self.client, bytes).await?;
        self.has_room()?;
        Ok(permit)
    }

    /// A permit to parse declarations of `bytes` bytes of JSON; none for 0. The maximum counts as a small manifest, because declarations
    /// are lists of texts.
    pub(crate) async fn permit_for_declarations(self, json_bytes: u64) -> Result<Option<Permit>, Problem> {
        if json_bytes == 0 {
            return Ok(None);
        }
        self.permit(memory_of(json_bytes).min(SMALL_BYTES)).await.map(Some)
    }

    fn has_room(self) -> Result<(), Problem> {
        let is_at_limit = self.buffered.is_at_limit(self.client.address, self.held);
        if is_at_limit { Err(capacity_problem("bytes", LimitReached::Client)) } else { Ok(()) }
    }
}

#[cfg(test)]
#[path = "manifests_tests.rs"]
pub(crate) mod tests;
