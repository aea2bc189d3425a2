//! Decides whether a visit requests the remaining paths of the table.
//!
//! Nearly all sites publish no manifest. A visit requests the likeliest paths, and leaves the others to later visits when the chance that
//! any of them has a manifest is small. It requests all paths if the site has a manifest, indicates that it has one, or was submitted.

use manifest::string_enum;

/// Sites with a manifest at any path of the table, per million: one in a hundred.
const DECLARING_PPM: u64 = 10_000;
/// Chance per million, one in 1,200, below which the remaining paths are left to later visits. With the counted shares, a first visit then
/// requests nine paths, which find 98 % of the manifests.
const CHANCE_PPM_MIN: u64 = 833;
/// Maximum number of paths of a visit without a reason for more: ten requests, including robots.txt.
pub const PATHS_SPECULATIVE_MAX: usize = 9;

string_enum! {
    /// Why a visit requests every path that was never requested before.
    FullTableReason, "full table reason" {
        /// A client submitted the site.
        Submitted = "submitted",
        /// The operator checks the site, or its owner requested the visit.
        Checked = "checked",
        /// A list or a submission names a URL of the site.
        UrlNamed = "url_named",
        /// Earlier visits found a manifest.
        ManifestKnown = "manifest_known",
        /// This visit has found a manifest.
        ManifestFound = "manifest_found",
        /// robots.txt has an Agentmap line.
        Agentmap = "agentmap",
        /// The home page, a Link header of it, or a TXT record names a document of the site.
        Linked = "linked",
    }
}

/// How a visit treats the paths that were never requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remaining {
    /// Requests all of them.
    Requested(FullTableReason),
    /// Requests the next one, because the chance that any of them has a manifest is large enough.
    Likely { chance_ppm: u32 },
    /// Leaves them to later visits, because this chance is too small.
    Unlikely { chance_ppm: u32 },
    /// Leaves them to later visits, because this visit has requested the maximum for a visit without a reason for more.
    Enough { chance_ppm: u32 },
}

/// Decides about the paths that were never requested. `requested` is the number of paths of this visit. `only_there` is the number of sites
/// with manifests at these paths only, among 10,000 with any manifest.
pub fn remaining(full_table: Option<FullTableReason>, requested: usize, only_there: u64) -> Remaining {
    if let Some(reason) = full_table {
        return Remaining::Requested(reason);
    }
    let chance = chance_ppm(only_there);
    let chance_ppm = u32::try_from(chance).unwrap_or(u32::MAX);
    match () {
        () if chance < CHANCE_PPM_MIN => Remaining::Unlikely { chance_ppm },
        () if requested >= PATHS_SPECULATIVE_MAX => Remaining::Enough { chance_ppm },
        () => Remaining::Likely { chance_ppm },
    }
}

/// The chance per million that a site has a manifest at these paths, given that it has none at the others.
fn chance_ppm(only_there: u64) -> u64 {
    let there = DECLARING_PPM * only_there.min(10_000) / 10_000;
    there * 1_000_000 / (1_000_000 - DECLARING_PPM + there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_paths_when_the_chance_is_small_or_enough_was_requested() {
        let table = [
            (None, 0, 10_000, Remaining::Likely { chance_ppm: 10_000 }),
            (None, 8, 870, Remaining::Likely { chance_ppm: 878 }),
            (None, 9, 758, Remaining::Unlikely { chance_ppm: 765 }),
            (None, 2, 0, Remaining::Unlikely { chance_ppm: 0 }),
            (None, 9, 5_000, Remaining::Enough { chance_ppm: 5_025 }),
        ];
        for (reason, requested, only_there, expected) in table {
            assert_eq!(remaining(reason, requested, only_there), expected, "{requested} {only_there}");
        }
    }

    #[test]
    fn every_reason_requests_the_remaining_paths() {
        for reason in FullTableReason::ALL {
            assert_eq!(remaining(Some(*reason), 19, 0), Remaining::Requested(*reason));
        }
    }
}
