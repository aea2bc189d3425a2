//! The best completions of frequent prefixes, computed once for each segment.
//!
//! Segments never change, so a commit only needs one pass over the dictionaries of its new segments. Rare prefixes have no list, because
//! scanning their entries is just as fast.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::{Arc, Mutex};

use tantivy::index::SegmentId;
use tantivy::{Searcher, SegmentReader};

use super::site_counts::SiteCounts;
use crate::answer::Suggestion;
use crate::index::Fields;

/// Maximum number of completions of one prefix.
pub(super) const SUGGESTIONS_MAX: usize = 50;
/// Prefixes with at most this many entries in a segment have no list: scanning the entries takes a few hundredths of a millisecond.
const UNLISTED_MAX: usize = 200;
/// Maximum length of a prefix with a list, in characters; few longer ones are frequent.
const PREFIX_CHARS_MAX: usize = 16;

/// An entry of the dictionary, and its number of sites.
pub(super) type Entry = (Arc<str>, u32);

/// The lists of every segment of one commit.
#[derive(Debug, Default)]
pub(crate) struct Suggestions {
    by_segment: HashMap<SegmentId, Arc<Lists>>,
    /// Suggestions by prefix, computed since the last commit.
    pub(super) cached: Mutex<HashMap<String, Vec<Suggestion>>>,
}

/// The lists of one segment, the most frequent entries first.
#[derive(Debug, Default)]
struct Lists(HashMap<Box<str>, Vec<Entry>>);

impl Suggestions {
    /// Reads the new segments, and shares the lists of unchanged ones with the previous commit.
    pub(super) fn of(searcher: &Searcher, fields: &Fields, before: &Self) -> tantivy::Result<Self> {
        let of_segment = |segment: &SegmentReader| {
            let id = segment.segment_id();
            let lists = match before.by_segment.get(&id) {
                Some(lists) => Arc::clone(lists),
                None => Arc::new(Lists::of(segment, fields)?),
            };
            Ok((id, lists))
        };
        let by_segment = searcher.segment_readers().iter().map(of_segment).collect::<tantivy::Result<_>>()?;
        Ok(Self { by_segment, cached: Mutex::default() })
    }

    /// The list of a prefix in a segment, if it is frequent.
    pub(super) fn list(&self, segment: &SegmentReader, prefix: &str) -> Option<&[Entry]> {
        self.by_segment.get(&segment.segment_id())?.0.get(prefix).map(Vec::as_slice)
    }
}

impl Lists {
    fn of(segment: &SegmentReader, fields: &Fields) -> tantivy::Result<Self> {
        let inverted = segment.inverted_index(fields.suggest)?;
        let mut stream = inverted.terms().stream()?;
        let mut stack = PrefixStack::default();
        let mut sites = SiteCounts::of(segment, fields, fields.suggest, usize::MAX)?;
        while let Some((key, info)) = stream.next() {
            if let Ok(entry) = std::str::from_utf8(key) {
                stack.add(entry, sites.count(info)?);
            }
        }
        stack.close(0);
        Ok(stack.lists)
    }
}

/// The prefixes of the last entry, shortest first. Entries arrive in order, so a prefix is complete when the next entry does not begin with
/// it.
#[derive(Default)]
struct PrefixStack {
    /// The last entry, and the byte offsets at which its prefixes end.
    last: String,
    ends: Vec<usize>,
    /// The best entries of each prefix; allocations are reused.
    best: Vec<BestEntries>,
    lists: Lists,
}

/// Count, index and text of an entry. Greater means more frequent; among equally frequent entries, the first is the greatest.
type RankedEntry = (u32, Reverse<usize>, Arc<str>);

/// The most frequent entries of one prefix.
#[derive(Default)]
struct BestEntries {
    /// Number of all entries with the prefix.
    entries: usize,
    heap: BinaryHeap<Reverse<RankedEntry>>,
}

impl PrefixStack {
    fn add(&mut self, entry: &str, count: u32) {
        let shared = entry.char_indices().zip(self.last.chars()).take_while(|((_, a), b)| a == b).count();
        self.close(shared);
        self.last.clear();
        self.last.push_str(entry);
        let ends = entry.char_indices().map(|(at, c)| at + c.len_utf8());
        self.ends.extend(ends.take(PREFIX_CHARS_MAX).skip(self.ends.len()));
        self.best.resize_with(self.best.len().max(self.ends.len()), BestEntries::default);
        let mut shared_entry: Option<Arc<str>> = None;
        for best in self.best.iter_mut().take(self.ends.len()) {
            best.entries += 1;
            let is_full = best.heap.len() >= SUGGESTIONS_MAX;
            if is_full && best.heap.peek().is_some_and(|Reverse((least, ..))| *least >= count) {
                continue;
            }
            let entry = shared_entry.get_or_insert_with(|| entry.into());
            best.heap.push(Reverse((count, Reverse(best.entries), Arc::clone(entry))));
            if is_full {
                best.heap.pop();
            }
        }
    }

    /// Completes the prefixes of more than `chars` characters.
    fn close(&mut self, chars: usize) {
        while self.ends.len() > chars {
            let Some((end, best)) = self.ends.pop().zip(self.best.get_mut(self.ends.len())) else { return };
            let BestEntries { entries, heap } = std::mem::take(best);
            let Some(prefix) = self.last.get(..end).filter(|_| entries > UNLISTED_MAX) else { continue };
            let sorted = heap.into_sorted_vec().into_iter();
            let list = sorted.map(|Reverse((count, _, entry))| (entry, count)).collect();
            self.lists.0.insert(prefix.into(), list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_the_most_frequent_entries_of_frequent_prefixes() {
        let mut stack = PrefixStack::default();
        for at in 0..2_000_u32 {
            stack.add(&format!("a{:03}x{:03}", at / 1_000, at % 1_000), at % 700);
        }
        stack.add("b", 9);
        stack.close(0);
        let lists = stack.lists.0;
        let most = lists["a000x"].first().unwrap();
        assert_eq!((&*most.0, most.1), ("a000x699", 699));
        assert_eq!(lists["a"].len(), SUGGESTIONS_MAX);
        assert!(lists["a"].is_sorted_by(|a, b| a.1 >= b.1));
        assert!(!lists.contains_key("a000x0") && !lists.contains_key("b"), "rare prefixes have no list");
    }
}
