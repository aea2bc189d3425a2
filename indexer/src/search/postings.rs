//! What one word pair gives to the candidates, from its postings, with the same BM25 as the search that selected them.

use tantivy::postings::{Postings, TermInfo};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet};

use super::bm25::Bm25;
use super::columns::Lists;
use super::loaded::Loaded;

/// A candidate's row, and where it is.
pub(super) type Place = (usize, DocAddress);

/// Rows that have a pair, with their score. The places are in order of documents.
pub(super) fn scores(loaded: &Loaded, pair: &str, places: &[Place]) -> tantivy::Result<Vec<(usize, f32)>> {
    let known = loaded.pairs.term(&loaded.searcher, pair)?;
    let mut scores = Vec::new();
    if known.frequency == 0 {
        return Ok(scores);
    }
    let bm25 = loaded.statistics.of_pair(known.frequency);
    for group in places.chunk_by(|(_, a), (_, b)| a.segment_ord == b.segment_ord) {
        let Some((_, first)) = group.first() else { continue };
        let columns = loaded.columns.get(first.segment_ord as usize);
        if let (Some(info), Some(columns)) = (known.in_segment(first.segment_ord), columns) {
            scores.extend(of_segment(&columns.pairs, &info, bm25, group)?);
        }
    }
    Ok(scores)
}

fn of_segment(
    lists: &Lists,
    info: &TermInfo,
    bm25: Bm25<'_>,
    group: &[Place],
) -> tantivy::Result<Vec<(usize, f32)>> {
    let mut postings = lists.postings.read_postings_from_terminfo(info, IndexRecordOption::WithFreqs)?;
    let mut scores = Vec::new();
    for (row, address) in group {
        let at = if postings.doc() < address.doc_id { postings.seek(address.doc_id) } else { postings.doc() };
        if at == address.doc_id {
            scores.push((*row, bm25.score(lists.lengths.fieldnorm_id(at), postings.term_freq())));
        }
    }
    Ok(scores)
}
