//! Memory that visits share for documents that wait to be saved.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory that a visit may use without a permit: 64 MiB for 256 visits.
const EXEMPT_BYTES: usize = 256 * 1_024;
/// Maximum memory of one visit: the largest document with the largest manifest, and half as much again.
pub(super) const VISIT_BYTES_MAX: usize = 160 * 1_024 * 1_024;
/// The part of [`VISIT_BYTES_MAX`] for documents that were reached by a link. Users of a site may have written such documents, so the rest
/// is reserved for the site's own documents.
const LINKED_BYTES_MAX: usize = VISIT_BYTES_MAX / 2;
/// Bytes per permit.
const PERMIT_BYTES: usize = 4 * 1_024;
/// Memory for all visits of this process.
const PERMITS: usize = 512 * 1_024 * 1_024 / PERMIT_BYTES;
/// A body is in memory twice: as it was received, and combined with its parts.
const BODY_FACTOR: usize = 2;
/// Parsed rules take at most this many times the bytes of their robots.txt: each rule is kept in normal form, as it was written,
/// and by the matcher.
const RULES_FACTOR: usize = 24;
/// Maximum wait for memory. Visits that hold memory may wait for more, so the wait must be bounded to prevent a deadlock.
pub(super) const MEMORY_WAIT: Duration = Duration::from_secs(30);
/// Memory that a visit uses until it is saved; released on drop.
#[derive(Debug, Default)]
pub(crate) struct HeldMemory {
    bytes: usize,
    /// The part of `bytes` for documents that were reached by a link.
    linked_bytes: usize,
    permits: Vec<OwnedSemaphorePermit>,
    document: DocumentInProgress,
}

/// The memory held when the visit began to read its current document.
#[derive(Debug, Clone, Copy, Default)]
struct DocumentInProgress {
    is_linked: bool,
    bytes_before: usize,
    linked_bytes_before: usize,
    permits_before: usize,
}

impl HeldMemory {
    /// Begins a document. Memory that is held from now on for a body or a manifest belongs to it.
    pub(crate) fn begin_document(&mut self, is_linked: bool) {
        self.document = DocumentInProgress {
            is_linked,
            bytes_before: self.bytes,
            linked_bytes_before: self.linked_bytes,
            permits_before: self.permits.len(),
        };
    }

    /// Releases the memory that is held for the document in progress.
    pub(crate) fn drop_document(&mut self) {
        let DocumentInProgress { bytes_before, linked_bytes_before, permits_before, .. } = self.document;
        (self.bytes, self.linked_bytes) = (bytes_before, linked_bytes_before);
        self.permits.truncate(permits_before);
    }
}

/// Why a visit gets no more memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoMemory {
    /// Other visits used too much memory for too long.
    Now,
    /// The documents of this visit together are too large.
    InThisVisit,
    /// The document is too large by itself.
    InAnyVisit,
}

/// The memory of a process for the documents of its visits; cheap to clone.
#[derive(Clone)]
pub(crate) struct MemoryBudget {
    permits: Arc<Semaphore>,
    wait: Duration,
}

impl MemoryBudget {
    /// `wait` is the maximum wait of a visit for memory.
    pub(crate) fn new(wait: Duration) -> Self {
        Self { permits: Arc::new(Semaphore::new(PERMITS)), wait }
    }

    pub(crate) async fn hold_body(&self, held: &mut HeldMemory, bytes: usize) -> Result<(), NoMemory> {
        self.hold_document(held, bytes * BODY_FACTOR).await
    }

    /// Memory for a manifest, see [`manifest::budget::manifest_bytes`].
    pub(crate) async fn hold_manifest(&self, held: &mut HeldMemory, bytes: usize) -> Result<(), NoMemory> {
        self.hold_document(held, bytes).await
    }

    /// Holds memory for the document in progress. If it would not fit even without the other documents, it is too large by itself.
    async fn hold_document(&self, held: &mut HeldMemory, bytes: usize) -> Result<(), NoMemory> {
        let DocumentInProgress { is_linked, bytes_before, .. } = held.document;
        let of_document = held.bytes - bytes_before + bytes;
        if of_document > if is_linked { LINKED_BYTES_MAX } else { VISIT_BYTES_MAX } {
            return Err(NoMemory::InAnyVisit);
        }
        let linked_bytes = held.linked_bytes + if is_linked { bytes } else { 0 };
        if linked_bytes > LINKED_BYTES_MAX {
            return Err(NoMemory::InThisVisit);
        }
        self.hold(held, bytes).await?;
        held.linked_bytes = linked_bytes;
        Ok(())
    }

