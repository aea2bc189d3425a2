//! Finds the terms of documents that are not deleted.
//!
//! The dictionary of a segment keeps the terms of its deleted documents until it is merged, which may be never for a large one. Check a
//! term before it is shown, because it may be the name of a removed site. Check it before the best terms are chosen; otherwise the terms of
//! one large removed site could displace all others.

use std::sync::Arc;

use tantivy::fastfield::AliveBitSet;
use tantivy::postings::TermInfo;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, InvertedIndexReader, SegmentReader, TERMINATED, Term};

/// The terms of a field in one segment.
pub(crate) struct LiveTerms<'s> {
    inverted: Arc<InvertedIndexReader>,
    /// `None` if no document is deleted.
    alive: Option<&'s AliveBitSet>,
    /// Number of deleted documents that may still be examined.
    work_left: usize,
}

impl<'s> LiveTerms<'s> {
    /// At most `deleted_max` deleted documents are examined.
    pub(crate) fn of(segment: &'s SegmentReader, field: Field, deleted_max: usize) -> tantivy::Result<Self> {
        let inverted = segment.inverted_index(field)?;
        Ok(Self { inverted, alive: segment.alive_bitset(), work_left: deleted_max })
    }

    /// Whether a document that is not deleted contains the term. False if the work limit is reached before one is found.
    pub(crate) fn contain(&mut self, info: &TermInfo) -> tantivy::Result<bool> {
        let Some(alive) = self.alive else { return Ok(true) };
        let mut postings = self.inverted.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
        while postings.doc() != TERMINATED && self.work_left > 0 {
            if alive.is_alive(postings.doc()) {
                return Ok(true);
            }
            self.work_left -= 1;
            postings.advance();
        }
        Ok(false)
    }

    /// Whether a live document has this term, given by its text.
    pub(crate) fn contain_text(&mut self, term: &Term) -> tantivy::Result<bool> {
        match self.inverted.get_term_info(term)? {
            Some(info) => self.contain(&info),
            None => Ok(false),
        }
    }

    /// Whether no more deleted documents may be examined.
    pub(crate) const fn is_exhausted(&self) -> bool {
        self.work_left == 0
    }
}
