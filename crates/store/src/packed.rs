//! Manifests and documents as the database stores them (compressed), and declarations (as JSON). They are unpacked after the connection has
//! been returned to its pool. Large ones are unpacked outside the async runtime, because the processor time is proportional to the size of
//! the publisher's document.

use manifest::declaration::Excerpt;
use manifest::{ContentHash, Manifest};

use crate::StoreError;
use crate::convert::{
    ManifestStateColumns, RowRef, decompressed_bytes, intact, log_damaged, manifest_bytes, to_u32,
};
use crate::from_row::from_row;
use crate::model::{StoredDeclaration, StoredManifest};

/// Values up to this uncompressed size are unpacked on the calling thread, which takes about ten microseconds.
const IN_PLACE_BYTES_MAX: u64 = 16 * 1024;

/// A stored value that has to be decompressed or parsed.
pub(crate) trait Packed: Send + 'static {
    type Unpacked: Send + 'static;

    /// Uncompressed bytes. The time to unpack the value is proportional to them.
    fn bytes(&self) -> u64;
    fn unpack(&self) -> Result<Self::Unpacked, StoreError>;
}

/// Unpacks one value.
pub(crate) async fn unpacked<P: Packed>(
    packed: Option<P>,
    operation: &'static str,
) -> Result<Option<P::Unpacked>, StoreError> {
    let Some(packed) = packed else { return Ok(None) };
    let bytes = packed.bytes();
    off_runtime(bytes, operation, move || packed.unpack()).await?.map(Some)
}

/// Unpacks a list. Damaged values are logged and left out.
pub(crate) async fn all_unpacked<P: Packed>(
    packed: Vec<P>,
    operation: &'static str,
) -> Result<Vec<P::Unpacked>, StoreError> {
    let bytes = packed.iter().map(P::bytes).fold(0, u64::saturating_add);
    off_runtime(bytes, operation, move || intact(packed.into_iter().map(Ok), |packed: P| packed.unpack()))
        .await
}

/// Size before compression; a frame that does not state its size counts as large.
fn bytes_of(frame: &[u8]) -> u64 {
    decompressed_bytes(frame).unwrap_or(u64::MAX)
}

async fn off_runtime<T: Send + 'static>(
    bytes: u64,
    operation: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    if bytes <= IN_PLACE_BYTES_MAX {
        return Ok(work());
    }
    let span = tracing::Span::current();
    match tokio::task::spawn_blocking(move || span.in_scope(work)).await {
        Ok(done) => Ok(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(_) => Err(StoreError::Unavailable { operation, source: sqlx::Error::WorkerCrashed }),
        },
    }
}

/// The current version of a manifest with its status, in the compressed form of the database. Takes a fraction of the memory of a
/// [`StoredManifest`].
#[derive(Debug)]
pub struct PackedManifest {
    pub(crate) id: String,
    version: i32,
    model: Vec<u8>,
    document_hash: Option<String>,
    state: ManifestStateColumns,
}

from_row!(PackedManifest { id, version, model, document_hash; state });

impl PackedManifest {
    /// Bytes of the manifest as JSON.
    pub fn json_bytes(&self) -> u64 {
        manifest_bytes(&self.model)
    }

    /// The manifest; `None` if it is damaged, which is logged. Takes processor time in proportion to its size.
    pub fn unpacked(&self) -> Option<StoredManifest> {
        log_damaged(self.unpack())
    }
}

impl Packed for PackedManifest {
    type Unpacked = StoredManifest;

    fn bytes(&self) -> u64 {
        bytes_of(&self.model)
    }

    fn unpack(&self) -> Result<StoredManifest, StoreError> {
        let at = RowRef::new("manifest", &self.id);
        let version = RowRef::new("manifest_version", &self.id);
        let manifest: Manifest = version.json("model", &version.bytes("model", &self.model)?)?;
        if manifest.id.as_str() != self.id {
            return Err(version.damaged("model", &format!("it is the model of {}", manifest.id)));
        }
        let state = at.manifest_state(&self.state, &manifest.url)?;
        Ok(StoredManifest {
            manifest,
            training: state.training,
            named_by: state.named_by,
            publisher: state.publisher,
            status: state.status,
            first_seen_at: state.first_seen_at,
            last_seen_at: state.last_seen_at,
            changed_at: state.changed_at,
            versions: to_u32(self.version),
            body_kept: self.document_hash.is_some(),
        })
    }
}

