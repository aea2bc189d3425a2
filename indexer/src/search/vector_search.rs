//! Vector search: compares the vectors of capabilities with the vector of a request.
//!
//! All documents that satisfy the conditions are compared, so the result is exact. The nearest ones are added to the candidates that were
//! selected by words. The final text score combines the text score and the cosine, both scaled to the range 0 to 1 over the candidates.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use tantivy::index::SegmentId;
use tantivy::{DocAddress, DocId, SegmentReader};

use super::admitted::Admitted;
use super::columns::Columns;
use super::deadline::{Deadline, for_each_checked};
use super::opened::OpenedIndex;
use super::rank::Candidate;
use crate::error::SearchError;
use crate::vectors::{Code, QueryEmbedder, Vectors, VectorsError};

/// Maximum number of documents that are added to the candidates because of their vectors.
const NEAREST_MAX: usize = 50;
/// Maximum number of candidates, including those that are added because of their vectors.
pub(super) const CANDIDATES_MAX: usize = 255;
/// Weight of the text score; the rest is the weight of the cosine. Chosen with the dev queries of the public sets (docs/BENCHMARKS.md).
const TEXT_SHARE: f32 = 0.65;
/// Texts with a smaller cosine are unrelated, even if they are the nearest.
const COSINE_MIN: f32 = 0.3;
/// A result with at least this cosine is relevant, even if it shares no word with the request.
pub(super) const COSINE_GOOD: f32 = 0.4;
/// Maximum number of documents with the same text among the nearest, as long as there are others, so that copies do not crowd out other
/// texts.
const COPIES_MAX: usize = 3;
/// A document without a vector.
const NO_ROW: u32 = u32::MAX;

/// The vectors for one commit.
pub(super) struct VectorSearch {
    embedder: Arc<QueryEmbedder>,
    vectors: Arc<Vectors>,
    /// The row of the vector of each document, by segment. Newer segments are missing.
    rows: HashMap<SegmentId, Arc<[u32]>>,
}

/// The result of opening the file of vectors.
pub(super) enum OpenedVectors {
    Usable(VectorSearch),
    OfAnotherModel,
    Missing,
}

impl VectorSearch {
    pub(super) fn open(
        index_dir: &Path,
        embedder: &Arc<QueryEmbedder>,
        opened: &OpenedIndex,
    ) -> Result<OpenedVectors, VectorsError> {
        let Some(vectors) = Vectors::read(index_dir)? else { return Ok(OpenedVectors::Missing) };
        if !vectors.made_by(embedder.embedder()) {
            return Ok(OpenedVectors::OfAnotherModel);
        }
        let embedder = Arc::clone(embedder);
        let empty = Self { embedder, vectors: Arc::new(vectors), rows: HashMap::new() };
        Ok(OpenedVectors::Usable(empty.for_commit(opened)))
    }

    /// Whether it has rows for exactly the segments of a commit.
    pub(super) fn is_for(&self, opened: &OpenedIndex) -> bool {
        let segments = opened.searcher.segment_readers();
        segments.len() == self.rows.len()
            && segments.iter().all(|segment| self.rows.contains_key(&segment.segment_id()))
    }

    /// These vectors for another commit.
    pub(super) fn for_commit(&self, opened: &OpenedIndex) -> Self {
        let of_segment = |(segment, columns): (&SegmentReader, &Arc<Columns>)| {
            let id = segment.segment_id();
            let row = |document: DocId| {
                let row = columns.traits(document).and_then(|traits| self.vectors.row(traits.text));
                row.and_then(|row| u32::try_from(row).ok()).unwrap_or(NO_ROW)
            };
            let known = self.rows.get(&id).cloned();
            (id, known.unwrap_or_else(|| (0..segment.max_doc()).map(row).collect()))
        };
        let rows = opened.segments().map(of_segment).collect();
        Self { embedder: Arc::clone(&self.embedder), vectors: Arc::clone(&self.vectors), rows }
    }

    /// Embeds the phrasings of a request. `None` if there are none, or if the embedder fails, which is logged; the search then continues by
    /// words only.
    pub(super) fn embed(&self, phrasings: &[&str]) -> Option<QueryVector<'_>> {
        if phrasings.is_empty() {
            return None;
        }
        match self.embedder.codes(phrasings) {
            Ok(codes) => Some(QueryVector { search: self, codes }),
            Err(error) => {
                tracing::warn!(%error, "cannot embed a request: searching by words only");
                None
            }
        }
    }
}

