//! Seeds: what the operator, a visitor or another site's manifest asks to be visited.

use manifest::{Host, ManifestUrl};
use serde::{Deserialize, Serialize};

/// Something to visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seed {
    /// The host to visit.
    pub host: Host,
    /// One URL on it to fetch too, beside the usual paths.
    pub url: Option<ManifestUrl>,
    /// Position in a popularity list, 1 the most popular.
    pub rank: Option<u32>,
    /// Who asked.
    pub origin: SeedOrigin,
    /// Visit even where the schedule says later. Retry-After and robots.txt still hold.
    pub revisit_now: bool,
}

impl Seed {
    /// A bare host from a seed file.
    pub const fn of_host(host: Host) -> Self {
        Self { host, url: None, rank: None, origin: SeedOrigin::File, revisit_now: false }
    }

    /// A URL that a manifest of another site links to.
    pub fn linked(url: ManifestUrl, from: ManifestUrl) -> Self {
        Self {
            host: url.host(),
            url: Some(url),
            rank: None,
            origin: SeedOrigin::Linked { from },
            revisit_now: false,
        }
    }
}

/// Who asked for a visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum SeedOrigin {
    /// A seed file of the operator.
    File,
    /// A visitor, through the interface.
    Submitted,
    /// A manifest of another site.
    Linked {
        /// That manifest.
        from: ManifestUrl,
    },
}

/// What became of a batch of seeds; the three add up to its size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedsAdded {
    /// Brought a host or a URL that was not known.
    pub added: u64,
    /// Brought nothing new.
    pub known: u64,
    /// Belong to a site whose owner opted out.
    pub blocked: u64,
}

/// First class of the lease order for sites that a list names; below it are those that somebody asked for or linked to.
pub(crate) const PRIORITY_LISTED: i32 = 2;

/// What a seed's rank does to the place of a known site in the lease order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ranking {
    /// A site only moves forward.
    Raise,
    /// A listed site goes where its list puts it.
    Follow,
}

impl Ranking {
    /// Class from which on a site follows its list.
    pub(crate) const fn follows_from(self) -> i32 {
        match self {
            Self::Raise => i32::MAX,
            Self::Follow => PRIORITY_LISTED,
        }
    }
}

/// A site as a batch asks for it.
pub(crate) struct AskedSite<'a> {
    pub(crate) name: &'a str,
    pub(crate) priority: i32,
    /// When the first visit of a site is due that nobody knew before.
    pub(crate) next_visit_at_ms: i64,
    /// What a site is that nobody knew before.
    pub(crate) packed: Vec<u8>,
}
