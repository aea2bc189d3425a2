//! Estimates how likely each path of the table has a manifest, and derives the order of requests.
//!
//! Sites that publish several manifests publish them at the same few paths, so the value of a path is the number of sites that it adds to
//! the paths before it. The first path of the order is the one at which most sites publish. Each next path is the one at which most of the
//! remaining sites publish: those without a manifest at the paths before it. The numbers come from counted sites (`shares.txt`), corrected
//! by the sites that a crawl found (the mean of a Beta distribution).

use std::cmp::Reverse;

use super::PathClass;
use super::table::{BodyKind, PATHS, PlannedPath, find};

/// The number of counted sites for each set of paths at which they publish.
const SHARES: &str = include_str!("shares.txt");
/// Paths without data from the counted sites. The numbers are assumptions: sites with a manifest at this path only, among 10,000 with any
/// manifest. Two paths belong to dialects that are newer than the count. The home page leads to files at other paths: 11 % of the counted
/// sites had only such files, and a tenth of these is assumed to link to them.
const ASSUMED: [(&str, u16); 3] =
    [("/.well-known/ard.json", 100), ("/.well-known/woa.json", 100), ("/", 110)];
/// The weight of the counted sites, in sites: a few hundred observations change the priors, a dozen do not.
const COUNTED_WEIGHT: u64 = 500;
/// Numbers of sites are given per this many sites with any manifest.
const AMONG: u64 = 10_000;

const ROWS: usize = PATHS.len();
const _: () = assert!(ROWS <= 32, "a set of paths is 32 bits");

/// Rows of the path table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Rows(u32);

impl Rows {
    const fn of(row: &PlannedPath) -> Self {
        Self(1 << row.slot)
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The requested and the found paths of one site that has a manifest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SitePaths {
    requested: Rows,
    found: Rows,
}

impl SitePaths {
    /// Adds the last check of a path. Failures are ignored.
    pub fn add(&mut self, row: &PlannedPath, class: PathClass) {
        match class {
            PathClass::Present => {
                self.requested = self.requested.and(Rows::of(row));
                self.found = self.found.and(Rows::of(row));
            }
            PathClass::Absent | PathClass::Html => self.requested = self.requested.and(Rows::of(row)),
            PathClass::Refused | PathClass::Failed => {}
        }
    }

    /// Whether the site responded to a request of a path.
    pub const fn was_requested(&self, row: &PlannedPath) -> bool {
        self.requested.overlaps(Rows::of(row))
    }

    /// Whether the site has a manifest at a path.
    pub const fn has(&self, row: &PlannedPath) -> bool {
        self.found.overlaps(Rows::of(row))
    }
}

/// The order of the path table, with the numbers from which it is derived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Priors {
    order: [u8; ROWS],
    /// Number of sites with a manifest at the path, among 10,000 with any manifest, by slot.
    shares: [u16; ROWS],
    /// Number of these sites without a manifest at the paths before it, by slot.
    first_finds: [u16; ROWS],
}

impl Default for Priors {
    fn default() -> Self {
        Self::estimated(&[])
    }
}

impl Priors {
    /// The priors of the counted sites, corrected by sites that a crawl found.
    #[must_use]
    pub fn estimated(sites: &[SitePaths]) -> Self {
        let counted: Vec<(u64, Rows)> = counted().collect();
        let mut estimate = Estimate::new(&counted, sites);
        let shares = PATHS.iter().map(|row| (row.slot, estimate.sites_with(row)));
        let mut priors = Self { order: [0; ROWS], shares: by_slot(shares), first_finds: [0; ROWS] };
        let mut rest: Vec<&PlannedPath> = PATHS.iter().collect();
        for place in &mut priors.order {
            let value = |row: &PlannedPath| {
                (estimate.sites_with(row), priors.shares.get(usize::from(row.slot)), Reverse(row.slot))
            };
            let Some(next) = (0..rest.len()).max_by_key(|index| rest.get(*index).map(|row| value(row)))
            else {
                break;
            };
            let row = rest.remove(next);
            *place = row.slot;
            if let Some(first_find) = priors.first_finds.get_mut(usize::from(row.slot)) {
                *first_find = estimate.sites_with(row);
            }
            estimate.choose(row);
        }
        priors
    }

    /// The rows of the table, the likeliest first.
    pub fn order(&self) -> impl Iterator<Item = &'static PlannedPath> {
        self.order.iter().filter_map(|slot| PATHS.get(usize::from(*slot)))
    }

