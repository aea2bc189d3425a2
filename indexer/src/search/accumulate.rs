//! Scores every document that has any of some terms, counts them, and keeps the best.
//!
//! It finds what the engine's collectors find, with the same scores and ties, in a part of their time: the postings of a
//! stretch of documents are added up term by term and block by block, where the engine hands on each document through
//! several calls; what a document has to score to be kept is known from one segment to the next; and where a term is listed
//! is known since it was last asked for.

use std::sync::Arc;

use fixedbitset::FixedBitSet;
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
/// Documents whose bits lie together.
const GROUP: u32 = usize::BITS;
const GROUPS: usize = SCORES / GROUP as usize;

/// The best documents, the best first, and how many match at all.
pub(super) struct Accumulated {
    pub(super) best: Vec<(Score, DocAddress)>,
    pub(super) total: u64,
}

/// A term that documents are scored by.
struct Scored<'a> {
    known: Arc<KnownTerm>,
    role: Role,
    bm25: Bm25<'a>,
}

/// Looks through the documents that have any of the terms and, by segment, are admitted. `go_on` is asked before each stretch;
/// its error ends the search.
pub(super) fn accumulate<'a>(
    loaded: &Loaded,
    terms: impl Iterator<Item = &'a QueryTerm>,
    admitted: Option<&[FixedBitSet]>,
    limit: usize,
    go_on: impl Fn() -> tantivy::Result<()>,
) -> tantivy::Result<Accumulated> {
    let terms = terms.map(|term| scored(loaded, term)).collect::<tantivy::Result<Vec<_>>>()?;
    let mut stretch = Stretch::default();
    let mut top = Top::of(limit);
    let mut total = 0;
    for ((segment, columns), ordinal) in loaded.segments().zip(0..) {
        let admitted = admitted.and_then(|all| all.get(ordinal as usize));
        let mut lists = lists(&terms, columns, ordinal)?;
        while let Some(next) = lists.iter().filter_map(List::next).min() {
            go_on()?;
            let Some(first) = first_admitted(admitted, next) else { break };
            if first > next {
                for list in &mut lists {
                    list.skip_to(first);
                }
            }
            for list in &mut lists {
                list.add_to(&mut stretch, first);
            }
            lists.retain(|list| list.next().is_some());
            total += stretch.empty_into(&mut top, groups_from(admitted, first), (segment, ordinal, first));
        }
    }
    Ok(Accumulated { best: top.in_order(), total })
}

fn scored<'a>(loaded: &'a Loaded, term: &QueryTerm) -> tantivy::Result<Scored<'a>> {
    let known = loaded.listed(term)?;
    let bm25 = match term.role {
        Role::Bigram => loaded.statistics.of_pair(known.frequency),
        _ => loaded.statistics.of_word(known.frequency),
    };
    Ok(Scored { known, role: term.role, bm25: bm25.times(term.weight) })
}

/// Where the next stretch begins: at the group that has `next`, or at the first one from there on that has a document that is
/// admitted.
fn first_admitted(admitted: Option<&FixedBitSet>, next: DocId) -> Option<DocId> {
    let group = next / GROUP;
    let Some(admitted) = admitted else { return Some(group * GROUP) };
    let groups = admitted.as_slice().get(group as usize..)?;
    let (_, skipped) = groups.iter().zip(0..).find(|(bits, _)| **bits != 0)?;
    Some((group + skipped) * GROUP)
}

/// A bit for each document from one on that is admitted.
fn groups_from(admitted: Option<&FixedBitSet>, first: DocId) -> &[usize] {
    const ALL: [usize; GROUPS] = [usize::MAX; GROUPS];
    match admitted {
        Some(admitted) => admitted.as_slice().get((first / GROUP) as usize..).unwrap_or_default(),
        None => &ALL,
    }
}

fn lists<'a>(
    terms: &[Scored<'a>],
    columns: &'a Columns,
    ordinal: SegmentOrdinal,
) -> tantivy::Result<Vec<List<'a>>> {
    let mut lists = Vec::with_capacity(terms.len());
    for term in terms {
        let Some(info) = term.known.in_segment(ordinal) else { continue };
        let Lists { postings, lengths } = columns.lists(term.role);
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

    /// Leaves out the documents before one.
    fn skip_to(&mut self, first: DocId) {
        if self.next().is_some_and(|next| next < first) {
            self.at = self.blocks.seek(first);
        }
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
    found: [usize; GROUPS],
}

impl Default for Stretch {
    fn default() -> Self {
        Self { scores: Box::new([0.0; SCORES]), found: [0; GROUPS] }
    }
}

impl Stretch {
    #[inline]
    fn add(&mut self, at: usize, score: Score) {
        let at = at % SCORES;
        self.scores[at] += score;
        self.found[at / GROUP as usize] |= 1 << (at % GROUP as usize);
    }

    /// Hands on what is there and admitted, and says how many documents that are.
    fn empty_into(
        &mut self,
        top: &mut Top,
        admitted: &[usize],
        (segment, ordinal, first): (&SegmentReader, SegmentOrdinal, DocId),
    ) -> u64 {
        let alive = segment.alive_bitset();
        let mut count = 0;
        let groups = self.found.iter_mut().zip(self.scores.chunks_exact_mut(GROUP as usize)).zip(admitted);
        for (((found, scores), admitted), group) in groups.zip(0_u32..) {
            let mut left = std::mem::take(found);
            if left == 0 {
                continue;
            }
            left &= admitted;
            count += u64::from(left.count_ones());
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let score = scores.get(bit as usize).copied().unwrap_or_default();
                let document = first + group * GROUP + bit;
                if alive.is_some_and(|alive| alive.is_deleted(document)) {
                    count -= 1;
                } else if score > top.least {
                    top.add(score, DocAddress::new(ordinal, document));
                }
            }
            scores.fill(0.0);
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
