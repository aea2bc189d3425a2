//! The manifest of a snapshot, and its validation.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use store::FeedPosition;

use super::error::{SnapshotError, failed};
use crate::index::SCHEMA_VERSION;

/// Version of the manifest; other versions are rejected.
const FORMAT: u32 = 1;
/// Maximum number of files. A segment has about eight, and merging keeps a few dozen segments.
pub(super) const FILES_MAX: usize = 10_000;
/// Maximum size of a manifest in bytes: more than ten thousand files with about 150 bytes each.
pub(super) const MANIFEST_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Maximum size of a file: an object of 10,000 parts of 8 MiB, far more than a segment of this index.
const FILE_BYTES_MAX: u64 = 10_000 * 8 * 1024 * 1024;
/// Length of a SHA-256 in hexadecimal.
pub(super) const HASH_LENGTH: usize = 64;

/// One commit of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    format: u32,
    pub schema_version: u32,
    pub feed_id: String,
    /// Position in the feed.
    pub position: FeedPosition,
    pub published_at: DateTime<Utc>,
    pub files: Vec<SnapshotFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotFile {
    pub name: String,
    pub bytes: u64,
    /// SHA-256 in hexadecimal, which is also its name below `files/`.
    pub sha256: String,
}

impl Snapshot {
    pub(super) fn new(
        feed_id: String,
        position: FeedPosition,
        published_at: DateTime<Utc>,
        files: Vec<SnapshotFile>,
    ) -> Self {
        Self { format: FORMAT, schema_version: SCHEMA_VERSION, feed_id, position, published_at, files }
    }

    pub(super) fn read(location: &str, path: &Path) -> Result<Self, SnapshotError> {
        let file = File::open(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => SnapshotError::Missing { location: location.to_owned() },
            _ => failed(path)(source),
        })?;
        let mut text = Vec::new();
        file.take(MANIFEST_BYTES_MAX).read_to_end(&mut text).map_err(failed(path))?;
        Self::parse(location, &text)
    }

    /// Parses a manifest. Rejects manifests with unsafe paths, or of an index that this program cannot serve.
    pub(super) fn parse(location: &str, text: &[u8]) -> Result<Self, SnapshotError> {
        let wrong = |reason: String| SnapshotError::Invalid { location: location.to_owned(), reason };
        let snapshot: Self = serde_json::from_slice(text).map_err(|error| wrong(error.to_string()))?;
        match snapshot.problem() {
            Some(reason) => Err(wrong(reason)),
            None => Ok(snapshot),
        }
    }

    pub(super) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(self)
    }

    /// Replaces the current manifest atomically.
    pub(super) fn write(&self, path: &Path) -> Result<(), SnapshotError> {
        let draft = path.with_extension("new");
        let write = || {
            let mut file = File::create(&draft)?;
            file.write_all(&self.to_json()?)?;
            file.sync_all()?;
            fs::rename(&draft, path)?;
            path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
        };
        write().map_err(failed(path))
    }

    /// Why the manifest is invalid.
    fn problem(&self) -> Option<String> {
        if self.format != FORMAT {
            return Some(format!("its format is {} and this program reads {FORMAT}", self.format));
        }
        if self.schema_version != SCHEMA_VERSION {
            return Some(format!(
                "its index has schema version {} and this program needs {SCHEMA_VERSION}: upgrade whichever is older",
                self.schema_version
            ));
        }
        if self.files.len() > FILES_MAX {
            return Some(format!("it has {} files and the most is {FILES_MAX}", self.files.len()));
        }
        if let Some(file) = self.files.iter().find(|file| file.bytes > FILE_BYTES_MAX) {
            let name = file.name.escape_debug();
            return Some(format!("\"{name}\" has {} bytes and the most is {FILE_BYTES_MAX}", file.bytes));
        }
        let stray = self.files.iter().find(|file| !file.is_plain());
        stray.map(|file| format!("\"{}\" is not a file of an index", file.name.escape_debug()))
    }
}

impl SnapshotFile {
    /// Whether it has a plain name without a path, and a hash.
    fn is_plain(&self) -> bool {
        let is_name = self.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        let is_hash = self.sha256.len() == HASH_LENGTH
            && self.sha256.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        is_name && is_hash && !matches!(self.name.as_str(), "" | "." | "..")
    }
}
