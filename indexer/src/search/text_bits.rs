//! The documents of one segment that satisfy a condition on their text, as bit sets. Iterates over the postings without a tantivy query,
//! because a query runs until its next match or the end of the segment, so a deadline could not interrupt it.

use fixedbitset::FixedBitSet;
use tantivy::postings::Postings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, SegmentReader, Term};

use super::conditions::TextCondition;
use super::deadline::for_each_checked;
use super::term_bits::{add, doc_id, empty};

impl TextCondition {
    /// The documents among `some` that satisfy it. `check_deadline` is called before each term and at intervals of documents; its
    /// error ends the search.
    pub(super) fn among(
        &self,
        some: &FixedBitSet,
        segment: &SegmentReader,
        check_deadline: impl Fn() -> tantivy::Result<()>,
    ) -> tantivy::Result<FixedBitSet> {
        let mut bits = some.clone();
        match self {
            Self::AnyOf(terms) => bits.intersect_with(&with_any(terms.iter(), segment, &check_deadline)?),
            Self::AllOf(terms) => keep_with_all(&mut bits, terms.iter(), segment, &check_deadline)?,
            Self::Phrase(terms) => {
                keep_with_all(&mut bits, terms.iter(), segment, &check_deadline)?;
                bits = with_phrase(&bits, terms, segment, &check_deadline)?;
            }
        }
        Ok(bits)
    }
}

/// The documents that have any of the terms.
fn with_any<'a>(
    terms: impl Iterator<Item = &'a Term>,
    segment: &SegmentReader,
    check_deadline: impl Fn() -> tantivy::Result<()>,
) -> tantivy::Result<FixedBitSet> {
    let mut found = empty(segment);
    for term in terms {
        check_deadline()?;
        let index = segment.inverted_index(term.field())?;
        if let Some(blocks) = index.read_block_postings(term, IndexRecordOption::Basic)? {
            add(&mut found, blocks);
        }
    }
    Ok(found)
}

/// Keeps the documents that have each of the terms.
fn keep_with_all<'a>(
    bits: &mut FixedBitSet,
    terms: impl Iterator<Item = &'a Term>,
    segment: &SegmentReader,
    check_deadline: impl Fn() -> tantivy::Result<()>,
) -> tantivy::Result<()> {
    for term in terms {
        check_deadline()?;
        let mut with_term = empty(segment);
        let index = segment.inverted_index(term.field())?;
        if let Some(blocks) = index.read_block_postings(term, IndexRecordOption::Basic)? {
            add(&mut with_term, blocks);
        }
        bits.intersect_with(&with_term);
    }
    Ok(())
}

/// The documents of `some` that have the terms next to each other. All documents of `some` have all terms.
fn with_phrase(
    some: &FixedBitSet,
    terms: &[Term],
    segment: &SegmentReader,
    check_deadline: impl Fn() -> tantivy::Result<()>,
) -> tantivy::Result<FixedBitSet> {
    let mut found = empty(segment);
    let mut of_terms = Vec::with_capacity(terms.len());
    for term in terms {
        let index = segment.inverted_index(term.field())?;
        let Some(postings) = index.read_postings(term, IndexRecordOption::WithFreqsAndPositions)? else {
            return Ok(found);
        };
        of_terms.push(postings);
    }
    let (mut starts, mut positions) = (Vec::new(), Vec::new());
    for_each_checked(some.ones(), check_deadline, |bit| {
        for (postings, offset) in of_terms.iter_mut().zip(0..) {
            seek(postings, doc_id(bit));
            postings.positions(&mut positions);
            if offset == 0 {
                std::mem::swap(&mut starts, &mut positions);
            } else {
                starts.retain(|start: &u32| positions.binary_search(&(start + offset)).is_ok());
            }
        }
        found.set(bit, !starts.is_empty());
    })?;
    Ok(found)
}

/// Documents must be passed in order.
fn seek(postings: &mut impl DocSet, document: DocId) {
    if postings.doc() < document {
        postings.seek(document);
    }
}
