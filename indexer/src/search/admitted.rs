//! The documents that satisfy the conditions of a request, and those that contain its words, as bit sets.
//!
//! Filters are terms, whose bits [`super::term_bits`] caches. Phrases, times and exclusions are evaluated among the documents
//! that pass the filters.

use std::collections::BTreeSet;
use std::sync::Arc;

use fixedbitset::FixedBitSet;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocId, SegmentOrdinal, SegmentReader, Term};

use super::columns::Columns;
use super::conditions::{Conditions, TextCondition};
use super::deadline::for_each_checked;
use super::opened::OpenedIndex;
use super::site_endpoints::SiteEndpoints;
use super::term_bits::{add, doc_id, empty};
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
    /// A facet is counted `without` its own filter. `check_deadline` is called before each term of each segment, and after every few
    /// thousand documents; its error ends the search.
    pub(super) fn of(
        opened: &OpenedIndex,
        conditions: &Conditions,
        without: Option<FacetKey>,
        check_deadline: impl Fn() -> tantivy::Result<()>,
    ) -> tantivy::Result<Self> {
        if conditions.is_empty() {
            return Ok(Self { segments: None });
        }
        let (mut wanted, mut unwanted, mut checked) = (Vec::new(), Vec::new(), Vec::new());
        for restriction in conditions.filters(without) {
            match restriction {
                Restriction::AnyOf(terms) => wanted.push(Documents::WithAny(terms)),
                Restriction::NoneOf(terms) => unwanted.push(Documents::WithAny(terms)),
                Restriction::Since(from) => checked.push(Documents::Since(from)),
                Restriction::OfSitesWith(protocols) => {
                    checked.push(Documents::OfSitesWith(&opened.site_endpoints, protocols));
                }
            }
        }
        // after the terms, so that fewer documents have to be checked
        wanted.extend(checked);
        wanted.extend(conditions.required.iter().map(Documents::WithText));
        unwanted.extend(conditions.excluded.iter().map(Documents::WithText));
        let of_segment =
            |((segment, columns), ordinal): ((&SegmentReader, &Arc<Columns>), SegmentOrdinal)| {
                let mut admitted = full(segment);
                for documents in &wanted {
                    let wanted = documents.among(&admitted, (segment, ordinal), columns, &check_deadline)?;
                    admitted.intersect_with(&wanted);
                }
                for documents in &unwanted {
                    let unwanted =
                        documents.among(&admitted, (segment, ordinal), columns, &check_deadline)?;
                    admitted.difference_with(&unwanted);
                }
                Ok(admitted)
            };
        let segments = opened.segments().zip(0..).map(of_segment).collect::<tantivy::Result<_>>()?;
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

/// The documents of a condition.
enum Documents<'a> {
    WithAny(&'a [Term]),
    Since(&'a Term),
    OfSitesWith(&'a SiteEndpoints, &'a BTreeSet<String>),
    WithText(&'a TextCondition),
}

impl Documents<'_> {
    /// The documents among `some` that satisfy the condition, and possibly others.
    fn among(
        &self,
        some: &FixedBitSet,
        (segment, ordinal): (&SegmentReader, SegmentOrdinal),
        columns: &Columns,
        check_deadline: impl Fn() -> tantivy::Result<()>,
    ) -> tantivy::Result<Arc<FixedBitSet>> {
        match self {
            Self::WithAny(terms) => columns.term_bits.with_any(terms, segment, check_deadline),
            Self::Since(from) => since(from, some, segment, check_deadline).map(Arc::new),
            Self::OfSitesWith(endpoints, protocols) => {
                let mut found = empty(segment);
                for_each_checked(some.ones(), check_deadline, |bit| {
                    let at = DocAddress::new(ordinal, doc_id(bit));
                    let site = columns.traits(at.doc_id).map(|traits| traits.site);
                    let has = |site| {
                        let mut declared = endpoints.of_document(at, site);
                        declared.any(|protocol| protocols.contains(protocol.as_str()))
                    };
                    found.set(bit, site.is_some_and(has));
                })?;
                Ok(Arc::new(found))
            }
            Self::WithText(text) => text.among(some, segment, check_deadline).map(Arc::new),
        }
    }
}

/// The documents of `some` whose time is `from` or later.
fn since(
    from: &Term,
    some: &FixedBitSet,
    segment: &SegmentReader,
    check_deadline: impl Fn() -> tantivy::Result<()>,
) -> tantivy::Result<FixedBitSet> {
    let mut found = empty(segment);
    let column = segment.fast_fields().i64(segment.schema().get_field_name(from.field()))?;
    let from = from.value().as_i64().unwrap_or(i64::MAX);
    for_each_checked(some.ones(), check_deadline, |bit| {
        found.set(bit, column.first(doc_id(bit)).is_some_and(|time| time >= from));
    })?;
    Ok(found)
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tantivy::TantivyError;

    use super::super::conditions::{exclusion, phrase};
    use super::super::tests::sample_index::{any_of, opened, terms};
    use super::*;
    use crate::query::FilterPart;

    /// Runs a search once to count its deadline checks. Then, for each of these checks, runs it again with an error at that check.
    fn checks(run: impl Fn(&dyn Fn() -> tantivy::Result<()>) -> tantivy::Result<()>) -> usize {
        let checks = Cell::new(0);
        let with_room_for = |most: usize| {
            checks.set(0);
            run(&|| {
                checks.set(checks.get() + 1);
                if checks.get() > most { Err(TantivyError::InternalError("over".to_owned())) } else { Ok(()) }
            })
        };
        with_room_for(usize::MAX).unwrap();
        let all = checks.get();
        for most in 0..all {
            assert!(with_room_for(most).is_err());
            assert_eq!(checks.get(), most + 1, "reads nothing after the deadline");
        }
        all
    }

    #[test]
    fn checks_the_deadline_before_each_term() {
        let dir = tempfile::tempdir().unwrap();
        let opened = opened(dir.path(), 1_000);
        let conditions = Conditions {
            filters: vec![any_of(&opened, &["get", "post"]), any_of(&opened, &["get"])],
            excluded: exclusion(&opened, "hotel").into_iter().collect(),
            ..Conditions::default()
        };
        let segments = opened.columns.len();
        let found = checks(|check| Admitted::of(&opened, &conditions, None, check).map(drop));
        assert_eq!(found, segments * 4);
        let words = terms(&[("book", 1.0), ("hotel", 1.0)]);
        assert_eq!(checks(|check| with_words(&opened, words.iter(), check).map(drop)), segments * 2);
    }

    /// For every kind of condition, the deadline is checked after a bounded number of documents and terms.
    #[test]
    fn checks_the_deadline_at_intervals_of_documents_under_every_kind_of_condition() {
        let dir = tempfile::tempdir().unwrap();
        let opened = opened(dir.path(), 30_000);
        let fields = &opened.fields;
        let longest = opened.segments().map(|(segment, _)| segment.max_doc()).max().unwrap() as usize;
        assert!(longest > 10_000);
        let first = Term::from_field_i64(fields.updated_ms, 0);
        let times = FilterPart { facet: None, restriction: Restriction::Since(first) };
        let repeated = "book flight ".repeat(1_000);
        for (name, conditions, least) in [
            ("time", Conditions { filters: vec![times], ..Conditions::default() }, longest / 4_096),
            (
                "phrase",
                Conditions {
                    required: phrase(&opened, "book else").into_iter().collect(),
                    ..Conditions::default()
                },
                2,
            ),
            (
                "exclusion",
                Conditions {
                    excluded: exclusion(&opened, &repeated).into_iter().collect(),
                    ..Conditions::default()
                },
                2,
            ),
        ] {
            let found = checks(|check| Admitted::of(&opened, &conditions, None, check).map(drop));
            assert!(found >= least, "{name}: {found}");
            assert!(found <= opened.columns.len() * 20, "{name}: a repeated term is read once: {found}");
        }
    }
}
