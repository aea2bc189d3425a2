//! The payload of a commit: its feed, and its position in the feed.

use std::path::Path;

use serde::{Deserialize, Serialize};
use store::FeedPosition;
use tantivy::Index;

use super::schema::SCHEMA_VERSION;
use crate::config::Contents;
use crate::error::IndexError;

/// Written with every commit, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Payload {
    pub(crate) schema_version: u32,
    pub(crate) feed_id: String,
    pub(crate) position: FeedPosition,
    /// Version of the operator's examples.
    #[serde(default)]
    pub(crate) examples: u64,
    #[serde(default)]
    pub(crate) contents: Contents,
}

impl Payload {
    pub(crate) fn new(feed_id: String, position: FeedPosition, examples: u64, contents: Contents) -> Self {
        Self { schema_version: SCHEMA_VERSION, feed_id, position, examples, contents }
    }

    /// Fails if the index has other contents.
    pub(crate) fn check_contents(&self, dir: &Path, needed: Contents) -> Result<(), IndexError> {
        let dir = || dir.to_owned();
        match (self.contents, needed) {
            (Contents::Vocabulary, Contents::Capabilities) => Err(IndexError::OnCluster { dir: dir() }),
            (Contents::Capabilities, Contents::Vocabulary) => Err(IndexError::NotOnCluster { dir: dir() }),
            _ => Ok(()),
        }
    }

    /// Reads the payload of the last commit; fails for another schema version.
    pub(crate) fn read(dir: &Path, index: &Index) -> Result<Self, IndexError> {
        let corrupt = |reason: &str| IndexError::Corrupt { dir: dir.to_owned(), reason: reason.to_owned() };
        let metas = index.load_metas().map_err(|error| corrupt(&error.to_string()))?;
        let payload: Self = metas
            .payload
            .and_then(|text| serde_json::from_str(&text).ok())
            .ok_or_else(|| corrupt("its last commit has no feed position"))?;
        if payload.schema_version == SCHEMA_VERSION {
            return Ok(payload);
        }
        let found = payload.schema_version;
        Err(IndexError::SchemaOther { dir: dir.to_owned(), found, needed: SCHEMA_VERSION })
    }
}
