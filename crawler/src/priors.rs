//! Probabilities of the paths of the table, re-estimated from the results so far.
//!
//! Read from the store at the start of a crawl and at each housekeeping.

use std::sync::{Arc, PoisonError, RwLock};

use manifest::Format;
use policy::PathClass;
use policy::plan::{PATHS, PathCount, Priors};
use serde::Serialize;
use store::{PathSlots, Store, StoreError};

/// Maximum number of sites in the estimate: beyond this it is stable.
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
        let sites = store.paths_of_positives(SITES_MAX).await?;
        let priors = Priors::estimated(|slot| count(&sites, slot));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = priors;
        Ok(sites.len())
    }
}

/// One row of the path table with what was found there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathEstimate {
    pub path: &'static str,
    pub formats: &'static [Format],
    /// Of 10,000 sites that publish anything, how many publish here: as assumed, and as found so far.
    pub assumed: u16,
    pub estimated: u16,
    /// Sites with manifests where it was requested, and those that had one there.
    pub asked: u64,
    pub found: u64,
}

/// The path table in request order.
pub async fn path_estimates(store: &Store) -> Result<Vec<PathEstimate>, StoreError> {
    let sites = store.paths_of_positives(SITES_MAX).await?;
    let priors = Priors::estimated(|slot| count(&sites, slot));
    let mut estimates: Vec<PathEstimate> = PATHS
        .iter()
        .map(|row| {
            let PathCount { requested, found } = count(&sites, row.slot);
            let (assumed, estimated) = (row.prior, priors.of(row));
            PathEstimate { path: row.path, formats: row.formats, assumed, estimated, asked: requested, found }
        })
        .collect();
    // every visit requests the homepage last, regardless of its estimate
    estimates.sort_by_key(|row| (row.path == "/", std::cmp::Reverse(row.estimated)));
    Ok(estimates)
}

fn count(sites: &[PathSlots], slot: u8) -> PathCount {
    let classes = sites.iter().filter_map(|site| PathClass::from_code(site.get(slot)?.class));
    classes.fold(PathCount::default(), |count, class| match class {
        PathClass::Present => PathCount { requested: count.requested + 1, found: count.found + 1 },
        PathClass::Absent | PathClass::Html => PathCount { requested: count.requested + 1, ..count },
        // a failure says nothing about what is published
        PathClass::Refused | PathClass::Failed => count,
    })
}

#[cfg(test)]
mod tests {
    use store::PathCheck;

    use super::*;

    #[test]
    fn estimates_priors_from_answers_only() {
        let site = |classes: &[(u8, PathClass)]| {
            let mut slots = PathSlots::new();
            for (slot, class) in classes {
                slots.set(*slot, PathCheck { class: class.code(), day: 20_000 });
            }
            slots
        };
        let sites = [
            site(&[(0, PathClass::Present), (1, PathClass::Absent)]),
            site(&[(0, PathClass::Html), (1, PathClass::Failed)]),
            site(&[(1, PathClass::Refused)]),
        ];
        assert_eq!(count(&sites, 0), PathCount { requested: 2, found: 1 });
        assert_eq!(count(&sites, 1), PathCount { requested: 1, found: 0 });
        assert_eq!(count(&sites, 2), PathCount::default());
    }
}
