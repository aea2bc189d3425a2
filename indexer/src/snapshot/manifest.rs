//! What a snapshot holds, and what of a stranger's manifest is refused.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use store::FeedPosition;

use super::{CURRENT, SnapshotError, failed};
use crate::index::SCHEMA_VERSION;

/// Version of this manifest; one of another version is refused.
const FORMAT: u32 = 1;
/// A segment has about eight files and merging keeps them to some dozens.
const FILES_MAX: usize = 10_000;
/// Ten thousand files of about 150 octets each, and room.
const MANIFEST_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Octets of a SHA-256 in hexadecimal.
const HASH_LENGTH: usize = 64;

/// One state of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    format: u32,
    pub schema_version: u32,
    pub feed_id: String,
    /// How far in the feed it reaches.
    pub position: FeedPosition,
    pub published_at: DateTime<Utc>,
    pub files: Vec<SnapshotFile>,
}

/// One file of the index.
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

    /// Reads the manifest that a directory names as current.
    pub fn current(dir: &Path) -> Result<Self, SnapshotError> {
        Self::read(dir, &dir.join(CURRENT))
    }

    pub(super) fn read(dir: &Path, path: &Path) -> Result<Self, SnapshotError> {
        let wrong = |reason: String| SnapshotError::Wrong { dir: dir.to_owned(), reason };
        let file = File::open(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => SnapshotError::Missing { dir: dir.to_owned() },
            _ => failed(path)(source),
        })?;
        let mut text = String::new();
        file.take(MANIFEST_BYTES_MAX).read_to_string(&mut text).map_err(failed(path))?;
        let snapshot: Self = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        match snapshot.refusal() {
            Some(reason) => Err(wrong(reason)),
            None => Ok(snapshot),
        }
    }

    /// Puts it in the place of the one that was current.
    pub(super) fn write(&self, path: &Path) -> Result<(), SnapshotError> {
        let draft = path.with_extension("new");
        let write = || {
            let mut file = File::create(&draft)?;
            file.write_all(&serde_json::to_vec_pretty(self)?)?;
            file.sync_all()?;
            fs::rename(&draft, path)?;
            path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
        };
        write().map_err(failed(path))
    }

    fn refusal(&self) -> Option<String> {
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
        let stray = self.files.iter().find(|file| !file.is_plain());
        stray.map(|file| format!("\"{}\" is not a file of an index", file.name.escape_debug()))
    }
}

impl SnapshotFile {
    /// A name without a path, and a hash: nothing that leads anywhere else.
    fn is_plain(&self) -> bool {
        let is_name = self.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        let is_hash = self.sha256.len() == HASH_LENGTH
            && self.sha256.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        is_name && is_hash && !matches!(self.name.as_str(), "" | "." | "..")
    }
}
