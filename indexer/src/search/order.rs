//! Collects documents in a total order, after a given place: by score, time or name, ties by id.
//!
//! It is what cursors walk on beyond the documents that are looked at closely, and every order but relevance. Each page
//! costs one pass over the matches, however deep it lies.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::{Column, StrColumn};
use tantivy::{DocAddress, DocId, Score, SegmentOrdinal, SegmentReader};

use super::cursor::short_tie;

/// What documents are ordered by. Scores and times fall, names rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Score,
    Updated,
    FirstSeen,
    Name,
}

/// The place of a document in the order; smaller comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// Complement of what falls.
    Number(u64),
    Text(String),
}

impl Key {
    /// The key of a score. Scores are not negative, so that their bits order like themselves.
    pub(super) fn of_score(score: Score) -> Self {
        Self::Number(u64::from(!score.max(0.0).to_bits()))
    }

    fn of_time(time_ms: i64) -> Self {
        Self::Number(!(time_ms.cast_unsigned() ^ (1 << 63)))
    }

    /// The score that a key was made of.
    pub(super) fn score(&self) -> Score {
        match self {
            Self::Number(bits) => Score::from_bits(!u32::try_from(*bits).unwrap_or(u32::MAX)),
            Self::Text(_) => 0.0,
        }
    }
}

/// A place between documents.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) key: Key,
    pub(super) tie: u64,
}

/// The first documents after a place, and how many match at all.
pub(super) struct TopAfter {
    pub(super) by: By,
    pub(super) limit: usize,
    pub(super) after: Option<Place>,
    /// Documents that were answered before, by their short ties.
    pub(super) skip: Arc<HashSet<u32>>,
}

/// Documents in order, and how many match.
pub(super) struct Found {
    pub(super) documents: Vec<(Place, DocAddress)>,
    pub(super) total: u64,
}

impl Collector for TopAfter {
    type Fruit = Found;
    type Child = SegmentTop;

    fn for_segment(&self, ordinal: SegmentOrdinal, segment: &SegmentReader) -> tantivy::Result<SegmentTop> {
        let columns = segment.fast_fields();
        let keys = match self.by {
            By::Score => Keys::Score,
            By::Updated => Keys::Time(columns.i64("updated_ms")?),
            By::FirstSeen => Keys::Time(columns.i64("first_seen_ms")?),
            By::Name => columns.str("name_sort")?.map_or(Keys::None, Keys::Name),
        };
        let after = match &self.after {
            None => None,
            Some(Place { key: Key::Number(number), tie }) => Some((*number, *tie)),
            Some(Place { key: Key::Text(text), tie }) => Some(keys.place_of(text, *tie)),
        };
        Ok(SegmentTop {
            ordinal,
            keys,
            ties: columns.u64("tie")?,
            limit: self.limit,
            after,
            skip: Arc::clone(&self.skip),
            best: Vec::new(),
            bound: None,
            total: 0,
        })
    }

    fn requires_scoring(&self) -> bool {
        self.by == By::Score
    }

    fn merge_fruits(&self, fruits: Vec<Found>) -> tantivy::Result<Found> {
        let total = fruits.iter().map(|fruit| fruit.total).sum();
        let mut documents: Vec<_> = fruits.into_iter().flat_map(|fruit| fruit.documents).collect();
        documents.sort_unstable();
        documents.truncate(self.limit);
        Ok(Found { documents, total })
    }
}

enum Keys {
    Score,
    Time(Column<i64>),
    Name(StrColumn),
    None,
}

impl Keys {
    fn number(&self, document: DocId, score: Score) -> u64 {
        let number_of = |key: Key| match key {
            Key::Number(number) => number,
            Key::Text(_) => u64::MAX,
        };
        match self {
            Self::Score => number_of(Key::of_score(score)),
            Self::Time(column) => number_of(Key::of_time(column.first(document).unwrap_or(i64::MIN))),
            Self::Name(column) => column.term_ords(document).next().unwrap_or(u64::MAX),
            Self::None => u64::MAX,
        }
    }

    fn key(&self, number: u64) -> Key {
        match self {
            Self::Name(column) => Key::Text(text_of(column, number)),
            Self::None => Key::Text(String::new()),
            Self::Score | Self::Time(_) => Key::Number(number),
        }
    }

    /// The place of a name among the names of this segment, by halving.
    fn place_of(&self, text: &str, tie: u64) -> (u64, u64) {
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
        // Not here: everything from `low` on comes after it.
        if low == 0 { (0, 0) } else { (low - 1, u64::MAX) }
    }
}

fn text_of(column: &StrColumn, ordinal: u64) -> String {
    let mut text = String::new();
    // A missing ordinal leaves the text empty, which sorts first.
    match column.ord_to_str(ordinal, &mut text) {
        Ok(_) | Err(_) => text,
    }
}

/// Collects one segment.
pub(super) struct SegmentTop {
    ordinal: SegmentOrdinal,
    keys: Keys,
    ties: Column<u64>,
    limit: usize,
    after: Option<(u64, u64)>,
    skip: Arc<HashSet<u32>>,
    best: Vec<(u64, u64, DocId)>,
    /// The last of the best, once there are enough: what comes after it is not among them.
    bound: Option<(u64, u64)>,
    total: u64,
}

impl SegmentCollector for SegmentTop {
    type Fruit = Found;

    fn collect(&mut self, document: DocId, score: Score) {
        self.total += 1;
        let number = self.keys.number(document, score);
        if self.bound.is_some_and(|(last, _)| number > last) {
            return;
        }
        let place = (number, self.ties.first(document).unwrap_or(0));
        if self.bound.is_some_and(|bound| place > bound) {
            return;
        }
        let is_before = self.after.is_some_and(|after| place <= after);
        if is_before || (!self.skip.is_empty() && self.skip.contains(&short_tie(place.1))) {
            return;
        }
        self.best.push((place.0, place.1, document));
        if self.best.len() >= self.limit.max(16) * 8 {
            self.keep_best();
        }
    }

    fn harvest(mut self) -> Found {
        self.keep_best();
        let (keys, ordinal) = (&self.keys, self.ordinal);
        let documents = self.best.iter().map(|(number, tie, document)| {
            (Place { key: keys.key(*number), tie: *tie }, DocAddress::new(ordinal, *document))
        });
        Found { documents: documents.collect(), total: self.total }
    }
}

impl SegmentTop {
    fn keep_best(&mut self) {
        self.best.sort_unstable();
        self.best.truncate(self.limit);
        if self.best.len() == self.limit {
            self.bound = self.best.last().map(|(number, tie, _)| (*number, *tie));
        }
    }
}
