//! Counts of values, added up over segments.

use rustc_hash::{FxHashMap, FxHashSet};

#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) by_name: FxHashMap<String, u64>,
    /// The sites that have a value, for values that publishers write freely.
    sites: FxHashMap<String, FxHashSet<u64>>,
    /// Sum of the counts of values whose names were not read.
    pub(super) others: u64,
}

impl Counts {
    pub(super) fn add(&mut self, value: &str, count: u64) {
        // most values already have an entry from another segment; allocate only for new ones
        match self.by_name.get_mut(value) {
            Some(sum) => *sum += count,
            None => {
                self.by_name.insert(value.to_owned(), count);
            }
        }
    }

    pub(super) fn add_sites(&mut self, value: &str, sites: &[u64]) {
        if !sites.is_empty() {
            self.sites.entry(value.to_owned()).or_default().extend(sites);
        }
    }

    /// The number of counted sites with a value, at most `max`.
    pub(super) fn sites_of(&self, value: &str, max: usize) -> usize {
        self.sites.get(value).map_or(0, FxHashSet::len).min(max)
    }
}
