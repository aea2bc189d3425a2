//! Probabilities of the paths of the table, re-estimated from the results so far.
//!
//! Read from the store at the start of a crawl and at each housekeeping.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use manifest::Format;
use policy::plan::{self, LastCheck, PATHS, PathPlan, Priors, SitePaths};
use policy::{HostKnowledge, PathClass};
use serde::Serialize;
use store::{PathSlots, Store, StoreError};

/// Maximum number of sites in the estimate. With this many, it is stable.
const SITES_MAX: u32 = 20_000;

/// The priors of a process, shared by its visits.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathPriors(Arc<RwLock<Priors>>);

impl PathPriors {
    pub(crate) fn now(&self) -> Priors {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Re-estimates the priors from the store; returns the number of sites.
    pub(crate) async fn re_estimate(&self, store: &Store) -> Result<usize, StoreError> {
        let sites = sites_with_manifests(store).await?;
        let priors = Priors::estimated(&sites);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = priors;
        Ok(sites.len())
    }
}

/// One row of the path table, with estimates and results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathEstimate {
    pub path: &'static str,
    pub formats: &'static [Format],
    /// How many of 10,000 sites with manifests publish at this path: the default, and the estimate from the results so far.
    pub assumed: u16,
    pub estimated: u16,
    /// How many of 10,000 sites with manifests publish at this path and at no earlier one.
    pub first: u16,
    /// The number of the visit that requests the path, if no manifest is found before.
    pub visit: u32,
    /// Number of sites with manifests at which the path was requested, and of those that had a manifest there.
    pub asked: u64,
    pub found: u64,
}

/// The path table in request order, and the first visit to an unknown site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTable {
    pub rows: Vec<PathEstimate>,
    pub first_visit: PathPlan,
}

/// The path table, with the priors from the store.
pub async fn path_table(store: &Store) -> Result<PathTable, StoreError> {
    let sites = sites_with_manifests(store).await?;
    let (assumed, priors) = (Priors::default(), Priors::estimated(&sites));
    let (first_visit, visits) = visits_of(&priors);
    let rows = priors.order().map(|row| PathEstimate {
        path: row.path,
        formats: row.formats,
        assumed: assumed.of(row),
        estimated: priors.of(row),
        first: priors.first_find(row),
        visit: visits.get(&row.slot).copied().unwrap_or_default(),
        asked: sites.iter().filter(|site| site.was_requested(row)).count() as u64,
        found: sites.iter().filter(|site| site.has(row)).count() as u64,
    });
    Ok(PathTable { rows: rows.collect(), first_visit })
}

/// The first visit to a site without manifests, and the number of the visit that requests each slot.
fn visits_of(priors: &Priors) -> (PathPlan, BTreeMap<u8, u32>) {
    let first_visit = plan::paths(HostKnowledge::Unknown, None, priors, |_| None);
    let mut visits: BTreeMap<u8, u32> = first_visit.requested.iter().map(|row| (row.slot, 1)).collect();
    for found_nothing in 1..=PATHS.len() {
        let found_nothing = u32::try_from(found_nothing).unwrap_or(u32::MAX);
        let known = visits.clone();
        let last = |slot| {
            known.contains_key(&slot).then_some(LastCheck { class: PathClass::Absent, day: 0, turn: 0 })
        };
        let knowledge = HostKnowledge::Negative { visits: found_nothing };
        for row in plan::paths(knowledge, None, priors, last).requested {
            visits.entry(row.slot).or_insert(found_nothing + 1);
        }
    }
    (first_visit, visits)
}

async fn sites_with_manifests(store: &Store) -> Result<Vec<SitePaths>, StoreError> {
    Ok(store.paths_of_positives(SITES_MAX).await?.iter().map(site_paths).collect())
}

fn site_paths(slots: &PathSlots) -> SitePaths {
    let mut paths = SitePaths::default();
    for (slot, check) in slots.iter() {
        if let (Some(row), Some(class)) = (PATHS.get(usize::from(slot)), PathClass::from_code(check.class)) {
            paths.add(row, class);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use store::PathCheck;

    use super::*;

    #[test]
    fn three_visits_request_every_path() {
        let (first_visit, visits) = visits_of(&Priors::default());
        let count = |number: u32| visits.values().filter(|visit| **visit == number).count();
        assert_eq!([count(1), count(2), count(3)], [9, 3, 7]);
        assert_eq!(first_visit.left.len(), 10);
    }

    #[test]
    fn reads_priors_from_answers_only() {
        let site = |classes: &[(u8, PathClass)]| {
            let mut slots = PathSlots::new();
            for (slot, class) in classes {
                slots.set(*slot, PathCheck { class: class.code(), day: 20_000 });
            }
            site_paths(&slots)
        };
        let answers =
            |site: SitePaths| [0, 1].map(|slot| (site.was_requested(&PATHS[slot]), site.has(&PATHS[slot])));
        let present = site(&[(0, PathClass::Present), (1, PathClass::Absent)]);
        assert_eq!(answers(present), [(true, true), (true, false)]);
        let failed = site(&[(0, PathClass::Html), (1, PathClass::Failed), (200, PathClass::Present)]);
        assert_eq!(answers(failed), [(true, false), (false, false)]);
        assert_eq!(site(&[(1, PathClass::Refused)]), SitePaths::default());
    }
}
