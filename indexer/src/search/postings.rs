//! Checks a few documents for terms, using the postings of the terms.

use std::collections::BTreeSet;

use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, Term};

use super::columns::FieldPostings;
use super::opened::OpenedIndex;
use crate::query::QueryTerm;

/// The row of a candidate in the scores, and its document.
pub(super) type Row = (usize, DocAddress);

/// The rows that have a bigram, each with its BM25 score. `rows` is sorted by document.
pub(super) fn bigram_scores(
    opened: &OpenedIndex,
    bigram: &str,
    rows: &[Row],
) -> tantivy::Result<Vec<(usize, f32)>> {
    let locations = opened.bigrams.term(&opened.searcher, bigram)?;
    let bm25 = opened.statistics.of_bigram(locations.frequency);
    let mut scores = Vec::new();
    for group in rows.chunk_by(|(_, a), (_, b)| a.segment_ord == b.segment_ord) {
        let Some((_, first)) = group.first() else { continue };
        let columns = opened.columns.get(first.segment_ord as usize);
        let Some((columns, info)) = columns.zip(locations.in_segment(first.segment_ord)) else { continue };
        let FieldPostings { postings, lengths } = &columns.bigrams;
        let mut postings = postings.read_postings_from_terminfo(info, IndexRecordOption::WithFreqs)?;
        for (row, DocAddress { doc_id, .. }) in group {
            if has(&mut postings, *doc_id) {
                scores.push((*row, bm25.score(lengths.fieldnorm_id(*doc_id), postings.term_freq())));
            }
        }
    }
    Ok(scores)
}

/// The number of these documents that contain any of the terms.
pub(super) fn count_with_any<'a>(
    opened: &OpenedIndex,
    terms: impl Iterator<Item = &'a QueryTerm>,
    documents: &[DocAddress],
) -> tantivy::Result<u64> {
    let documents: BTreeSet<DocAddress> = documents.iter().copied().collect();
    let mut found: BTreeSet<DocAddress> = BTreeSet::new();
    for term in terms {
        let locations = opened.locate(term)?;
        for (columns, ordinal) in opened.columns.iter().zip(0..) {
            let Some(info) = locations.in_segment(ordinal) else { continue };
            let FieldPostings { postings, .. } = columns.field(term.role);
            let mut postings = postings.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
            let of_segment = documents.range(DocAddress::new(ordinal, 0)..DocAddress::new(ordinal + 1, 0));
            found.extend(of_segment.filter(|address| has(&mut postings, address.doc_id)));
        }
    }
    Ok(found.len() as u64)
}

/// Those of these documents that contain a term.
pub(super) fn documents_with(
    opened: &OpenedIndex,
    term: &Term,
    documents: &[DocAddress],
) -> tantivy::Result<Vec<DocAddress>> {
    let documents: BTreeSet<DocAddress> = documents.iter().copied().collect();
    let mut found = Vec::new();
    for (segment, ordinal) in opened.searcher.segment_readers().iter().zip(0..) {
        let inverted = segment.inverted_index(term.field())?;
        let Some(mut postings) = inverted.read_postings(term, IndexRecordOption::Basic)? else { continue };
        let of_segment = documents.range(DocAddress::new(ordinal, 0)..DocAddress::new(ordinal + 1, 0));
        found.extend(of_segment.filter(|address| has(&mut postings, address.doc_id)));
    }
    Ok(found)
}

/// Whether a document has the term; documents must be passed in order.
fn has(postings: &mut SegmentPostings, document: u32) -> bool {
    let at = if postings.doc() < document { postings.seek(document) } else { postings.doc() };
    at == document
}
