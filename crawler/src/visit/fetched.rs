//! The result of one task, as it is saved and as it is stored with a parked visit.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use data_encoding::BASE64;
use manifest::model::{PolicyChoice, Served};
use manifest::{ContentHash, Discovery, Manifest, ManifestUrl};
use policy::FetchOutcome;
use policy::freshness::{CacheRecord, Freshness, Retention};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use store::FetchRecord;

use super::links::FollowUps;
use super::task::{NamedBy, Role, Task};

/// A body that is stored with a parked visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document(pub(crate) Vec<u8>);

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64.decode(text.as_bytes()).map(Self).map_err(serde::de::Error::custom)
    }
}

/// The result of one task. A visit keeps one for each path of the plan, so rare fields are boxed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Fetched {
    pub(crate) url: ManifestUrl,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) final_url: Option<Box<ManifestUrl>>,
    pub(crate) discovery: Discovery,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) linked_from: Option<Box<ManifestUrl>>,
    pub(crate) role: Role,
    #[serde(default, skip_serializing_if = "NamedBy::is_site")]
    pub(crate) named_by: NamedBy,
    pub(crate) outcome: FetchOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) robots_rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) headers: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache: Option<Box<CacheRecord>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hash: Option<ContentHash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<Document>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) served: Option<Box<Served>>,
    /// The preference of robots.txt and the response about training models with the document.
    #[serde(default, skip_serializing_if = "PolicyChoice::is_unset")]
    pub(crate) training: PolicyChoice,
    pub(crate) at: DateTime<Utc>,
    pub(crate) duration_ms: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<IpAddr>,
    pub(crate) bytes: u64,
    /// Read from the body. After an interruption it is read again.
    #[serde(skip)]
    pub(crate) manifest: Option<Box<Manifest>>,
    /// Whether the manifest is equal to the stored one, which an earlier version of the reader read. How it was served is not compared.
    #[serde(skip)]
    pub(crate) is_stored_reading: bool,
    /// The links of a page; taken as soon as the page is recorded.
    #[serde(skip)]
    pub(crate) page: Option<Box<FollowUps>>,
}

impl Fetched {
    /// The result of a task without a response.
    pub(crate) fn unanswered(
        task: &Task,
        outcome: FetchOutcome,
        reason: Option<String>,
        at: DateTime<Utc>,
    ) -> Self {
        Self {
            url: task.url.clone(),
            final_url: task.final_url().map(Box::new),
            discovery: task.discovery,
            linked_from: task.linked_from.clone(),
            role: task.role,
            named_by: task.named_by,
            outcome,
            reason,
            robots_rule: None,
            status: None,
            headers: Vec::new(),
            cache: None,
            hash: None,
            body: None,
            served: None,
            training: PolicyChoice::Unset,
            at,
            duration_ms: 0,
            address: None,
            bytes: 0,
            manifest: None,
            is_stored_reading: false,
            page: None,
        }
    }

    /// Drops the document, and sets the outcome and its reason.
    pub(crate) fn reject(&mut self, outcome: FetchOutcome, reason: String) {
        (self.manifest, self.body, self.hash, self.cache) = (None, None, None, None);
        (self.outcome, self.reason) = (outcome, Some(reason));
    }

    /// Whether the document is neither named by the site itself nor a part of its manifests.
    pub(crate) fn is_link(&self) -> bool {
        self.named_by.is_link(self.role)
    }

    pub(crate) fn body_bytes(&self) -> usize {
        self.body.as_ref().map_or(0, |body| body.0.len())
    }

    /// When the response becomes stale and may be requested again.
    pub(crate) fn fresh_until(&self) -> Option<DateTime<Utc>> {
        match self.cache.as_ref()?.freshness(self.at) {
            Freshness::Fresh { until } => Some(self.role.copy_use().limit(self.at, until)),
            _ => None,
        }
    }

    /// The row that is saved.
    pub(crate) fn into_record(self) -> FetchRecord {
        let fresh_until = self.fresh_until();
        let may_keep = self.cache.as_ref().is_none_or(|cache| cache.retention() == Retention::Everything);
        FetchRecord {
            url: self.url,
            final_url: self.final_url.map(|url| *url),
            discovery: self.discovery,
            linked_from: self.linked_from.map(|url| *url),
            outcome: self.outcome,
            reason: self.reason,
            robots_rule: self.robots_rule,
            status: self.status,
            headers: self.headers,
            etag: self.cache.as_ref().and_then(|cache| cache.etag().map(str::to_owned)),
            last_modified: self.cache.as_ref().and_then(|cache| cache.last_modified().map(str::to_owned)),
            cache: self.cache.as_ref().and_then(|cache| serde_json::to_value(cache).ok()),
            fresh_until,
            content_hash: self.hash,
            body: self.body.map(|body| body.0),
            store_body: may_keep,
            manifest: self.manifest,
            is_stored_reading: self.is_stored_reading,
            training: self.training,
            at: self.at,
            duration_ms: self.duration_ms,
            address: self.address,
            bytes: self.bytes,
        }
    }
}
