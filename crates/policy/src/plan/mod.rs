//! Plans the paths that a visit requests, their order, and how much of a response is read.
//!
//! The path table is data in one place (`table`). A first visit requests all of it, in the order of the priors and with the
//! homepage last. Visits to a site without manifests request a few paths each, those checked longest ago. Visits to a site
//! with manifests request these and one more path. Rarer paths are requested only if something links to them.

mod table;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use manifest::string_enum;

pub use self::table::{BodyKind, ERROR_BODY_BYTES_MAX, PATHS, PlannedPath, find};
use crate::outcome::FetchOutcome;
use crate::spread::Seed;

/// The Accept header of every request, constant so that responses that vary by it stay comparable.
pub const ACCEPT: &str = "application/json, application/woa+json, application/linkset+json, \
                          application/a2a-agent-card+json, application/mcp-server-card+json, \
                          application/ai-catalog+json, text/plain;q=0.8, */*;q=0.1";
/// The Accept-Encoding header of every request. Brotli is left out, since each decoder may need 16 MiB.
pub const ACCEPT_ENCODING: &str = "gzip";
/// The path of robots.txt (RFC 9309 §2.3). It is requested first and is not in the table.
pub const ROBOTS_PATH: &str = "/robots.txt";
/// Paths per visit of a site without manifests. Seven visits cover the table.
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

    /// The class with this number. Numbers of later versions count as failures.
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
    Negative,
    /// Answers every path with a page.
    CatchAll,
    /// Has manifests, which are requested in addition to the planned paths.
    Positive,
}

/// The paths to request from a host, in order, without robots.txt and known resources. `last` gives the last check of a slot.
pub fn paths(
    knowledge: HostKnowledge,
    priors: &Priors,
    last: impl Fn(u8) -> Option<LastCheck>,
) -> Vec<&'static PlannedPath> {
    let is_homepage = |row: &&PlannedPath| row.body == BodyKind::Homepage;
    let mut chosen: Vec<&'static PlannedPath> = match knowledge {
        HostKnowledge::Unknown => PATHS.iter().collect(),
        HostKnowledge::Negative => checked_longest_ago(PATHS.iter(), priors, &last, PROBES_OF_NEGATIVE),
        HostKnowledge::CatchAll => {
            let probes = PATHS.iter().filter(|row| !is_homepage(row));
            let homepage = PATHS.iter().filter(is_homepage);
            checked_longest_ago(probes, priors, &last, PROBES_OF_CATCH_ALL)
                .into_iter()
                .chain(homepage)
                .collect()
        }
        HostKnowledge::Positive => {
            let present =
                |row: &&PlannedPath| last(row.slot).is_some_and(|check| check.class == PathClass::Present);
            let unknown = PATHS.iter().filter(|row| !present(row));
            checked_longest_ago(unknown, priors, &last, PROBES_OF_POSITIVE)
        }
    };
    chosen.sort_by_key(|row| (is_homepage(row), Reverse(priors.of(row)), row.slot));
    chosen
}

fn checked_longest_ago(
    rows: impl Iterator<Item = &'static PlannedPath>,
    priors: &Priors,
    last: impl Fn(u8) -> Option<LastCheck>,
    count: usize,
) -> Vec<&'static PlannedPath> {
    let mut rows: Vec<_> = rows.collect();
    // Never checked sorts before any day.
    rows.sort_by_key(|row| (last(row.slot).map(|check| check.day), Reverse(priors.of(row)), row.slot));
    rows.truncate(count);
    rows
}

/// The frequency of each path among 10,000 sites with any manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Priors([u16; PATHS.len()]);

/// The observed frequency of one path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathCount {
    /// Sites with any manifest from which the path was requested.
    pub requested: u64,
    /// Sites among these that have a manifest at the path.
    pub found: u64,
}

/// The weight of the assumed priors, in sites: a few hundred observations change them, a dozen do not.
const PRIOR_WEIGHT: u64 = 500;

impl Default for Priors {
    fn default() -> Self {
        let mut priors = [0; PATHS.len()];
        for (prior, row) in priors.iter_mut().zip(PATHS) {
            *prior = row.prior;
        }
        Self(priors)
    }
}

impl Priors {
    /// The assumed priors, corrected by observed counts (the mean of a Beta distribution).
    #[must_use]
    pub fn estimated(count_of: impl Fn(u8) -> PathCount) -> Self {
        let mut priors = Self::default();
        for (prior, row) in priors.0.iter_mut().zip(PATHS) {
            let count = count_of(row.slot);
            let found = u128::from(count.found.min(count.requested)) * 10_000;
            let assumed = u128::from(row.prior) * u128::from(PRIOR_WEIGHT);
            let mean = (assumed + found) / u128::from(count.requested.saturating_add(PRIOR_WEIGHT));
            *prior = u16::try_from(mean).unwrap_or(10_000);
        }
        priors
    }

    pub fn of(&self, row: &PlannedPath) -> u16 {
        self.0.get(usize::from(row.slot)).copied().unwrap_or_default()
    }
}

/// A path that no site has. A host that serves a page or a manifest here serves one at every path.
pub fn canary_path(seed: Seed) -> String {
    format!("/.well-known/agentdex-canary-{:08x}.json", seed.below(1 << 32))
}
