//! What means alike in other words: vectors of capabilities against that of a request.
//!
//! Everything that the filters leave is compared, so that nothing near is overlooked, and the nearest join the candidates
//! that the words have selected. Then both speak: the text score, stretched over the candidates, and the cosine likewise.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use tantivy::index::SegmentId;
use tantivy::query::{EnableScoring, Query};
use tantivy::{DocAddress, DocId, DocSet as _, SegmentReader, TERMINATED};

use super::columns::Columns;
use super::deadline::Deadline;
use super::loaded::Loaded;
use crate::error::{IndexError, SearchError};
use crate::vectors::{Code, Embedder, Vectors, VectorsError, codes};

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
/// A document without a vector.
const NO_ROW: u32 = u32::MAX;

/// The vectors beside one commit, and which document has which.
pub(super) struct Nearness {
    embedder: Arc<dyn Embedder>,
    vectors: Arc<Vectors>,
    /// By segment, for each of its documents. A segment that came later has none yet.
    rows: HashMap<SegmentId, Arc<[u32]>>,
}

impl Nearness {
    /// What stands beside the index, if it is of this embedder.
    pub(super) fn open(
        index_dir: &Path,
        embedder: &Arc<dyn Embedder>,
        loaded: &Loaded,
    ) -> Result<Option<Self>, VectorsError> {
        let Some(vectors) = Vectors::read(index_dir)? else { return Ok(None) };
        if !vectors.is_of(&**embedder) {
            return Ok(None);
        }
        let mut nearness =
            Self { embedder: Arc::clone(embedder), vectors: Arc::new(vectors), rows: HashMap::new() };
        nearness.rows = nearness.rows_of(loaded, &HashMap::new());
        Ok(Some(nearness))
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
        Self { embedder: Arc::clone(&self.embedder), vectors: Arc::clone(&self.vectors), rows }
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
        loaded.searcher.segment_readers().iter().zip(&loaded.columns).map(of_segment).collect()
    }

    /// The direction of a wish: between those of its phrasings. `None` when nothing was said, or the embedder failed, which
    /// is logged: the words still find what they find.
    pub(super) fn aim(&self, phrasings: &[&str]) -> Option<Aim<'_>> {
        if phrasings.is_empty() {
            return None;
        }
        match codes(&*self.embedder, phrasings) {
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
        let mut best = Best { found: Vec::new(), least: COSINE_MIN };
        for (segment, ordinal) in loaded.searcher.segment_readers().iter().zip(0..) {
            deadline.check()?;
            let Some(rows) = self.nearness.rows.get(&segment.segment_id()) else { continue };
            let mut matching = weight.scorer(segment, 1.0).map_err(&failed)?;
            let mut document = matching.doc();
            while document != TERMINATED {
                if !segment.is_deleted(document)
                    && let Some(cosine) = rows.get(document as usize).and_then(|row| self.of_row(*row))
                {
                    best.offer(cosine, DocAddress::new(ordinal, document));
                }
                document = matching.advance();
            }
        }
        best.cut();
        Ok(best.found.into_iter().map(|(_, address)| address).collect())
    }
}

/// The nearest so far.
struct Best {
    found: Vec<(f32, DocAddress)>,
    /// What is below is not among them.
    least: f32,
}

impl Best {
    fn offer(&mut self, cosine: f32, address: DocAddress) {
        if cosine < self.least {
            return;
        }
        self.found.push((cosine, address));
        if self.found.len() >= 8 * NEAREST_MAX {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.found.sort_unstable_by(|(a, left), (b, right)| b.total_cmp(a).then(left.cmp(right)));
        self.found.truncate(NEAREST_MAX);
        if let (NEAREST_MAX, Some((cosine, _))) = (self.found.len(), self.found.last()) {
            self.least = *cosine;
        }
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

    #[test]
    fn the_nearest_are_kept_in_order() {
        let mut best = Best { found: Vec::new(), least: COSINE_MIN };
        for at in 0..2_000_u16 {
            best.offer(f32::from(at % 1_000) / 1_000.0, DocAddress::new(0, u32::from(at)));
        }
        best.cut();
        assert_eq!(best.found.len(), NEAREST_MAX);
        assert_eq!(best.found[0], (0.999, DocAddress::new(0, 999)));
        assert_eq!(best.found[1], (0.999, DocAddress::new(0, 1_999)));
        assert!((best.found[NEAREST_MAX - 1].0 - 0.975).abs() < f32::EPSILON);
    }
}
