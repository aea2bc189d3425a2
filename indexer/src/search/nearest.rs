//! What means alike in other words: vectors of capabilities against that of a request.
//!
//! Everything that the filters leave is compared, so that nothing near is overlooked, and the nearest join the candidates
//! that the words have selected. Then both speak: the text score, stretched over the candidates, and the cosine likewise.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use tantivy::index::SegmentId;
use tantivy::query::{EnableScoring, Query, Scorer};
use tantivy::{DocAddress, DocId, DocSet as _, SegmentReader, TERMINATED};

use super::columns::Columns;
use super::deadline::Deadline;
use super::loaded::Loaded;
use crate::error::{IndexError, SearchError};
use crate::vectors::{Asked, Code, Vectors, VectorsError};

/// Capabilities that join the candidates for their nearness.
pub(super) const NEAREST_MAX: usize = 50;
/// Candidates in all: a cursor counts those that were answered in one octet.
pub(super) const CANDIDATES_MAX: usize = 255;
/// Share of the words against the nearness. Chosen on the dev queries of the public sets (docs/BENCHMARKS.md).
const TEXT_SHARE: f32 = 0.65;
/// Below this cosine two texts have nothing to do with each other, whatever is the nearest.
pub(super) const COSINE_MIN: f32 = 0.3;
/// From this cosine on a result speaks of what was asked although it shares no word with it.
pub(super) const COSINE_GOOD: f32 = 0.4;
/// Capabilities of one text among the nearest, while others are near enough: copies would leave no place to what is another.
const COPIES_MAX: usize = 3;
/// Rows that are compared between two looks at the clock: some tenths of a millisecond's work.
const ROWS_BETWEEN_LOOKS: u32 = 4_096;
/// A document without a vector.
const NO_ROW: u32 = u32::MAX;

/// The vectors beside one commit, and which document has which.
pub(super) struct Nearness {
    asked: Arc<Asked>,
    vectors: Arc<Vectors>,
    /// By segment, for each of its documents. A segment that came later has none yet.
    rows: HashMap<SegmentId, Arc<[u32]>>,
}

/// What stands beside an index.
pub(super) enum Found {
    Usable(Nearness),
    OfAnotherModel,
    Nothing,
}

impl Nearness {
    /// What stands beside the index, if it is of this embedder.
    pub(super) fn open(index_dir: &Path, asked: &Arc<Asked>, loaded: &Loaded) -> Result<Found, VectorsError> {
        let Some(vectors) = Vectors::read(index_dir)? else { return Ok(Found::Nothing) };
        if !vectors.is_of(asked.embedder()) {
            return Ok(Found::OfAnotherModel);
        }
        let mut nearness =
            Self { asked: Arc::clone(asked), vectors: Arc::new(vectors), rows: HashMap::new() };
        nearness.rows = nearness.rows_of(loaded, &HashMap::new());
        Ok(Found::Usable(nearness))
    }

    /// Whether every segment is known.
    pub(super) fn is_of(&self, loaded: &Loaded) -> bool {
        let segments = loaded.searcher.segment_readers();
        segments.len() == self.rows.len()
            && segments.iter().all(|segment| self.rows.contains_key(&segment.segment_id()))
    }

    /// The same vectors beside another commit.
    pub(super) fn beside(&self, loaded: &Loaded) -> Self {
        let rows = self.rows_of(loaded, &self.rows);
        Self { asked: Arc::clone(&self.asked), vectors: Arc::clone(&self.vectors), rows }
    }

    fn rows_of(
        &self,
        loaded: &Loaded,
        known: &HashMap<SegmentId, Arc<[u32]>>,
    ) -> HashMap<SegmentId, Arc<[u32]>> {
        let of_segment = |(segment, columns): (&SegmentReader, &Arc<Columns>)| {
            let id = segment.segment_id();
            let row = |document: DocId| {
                let row = columns.traits(document).and_then(|of| self.vectors.row(of.text));
                row.and_then(|row| u32::try_from(row).ok()).unwrap_or(NO_ROW)
            };
            let rows = known.get(&id).cloned().unwrap_or_else(|| (0..segment.max_doc()).map(row).collect());
            (id, rows)
        };
        loaded.segments().map(of_segment).collect()
    }

    /// The direction of a wish: between those of its phrasings. `None` when nothing was said, or the embedder failed, which
    /// is logged: the words still find what they find.
    pub(super) fn aim(&self, phrasings: &[&str]) -> Option<Aim<'_>> {
        if phrasings.is_empty() {
            return None;
        }
        match self.asked.codes(phrasings) {
            Ok(codes) => Some(Aim { nearness: self, codes }),
            Err(error) => {
                tracing::warn!(%error, "a request was searched by its words alone");
                None
            }
        }
    }
}

/// A wish among vectors.
pub(super) struct Aim<'a> {
    nearness: &'a Nearness,
    codes: Vec<Code>,
}

