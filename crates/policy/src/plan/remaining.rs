//! Decides whether a visit requests the remaining paths of the table.
//!
//! Nearly all sites have nothing. A visit requests the likeliest paths, and leaves the others to later visits once the chance
//! that any of them has something is small. It requests all of them if the site has something, says that it has, or was
//! submitted.

use manifest::string_enum;

/// Sites with anything at a path of the table, among a million: one in a hundred.
const DECLARING_PPM: u64 = 10_000;
/// A chance among a million, one in 1,200, below which the remaining paths are left to later visits. With the counted shares, a
/// first visit then requests nine paths, which find 98 % of the manifests.
const CHANCE_PPM_MIN: u64 = 833;
/// Maximum number of paths of a visit without a reason for more: ten requests with robots.txt.
pub const PATHS_SPECULATIVE_MAX: usize = 9;

string_enum! {
    /// Why a visit requests every path that was never requested before.
    FullTableReason, "full table reason" {
        /// A client, or `check`, submitted the site.
        Submitted = "submitted",
        /// A list or a submission names a URL of the site.
        UrlNamed = "url_named",
        /// The site has a manifest, as earlier visits know.
        ManifestKnown = "manifest_known",
        /// An answer of this visit is a manifest.
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
    /// Requests the next one, since the chance that any has something is large enough.
    Likely { chance_ppm: u32 },
    /// Leaves them to later visits, since it is small.
    Unlikely { chance_ppm: u32 },
    /// Leaves them to later visits, since this one has requested as many as a visit without a reason for more may.
    Enough { chance_ppm: u32 },
}

/// Decides about the paths that were never requested. `requested` counts the paths of this visit; `only_there` is the number of
/// sites, among 10,000 with anything, that have something at these paths alone.
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

/// The chance, among a million, that a site has something at these paths, given that it has nothing at the others.
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
