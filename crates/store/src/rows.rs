//! Rows of `site_state`, `host` and `robots`, with the columns that visits read and write.
//!
//! `sql/state.rs` reads and writes them. The module `compaction` encodes them for sites without rows in these tables: a field
//! marked `#[serde(skip)]` is then a column of `site`, or has no value.

pub(crate) mod dictionary;
pub(crate) mod encodings;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::encodings::{path_runs, seconds};
use crate::StoreError;
use crate::convert::{RowRef, compress, decompressed_bytes, millis, text, text_of, to_i32, to_u32};
use crate::from_row::from_row;
use crate::model::{HostOrigin, HostState, ParkedVisit, PathSlots, RobotsRecord, SiteState};

/// A row of `site_state`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StateRow {
    #[serde(skip)]
    pub(crate) name: String,
    #[serde(skip)]
    pub(crate) status: String,
    #[serde(skip)]
    pub(crate) visits: i32,
    #[serde(skip)]
    pub(crate) failures_in_row: i32,
    #[serde(skip)]
    pub(crate) last_visit_at_ms: Option<i64>,
    pub(crate) changes: i32,
    pub(crate) first_seen_at_ms: i64,
    #[serde(with = "seconds")]
    pub(crate) first_visit_at_ms: Option<i64>,
    #[serde(with = "dictionary")]
    pub(crate) last_end: Option<String>,
    #[serde(with = "dictionary")]
    pub(crate) next_visit_reason: Option<String>,
    pub(crate) negatives_in_row: i32,
    #[serde(with = "path_runs")]
    pub(crate) paths_checked: Option<Vec<u8>>,
    #[serde(with = "seconds")]
    pub(crate) hinted_at_ms: Option<i64>,
    #[serde(skip)]
    pub(crate) parked_until_ms: Option<i64>,
    #[serde(skip)]
    pub(crate) parked_reason: Option<String>,
    #[serde(skip)]
    pub(crate) parked_progress: Option<String>,
    #[serde(skip)]
    pub(crate) manifests: i32,
    #[serde(skip)]
    pub(crate) capabilities: i32,
    #[serde(skip)]
    pub(crate) formats: String,
}

from_row!(StateRow {
    name,
    status,
    visits,
    failures_in_row,
    last_visit_at_ms,
    changes,
    first_seen_at_ms,
    first_visit_at_ms,
    last_end,
    next_visit_reason,
    negatives_in_row,
    paths_checked,
    hinted_at_ms,
    parked_until_ms,
    parked_reason,
    parked_progress,
    manifests,
    capabilities,
    formats
});

/// `next_visit_reason` of a visit that the owner of the site requested.
pub(crate) const OWNER_REQUESTED: &str = "its owner requested a visit";
/// `next_visit_reason` while the owner has requested another visit than the one that is in progress.
pub(crate) const OWNER_REQUESTED_NEXT: &str = "its owner requested another visit after the current one";

impl TryFrom<StateRow> for SiteState {
    type Error = StoreError;

    /// The site without its hosts, its resources and its priority, which are in other tables.
    fn try_from(row: StateRow) -> Result<Self, StoreError> {
        let at = RowRef::new("site_state", &row.name);
        let progress = match row.parked_progress {
            Some(progress) => at.json("parked_progress", progress.as_bytes())?,
            None => Value::Null,
        };
        let (parked, interrupted) = match row.parked_until_ms {
            None => (None, Some(progress).filter(|progress| !progress.is_null())),
            Some(until_ms) => {
                let resume_at = at.time("parked_until_ms", until_ms)?;
                let reason = row.parked_reason.unwrap_or_default();
                (Some(ParkedVisit { resume_at, reason, progress, claim: None }), None)
            }
        };
        Ok(Self {
            name: at.parse("name", &row.name)?,
            status: at.parse("status", &row.status)?,
            hosts: Vec::new(),
            resources: Vec::new(),
            outdated: BTreeSet::new(),
            visits: to_u32(row.visits),
            changes: to_u32(row.changes),
            first_visit_at: at.time_of("first_visit_at_ms", row.first_visit_at_ms)?,
            last_visit_at: at.time_of("last_visit_at_ms", row.last_visit_at_ms)?,
            last_end: at.parse_of("last_end", row.last_end.as_ref())?,
            failures_in_row: to_u32(row.failures_in_row),
            negatives_in_row: to_u32(row.negatives_in_row),
            paths_checked: path_slots(&at, row.paths_checked)?,
            parked,
            interrupted,
            hints: Vec::new(),
            not_before: None,
            is_submitted: false,
            is_checked: row.next_visit_reason.as_deref() == Some(OWNER_REQUESTED),
            claim: None,
        })
    }
}

/// Reads `site_state.paths_checked`.
pub(crate) fn path_slots(at: &RowRef<'_>, bytes: Option<Vec<u8>>) -> Result<PathSlots, StoreError> {
    PathSlots::from_bytes(bytes.unwrap_or_default())
        .ok_or_else(|| at.damaged("paths_checked", "its length is not a multiple of three"))
}