/// The vectors of the phrasings of one request.
pub(super) struct QueryVector<'a> {
    search: &'a VectorSearch,
    codes: Vec<Code>,
}

impl QueryVector<'_> {
    /// The mean over the phrasings.
    fn cosine_of_row(&self, row: u32) -> Option<f32> {
        let row = usize::try_from(row).ok().filter(|_| row != NO_ROW)?;
        let sum: f32 = self.codes.iter().map(|code| self.search.vectors.cosine(row, code)).sum();
        #[expect(clippy::cast_precision_loss, reason = "a few phrasings")]
        Some(sum / self.codes.len() as f32)
    }

    /// `None` if the document has no vector.
    pub(super) fn cosine(&self, opened: &OpenedIndex, address: DocAddress) -> Option<f32> {
        let segment = opened.searcher.segment_reader(address.segment_ord).segment_id();
        self.cosine_of_row(*self.search.rows.get(&segment)?.get(address.doc_id as usize)?)
    }

    /// The nearest admitted documents, the nearest first.
    pub(super) fn nearest(
        &self,
        opened: &OpenedIndex,
        admitted: &Admitted,
        deadline: Deadline,
    ) -> Result<Vec<DocAddress>, SearchError> {
        let mut nearest = Nearest::default();
        for (segment, ordinal) in opened.searcher.segment_readers().iter().zip(0..) {
            let Some(rows) = self.search.rows.get(&segment.segment_id()) else { continue };
            let compare = |(document, row): (DocId, &u32)| {
                if admitted.has(segment, ordinal, document)
                    && let Some(cosine) = self.cosine_of_row(*row)
                {
                    nearest.add(Neighbor { cosine, row: *row, address: DocAddress::new(ordinal, document) });
                }
            };
            for_each_checked((0..).zip(rows.iter()), || deadline.check(), compare)?;
        }
        Ok(nearest.into_sorted())
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Neighbor {
    cosine: f32,
    /// Equal for copies of a text.
    row: u32,
    address: DocAddress,
}

/// Collects the nearest documents.
struct Nearest {
    found: Vec<Neighbor>,
    /// Documents with a smaller cosine are not among the nearest.
    cosine_min: f32,
}

impl Default for Nearest {
    fn default() -> Self {
        Self { found: Vec::new(), cosine_min: COSINE_MIN }
    }
}

impl Nearest {
    fn add(&mut self, neighbor: Neighbor) {
        if neighbor.cosine < self.cosine_min {
            return;
        }
        self.found.push(neighbor);
        if self.found.len() >= 8 * NEAREST_MAX {
            self.cut();
        }
    }

    /// Keeps the nearest ones. Surplus copies are kept only if there are not enough other texts.
    fn cut(&mut self) {
        let nearest_first =
            |a: &Neighbor, b: &Neighbor| b.cosine.total_cmp(&a.cosine).then(a.address.cmp(&b.address));
        self.found.sort_unstable_by(nearest_first);
        let mut by_row: HashMap<u32, usize> = HashMap::with_capacity(self.found.len());
        let (mut kept, copies): (Vec<Neighbor>, Vec<Neighbor>) =
            self.found.iter().copied().partition(|neighbor| {
                let count = by_row.entry(neighbor.row).or_default();
                *count += 1;
                *count <= COPIES_MAX
            });
        kept.truncate(NEAREST_MAX);
        if let (NEAREST_MAX, Some(last)) = (kept.len(), kept.last()) {
            self.cosine_min = last.cosine;
        }
        kept.extend(copies.into_iter().take(NEAREST_MAX - kept.len()));
        kept.sort_unstable_by(nearest_first);
        self.found = kept;
    }

    fn into_sorted(mut self) -> Vec<DocAddress> {
        self.cut();
        self.found.into_iter().map(|neighbor| neighbor.address).collect()
    }
}

/// Combines the cosines with the text scores, both scaled over the candidates. A candidate without a cosine keeps its scaled text score.
pub(super) fn mix_cosines(candidates: &mut [Candidate]) {
    let texts = range(candidates.iter().map(|candidate| candidate.text_score));
    let cosines = range(candidates.iter().filter_map(|candidate| candidate.cosine));
    for candidate in candidates {
        let text = scaled(candidate.text_score, texts);
        candidate.text_score = match candidate.cosine {
            Some(cosine) => TEXT_SHARE * text + (1.0 - TEXT_SHARE) * scaled(cosine, cosines),
            None => text,
        };
    }
}

fn range(scores: impl Iterator<Item = f32>) -> (f32, f32) {
    scores.fold((f32::MAX, f32::MIN), |(low, high), score| (low.min(score), high.max(score)))
}

/// Scales a score of a range to 0 to 1; clamps it if all scores are equal.
fn scaled(score: f32, (low, high): (f32, f32)) -> f32 {
    if high > low { (score - low) / (high - low) } else { score.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::super::columns::DocumentTraits;
    use super::*;

    fn mixed(scores: &[(f32, Option<f32>)]) -> Vec<f32> {
        let traits = DocumentTraits { tie: 0, site: 0, text: 0, sketch: 0, address: 0, name: 0, prior: 1.0 };
        let candidate = |(text_score, cosine): &(f32, Option<f32>)| Candidate {
            row: 0,
            address: DocAddress::new(0, 0),
            text_score: *text_score,
            traits,
            is_exact: false,
            is_of_named_site: false,
            is_spam: false,
            cosine: *cosine,
        };
        let mut candidates: Vec<Candidate> = scores.iter().map(candidate).collect();
        mix_cosines(&mut candidates);
        candidates.iter().map(|candidate| candidate.text_score).collect()
    }

    #[test]
    fn mixes_text_scores_and_cosines() {
        let mixed = mixed(&[(1.0, Some(0.2)), (0.5, Some(0.3)), (0.0, Some(0.7)), (0.0, Some(0.2))]);
        assert!((mixed[0] - TEXT_SHARE).abs() < 1e-6);
        assert!((mixed[2] - (1.0 - TEXT_SHARE)).abs() < 1e-6);
        assert!(mixed[0] > mixed[1] && mixed[1] > mixed[2] && mixed[2] > mixed[3]);
    }

    #[test]
    fn a_candidate_without_a_vector_keeps_its_text_score() {
        assert_eq!(mixed(&[(0.9, None), (0.0, None), (0.3, None)]), [1.0, 0.0, 0.3 / 0.9]);
        let behind = mixed(&[(0.8, None), (0.8, Some(0.5)), (0.0, Some(0.1))]);
        assert!((behind[0] - 1.0).abs() < f32::EPSILON);
        assert!(behind[1] <= 1.0 && behind[1] > 0.99);
    }

    fn nearest(all: impl Iterator<Item = (f32, u32)>) -> Vec<u32> {
        let mut nearest = Nearest::default();
        for ((cosine, row), document) in all.zip(0..) {
            nearest.add(Neighbor { cosine, row, address: DocAddress::new(0, document) });
        }
        nearest.into_sorted().into_iter().map(|address| address.doc_id).collect()
    }

    #[test]
    fn keeps_the_nearest_vectors_sorted() {
        let found = nearest((0..2_000_u16).map(|at| (f32::from(at % 1_000) / 1_000.0, u32::from(at))));
        assert_eq!(found.len(), NEAREST_MAX);
        assert_eq!(found[..4], [999, 1_999, 998, 1_998]);
        assert_eq!(found[NEAREST_MAX - 1], 1_975);
        assert!(nearest([(COSINE_MIN - 0.01, 1)].into_iter()).is_empty());
    }

    #[test]
    fn limits_copies_of_one_text_among_the_nearest() {
        let copies = std::iter::repeat_n((0.9, 7), 1_000);
        let others = (0..60_u16).map(|at| (0.8 - f32::from(at) / 1_000.0, 100 + u32::from(at)));
        let found = nearest(copies.clone().chain(others));
        assert_eq!(found.len(), NEAREST_MAX);
        assert_eq!(found[..4], [0, 1, 2, 1_000]);
        let found = nearest(copies.chain([(0.5, 8)]));
        assert_eq!(found.len(), NEAREST_MAX, "copies fill up the remaining places");
        assert_eq!((found[0], found[NEAREST_MAX - 2], found[NEAREST_MAX - 1]), (0, 48, 1_000));
    }
}
