//! Seeds: what the operator, a visitor or another site's manifest asks to be visited.

use std::sync::Arc;

use manifest::{Host, ManifestUrl};
use serde::{Deserialize, Serialize};

/// Longest URL that becomes a seed by a link, and that is kept as the source of one, in bytes. Published URLs of manifests have
/// some hundred; a catalog repeats its own with every link.
pub const LINK_BYTES_MAX: usize = 2_048;

/// Something to visit.
#[derive(Debug, Clone, PartialEq, Eq)]
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

    /// A host that something of another site leads to, without saying that there is a manifest.
    pub fn linked_host(host: Host, from: impl Into<Arc<ManifestUrl>>) -> Self {
        let origin = SeedOrigin::Linked { from: from.into() };
        Self { host, url: None, rank: None, origin, revisit_now: false }
    }

    /// A URL that a manifest of another site links to.
    pub fn linked(url: ManifestUrl, from: impl Into<Arc<ManifestUrl>>) -> Self {
        Self {
            host: url.host(),
            url: Some(url),
            rank: None,
            origin: SeedOrigin::Linked { from: from.into() },
            revisit_now: false,
        }
    }
}

impl Seed {
    /// Whether a link is too long to be kept.
    pub(crate) fn is_too_long(&self) -> bool {
        let is_long = |url: &ManifestUrl| url.as_str().len() > LINK_BYTES_MAX;
        self.origin.source().is_some_and(|from| is_long(from) || self.url.as_ref().is_some_and(is_long))
    }
}

impl SeedOrigin {
    /// The manifest whose link it is; `None` of other seeds.
    pub fn source(&self) -> Option<&Arc<ManifestUrl>> {
        match self {
            Self::Linked { from } => Some(from),
            Self::File | Self::Submitted => None,
        }
    }
}

/// Who asked for a visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeedOrigin {
    /// A seed file of the operator.
    File,
    /// A visitor, through the interface.
    Submitted,
    /// A manifest of another site.
    Linked {
        /// That manifest, shared by all of its links.
        from: Arc<ManifestUrl>,
    },
}

/// The manifest that a link comes from, where its URL is short enough to be kept with each of its links.
pub(crate) fn kept_source(from: Option<&ManifestUrl>) -> Option<&ManifestUrl> {
    from.filter(|from| from.as_str().len() <= LINK_BYTES_MAX)
}

/// What became of a batch of seeds; the four add up to its size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedsAdded {
    /// Brought a host or a URL that was not known.
    pub added: u64,
    /// Brought nothing new.
    pub known: u64,
    /// Belong to a site whose owner opted out.
    pub blocked: u64,
    /// Not added, since a limit of what links may cost is reached.
    pub refused: u64,
}

/// Class of sites that only others link to, the last one: anybody can make any number of them. Sites of which no visit is
/// planned are in it too.
pub(crate) const PRIORITY_LINKED: i32 = 1;
/// First class of the lease order for sites that a list names, whether others link to them or not.
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
