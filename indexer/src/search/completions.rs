//! The best completions of prefixes that many entries begin with, made once for every segment.
//!
//! A segment never changes, so that a commit costs one pass over the dictionaries of the segments that are new. Prefixes
//! that few entries begin with have no list: walking over those is as fast.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use tantivy::index::SegmentId;
use tantivy::{Searcher, SegmentReader};

use super::suggest::SUGGESTIONS_MAX;
use crate::index::Fields;

/// Entries up to which a prefix has no list, in one segment: walking over as many takes some hundredths of a millisecond.
const UNLISTED_MAX: usize = 200;
/// Longest prefix that has a list, in characters; longer ones that many entries share are rare.
const PREFIX_CHARS_MAX: usize = 16;

/// An entry of the dictionary and the capabilities behind it.
pub(super) type Entry = (Arc<str>, u32);

/// The lists of every segment of one commit.
#[derive(Debug, Default)]
pub(super) struct Completions {
    by_segment: HashMap<SegmentId, Arc<Lists>>,
}

/// The lists of one segment, the most frequent entries first.
#[derive(Debug, Default)]
struct Lists(HashMap<Box<str>, Vec<Entry>>);

impl Completions {
    /// Makes the lists of new segments and goes on with those of the others.
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
        Ok(Self { by_segment })
    }

    /// The list of a prefix in a segment, when so many entries begin with it that there is one.
    pub(super) fn list(&self, segment: &SegmentReader, prefix: &str) -> Option<&[Entry]> {
        self.by_segment.get(&segment.segment_id())?.0.get(prefix).map(Vec::as_slice)
    }
}

impl Lists {
    fn of(segment: &SegmentReader, fields: &Fields) -> tantivy::Result<Self> {
        let inverted = segment.inverted_index(fields.suggest)?;
        let mut stream = inverted.terms().stream()?;
        let mut open = Open::default();
        while let Some((key, info)) = stream.next() {
            if let Ok(entry) = std::str::from_utf8(key) {
                open.add(entry, info.doc_freq);
            }
        }
        open.close(0);
        Ok(open.lists)
    }
}

/// The prefixes of the entry that was read last, shortest first. Entries come in order, so that a prefix that the next
/// one does not begin with is complete.
#[derive(Default)]
struct Open {
    /// The last entry, and where each of its prefixes ends in it.
    last: String,
    ends: Vec<usize>,
    /// Reused from prefix to prefix.
    best: Vec<Best>,
    lists: Lists,
}

/// Capabilities behind an entry, its place among those of its prefix, and the entry.
type Kept = (u32, Reverse<usize>, Arc<str>);

#[derive(Default)]
struct Best {
    entries: usize,
    /// The least frequent on top, and of those the one that was read last.
    heap: BinaryHeap<Reverse<Kept>>,
}

impl Open {
    fn add(&mut self, entry: &str, count: u32) {
        let shared = entry.char_indices().zip(self.last.chars()).take_while(|((_, a), b)| a == b).count();
        self.close(shared);
        self.last.clear();
        self.last.push_str(entry);
        let ends = entry.char_indices().map(|(at, c)| at + c.len_utf8());
        self.ends.extend(ends.take(PREFIX_CHARS_MAX).skip(self.ends.len()));
        self.best.resize_with(self.best.len().max(self.ends.len()), Best::default);
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

    /// Ends the prefixes that are longer than so many characters.
    fn close(&mut self, chars: usize) {
        while self.ends.len() > chars {
            let Some((end, best)) = self.ends.pop().zip(self.best.get_mut(self.ends.len())) else { return };
            let Best { entries, heap } = std::mem::take(best);
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
    fn a_prefix_of_many_entries_has_a_list_of_its_most_frequent() {
        let mut open = Open::default();
        for at in 0..2_000_u32 {
            open.add(&format!("a{:03}x{:03}", at / 1_000, at % 1_000), at % 700);
        }
        open.add("b", 9);
        open.close(0);
        let lists = open.lists.0;
        let most = lists["a000x"].first().unwrap();
        assert_eq!((&*most.0, most.1), ("a000x699", 699));
        assert_eq!(lists["a"].len(), SUGGESTIONS_MAX);
        assert!(lists["a"].is_sorted_by(|a, b| a.1 >= b.1));
        assert!(!lists.contains_key("a000x0") && !lists.contains_key("b"), "few entries need no list");
    }
}