impl Aim<'_> {
    fn of_row(&self, row: u32) -> Option<f32> {
        let row = usize::try_from(row).ok().filter(|_| row != NO_ROW)?;
        let sum: f32 = self.codes.iter().map(|code| self.nearness.vectors.cosine(row, code)).sum();
        #[expect(clippy::cast_precision_loss, reason = "a handful of phrasings")]
        Some(sum / self.codes.len() as f32)
    }

    /// How near a document is; `None` where it has no vector.
    pub(super) fn cosine(&self, loaded: &Loaded, address: DocAddress) -> Option<f32> {
        let segment = loaded.searcher.segment_reader(address.segment_ord).segment_id();
        let row = *self.nearness.rows.get(&segment)?.get(address.doc_id as usize)?;
        self.of_row(row)
    }

    /// The nearest documents under some conditions, the nearest first.
    pub(super) fn nearest(
        &self,
        loaded: &Loaded,
        conditions: &dyn Query,
        deadline: Deadline,
    ) -> Result<Vec<DocAddress>, SearchError> {
        let failed = IndexError::engine("search by nearness");
        let scoring = EnableScoring::disabled_from_searcher(&loaded.searcher);
        let weight = conditions.weight(scoring).map_err(&failed)?;
        let mut best = Best::default();
        let mut looks = Looks { left: ROWS_BETWEEN_LOOKS, look: || deadline.check() };
        for (segment, ordinal) in loaded.searcher.segment_readers().iter().zip(0..) {
            deadline.check()?;
            let Some(rows) = self.nearness.rows.get(&segment.segment_id()) else { continue };
            let mut matching = weight.scorer(segment, 1.0).map_err(&failed)?;
            looks.at_each(matching.as_mut(), |document| {
                if !segment.is_deleted(document)
                    && let Some(row) = rows.get(document as usize)
                    && let Some(cosine) = self.of_row(*row)
                {
                    best.offer(Near { cosine, row: *row, address: DocAddress::new(ordinal, document) });
                }
            })?;
        }
        Ok(best.in_order())
    }
}

/// Looks at the clock while documents are gone through, from one segment to the next.
struct Looks<F> {
    /// Documents until the next look.
    left: u32,
    look: F,
}

impl<F: FnMut() -> Result<(), SearchError>> Looks<F> {
    /// Hands on every document that matches.
    fn at_each(
        &mut self,
        matching: &mut dyn Scorer,
        mut found: impl FnMut(DocId),
    ) -> Result<(), SearchError> {
        let mut document = matching.doc();
        while document != TERMINATED {
            found(document);
            self.left -= 1;
            if self.left == 0 {
                (self.look)()?;
                self.left = ROWS_BETWEEN_LOOKS;
            }
            document = matching.advance();
        }
        Ok(())
    }
}

/// A document near to a wish.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Near {
    cosine: f32,
    /// Copies of a text share it.
    row: u32,
    address: DocAddress,
}

/// The nearest so far.
struct Best {
    found: Vec<Near>,
    /// What is below is not among them.
    least: f32,
}

impl Default for Best {
    fn default() -> Self {
        Self { found: Vec::new(), least: COSINE_MIN }
    }
}

impl Best {
    fn offer(&mut self, near: Near) {
        if near.cosine < self.least {
            return;
        }
        self.found.push(near);
        if self.found.len() >= 8 * NEAREST_MAX {
            self.cut();
        }
    }

    /// Keeps the nearest that are no copies too many; those fill the places that are left.
    fn cut(&mut self) {
        let rising = |a: &Near, b: &Near| b.cosine.total_cmp(&a.cosine).then(a.address.cmp(&b.address));
        self.found.sort_unstable_by(rising);
        let mut of_row: HashMap<u32, usize> = HashMap::with_capacity(self.found.len());
        let (mut kept, copies): (Vec<Near>, Vec<Near>) = self.found.iter().copied().partition(|near| {
            let count = of_row.entry(near.row).or_default();
            *count += 1;
            *count <= COPIES_MAX
        });
        kept.truncate(NEAREST_MAX);
        if let (NEAREST_MAX, Some(last)) = (kept.len(), kept.last()) {
            self.least = last.cosine;
        }
        kept.extend(copies.into_iter().take(NEAREST_MAX - kept.len()));
        kept.sort_unstable_by(rising);
        self.found = kept;
    }

    fn in_order(mut self) -> Vec<DocAddress> {
        self.cut();
        self.found.into_iter().map(|near| near.address).collect()
    }
}

/// How many of some documents match a query.
pub(super) fn matching(
    loaded: &Loaded,
    query: &dyn Query,
    documents: &[DocAddress],
) -> Result<u64, IndexError> {
    let failed = IndexError::engine("search by nearness");
    let scoring = EnableScoring::disabled_from_searcher(&loaded.searcher);
    let weight = query.weight(scoring).map_err(&failed)?;
    let mut documents = documents.to_vec();
    documents.sort_unstable();
    let mut count = 0;
    for of_segment in documents.chunk_by(|a, b| a.segment_ord == b.segment_ord) {
        let Some(first) = of_segment.first() else { continue };
        let segment = loaded.searcher.segment_reader(first.segment_ord);
        let mut matching = weight.scorer(segment, 1.0).map_err(&failed)?;
        for address in of_segment {
            let at = matching.doc();
            let at = if at < address.doc_id { matching.seek(address.doc_id) } else { at };
            count += u64::from(at == address.doc_id);
        }
    }
    Ok(count)
}