/// One version of a manifest.
pub(crate) struct PackedVersion {
    pub(crate) manifest_id: String,
    pub(crate) model: Vec<u8>,
}

impl Packed for PackedVersion {
    type Unpacked = Manifest;

    fn bytes(&self) -> u64 {
        bytes_of(&self.model)
    }

    fn unpack(&self) -> Result<Manifest, StoreError> {
        let at = RowRef::new("manifest_version", &self.manifest_id);
        at.json("model", &at.bytes("model", &self.model)?)
    }
}

/// A document as published.
pub(crate) struct PackedDocument {
    pub(crate) hash: String,
    pub(crate) body: Vec<u8>,
    /// SHA-256 of the stored bytes.
    pub(crate) body_hash: Option<String>,
}

impl Packed for PackedDocument {
    type Unpacked = Vec<u8>;

    fn bytes(&self) -> u64 {
        bytes_of(&self.body)
    }

    fn unpack(&self) -> Result<Vec<u8>, StoreError> {
        let at = RowRef::new("document", &self.hash);
        let body = at.bytes("body", &self.body)?;
        if let Some(kept) = &self.body_hash {
            let found = ContentHash::of(&body);
            if found.as_str() != kept {
                let reason = format!("its bytes have the SHA-256 {found} instead of {kept}");
                return Err(at.damaged("body", &reason));
            }
        }
        Ok(body)
    }
}

/// A declaration whose statement is stored, in the form of the database.
pub(crate) struct PackedDeclaration {
    id: String,
    statement: String,
    state: ManifestStateColumns,
}

from_row!(PackedDeclaration { id, statement; state });

impl Packed for PackedDeclaration {
    type Unpacked = StoredDeclaration;

    fn bytes(&self) -> u64 {
        self.statement.len() as u64
    }

    fn unpack(&self) -> Result<StoredDeclaration, StoreError> {
        let at = RowRef::new("capability", &self.id);
        let excerpt: Excerpt = at.json("statement", self.statement.as_bytes())?;
        if excerpt.statement.id.as_str() != self.id {
            return Err(at.damaged("statement", &format!("it is that of {}", excerpt.statement.id)));
        }
        let state = at.manifest_state(&self.state, &excerpt.statement.url)?;
        Ok(StoredDeclaration {
            excerpt,
            training: state.training,
            named_by: state.named_by,
            publisher: state.publisher,
            status: state.status,
            first_seen_at: state.first_seen_at,
            last_seen_at: state.last_seen_at,
            changed_at: state.changed_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{ThreadId, current};

    use super::*;
    use crate::convert::compress;

    /// Unpacks to the id of the thread that unpacked it.
    struct Probe(Vec<u8>);

    impl Packed for Probe {
        type Unpacked = ThreadId;

        fn bytes(&self) -> u64 {
            bytes_of(&self.0)
        }

        fn unpack(&self) -> Result<ThreadId, StoreError> {
            Ok(current().id())
        }
    }

    fn probe(bytes: usize) -> Probe {
        Probe(compress(&vec![b'x'; bytes], "probe").unwrap())
    }

    #[tokio::test]
    async fn large_values_are_unpacked_outside_the_runtime() {
        let own = current().id();
        for (bytes, is_own) in [(10, true), (16 * 1024, true), (16 * 1024 + 1, false), (4_000_000, false)] {
            let done = unpacked(Some(probe(bytes)), "test").await.unwrap().unwrap();
            assert_eq!(done == own, is_own, "{bytes}");
        }
        let together = all_unpacked((0..20).map(|_| probe(1_000)).collect(), "test").await.unwrap();
        assert!(together.iter().all(|done| *done != own) && together.len() == 20);
        let of_unknown_size = unpacked(Some(Probe(Vec::new())), "test").await.unwrap().unwrap();
        assert_ne!(of_unknown_size, own);
    }
}