/// A row of `host`, joined with its row of `robots`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HostRow {
    pub(crate) host: String,
    pub(crate) site: String,
    /// [`HostOrigin::code`].
    pub(crate) seeded: i32,
    pub(crate) clock: HostClock,
    pub(crate) robots: RobotsRow,
}

from_row!(HostRow { host, site, seeded; clock, robots });

impl HostRow {
    /// A host that was never requested.
    pub(crate) fn new(host: &str, site: &str, origin: HostOrigin) -> Self {
        Self { host: host.to_owned(), site: site.to_owned(), seeded: origin.code(), ..Self::default() }
    }

    pub(crate) const fn origin(&self) -> HostOrigin {
        HostOrigin::of_code(self.seeded)
    }

    /// Adds the values that only the compacted site has.
    pub(crate) fn merge_compacted(&mut self, compacted: &Self) {
        self.seeded = self.seeded.max(compacted.seeded);
        self.clock.not_before_ms = self.clock.not_before_ms.max(compacted.clock.not_before_ms);
    }

    /// Adds the host to a site's state, which does not have it.
    pub(crate) fn add_to(self, state: &mut SiteState) -> Result<(), StoreError> {
        let at = RowRef::new("host", &self.host);
        state.not_before = state.not_before.max(at.time_of("not_before_ms", self.clock.not_before_ms)?);
        state.hosts.push(HostState {
            host: at.parse("host", &self.host)?,
            origin: self.origin(),
            next_ok_at: at.time_of("next_ok_at_ms", self.clock.next_ok_at_ms)?,
            requests_today: to_u32(self.clock.requests_today),
            requests_day: self.clock.requests_day,
            robots: self.robots.into_record(&self.host)?,
        });
        Ok(())
    }
}

/// Politeness clock of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostClock {
    pub(crate) next_ok_at_ms: Option<i64>,
    pub(crate) not_before_ms: Option<i64>,
    pub(crate) requests_today: i32,
    pub(crate) requests_day: i32,
}

from_row!(HostClock { next_ok_at_ms, not_before_ms, requests_today, requests_day });

/// Columns of `robots` except its keys; all null if robots.txt was never requested.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RobotsRow {
    #[serde(with = "dictionary")]
    pub(crate) kind: Option<String>,
    #[serde(with = "dictionary")]
    pub(crate) cause: Option<String>,
    pub(crate) status: Option<i32>,
    /// The file, zstd.
    #[serde(skip)]
    pub(crate) body: Option<Vec<u8>>,
    #[serde(with = "seconds")]
    pub(crate) fetched_at_ms: Option<i64>,
    #[serde(with = "seconds")]
    pub(crate) expires_at_ms: Option<i64>,
    pub(crate) failures_in_row: Option<i32>,
    #[serde(skip)]
    pub(crate) etag: Option<String>,
    #[serde(skip)]
    pub(crate) last_modified: Option<String>,
}

from_row!(RobotsRow {
    kind,
    cause,
    status,
    body,
    fetched_at_ms,
    expires_at_ms,
    failures_in_row,
    etag,
    last_modified
});

/// Maximum size of a robots.txt that is loaded with its host, before and after compression, because leasing loads the files of hundreds of
/// sites.
pub(crate) const MAIN_ROBOTS_BYTES_MAX: u64 = 64 * 1024;

impl RobotsRow {
    pub(crate) fn of_record(record: &RobotsRecord) -> Result<Self, StoreError> {
        Ok(Self {
            kind: Some(record.kind.as_str().to_owned()),
            cause: record.cause.as_deref().map(|cause| text(cause).into_owned()),
            status: record.status.map(i32::from),
            body: record.body.as_ref().map(|body| compress(body, "robots.txt")).transpose()?,
            fetched_at_ms: Some(millis(record.fetched_at)),
            expires_at_ms: Some(millis(record.expires_at)),
            failures_in_row: Some(to_i32(record.failures_in_row)),
            etag: text_of(record.etag.as_ref()).map(Into::into),
            last_modified: text_of(record.last_modified.as_ref()).map(Into::into),
        })
    }

    /// `None` if robots.txt was never requested. A long file is left out.
    fn into_record(self, host: &str) -> Result<Option<RobotsRecord>, StoreError> {
        let at = RowRef::new("robots", host);
        let (Some(kind), Some(fetched_at_ms), Some(expires_at_ms)) =
            (self.kind, self.fetched_at_ms, self.expires_at_ms)
        else {
            return Ok(None);
        };
        let is_short =
            |body: &Vec<u8>| decompressed_bytes(body).is_none_or(|bytes| bytes <= MAIN_ROBOTS_BYTES_MAX);
        let body = self.body.filter(is_short);
        Ok(Some(RobotsRecord {
            host: at.parse("host", host)?,
            kind: at.parse("kind", &kind)?,
            cause: self.cause,
            status: at.http_status("status", self.status)?,
            body: body.map(|body| at.bytes("body", &body).map(Into::into)).transpose()?,
            fetched_at: at.time("fetched_at_ms", fetched_at_ms)?,
            expires_at: at.time("expires_at_ms", expires_at_ms)?,
            failures_in_row: to_u32(self.failures_in_row.unwrap_or_default()),
            etag: self.etag,
            last_modified: self.last_modified,
        }))
    }
}
