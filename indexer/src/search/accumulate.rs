//! Scores and counts all documents that contain any of the given terms, and collects the best.
//!
//! Results, scores and the order of ties are the same as with tantivy's collectors, but in a fraction of the time (docs/BENCHMARKS.md): the
//! postings of a range of documents are added up term by term and block by block, where tantivy makes several calls per document; the
//! minimum score carries over from one segment to the next; and the locations of terms are cached.

use std::sync::Arc;

use fixedbitset::FixedBitSet;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::BlockSegmentPostings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocId, Score, SegmentOrdinal, SegmentReader};

use super::admitted::Admitted;
use super::bm25::Bm25;
use super::columns::{Columns, FieldPostings};
use super::opened::OpenedIndex;
use super::term_cache::TermLocations;
use crate::query::{QueryTerm, Role};

/// Number of documents whose scores are added up together: their scores fit into the L1 cache. The deadline is checked between ranges.
pub(super) const RANGE: u32 = 4_096;
const SCORES: usize = RANGE as usize;
/// Documents per machine word of bits.
const GROUP: u32 = usize::BITS;
const GROUPS: usize = SCORES / GROUP as usize;

/// Receives the matching documents.
pub(super) trait Collect {
    /// Documents with at most this score are not passed on.
    fn threshold(&self) -> Score;

    fn add(&mut self, score: Score, address: DocAddress);
}

/// A term by which documents are scored.
struct ScoredTerm<'a> {
    locations: Arc<TermLocations>,
    role: Role,
    bm25: Bm25<'a>,
}

/// Passes the admitted documents that contain any of the terms to a collector, and returns their number. `check_deadline` is called before
/// each range; its error ends the search.
pub(super) fn accumulate<'a>(
    opened: &OpenedIndex,
    terms: impl Iterator<Item = &'a QueryTerm>,
    admitted: &Admitted,
    collector: &mut impl Collect,
    check_deadline: impl Fn() -> tantivy::Result<()>,
) -> tantivy::Result<u64> {
    let terms = terms.map(|term| scored(opened, term)).collect::<tantivy::Result<Vec<_>>>()?;
    let mut scores = RangeScores::default();
    let mut total = 0;
    for ((segment, columns), ordinal) in opened.segments().zip(0..) {
        let admitted = admitted.segment(ordinal);
        let mut cursors = cursors(&terms, columns, ordinal)?;
        while let Some(next) = cursors.iter().filter_map(PostingCursor::next).min() {
            check_deadline()?;
            let Some(first) = first_admitted(admitted, next) else { break };
            if first > next {
                for cursor in &mut cursors {
                    cursor.skip_to(first);
                }
            }
            for cursor in &mut cursors {
                cursor.add_to(&mut scores, first);
            }
            cursors.retain(|cursor| cursor.next().is_some());
            total += scores.drain_into(collector, groups_from(admitted, first), (segment, ordinal, first));
        }
    }
    Ok(total)
}

fn scored<'a>(opened: &'a OpenedIndex, term: &QueryTerm) -> tantivy::Result<ScoredTerm<'a>> {
    let locations = opened.locate(term)?;
    let bm25 = match term.role {
        Role::Bigram => opened.statistics.of_bigram(locations.frequency),
        _ => opened.statistics.of_word(locations.frequency),
    };
    Ok(ScoredTerm { locations, role: term.role, bm25: bm25.times(term.weight) })
}

/// The first document of the next range: the start of the group of `next`, or of the first later group with an admitted document.
fn first_admitted(admitted: Option<&FixedBitSet>, next: DocId) -> Option<DocId> {
    let group = next / GROUP;
    let Some(admitted) = admitted else { return Some(group * GROUP) };
    let groups = admitted.as_slice().get(group as usize..)?;
    let (_, skipped) = groups.iter().zip(0..).find(|(bits, _)| **bits != 0)?;
    Some((group + skipped) * GROUP)
}

/// The bits of the admitted documents from `first` on.
fn groups_from(admitted: Option<&FixedBitSet>, first: DocId) -> &[usize] {
    const ALL: [usize; GROUPS] = [usize::MAX; GROUPS];
    match admitted {
        Some(admitted) => admitted.as_slice().get((first / GROUP) as usize..).unwrap_or_default(),
        None => &ALL,
    }
}

