//! Whether a term is of a document that is not deleted.
//!
//! The dictionary of a segment keeps the terms of its deleted documents until it is merged, which may be never for a large one.
//! Check a term of a dictionary before it is shown: it may be the name of a site that was removed.

use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, Searcher, TERMINATED, Term};

/// Whether any document that is not deleted has a term. Takes time in proportion to the deleted ones that have it.
pub(crate) fn has_live_document(searcher: &Searcher, term: &Term) -> tantivy::Result<bool> {
    for segment in searcher.segment_readers() {
        let inverted = segment.inverted_index(term.field())?;
        let Some(info) = inverted.get_term_info(term)? else { continue };
        let Some(alive) = segment.alive_bitset() else { return Ok(true) };
        let mut postings = inverted.read_postings_from_terminfo(&info, IndexRecordOption::Basic)?;
        while postings.doc() != TERMINATED {
            if alive.is_alive(postings.doc()) {
                return Ok(true);
            }
            postings.advance();
        }
    }
    Ok(false)
}
