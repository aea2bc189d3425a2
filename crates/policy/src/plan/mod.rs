//! Which paths are asked on a visit, in which order, and how much of an answer is read.
//!
//! The path table is data in one place (`table`). A first visit asks all of it, best prior first and the homepage last; a
//! site where nothing was found is asked a few paths each time, those not asked for longest, so that all are covered
//! every few visits; a site with manifests is asked for these and for one more. Rarer paths are asked only when
//! something links to them.

mod table;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use manifest::closed;

pub use self::table::{BodyKind, ERROR_BODY_BYTES_MAX, PATHS, PlannedPath, find};
use crate::outcome::FetchOutcome;
use crate::spread::Seed;

/// The one Accept header of every request; constant, so that answers that vary by it stay comparable.
pub const ACCEPT: &str = "application/json, application/woa+json, application/linkset+json, \
                          application/a2a-agent-card+json, text/plain;q=0.8, */*;q=0.1";
/// The one Accept-Encoding header of every request. Brotli is left out: each of its decoders may need 16 MiB.
pub const ACCEPT_ENCODING: &str = "gzip";
/// Where robots.txt is (RFC 9309 §2.3); always first, never part of the table.
pub const ROBOTS_PATH: &str = "/robots.txt";
/// Paths asked again of a site where nothing was found: with these the table is covered in seven visits.
const PROBES_OF_NEGATIVE: usize = 3;
/// Paths asked beside the known ones of a site with manifests.
const PROBES_OF_POSITIVE: usize = 1;
/// Paths asked beside the homepage of a host that answers everything with a page.
const PROBES_OF_CATCH_ALL: usize = 1;

closed! {
    /// What the last check of a path came to, as kept in a packed record.
    PathClass, "path class" {
        /// Nothing there.
        Absent = "absent",
        /// A manifest.
        Present = "present",
        /// A page in place of a manifest.
        Html = "html",
        /// Refused, by robots.txt or by the server.
        Refused = "refused",
        /// No usable answer.
        Failed = "failed",
    }
}

impl PathClass {
    /// The class of an outcome; `None` when the path was not asked.
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

    /// The number in a packed record; 0 stands for never checked.
    pub const fn code(self) -> u8 {
        match self {
            Self::Absent => 1,
            Self::Present => 2,
            Self::Html => 3,
            Self::Refused => 4,
            Self::Failed => 5,
        }
    }

    /// The class with this number; a number of a later version is taken for a failure.
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
    /// What it came to.
    pub class: PathClass,
    /// The day, as [`day_number`] counts.
    pub day: u16,
}

/// Days since 1970-01-01, as packed records keep them; good until 2149.
pub fn day_number(now: DateTime<Utc>) -> u16 {
    u16::try_from(now.timestamp().div_euclid(86_400).max(0)).unwrap_or(u16::MAX)
}

/// What is known of a host before the visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Never visited.
    Unknown,
    /// Visited, and nothing was found.
    Negative,
    /// Answers every path with a page.
    CatchAll,
    /// Has manifests, which are asked for beside what is planned here.
    Positive,
}

/// The paths to ask of a host, in the order of asking, without robots.txt and without resources that are known already.
/// `last` tells the last check of a slot.
pub fn paths(
    standing: Standing,
    priors: &Priors,
    last: impl Fn(u8) -> Option<LastCheck>,
) -> Vec<&'static PlannedPath> {
    let is_homepage = |row: &&PlannedPath| row.body == BodyKind::Homepage;
    let mut chosen: Vec<&'static PlannedPath> = match standing {
        Standing::Unknown => PATHS.iter().collect(),
        Standing::Negative => longest_unasked(PATHS.iter(), priors, &last, PROBES_OF_NEGATIVE),
        Standing::CatchAll => {
            let probes = PATHS.iter().filter(|row| !is_homepage(row));
            let homepage = PATHS.iter().filter(is_homepage);
            longest_unasked(probes, priors, &last, PROBES_OF_CATCH_ALL).into_iter().chain(homepage).collect()
        }
        Standing::Positive => {
            let present =
                |row: &&PlannedPath| last(row.slot).is_some_and(|check| check.class == PathClass::Present);
            let unknown = PATHS.iter().filter(|row| !present(row));
            longest_unasked(unknown, priors, &last, PROBES_OF_POSITIVE)
        }
    };
    chosen.sort_by_key(|row| (is_homepage(row), Reverse(priors.of(row)), row.slot));
    chosen
}

fn longest_unasked(
    rows: impl Iterator<Item = &'static PlannedPath>,
    priors: &Priors,
    last: impl Fn(u8) -> Option<LastCheck>,
    count: usize,
) -> Vec<&'static PlannedPath> {
    let mut rows: Vec<_> = rows.collect();
    // never asked comes before any day
    rows.sort_by_key(|row| (last(row.slot).map(|check| check.day), Reverse(priors.of(row)), row.slot));
    rows.truncate(count);
    rows
}

/// How likely each path is, of 10,000 sites that publish anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Priors([u16; PATHS.len()]);

/// What was found under one path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathCount {
    /// Sites that were asked and have any manifest.
    pub asked: u64,
    /// Those of them that have one here.
    pub found: u64,
}

/// Sites that the assumed priors weigh as much as: a few hundred observations move them, a dozen do not.
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
    /// The assumed priors, corrected by what was found (a Beta prior's mean).
    #[must_use]
    pub fn re_estimated(count_of: impl Fn(u8) -> PathCount) -> Self {
        let mut priors = Self::default();
        for (prior, row) in priors.0.iter_mut().zip(PATHS) {
            let count = count_of(row.slot);
            let found = u128::from(count.found.min(count.asked)) * 10_000;
            let assumed = u128::from(row.prior) * u128::from(PRIOR_WEIGHT);
            let mean = (assumed + found) / u128::from(count.asked.saturating_add(PRIOR_WEIGHT));
            *prior = u16::try_from(mean).unwrap_or(10_000);
        }
        priors
    }

    /// The prior of a path.
    pub fn of(&self, row: &PlannedPath) -> u16 {
        self.0.get(usize::from(row.slot)).copied().unwrap_or_default()
    }
}

/// A path that no site has: whoever answers it with a page or a manifest answers everything so.
pub fn canary_path(seed: Seed) -> String {
    format!("/.well-known/agentdex-canary-{:08x}.json", seed.below(1 << 32))
}
