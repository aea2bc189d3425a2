//! Scores every document that has any of some terms, counts them, and keeps the best.
//!
//! It finds what the engine's collectors find, with the same scores and ties, in a part of their time: the postings of a
//! stretch of documents are added up term by term and block by block, where the engine hands on each document through
//! several calls; what a document has to score to be kept is known from one segment to the next; and where a term is listed
//! is known since it was last asked for.

use std::sync::Arc;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::BlockSegmentPostings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocId, Score, SegmentOrdinal, SegmentReader};

use super::bm25::Bm25;
use super::columns::{Columns, Lists};
use super::frequencies::KnownTerm;
use super::loaded::Loaded;
use crate::query::{QueryTerm, Role};

/// Documents that are added up together: their scores fit the nearest cache. Between two stretches the clock is looked at.
const STRETCH: u32 = 4_096;
const SCORES: usize = STRETCH as usize;
const WORDS: usize = SCORES / 64;

/// The best documents, the best first, and how many match at all.
pub(super) struct Accumulated {
    pub(super) best: Vec<(Score, DocAddress)>,
    pub(super) total: u64,
}

/// A term that documents are scored by.
struct Scored<'a> {
    known: Arc<KnownTerm>,
    is_pair: bool,
    bm25: Bm25<'a>,
}

/// Looks through the documents that have any of the terms. `go_on` is asked before each stretch; its error ends the search.
pub(super) fn accumulate<'a>(
    loaded: &Loaded,
    terms: impl Iterator<Item = &'a QueryTerm>,
    limit: usize,
    go_on: impl Fn() -> tantivy::Result<()>,
) -> tantivy::Result<Accumulated> {
    let terms = terms.map(|term| scored(loaded, term)).collect::<tantivy::Result<Vec<_>>>()?;
    let mut stretch = Stretch::default();
    let mut top = Top::of(limit);
    let mut total = 0;
    let segments = loaded.searcher.segment_readers().iter().zip(&loaded.columns);
    for ((segment, columns), ordinal) in segments.zip(0..) {
        let mut lists = lists(&terms, columns, ordinal)?;
        while let Some(first) = lists.iter().filter_map(List::next).min() {
            go_on()?;
            for list in &mut lists {
                list.add_to(&mut stretch, first);
            }
            lists.retain(|list| list.next().is_some());
            total += stretch.empty_into(&mut top, (segment, ordinal, first));
        }
    }
    Ok(Accumulated { best: top.in_order(), total })
}

fn scored<'a>(loaded: &'a Loaded, term: &QueryTerm) -> tantivy::Result<Scored<'a>> {
    let (searcher, statistics) = (&loaded.searcher, &loaded.statistics);
    let is_pair = term.role == Role::Bigram;
    let (known, bm25) = if is_pair {
        let known = loaded.pairs.term(searcher, &term.text)?;
        let bm25 = statistics.of_pair(known.frequency);
        (known, bm25)
    } else {
        let known = loaded.words.term(searcher, &term.text)?;
        let bm25 = statistics.of_word(known.frequency);
        (known, bm25)
    };
    Ok(Scored { known, is_pair, bm25: bm25.times(term.weight) })
}

fn lists<'a>(
    terms: &[Scored<'a>],
    columns: &'a Columns,
    ordinal: SegmentOrdinal,
) -> tantivy::Result<Vec<List<'a>>> {
    let mut lists = Vec::with_capacity(terms.len());
    for term in terms {
        let Some(info) = term.known.in_segment(ordinal) else { continue };
        let Lists { postings, lengths } = if term.is_pair { &columns.pairs } else { &columns.words };
        let blocks = postings.read_block_postings_from_terminfo(&info, IndexRecordOption::WithFreqs)?;
        lists.push(List { blocks, at: 0, lengths, bm25: term.bm25 });
    }
    Ok(lists)
}

/// The documents of one segment that have a term, read on and on.
struct List<'a> {
    blocks: BlockSegmentPostings,
    /// The next one in the block.
    at: usize,
    lengths: &'a FieldNormReader,
    bm25: Bm25<'a>,
}

impl List<'_> {
    fn next(&self) -> Option<DocId> {
        self.blocks.docs().get(self.at).copied()
    }

    /// Adds the scores of the documents of a stretch.
    fn add_to(&mut self, stretch: &mut Stretch, first: DocId) {
        let end = first.saturating_add(STRETCH);
        loop {
            let documents = self.blocks.docs();
            let is_over = documents.last().is_none_or(|last| *last >= end);
            let until = if is_over { documents.partition_point(|of| *of < end) } else { documents.len() };
            let here = documents.get(self.at..until).unwrap_or_default();
            let counts = self.blocks.freqs().get(self.at..until).unwrap_or_default();
            for (document, count) in here.iter().zip(counts) {
                let score = self.bm25.score(self.lengths.fieldnorm_id(*document), *count);
                stretch.add((document - first) as usize, score);
            }
            if is_over {
                self.at = self.at.max(until);
                return;
            }
            self.blocks.advance();
            self.at = 0;
        }
    }
}

/// The scores of some documents side by side.
struct Stretch {
    scores: Box<[Score; SCORES]>,
    /// A bit for each that has any of the terms.
    found: [u64; WORDS],
}

impl Default for Stretch {
    fn default() -> Self {
        Self { scores: Box::new([0.0; SCORES]), found: [0; WORDS] }
    }
}

impl Stretch {
    #[inline]
    fn add(&mut self, at: usize, score: Score) {
        let at = at % SCORES;
        self.scores[at] += score;
        self.found[at / 64] |= 1 << (at % 64);
    }

    /// Hands on what is there, and says how many documents that are.
    fn empty_into(
        &mut self,
        top: &mut Top,
        (segment, ordinal, first): (&SegmentReader, SegmentOrdinal, DocId),
    ) -> u64 {
        let alive = segment.alive_bitset();
        let mut count = 0;
        for ((bits, scores), word) in self.found.iter_mut().zip(self.scores.chunks_exact_mut(64)).zip(0_u32..)
        {
            let mut left = std::mem::take(bits);
            count += u64::from(left.count_ones());
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let score = scores.get_mut(bit as usize).map(std::mem::take).unwrap_or_default();
                let document = first + word * 64 + bit;
                if alive.is_some_and(|alive| alive.is_deleted(document)) {
                    count -= 1;
                } else if score > top.least {
                    top.add(score, DocAddress::new(ordinal, document));
                }
            }
        }
        count
    }
}

/// The best so far. Of equal ones those that come first are better, and documents come in their order.
struct Top {
    limit: usize,
    found: Vec<(Score, DocAddress)>,
    /// What scores no more is not among them.
    least: Score,
}

impl Top {
    fn of(limit: usize) -> Self {
        Self { limit, found: Vec::with_capacity(2 * limit), least: Score::NEG_INFINITY }
    }

    fn add(&mut self, score: Score, address: DocAddress) {
        self.found.push((score, address));
        if self.found.len() >= 2 * self.limit {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.found.len() < self.limit {
            return;
        }
        let (_, (least, _), _) = self.found.select_nth_unstable_by(self.limit - 1, best_first);
        self.least = *least;
        self.found.truncate(self.limit);
    }

    fn in_order(mut self) -> Vec<(Score, DocAddress)> {
        self.cut();
        self.found.sort_unstable_by(best_first);
        self.found
    }
}

fn best_first(a: &(Score, DocAddress), b: &(Score, DocAddress)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

#[cfg(test)]
mod tests;
