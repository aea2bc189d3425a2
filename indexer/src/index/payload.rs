//! What a commit carries beside the documents: how far in which feed it reaches.

use serde::{Deserialize, Serialize};
use store::FeedPosition;

use super::SCHEMA_VERSION;

/// Written with every commit, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Payload {
    pub(crate) schema_version: u32,
    pub(crate) feed_id: String,
    pub(crate) position: FeedPosition,
}

impl Payload {
    pub(crate) fn new(feed_id: String, position: FeedPosition) -> Self {
        Self { schema_version: SCHEMA_VERSION, feed_id, position }
    }

    pub(crate) fn parse(text: Option<&str>) -> Option<Self> {
        serde_json::from_str(text?).ok()
    }
}
