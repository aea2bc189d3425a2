//! Seeds: hosts and URLs that the operator, a client or another site's manifest names.

use std::sync::Arc;

use manifest::{Host, ManifestUrl};
use serde::{Deserialize, Serialize};

/// Maximum bytes of a linked URL that becomes a seed, and of a stored link source. URLs of published manifests have about a hundred bytes,
/// and the URL of a catalog is stored with each of its links.
pub const LINK_BYTES_MAX: usize = 2_048;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    pub host: Host,
    /// A URL to fetch in addition to the usual paths.
    pub url: Option<ManifestUrl>,
    /// Position in a popularity list, from 1.
    pub rank: Option<u32>,
    pub origin: SeedOrigin,
    /// Makes the site due now, regardless of its schedule. Retry-After and robots.txt still apply.
    pub revisit_now: bool,
}

impl Seed {
    /// A bare host from a seed file.
    pub const fn of_host(host: Host) -> Self {
        Self { host, url: None, rank: None, origin: SeedOrigin::File, revisit_now: false }
    }

    /// A host that a document of another site links to, without the URL of a manifest.
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

    /// Whether a URL of a link is longer than [`LINK_BYTES_MAX`].
    pub(crate) fn is_too_long(&self) -> bool {
        let is_long = |url: &ManifestUrl| url.as_str().len() > LINK_BYTES_MAX;
        self.origin.source().is_some_and(|from| is_long(from) || self.url.as_ref().is_some_and(is_long))
    }
}

impl SeedOrigin {
    /// The manifest that links to the seed.
    pub fn source(&self) -> Option<&Arc<ManifestUrl>> {
        match self {
            Self::Linked { from } => Some(from),
            Self::File | Self::Collected | Self::Submitted => None,
        }
    }
}

/// The source of a seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeedOrigin {
    /// A list that the operator wrote.
    File,
    /// A list of names that were collected from elsewhere, such as certificates, a web graph or a ranking. Anyone may have added a name to
    /// it, so it is not evidence of who owns a host.
    Collected,
    /// A client of the API.
    Submitted,
    /// A manifest of another site.
    Linked {
        /// Shared by all links of the manifest.
        from: Arc<ManifestUrl>,
    },
}

/// The source of a link, unless its URL is longer than [`LINK_BYTES_MAX`].
pub(crate) fn kept_source(from: Option<&ManifestUrl>) -> Option<&ManifestUrl> {
    from.filter(|from| from.as_str().len() <= LINK_BYTES_MAX)
}

/// Result of adding seeds; the four counts add up to the number of seeds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedsAdded {
    /// Seeds with a new host or URL.
    pub added: u64,
    pub known: u64,
    /// Seeds of blocked sites.
    pub blocked: u64,
    /// Seeds that were not added because a limit on links, hosts or URLs is reached.
    pub refused: u64,
}

/// Priority of sites that clients submitted and no list names. A submission does not change the priority of a listed site.
pub(crate) const PRIORITY_SUBMITTED: i32 = 0;
/// Priority of sites that only other sites link to, and of sites without a planned visit. They are leased last, because any site can link
/// to any number of names.
pub(crate) const PRIORITY_LINKED: i32 = 1;
/// First priority of sites that a list names, whether others link to them or not.
pub(crate) const PRIORITY_LISTED: i32 = 2;

/// Whether a seed changes the priority of a known site. A link (1) never does. A submission (0) changes only the priority of a linked site.
/// A list sets the priority of a site that no list has named before, and moves a listed site forward. It also moves a site back if the
/// priority of the site is `$follows_from` or more.
macro_rules! priority_changes {
    ($new:literal, $follows_from:literal) => {
        concat!(
            $new,
            ".priority <> 1 AND (site.priority = 1 OR (",
            $new,
            ".priority >= 2 AND (site.priority = 0 OR site.priority > ",
            $new,
            ".priority
             OR (site.priority >= ",
            $follows_from,
            " AND site.priority <> ",
            $new,
            ".priority))))"
        )
    };
}
pub(crate) use priority_changes;

/// How a seed changes the priority of a known site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ranking {
    /// The priority only rises.
    Raise,
    /// A listed site gets the priority of its rank.
    Follow,
}

impl Ranking {
    /// The lowest number of a priority that may become a higher number.
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
