//! Paging in a total order: by score, time or name; ties are broken by id.
//!
//! Cursors use this order for the results after the re-ranked ones, and for every sort order except relevance. Each page needs one pass
//! over the matches, regardless of its depth.

use std::cmp::Ordering;
use std::collections::HashSet;

use tantivy::columnar::{Column, StrColumn};
use tantivy::{DocAddress, DocId, Score, SegmentReader};

use super::accumulate::Collect;
use super::deadline::for_each_checked;
use super::opened::OpenedIndex;
use crate::request::Sort;

/// The sort key of a document; smaller comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// Complement of a score or time, which sort in descending order.
    Number(u64),
    Text(String),
}

/// The position of a document in the order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) key: Key,
    pub(super) tie: u64,
}

/// The sort number of a score, smaller for a higher score. The bits of non-negative floats sort like the floats.
fn number_of_score(score: Score) -> u64 {
    u64::from(!score.max(0.0).to_bits())
}

fn number_of_time(time_ms: i64) -> u64 {
    !(time_ms.cast_unsigned() ^ (1 << 63))
}

impl Key {
    /// The score from which the key was computed.
    pub(super) fn score(&self) -> Score {
        match self {
            Self::Number(bits) => Score::from_bits(!u32::try_from(*bits).unwrap_or(u32::MAX)),
            Self::Text(_) => 0.0,
        }
    }
}

/// Shortens a tie for cursors, in which it has to distinguish only a few hundred documents.
#[expect(clippy::cast_possible_truncation, reason = "the low half of a hash is a hash")]
pub(super) fn short_tie(tie: u64) -> u32 {
    (tie ^ (tie >> 32)) as u32
}

/// The first documents after a position.
struct TopAfter<'a> {
    limit: usize,
    after: Option<(u64, u64)>,
    /// Short ties of documents to skip.
    skip: &'a HashSet<u32>,
    best: Vec<(u64, u64, DocAddress)>,
    /// The position of the last document of the page, once `limit` documents were found. Later positions are not on the page.
    bound: Option<(u64, u64)>,
}

impl<'a> TopAfter<'a> {
    fn new(limit: usize, after: Option<(u64, u64)>, skip: &'a HashSet<u32>) -> Self {
        Self { limit, after, skip, best: Vec::new(), bound: None }
    }

    fn add(&mut self, number: u64, tie: impl FnOnce() -> u64, address: DocAddress) {
        if self.bound.is_some_and(|(last, _)| number > last) {
            return;
        }
        let position = (number, tie());
        let is_outside = self.bound.is_some_and(|bound| position > bound)
            || self.after.is_some_and(|after| position <= after);
        if is_outside || (!self.skip.is_empty() && self.skip.contains(&short_tie(position.1))) {
            return;
        }
        self.best.push((position.0, position.1, address));
        if self.best.len() >= self.limit.max(16) * 8 {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.best.sort_unstable();
        self.best.truncate(self.limit);
        if self.best.len() == self.limit {
            self.bound = self.best.last().map(|(number, tie, _)| (*number, *tie));
        }
    }

    fn into_page(mut self, key: impl Fn(u64) -> Key) -> Vec<(Position, DocAddress)> {
        self.cut();
        let position = |(number, tie, address)| (Position { key: key(number), tie }, address);
        self.best.into_iter().map(position).collect()
    }
}

/// Collects a page by score.
pub(super) struct PageByScore<'a> {
    opened: &'a OpenedIndex,
    top: TopAfter<'a>,
}

impl<'a> PageByScore<'a> {
    pub(super) fn new(
        opened: &'a OpenedIndex,
        limit: usize,
        after: Option<&Position>,
        skip: &'a HashSet<u32>,
    ) -> Self {
        let after = after.map(|Position { key, tie }| match key {
            Key::Number(number) => (*number, *tie),
            Key::Text(_) => (u64::MAX, *tie),
        });
        Self { opened, top: TopAfter::new(limit, after, skip) }
    }

    pub(super) fn into_page(self) -> Vec<(Position, DocAddress)> {
        self.top.into_page(Key::Number)
    }
}