    /// Holds memory for the parsed rules of a robots.txt of `bytes` bytes.
    pub(crate) async fn hold_rules(&self, held: &mut HeldMemory, bytes: usize) -> Result<(), NoMemory> {
        self.hold(held, bytes * RULES_FACTOR).await
    }

    /// Holds memory for robots.txt files, which are kept once until they are saved.
    pub(crate) async fn hold_robots(&self, held: &mut HeldMemory, bytes: usize) -> Result<(), NoMemory> {
        self.hold(held, bytes).await
    }

    /// Holds memory for links to other sites, which take exactly `bytes` bytes until they are saved.
    pub(crate) async fn hold_links(&self, held: &mut HeldMemory, bytes: usize) -> Result<(), NoMemory> {
        self.hold(held, bytes).await
    }

    async fn hold(&self, held: &mut HeldMemory, bytes: usize) -> Result<(), NoMemory> {
        let sum = held.bytes + bytes;
        if sum > VISIT_BYTES_MAX {
            return Err(NoMemory::InThisVisit);
        }
        if sum > EXEMPT_BYTES {
            let permits = u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX);
            let permits = Arc::clone(&self.permits).acquire_many_owned(permits);
            match tokio::time::timeout(self.wait, permits).await {
                Ok(Ok(permits)) => held.permits.push(permits),
                Ok(Err(_)) | Err(_) => return Err(NoMemory::Now),
            }
        }
        held.bytes = sum;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn limits_the_memory_of_all_visits_and_exempts_small_documents() {
        const LARGEST: usize = manifest::DOCUMENT_BYTES_MAX;
        let memory = MemoryBudget::new(Duration::from_millis(20));
        let mut visits = Vec::new();
        loop {
            let mut held = HeldMemory::default();
            match memory.hold_body(&mut held, LARGEST).await {
                Ok(()) => visits.push(held),
                Err(NoMemory::Now) => break,
                Err(none) => panic!("one document fits: {none:?}"),
            }
        }
        assert_eq!(visits.len() * LARGEST * BODY_FACTOR, PERMITS * PERMIT_BYTES);
        let mut small = HeldMemory::default();
        assert_eq!(memory.hold_body(&mut small, EXEMPT_BYTES / BODY_FACTOR).await, Ok(()));
        assert_eq!(memory.hold_manifest(&mut small, 1).await, Err(NoMemory::Now));
        visits.clear();
        assert_eq!(memory.hold_manifest(&mut small, 1).await, Ok(()));
        let mut greedy = HeldMemory::default();
        while memory.hold_body(&mut greedy, LARGEST).await.is_ok() {
            greedy.begin_document(false);
        }
        assert!(greedy.bytes <= VISIT_BYTES_MAX);
        assert_eq!(memory.hold_body(&mut greedy, LARGEST).await, Err(NoMemory::InThisVisit));
    }

    #[tokio::test]
    async fn linked_documents_leave_half_of_a_visit_to_the_sites_own() {
        const LARGE: usize = 14 * 1_024 * 1_024;
        let (memory, mut held) = (MemoryBudget::new(Duration::from_millis(20)), HeldMemory::default());
        let mut read = async |is_linked: bool, manifest_bytes: usize| {
            held.begin_document(is_linked);
            let body = memory.hold_body(&mut held, LARGE).await;
            let read = match body {
                Ok(()) => memory.hold_manifest(&mut held, manifest_bytes).await,
                Err(none) => Err(none),
            };
            if read.is_err() {
                held.drop_document();
            }
            (read, held.bytes, held.linked_bytes)
        };
        let body = LARGE * BODY_FACTOR;
        let too_large = read(true, LINKED_BYTES_MAX).await;
        assert_eq!(too_large, (Err(NoMemory::InAnyVisit), 0, 0), "no memory is held for it");
        assert_eq!(read(true, 0).await, (Ok(()), body, body));
        assert_eq!(read(true, 0).await, (Ok(()), 2 * body, 2 * body));
        assert_eq!(read(true, 0).await, (Err(NoMemory::InThisVisit), 2 * body, 2 * body));
        assert_eq!(read(true, LINKED_BYTES_MAX).await.0, Err(NoMemory::InThisVisit));
        for own in 1..=3 {
            assert_eq!(read(false, 0).await, (Ok(()), (2 + own) * body, 2 * body));
        }
        assert_eq!(read(false, VISIT_BYTES_MAX).await.0, Err(NoMemory::InThisVisit));
    }
}