    /// Number of sites with a manifest at the path, among 10,000 with any manifest.
    pub fn of(&self, row: &PlannedPath) -> u16 {
        self.shares.get(usize::from(row.slot)).copied().unwrap_or_default()
    }

    /// Number of sites with a manifest at the path and none at the paths before it in the order, among 10,000 with any manifest.
    pub fn first_find(&self, row: &PlannedPath) -> u16 {
        self.first_finds.get(usize::from(row.slot)).copied().unwrap_or_default()
    }

    /// Number of sites with manifests at these paths only, among 10,000 with any manifest.
    pub(super) fn only_at(&self, rows: &[&PlannedPath]) -> u64 {
        rows.iter().map(|row| u64::from(self.first_find(row))).sum()
    }
}

/// The sites without a manifest at the rows that were chosen so far.
struct Estimate {
    counted: Vec<(u64, Rows)>,
    counted_total: u64,
    observed: Vec<SitePaths>,
    requested: [u64; ROWS],
}

impl Estimate {
    fn new(counted: &[(u64, Rows)], observed: &[SitePaths]) -> Self {
        let mut requested = [0; ROWS];
        for (row, requested) in PATHS.iter().zip(&mut requested) {
            *requested = observed.iter().filter(|site| site.was_requested(row)).count() as u64;
        }
        Self {
            counted: counted.to_vec(),
            counted_total: counted.iter().map(|(sites, _)| sites).sum::<u64>().max(1),
            observed: observed.to_vec(),
            requested,
        }
    }

    fn sites_with(&self, row: &PlannedPath) -> u16 {
        let counted = self.counted.iter().filter(|(_, rows)| rows.overlaps(Rows::of(row)));
        let counted = counted.map(|(sites, _)| sites).sum::<u64>() * AMONG / self.counted_total;
        let assumed = ASSUMED.iter().find(|(path, _)| *path == row.path);
        let assumed = counted + assumed.map_or(0, |(_, sites)| u64::from(*sites));
        // a home page contains links, not manifests, so only the counted sites are used
        let requested = match row.body {
            BodyKind::Homepage => 0,
            _ => self.requested.get(usize::from(row.slot)).copied().unwrap_or_default(),
        };
        let found = self.observed.iter().filter(|site| site.has(row)).count() as u64;
        let mean = (assumed * COUNTED_WEIGHT + found * AMONG) / (requested + COUNTED_WEIGHT);
        u16::try_from(mean).unwrap_or(u16::MAX)
    }

    fn choose(&mut self, row: &PlannedPath) {
        self.counted.retain(|(_, rows)| !rows.overlaps(Rows::of(row)));
        self.observed.retain(|site| !site.has(row));
    }
}

fn by_slot(values: impl Iterator<Item = (u8, u16)>) -> [u16; ROWS] {
    let mut sorted = [0; ROWS];
    for (slot, value) in values {
        if let Some(place) = sorted.get_mut(usize::from(slot)) {
            *place = value;
        }
    }
    sorted
}

/// The lines of the count: sites, and the paths at which they publish.
fn counted() -> impl Iterator<Item = (u64, Rows)> {
    SHARES.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (sites, paths) = line.split_once('\t')?;
        let rows = paths.split(' ').filter_map(find).map(Rows::of);
        Some((sites.parse().ok()?, rows.fold(Rows::default(), Rows::and)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_line_of_the_count() {
        let lines: Vec<&str> = SHARES.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(counted().count(), lines.len());
        assert_eq!(counted().map(|(sites, _)| sites).sum::<u64>(), 89);
        let files = counted().map(|(sites, rows)| sites * u64::from(rows.0.count_ones())).sum::<u64>();
        assert_eq!(files, 212);
    }

    #[test]
    fn orders_paths_by_additional_sites_found() {
        let priors = Priors::default();
        let order: Vec<&str> = priors.order().map(|row| row.path).collect();
        assert_eq!(
            order[..9],
            [
                "/.well-known/agent.json",
                "/.well-known/agents.json",
                "/.well-known/mcp/server-card.json",
                "/.well-known/agent-manifest.json",
                "/agents.txt",
                "/agent.json",
                "/.well-known/mcp.json",
                "/.well-known/api-catalog",
                "/.well-known/agent-card.json",
            ]
        );
        // often published, but hardly ever as the only manifest
        let llms_txt = find("/llms.txt").unwrap();
        assert_eq!((priors.of(llms_txt), priors.first_find(llms_txt)), (1_910, 0));
    }
}
