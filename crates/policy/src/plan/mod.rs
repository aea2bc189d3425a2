//! Plans the paths that a visit requests, their order, and how much of a response is read.
//!
//! `table` contains the path table. A first visit requests the likeliest paths, in the order of the priors (`priors`). If it finds no
//! manifest, the other paths are left to the next two visits (`remaining`). Otherwise they are requested in the same visit. Visits to a
//! site without manifests then request a few paths each, those checked longest ago. Visits to a site with manifests request these and one
//! more path. Rarer paths are requested only if something links to them.

mod priors;
mod remaining;
mod table;
#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};
use manifest::string_enum;

pub use self::priors::{Priors, SitePaths};
pub use self::remaining::{FullTableReason, PATHS_SPECULATIVE_MAX, Remaining, remaining};
pub use self::table::{BodyKind, ERROR_BODY_BYTES_MAX, PATHS, PlannedPath, find};
use crate::outcome::FetchOutcome;
use crate::spread::Seed;

/// The Accept header of every request, constant so that responses that vary by it stay comparable.
pub const ACCEPT: &str = "application/json, application/woa+json, application/linkset+json, \
                          application/a2a-agent-card+json, application/mcp-server-card+json, \
                          application/ai-catalog+json, text/plain;q=0.8, */*;q=0.1";
/// The Accept-Encoding header of every request. It does not include Brotli, because each decoder may need 16 MiB.
pub const ACCEPT_ENCODING: &str = "gzip";
/// The path of robots.txt (RFC 9309 §2.3). It is requested first and is not in the table.
pub const ROBOTS_PATH: &str = "/robots.txt";
/// Paths per visit of a site without manifests. After the first three visits, which request every path, seven visits cover the table again.
const PROBES_OF_NEGATIVE: usize = 3;
/// Paths per visit of a site with manifests, in addition to the known ones.
const PROBES_OF_POSITIVE: usize = 1;
/// Paths per visit of a catch-all host, in addition to the homepage.
const PROBES_OF_CATCH_ALL: usize = 1;

string_enum! {
    /// The outcome of the last check of a path, as stored in a packed record.
    PathClass, "path class" {
        /// There is no such resource.
        Absent = "absent",
        /// A manifest.
        Present = "present",
        /// A page in place of a manifest.
        Html = "html",
        /// Refused, by robots.txt or by the server.
        Refused = "refused",
        /// No usable response.
        Failed = "failed",
    }
}

impl PathClass {
    /// The class of an outcome; `None` if the path was not requested.
    pub const fn of(outcome: FetchOutcome) -> Option<Self> {
        match outcome {
            FetchOutcome::Found | FetchOutcome::NotModified => Some(Self::Present),
            FetchOutcome::Html => Some(Self::Html),
            FetchOutcome::NotFound
            | FetchOutcome::Gone
            | FetchOutcome::ClientError
            | FetchOutcome::NotAManifest
            | FetchOutcome::RedirectedAway
            | FetchOutcome::RedirectRefused
            | FetchOutcome::RedirectLoop => Some(Self::Absent),
            FetchOutcome::Blocked | FetchOutcome::RobotsDenied => Some(Self::Refused),
            FetchOutcome::Fresh | FetchOutcome::NotReached | FetchOutcome::OverBudget => None,
            _ => Some(Self::Failed),
        }
    }

    /// The number in a packed record; 0 means never checked.
    pub const fn code(self) -> u8 {
        match self {
            Self::Absent => 1,
            Self::Present => 2,
            Self::Html => 3,
            Self::Refused => 4,
            Self::Failed => 5,
        }
    }

    /// The class with this number. Unknown numbers, which a later version may have written, count as failures.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => None,
            1 => Some(Self::Absent),
            2 => Some(Self::Present),
            3 => Some(Self::Html),
            4 => Some(Self::Refused),
            _ => Some(Self::Failed),
        }
    }
}

/// The last check of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastCheck {
    pub class: PathClass,
    /// The day, as [`day_number`] counts.
    pub day: u16,
    /// The position of the path among those last checked on the same day. It differs from visit to visit, so that each of them gets a turn.
    pub turn: u8,
}

/// Days since 1970-01-01, as packed records store them, up to the year 2149.
pub fn day_number(now: DateTime<Utc>) -> u16 {
    u16::try_from(now.timestamp().div_euclid(86_400).max(0)).unwrap_or(u16::MAX)
}

/// The result of earlier visits to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostKnowledge {
    /// Never visited.
    Unknown,
    /// Visited, and nothing was found.
    Negative {
        /// Visits in a row that found nothing; those of one day (UTC) count as one.
        visits: u32,
    },
    /// Answers every path with a page.
    CatchAll,
    /// Has manifests, which are requested in addition to the planned paths.
    Positive,
}

