//! Seeds: hosts and URLs that the operator, a client or another site's manifest names.

use manifest::{Host, ManifestUrl};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seed {
    pub host: Host,
    /// A URL to fetch in addition to the usual paths.
    pub url: Option<ManifestUrl>,
    /// Position in a popularity list, from 1.
    pub rank: Option<u32>,
    pub origin: SeedOrigin,
    /// Makes the site due now, whatever its schedule. Retry-After and robots.txt still apply.
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

/// Where a seed comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum SeedOrigin {
    /// A seed file of the operator.
    File,
    /// A client of the API.
    Submitted,
    /// A manifest of another site.
    Linked { from: ManifestUrl },
}

/// Result of adding seeds; the three counts add up to the number of seeds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedsAdded {
    /// With a new host or URL.
    pub added: u64,
    pub known: u64,
    /// Of blocked sites.
    pub blocked: u64,
}

/// First priority of sites that only a list names; lower ones are of submitted and linked sites.
pub(crate) const PRIORITY_LISTED: i32 = 2;

/// How a seed changes the priority of a known site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ranking {
    /// The priority only rises.
    Raise,
    /// A listed site gets the priority of its rank.
    Follow,
}

impl Ranking {
    /// The first priority that may be lowered.
    pub(crate) const fn follows_from(self) -> i32 {
        match self {
            Self::Raise => i32::MAX,
            Self::Follow => PRIORITY_LISTED,
        }
    }
}

/// A row of `site`. Only the priority of a known site is updated.
#[derive(Serialize)]
pub(crate) struct NewSiteRow<'a> {
    pub(crate) name: &'a str,
    pub(crate) priority: i32,
    pub(crate) next_visit_at_ms: i64,
    /// The compacted site, in hexadecimal.
    pub(crate) packed: String,
}