impl Collect for PageByScore<'_> {
    fn threshold(&self) -> Score {
        Score::NEG_INFINITY
    }

    fn add(&mut self, score: Score, address: DocAddress) {
        let tie = || tie(self.opened, address);
        self.top.add(number_of_score(score), tie, address);
    }
}

fn tie(opened: &OpenedIndex, address: DocAddress) -> u64 {
    let columns = opened.columns.get(address.segment_ord as usize);
    columns.and_then(|columns| columns.traits(address.doc_id)).map_or(0, |traits| traits.tie)
}

/// Collects a page by a column, segment by segment.
pub(super) struct PageByColumn<'a> {
    opened: &'a OpenedIndex,
    sort: Sort,
    limit: usize,
    after: Option<Position>,
    found: Vec<(Position, DocAddress)>,
}

impl<'a> PageByColumn<'a> {
    /// [`Sort::Relevance`] is used for searches without words, and sorts by the time of the last change.
    pub(super) fn new(opened: &'a OpenedIndex, sort: Sort, limit: usize, after: Option<Position>) -> Self {
        Self { opened, sort, limit, after, found: Vec::new() }
    }

    /// Adds documents of one segment. `check` is called at intervals; its error ends the search.
    pub(super) fn add_segment(
        &mut self,
        segment: &SegmentReader,
        documents: impl Iterator<Item = DocAddress>,
        check: impl FnMut() -> tantivy::Result<()>,
    ) -> tantivy::Result<()> {
        let columns = segment.fast_fields();
        let keys = match self.sort {
            Sort::Relevance | Sort::Updated => Keys::Time(columns.i64("updated_ms")?),
            Sort::FirstSeen => Keys::Time(columns.i64("first_seen_ms")?),
            Sort::Name => columns.str("name_sort")?.map_or(Keys::None, Keys::Name),
        };
        let after = self.after.as_ref().map(|Position { key, tie }| match key {
            Key::Number(number) => (*number, *tie),
            Key::Text(text) => keys.position_of(text, *tie),
        });
        let skip = HashSet::new();
        let mut top = TopAfter::new(self.limit, after, &skip);
        let add = |address: DocAddress| {
            top.add(keys.number(address.doc_id), || tie(self.opened, address), address);
        };
        for_each_checked(documents, check, add)?;
        self.found.extend(top.into_page(|number| keys.key(number)));
        Ok(())
    }

    pub(super) fn into_page(mut self) -> Vec<(Position, DocAddress)> {
        self.found.sort_unstable();
        self.found.truncate(self.limit);
        self.found
    }
}

/// The sort keys of one segment. The number of a name is its ordinal in the dictionary of the segment.
enum Keys {
    Time(Column<i64>),
    Name(StrColumn),
    None,
}

impl Keys {
    fn number(&self, document: DocId) -> u64 {
        match self {
            Self::Time(column) => number_of_time(column.first(document).unwrap_or(i64::MIN)),
            Self::Name(column) => column.term_ords(document).next().unwrap_or(u64::MAX),
            Self::None => u64::MAX,
        }
    }

    fn key(&self, number: u64) -> Key {
        match self {
            Self::Time(_) => Key::Number(number),
            Self::Name(column) => Key::Text(text_of(column, number)),
            Self::None => Key::Text(String::new()),
        }
    }

    /// The position of a name among the names of this segment, by binary search.
    fn position_of(&self, text: &str, tie: u64) -> (u64, u64) {
        let Self::Name(column) = self else { return (u64::MAX, tie) };
        let (mut low, mut high) = (0, column.num_terms() as u64);
        while low < high {
            let middle = low + (high - low) / 2;
            match text_of(column, middle).as_str().cmp(text) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return (middle, tie),
                Ordering::Greater => high = middle,
            }
        }
        // not in this segment: all names from `low` on come after it
        if low == 0 { (0, 0) } else { (low - 1, u64::MAX) }
    }
}

fn text_of(column: &StrColumn, ordinal: u64) -> String {
    let mut text = String::new();
    // An unknown ordinal leaves the text empty, which sorts first.
    match column.ord_to_str(ordinal, &mut text) {
        Ok(_) | Err(_) => text,
    }
}