/// The paths of a visit to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPlan {
    /// The paths to request, in order, without robots.txt and known resources.
    pub requested: Vec<&'static PlannedPath>,
    /// The paths that were never requested and are left to later visits, in order.
    pub left: Vec<&'static PlannedPath>,
    /// Why these paths are left or requested.
    pub remaining: Remaining,
}

/// Plans the paths of a visit to a host. `last` returns the last check of a slot.
pub fn paths(
    knowledge: HostKnowledge,
    full_table: Option<FullTableReason>,
    priors: &Priors,
    last: impl Fn(u8) -> Option<LastCheck>,
) -> PathPlan {
    let mut left: Vec<&'static PlannedPath> = priors.order().filter(|row| last(row.slot).is_none()).collect();
    let remaining_of = |requested: usize, left: &[&'static PlannedPath]| {
        remaining(full_table, requested, priors.only_at(left))
    };
    let count = match knowledge {
        // what the last visit found does not limit a check
        HostKnowledge::CatchAll if full_table != Some(FullTableReason::Checked) => 0,
        HostKnowledge::CatchAll => left.len(),
        HostKnowledge::Unknown | HostKnowledge::Negative { .. } | HostKnowledge::Positive
            if full_table.is_some() =>
        {
            left.len()
        }
        HostKnowledge::Unknown => {
            let is_requested = |count: &usize| {
                let left = left.get(*count..).unwrap_or_default();
                matches!(remaining_of(*count, left), Remaining::Likely { .. })
            };
            (0..left.len()).find(|count| !is_requested(count)).unwrap_or(left.len())
        }
        HostKnowledge::Negative { visits } => {
            // request the home page first, because its links may lead to documents at paths that are not in the table
            left.sort_by_key(|row| !is_homepage(row));
            speculative_count(left.len(), visits)
        }
        HostKnowledge::Positive => left.len().min(PROBES_OF_POSITIVE),
    };
    let mut requested: Vec<&'static PlannedPath> = left.drain(..count).collect();
    requested.extend(again(knowledge, &requested, priors, last));
    left.retain(|row| !requested.contains(row));
    let remaining = remaining_of(requested.len(), &left);
    requested.sort_by_key(|row| is_homepage(row));
    PathPlan { requested, left, remaining }
}

/// Number of paths that a visit requests for the first time, after `visits` days in a row with visits that found nothing. The second visit
/// requests as few paths as later visits do. The third visit requests the rest, also on the day of the first one.
fn speculative_count(left: usize, visits: u32) -> usize {
    let is_second = visits == 1 && PATHS.len() - left.min(PATHS.len()) <= PATHS_SPECULATIVE_MAX;
    let count = if is_second { PROBES_OF_NEGATIVE } else { PATHS_SPECULATIVE_MAX };
    left.min(count)
}

/// The paths that a visit requests again, those checked longest ago, in addition to those that it requests for the first time.
fn again(
    knowledge: HostKnowledge,
    requested: &[&'static PlannedPath],
    priors: &Priors,
    last: impl Fn(u8) -> Option<LastCheck>,
) -> Vec<&'static PlannedPath> {
    let others = |row: &&'static PlannedPath| !requested.contains(row);
    match knowledge {
        HostKnowledge::Unknown => Vec::new(),
        HostKnowledge::Negative { .. } => {
            let count = PROBES_OF_NEGATIVE.saturating_sub(requested.len());
            checked_longest_ago(priors.order().filter(others), last, count)
        }
        HostKnowledge::CatchAll => {
            let probes = priors.order().filter(|row| !is_homepage(row));
            let homepage = priors.order().filter(|row| is_homepage(row));
            checked_longest_ago(probes, last, PROBES_OF_CATCH_ALL).into_iter().chain(homepage).collect()
        }
        HostKnowledge::Positive => {
            let present =
                |row: &&PlannedPath| last(row.slot).is_some_and(|check| check.class == PathClass::Present);
            let unknown = priors.order().filter(others).filter(|row| !present(row));
            checked_longest_ago(unknown, &last, PROBES_OF_POSITIVE.saturating_sub(requested.len()))
        }
    }
}

fn is_homepage(row: &PlannedPath) -> bool {
    row.body == BodyKind::Homepage
}

fn checked_longest_ago(
    rows: impl Iterator<Item = &'static PlannedPath>,
    last: impl Fn(u8) -> Option<LastCheck>,
    count: usize,
) -> Vec<&'static PlannedPath> {
    let mut rows: Vec<_> = rows.collect();
    // paths that were never checked sort first
    rows.sort_by_key(|row| last(row.slot).map(|check| (check.day, check.turn)));
    rows.truncate(count);
    rows
}

/// A path that does not exist at any site. A host that serves a page or a manifest at this path serves one at every path.
pub fn canary_path(seed: Seed) -> String {
    format!("/.well-known/agentdex-canary-{:08x}.json", seed.below(1 << 32))
}
