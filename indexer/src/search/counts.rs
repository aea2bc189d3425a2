//! Counts of values, added up over segments.

use rustc_hash::FxHashMap;

#[derive(Debug, Clone, Default)]
pub(super) struct Counts(pub(super) FxHashMap<String, u64>);

impl Counts {
    pub(super) fn add(&mut self, value: &str, count: u64) {
        // Most values are in every segment already: allocate only for new ones.
        match self.0.get_mut(value) {
            Some(sum) => *sum += count,
            None => {
                self.0.insert(value.to_owned(), count);
            }
        }
    }
}
