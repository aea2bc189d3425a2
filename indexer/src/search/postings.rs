//! What one word pair gives to the candidates, from its postings, with the same BM25 as the search that selected them.

use tantivy::postings::{Postings, TermInfo};
use tantivy::query::Bm25Weight;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocSet, Term};

use super::loaded::Loaded;

/// A candidate's row, and where it is.
pub(super) type Place = (usize, DocAddress);

/// Rows that have a term, with their score. The places are in order of documents.
pub(super) fn scores(
    loaded: &Loaded,
    field: Field,
    text: &str,
    places: &[Place],
) -> tantivy::Result<Vec<(usize, f32)>> {
    let term = Term::from_field_text(field, text);
    let segments = loaded.searcher.segment_readers().iter();
    let info = |segment: &tantivy::SegmentReader| -> tantivy::Result<Option<TermInfo>> {
        Ok(segment.inverted_index(field)?.get_term_info(&term)?)
    };
    let infos: Vec<Option<TermInfo>> = segments.map(info).collect::<tantivy::Result<_>>()?;
    let frequency: u64 = infos.iter().flatten().map(|info| u64::from(info.doc_freq)).sum();
    let mut scores = Vec::new();
    if frequency == 0 {
        return Ok(scores);
    }
    let bm25 = loaded.statistics.bm25(field, frequency);
    for group in places.chunk_by(|(_, a), (_, b)| a.segment_ord == b.segment_ord) {
        let Some((_, first)) = group.first() else { continue };
        if let Some(info) = infos.get(first.segment_ord as usize).and_then(Option::as_ref) {
            scores.extend(of_segment(loaded, field, info, &bm25, group)?);
        }
    }
    Ok(scores)
}

fn of_segment(
    loaded: &Loaded,
    field: Field,
    info: &TermInfo,
    bm25: &Bm25Weight,
    group: &[Place],
) -> tantivy::Result<Vec<(usize, f32)>> {
    let Some((_, first)) = group.first() else { return Ok(Vec::new()) };
    let segment = loaded.searcher.segment_reader(first.segment_ord);
    let inverted = segment.inverted_index(field)?;
    let mut postings = inverted.read_postings_from_terminfo(info, IndexRecordOption::WithFreqs)?;
    let lengths = segment.get_fieldnorms_reader(field)?;
    let mut scores = Vec::new();
    for (row, address) in group {
        let at = if postings.doc() < address.doc_id { postings.seek(address.doc_id) } else { postings.doc() };
        if at == address.doc_id {
            scores.push((*row, bm25.score(lengths.fieldnorm_id(at), postings.term_freq())));
        }
    }
    Ok(scores)
}
