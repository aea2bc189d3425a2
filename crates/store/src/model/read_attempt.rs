//! Documents that are being read, and documents that crashed or stalled a reader.

use chrono::{DateTime, Utc};
use manifest::{ContentHash, ManifestUrl, SiteName};

/// Maximum length of a stored reason, in characters.
pub(crate) const REASON_CHARS_MAX: usize = 300;

/// A document that is about to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadAttempt {
    /// Hash of the bytes that are read.
    pub hash: ContentHash,
    /// Version of the reader.
    pub reader_version: u32,
    /// Site whose visit reads it.
    pub site: SiteName,
    /// Where it was found.
    pub url: ManifestUrl,
    /// When reading begins.
    pub began_at: DateTime<Utc>,
}

/// The change to the attempts of one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadAttemptWrite {
    /// Written before the document is read.
    Begin(ReadAttempt),
    /// The document was read: the attempt is removed.
    End {
        /// Hash of the document.
        hash: ContentHash,
    },
    /// The document crashed or stalled its reader.
    Quarantine {
        /// The attempt to read it; a row of the same document is replaced.
        attempt: ReadAttempt,
        /// When it was quarantined.
        at: DateTime<Utc>,
        /// What happened; truncated after 300 characters.
        reason: String,
    },
}

/// An attempt by the same or a newer reader version that is already stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierAttempt {
    /// Site whose visit read it.
    pub site: SiteName,
    /// When reading began.
    pub began_at: DateTime<Utc>,
    /// Why the document is quarantined; `None` while it is not.
    pub quarantined: Option<String>,
}
