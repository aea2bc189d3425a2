//! Counts of values, added up over segments.

use rustc_hash::FxHashMap;

#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) by_name: FxHashMap<String, u64>,
    /// Sum of the counts of values whose names were not read.
    pub(super) others: u64,
}

impl Counts {
    pub(super) fn add(&mut self, value: &str, count: u64) {
        // Most values are in every segment already: allocate only for new ones.
        match self.by_name.get_mut(value) {
            Some(sum) => *sum += count,
            None => {
                self.by_name.insert(value.to_owned(), count);
            }
        }
    }
}