/// Text scores and cosines together, both stretched over the candidates. What has no vector is worth its text.
pub(super) fn mixed(text: &[f32], cosines: &[Option<f32>]) -> Vec<f32> {
    let text = stretched(text.iter().copied());
    let known = cosines.iter().flatten().copied();
    let mut near = stretched(known).into_iter();
    let mix = |(text, cosine): (f32, &Option<f32>)| match cosine.and_then(|_| near.next()) {
        Some(near) => TEXT_SHARE * text + (1.0 - TEXT_SHARE) * near,
        None => text,
    };
    text.into_iter().zip(cosines).map(mix).collect()
}

/// Moves scores to 0 to 1; where all are equal, to what they say of themselves.
fn stretched(scores: impl Iterator<Item = f32> + Clone) -> Vec<f32> {
    let (low, high) =
        scores.clone().fold((f32::MAX, f32::MIN), |(low, high), score| (low.min(score), high.max(score)));
    let width = high - low;
    scores.map(|score| if width > 0.0 { (score - low) / width } else { score.clamp(0.0, 1.0) }).collect()
}

#[cfg(test)]
mod tests {
    use tantivy::query::{BitSetDocSet, ConstScorer};

    use super::*;

    #[test]
    fn words_and_nearness_both_speak() {
        let mixed = mixed(&[1.0, 0.5, 0.0, 0.0], &[Some(0.2), Some(0.3), Some(0.7), Some(0.2)]);
        assert!((mixed[0] - TEXT_SHARE).abs() < 1e-6);
        assert!((mixed[2] - (1.0 - TEXT_SHARE)).abs() < 1e-6);
        assert!(mixed[0] > mixed[1] && mixed[1] > mixed[2] && mixed[2] > mixed[3]);
    }

    #[test]
    fn what_has_no_vector_is_worth_its_text() {
        assert_eq!(mixed(&[0.9, 0.0, 0.3], &[None, None, None]), [1.0, 0.0, 0.3 / 0.9]);
        let behind = mixed(&[0.8, 0.8, 0.0], &[None, Some(0.5), Some(0.1)]);
        assert!((behind[0] - 1.0).abs() < f32::EPSILON);
        assert!(behind[1] <= 1.0 && behind[1] > 0.99);
    }

    fn offered(all: impl Iterator<Item = (f32, u32)>) -> Vec<u32> {
        let mut best = Best::default();
        for ((cosine, row), document) in all.zip(0..) {
            best.offer(Near { cosine, row, address: DocAddress::new(0, document) });
        }
        best.in_order().into_iter().map(|address| address.doc_id).collect()
    }

    #[test]
    fn the_clock_is_looked_at_while_a_segment_is_gone_through() {
        let over = || SearchError::OutOfTime { time_max_ms: 0 };
        let all = || {
            let every = tantivy::BitSet::with_max_value_and_full(10_000);
            ConstScorer::new(BitSetDocSet::from(every), 1.0)
        };
        let (mut count, mut number_of_looks) = (0, 0);
        let look = || {
            number_of_looks += 1;
            if number_of_looks < 4 { Ok(()) } else { Err(over()) }
        };
        let mut looks = Looks { left: ROWS_BETWEEN_LOOKS, look };
        looks.at_each(&mut all(), |_| count += 1).unwrap();
        assert_eq!(count, 10_000);
        let stopped = looks.at_each(&mut all(), |_| count += 1);
        assert!(matches!(stopped, Err(SearchError::OutOfTime { .. })));
        assert_eq!(number_of_looks, 4, "two in the first segment, the fourth ends the second");
        assert_eq!(count, 4 * ROWS_BETWEEN_LOOKS);
    }

    #[test]
    fn the_nearest_are_kept_in_order() {
        let found = offered((0..2_000_u16).map(|at| (f32::from(at % 1_000) / 1_000.0, u32::from(at))));
        assert_eq!(found.len(), NEAREST_MAX);
        assert_eq!(found[..4], [999, 1_999, 998, 1_998]);
        assert_eq!(found[NEAREST_MAX - 1], 1_975);
        assert!(offered([(COSINE_MIN - 0.01, 1)].into_iter()).is_empty());
    }

    #[test]
    fn copies_of_one_text_leave_room_for_others() {
        let copies = std::iter::repeat_n((0.9, 7), 1_000);
        let others = (0..60_u16).map(|at| (0.8 - f32::from(at) / 1_000.0, 100 + u32::from(at)));
        let found = offered(copies.clone().chain(others));
        assert_eq!(found.len(), NEAREST_MAX);
        assert_eq!(found[..4], [0, 1, 2, 1_000]);
        let found = offered(copies.chain([(0.5, 8)]));
        assert_eq!(found.len(), NEAREST_MAX, "where nothing else is near, copies are what there is");
        assert_eq!((found[0], found[NEAREST_MAX - 2], found[NEAREST_MAX - 1]), (0, 48, 1_000));
    }
}
