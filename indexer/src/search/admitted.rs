//! The documents that satisfy the conditions of a request, and those that have its words, as bits.
//!
//! Filters are terms, whose bits [`super::term_bits`] caches. Phrases, times and exclusions are evaluated by tantivy, among
//! the documents that pass the filters.

use std::ops::Bound;
use std::sync::Arc;

use fixedbitset::FixedBitSet;
use tantivy::query::{ConstScoreQuery, EnableScoring, Query, RangeQuery, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, SegmentOrdinal, SegmentReader, Term};

use super::columns::Columns;
use super::conditions::Conditions;
use super::opened::OpenedIndex;
use super::term_bits::{CACHED_IF_ONE_IN, add, empty};
use crate::filter::FacetKey;
use crate::query::{QueryTerm, Restriction};

fn full(segment: &SegmentReader) -> FixedBitSet {
    let mut full = empty(segment);
    full.insert_range(..);
    full
}

/// The documents of every segment that have any of the terms, including deleted ones; all documents if there are no terms.
/// `check_deadline` is called before each term of each segment; its error ends the search.
pub(super) fn with_words<'a>(
    opened: &OpenedIndex,
    terms: impl Iterator<Item = &'a QueryTerm>,
    check_deadline: impl Fn() -> tantivy::Result<()>,
) -> tantivy::Result<Vec<FixedBitSet>> {
    let terms = terms.map(|term| Ok((term, opened.locate(term)?))).collect::<tantivy::Result<Vec<_>>>()?;
    let of_segment = |((segment, columns), ordinal): ((&SegmentReader, &Arc<Columns>), SegmentOrdinal)| {
        if terms.is_empty() {
            return Ok(full(segment));
        }
        let mut bits = empty(segment);
        for (term, locations) in &terms {
            check_deadline()?;
            if let Some(info) = locations.in_segment(ordinal) {
                let postings = &columns.field(term.role).postings;
                add(&mut bits, postings.read_block_postings_from_terminfo(info, IndexRecordOption::Basic)?);
            }
        }
        Ok(bits)
    };
    opened.segments().zip(0..).map(of_segment).collect()
}

/// The documents that satisfy some conditions, a set for each segment, including deleted ones.
#[derive(Debug, PartialEq)]
pub(super) struct Admitted {
    /// `None` if there are no conditions.
    segments: Option<Vec<FixedBitSet>>,
}

impl Admitted {
    /// A facet is counted `without` its own filter. `check_deadline` is called before each term or query of each segment; its error
    /// ends the search.
    pub(super) fn of(
        opened: &OpenedIndex,
        conditions: &Conditions,
        without: Option<FacetKey>,
        check_deadline: impl Fn() -> tantivy::Result<()>,
    ) -> tantivy::Result<Self> {
        if conditions.is_empty() {
            return Ok(Self { segments: None });
        }
        let scoring = EnableScoring::disabled_from_searcher(&opened.searcher);
        let matching = |query: &dyn Query| query.weight(scoring).map(Documents::Matching);
        let (mut wanted, mut unwanted, mut queries) = (Vec::new(), Vec::new(), Vec::new());
        for restriction in conditions.filters(without) {
            match restriction {
                Restriction::AnyOf(terms) => wanted.push(Documents::WithAny(terms)),
                Restriction::NoneOf(terms) => unwanted.push(Documents::WithAny(terms)),
                Restriction::Since(from) => queries.push(matching(&since(from))?),
            }
        }
        for query in &conditions.required {
            queries.push(matching(query.as_ref())?);
        }
        // After the terms: the fewer documents are left, the fewer tantivy has to check.
        wanted.extend(queries);
        for query in &conditions.excluded {
            unwanted.push(matching(query.as_ref())?);
        }
        let of_segment = |(segment, columns): (&SegmentReader, &Arc<Columns>)| {
            let mut admitted = full(segment);
            for documents in &wanted {
                let wanted = documents.among(&admitted, segment, columns, &check_deadline)?;
                admitted.intersect_with(&wanted);
            }
            for documents in &unwanted {
                let unwanted = documents.among(&admitted, segment, columns, &check_deadline)?;
                admitted.difference_with(&unwanted);
            }
            Ok(admitted)
        };
        let segments = opened.segments().map(of_segment).collect::<tantivy::Result<_>>()?;
        Ok(Self { segments: Some(segments) })
    }

    /// The set of one segment; `None` if all its documents are admitted.
    pub(super) fn segment(&self, ordinal: SegmentOrdinal) -> Option<&FixedBitSet> {
        self.segments.as_ref().and_then(|segments| segments.get(ordinal as usize))
    }