fn cursors<'a>(
    terms: &[ScoredTerm<'a>],
    columns: &'a Columns,
    ordinal: SegmentOrdinal,
) -> tantivy::Result<Vec<PostingCursor<'a>>> {
    let mut cursors = Vec::with_capacity(terms.len());
    for term in terms {
        let Some(info) = term.locations.in_segment(ordinal) else { continue };
        let FieldPostings { postings, lengths } = columns.field(term.role);
        let blocks = postings.read_block_postings_from_terminfo(info, IndexRecordOption::WithFreqs)?;
        cursors.push(PostingCursor { blocks, at: 0, lengths, bm25: term.bm25 });
    }
    Ok(cursors)
}

/// Iterates over the documents of one segment that have a term.
struct PostingCursor<'a> {
    blocks: BlockSegmentPostings,
    /// Index of the next document in the block.
    at: usize,
    lengths: &'a FieldNormReader,
    bm25: Bm25<'a>,
}

impl PostingCursor<'_> {
    fn next(&self) -> Option<DocId> {
        self.blocks.docs().get(self.at).copied()
    }

    fn skip_to(&mut self, first: DocId) {
        if self.next().is_some_and(|next| next < first) {
            self.at = self.blocks.seek(first);
        }
    }

    /// Adds the scores of the documents of a range.
    fn add_to(&mut self, scores: &mut RangeScores, first: DocId) {
        let end = first.saturating_add(RANGE);
        loop {
            let documents = self.blocks.docs();
            let is_over = documents.last().is_none_or(|last| *last >= end);
            let until =
                if is_over { documents.partition_point(|document| *document < end) } else { documents.len() };
            let here = documents.get(self.at..until).unwrap_or_default();
            let counts = self.blocks.freqs().get(self.at..until).unwrap_or_default();
            for (document, count) in here.iter().zip(counts) {
                let score = self.bm25.score(self.lengths.fieldnorm_id(*document), *count);
                scores.add((document - first) as usize, score);
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

/// The scores of one range of documents.
struct RangeScores {
    scores: Box<[Score; SCORES]>,
    /// The bits of the documents that have any of the terms.
    found: [usize; GROUPS],
}

impl Default for RangeScores {
    fn default() -> Self {
        Self { scores: Box::new([0.0; SCORES]), found: [0; GROUPS] }
    }
}

impl RangeScores {
    #[inline]
    fn add(&mut self, at: usize, score: Score) {
        let at = at % SCORES;
        self.scores[at] += score;
        self.found[at / GROUP as usize] |= 1 << (at % GROUP as usize);
    }

    /// Passes the admitted documents to the collector, resets the scores, and returns the number of documents.
    fn drain_into(
        &mut self,
        collector: &mut impl Collect,
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
                } else if score > collector.threshold() {
                    collector.add(score, DocAddress::new(ordinal, document));
                }
            }
            scores.fill(0.0);
        }
        count
    }
}

/// Collects the best documents. If scores are equal, earlier documents are better; documents arrive in order.
pub(super) struct TopDocuments {
    limit: usize,
    found: Vec<(Score, DocAddress)>,
    threshold: Score,
}

impl Collect for TopDocuments {
    #[inline]
    fn threshold(&self) -> Score {
        self.threshold
    }

    fn add(&mut self, score: Score, address: DocAddress) {
        self.found.push((score, address));
        if self.found.len() >= 2 * self.limit {
            self.cut();
        }
    }
}

impl TopDocuments {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, found: Vec::with_capacity(2 * limit), threshold: Score::NEG_INFINITY }
    }

    fn cut(&mut self) {
        if self.found.len() < self.limit {
            return;
        }
        let (_, (least, _), _) = self.found.select_nth_unstable_by(self.limit - 1, best_first);
        self.threshold = *least;
        self.found.truncate(self.limit);
    }

    pub(super) fn into_sorted(mut self) -> Vec<(Score, DocAddress)> {
        self.cut();
        self.found.sort_unstable_by(best_first);
        self.found
    }
}

fn best_first(a: &(Score, DocAddress), b: &(Score, DocAddress)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}
