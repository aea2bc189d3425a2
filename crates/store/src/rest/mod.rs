//! A site at rest: everything that is known of a site on which nothing was found, in one column of its one row.
//!
//! Nearly all sites have nothing. While nobody visits them, their state, hosts, robots verdicts and visits would be six rows
//! with eleven index entries; packed they are some fifty bytes. A site wakes, that is its rows are written out again, as
//! soon as anything more is to be remembered of it.
//!
//! What is left out: robots.txt files and their validators, which are older than the day for which they count, clocks that
//! have passed, and the stories of single visits. Times are whole seconds.

mod bytes;
mod words;

use crate::StoreError;
use crate::model::HostOrigin;
use crate::pack::Place;
use bytes::{Damaged, Reader, Writer};

/// The form that is written. Others are refused when read.
const FORM: u8 = 1;

/// A robots.txt that forbids everything: what an unread or refused file came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RobotsAtRest {
    pub(crate) kind: String,
    pub(crate) cause: Option<String>,
    pub(crate) status: Option<i32>,
    pub(crate) fetched_at_ms: i64,
    pub(crate) expires_at_ms: i64,
    pub(crate) failures_in_row: i32,
}

/// A clock that has not passed yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClockAtRest {
    pub(crate) next_ok_at_ms: Option<i64>,
    pub(crate) not_before_ms: Option<i64>,
    pub(crate) requests_today: i32,
    pub(crate) requests_day: i32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostAtRest {
    pub(crate) host: String,
    pub(crate) origin: HostOrigin,
    pub(crate) clock: Option<ClockAtRest>,
    pub(crate) robots: Option<RobotsAtRest>,
}

/// The columns of `site_state` that a site at rest has, and its hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SiteAtRest {
    pub(crate) status: String,
    pub(crate) last_end: Option<String>,
    pub(crate) next_visit_reason: Option<String>,
    pub(crate) first_seen_at_ms: i64,
    pub(crate) first_visit_at_ms: Option<i64>,
    pub(crate) last_visit_at_ms: Option<i64>,
    pub(crate) hinted_at_ms: Option<i64>,
    pub(crate) visits: i32,
    pub(crate) changes: i32,
    pub(crate) failures_in_row: i32,
    pub(crate) negatives_in_row: i32,
    pub(crate) paths_checked: Vec<u8>,
    pub(crate) hosts: Vec<HostAtRest>,
}

/// The byte that stands for a status. Statements find it as `substr(packed, 2, 1)`, failures in a row as
/// `substr(packed, 3, 2)`, and the last visit as `substr(packed, 5, 4)`.
pub(crate) fn status_code(status: &str) -> Option<u8> {
    words::code(status)
}

/// The status that a byte stands for.
pub(crate) fn status_of_code(code: &[u8]) -> Option<&'static str> {
    words::word(*code.first()?)
}

/// A time as it lies in the packed bytes, to compare it there.
pub(crate) fn seconds_bytes(at_ms: i64) -> [u8; 4] {
    u32::try_from(at_ms.div_euclid(1_000)).unwrap_or(if at_ms < 0 { 0 } else { u32::MAX }).to_be_bytes()
}

impl SiteAtRest {
    /// A site that was seeded and never visited.
    pub(crate) fn pending(hosts: impl IntoIterator<Item = (String, HostOrigin)>, now_ms: i64) -> Self {
        let host = |(host, origin)| HostAtRest { host, origin, clock: None, robots: None };
        Self {
            status: policy::Status::Pending.as_str().to_owned(),
            first_seen_at_ms: now_ms,
            hosts: hosts.into_iter().map(host).collect(),
            ..Self::default()
        }
    }

    /// The packed bytes; `None` where the site cannot rest, since a word of it has no byte of its own.
    pub(crate) fn pack(&self, site: &str) -> Option<Vec<u8>> {
        let mut out = Writer::default();
        out.byte(FORM);
        out.byte(words::code(&self.status)?);
        out.raw(&u16::try_from(self.failures_in_row).unwrap_or(u16::MAX).to_be_bytes());
        out.raw(&self.last_visit_at_ms.map_or([0; 4], seconds_bytes));
        out.word(self.last_end.as_deref());
        out.word(self.next_visit_reason.as_deref());
        out.time(Some(self.first_seen_at_ms));
        out.time(self.first_visit_at_ms);
        out.time(self.hinted_at_ms);
        for count in [self.visits, self.changes, self.negatives_in_row] {
            out.count(count);
        }
        out.paths(&self.paths_checked);
        out.number(self.hosts.len() as u64);
        for host in &self.hosts {
            out.host(site, host);
        }
        Some(out.into_bytes())
    }

    /// Reads what [`Self::pack`] gave.
    pub(crate) fn unpack(site: &str, bytes: &[u8]) -> Result<Self, StoreError> {
        Self::read(site, bytes).map_err(|Damaged| {
            Place::new("site", site).damaged("packed", "it is not what this program or an earlier one packed")
        })
    }

    fn read(site: &str, bytes: &[u8]) -> Result<Self, Damaged> {
        let mut from = Reader::new(bytes);
        if from.byte()? != FORM {
            return Err(Damaged);
        }
        let status = words::word(from.byte()?).ok_or(Damaged)?.to_owned();
        let failures_in_row = i32::from(u16::from_be_bytes(from.array()?));
        let last_visit_s = u32::from_be_bytes(from.array()?);
        let mut site_at_rest = Self {
            status,
            failures_in_row,
            last_visit_at_ms: (last_visit_s > 0).then(|| i64::from(last_visit_s) * 1_000),
            last_end: from.word()?,
            next_visit_reason: from.word()?,
            first_seen_at_ms: from.time()?.unwrap_or_default(),
            first_visit_at_ms: from.time()?,
            hinted_at_ms: from.time()?,
            visits: from.count()?,
            changes: from.count()?,
            negatives_in_row: from.count()?,
            paths_checked: from.paths()?,
            hosts: Vec::new(),
        };
        for _ in 0..from.number()? {
            site_at_rest.hosts.push(from.host(site)?);
        }
        if from.is_at_end() { Ok(site_at_rest) } else { Err(Damaged) }
    }
}

#[cfg(test)]
mod tests;