    /// Whether a document is admitted and not deleted.
    pub(super) fn has(&self, segment: &SegmentReader, ordinal: SegmentOrdinal, document: DocId) -> bool {
        self.segment(ordinal).is_none_or(|bits| bits.contains(document as usize))
            && !segment.is_deleted(document)
    }

    /// Whether any document is admitted and not deleted.
    pub(super) fn has_any(&self, opened: &OpenedIndex) -> bool {
        let mut segments = opened.searcher.segment_readers().iter().zip(0..);
        segments.any(|(segment, ordinal)| match self.segment(ordinal) {
            Some(bits) => bits.ones().any(|bit| !segment.is_deleted(doc_id(bit))),
            None => segment.num_docs() > 0,
        })
    }
}

fn since(from: &Term) -> ConstScoreQuery {
    ConstScoreQuery::new(Box::new(RangeQuery::new(Bound::Included(from.clone()), Bound::Unbounded)), 0.0)
}

/// The documents of a condition.
enum Documents<'a> {
    WithAny(&'a [Term]),
    Matching(Box<dyn Weight>),
}

impl Documents<'_> {
    /// At least those of them that are in `some`.
    fn among(
        &self,
        some: &FixedBitSet,
        segment: &SegmentReader,
        columns: &Columns,
        check_deadline: impl Fn() -> tantivy::Result<()>,
    ) -> tantivy::Result<Arc<FixedBitSet>> {
        match self {
            Self::WithAny(terms) => columns.term_bits.with_any(terms, segment, check_deadline),
            Self::Matching(weight) => {
                check_deadline()?;
                matching_among(some, segment, weight.as_ref()).map(Arc::new)
            }
        }
    }
}

/// What matches a query: among few documents these alone are checked, else the whole segment.
fn matching_among(
    some: &FixedBitSet,
    segment: &SegmentReader,
    weight: &dyn Weight,
) -> tantivy::Result<FixedBitSet> {
    let mut bits = empty(segment);
    if some.count_ones(..) > some.len() / CACHED_IF_ONE_IN {
        weight.for_each_no_score(segment, &mut |documents| {
            bits.extend(documents.iter().map(|document| *document as usize));
        })?;
        return Ok(bits);
    }
    let mut some = some.ones().peekable();
    if some.peek().is_none() {
        return Ok(bits);
    }
    let mut found = weight.scorer(segment, 1.0)?;
    for document in some {
        let wanted = doc_id(document);
        if found.doc() < wanted {
            found.seek(wanted);
        }
        if found.doc() == wanted {
            bits.insert(document);
        }
    }
    Ok(bits)
}

/// The documents of a segment that have the words, are admitted and are not deleted.
pub(super) fn matching<'a>(
    segment: &'a SegmentReader,
    with_words: &'a FixedBitSet,
    admitted: Option<&'a FixedBitSet>,
) -> Vec<DocId> {
    let alive = segment.alive_bitset();
    let is_alive = |document: &DocId| alive.is_none_or(|alive| alive.is_alive(*document));
    match admitted {
        Some(admitted) => with_words.intersection(admitted).map(doc_id).filter(is_alive).collect(),
        None => with_words.ones().map(doc_id).filter(is_alive).collect(),
    }
}

/// The document of a bit.
#[expect(clippy::cast_possible_truncation, reason = "a segment's documents are numbered by u32")]
fn doc_id(bit: usize) -> DocId {
    bit as DocId
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tantivy::TantivyError;

    use super::super::conditions::excluded_query;
    use super::super::tests::sample_index::{any_of, opened, terms};
    use super::*;

    #[test]
    fn checks_the_deadline_before_each_term_and_query() {
        let dir = tempfile::tempdir().unwrap();
        let opened = opened(dir.path(), 1_000);
        let conditions = Conditions {
            filters: vec![any_of(&opened, &["get", "post"]), any_of(&opened, &["get"])],
            excluded: excluded_query(&opened.fields, "hotel").into_iter().collect(),
            ..Conditions::default()
        };
        let checks = Cell::new(0);
        let check = |most: usize| {
            checks.set(checks.get() + 1);
            if checks.get() > most { Err(TantivyError::InternalError("over".to_owned())) } else { Ok(()) }
        };
        let segments = opened.columns.len();
        Admitted::of(&opened, &conditions, None, || check(usize::MAX)).unwrap();
        assert_eq!(checks.replace(0), segments * 4);
        assert!(Admitted::of(&opened, &conditions, None, || check(2)).is_err());
        assert_eq!(checks.replace(0), 3, "reads nothing after the deadline");
        let words = terms(&[("book", 1.0), ("hotel", 1.0)]);
        with_words(&opened, words.iter(), || check(usize::MAX)).unwrap();
        assert_eq!(checks.replace(0), segments * 2);
        assert!(with_words(&opened, words.iter(), || check(1)).is_err());
    }
}
