//! Which documents the conditions of a request admit, and which its words speak of: a bit for each.
//!
//! Filters ask for a few terms over and over, a format or a method that a good part of all documents have. Their bits are
//! kept beside the segment, which never changes; all other terms are few documents each, and read anew. What is no term, a
//! phrase or a time, the engine finds.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use fixedbitset::FixedBitSet;
use lru::LruCache;
use tantivy::postings::BlockSegmentPostings;
use tantivy::query::{EnableScoring, Query, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{SegmentOrdinal, SegmentReader, Term};

use super::candidates::Conditions;
use super::columns::Columns;
use super::loaded::Loaded;
use crate::query::{Admits, QueryTerm};
use crate::request::FacetKey;

/// Terms of one segment whose bits are kept: eight octets a document at most.
const KEPT_MAX: NonZeroUsize = NonZeroUsize::new(64).unwrap();
/// A term has many documents when at least one in so many has it: reading the postings of fewer is no work.
const MANY_IN: u32 = 64;

/// The bits of the terms of one segment that filters asked for last.
pub(super) struct KeptBits(Mutex<LruCache<Term, Arc<FixedBitSet>>>);

impl Default for KeptBits {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(KEPT_MAX)))
    }
}

/// The documents that have a term, deleted ones included.
enum Having {
    Many(Arc<FixedBitSet>),
    Few(Box<BlockSegmentPostings>),
}

impl KeptBits {
    /// `None` where no document has the term.
    fn having(&self, segment: &SegmentReader, term: &Term) -> tantivy::Result<Option<Having>> {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bits) = kept().get(term) {
            return Ok(Some(Having::Many(Arc::clone(bits))));
        }
        let index = segment.inverted_index(term.field())?;
        let Some(info) = index.get_term_info(term)? else { return Ok(None) };
        let blocks = index.read_block_postings_from_terminfo(&info, IndexRecordOption::Basic)?;
        if info.doc_freq < segment.max_doc() / MANY_IN {
            return Ok(Some(Having::Few(Box::new(blocks))));
        }
        let mut bits = none_of(segment);
        add(&mut bits, blocks);
        let bits = Arc::new(bits);
        kept().put(term.clone(), Arc::clone(&bits));
        Ok(Some(Having::Many(bits)))
    }
}

fn add(bits: &mut FixedBitSet, mut blocks: BlockSegmentPostings) {
    while !blocks.docs().is_empty() {
        bits.extend(blocks.docs().iter().map(|document| *document as usize));
        blocks.advance();
    }
}

fn none_of(segment: &SegmentReader) -> FixedBitSet {
    FixedBitSet::with_capacity(segment.max_doc() as usize)
}

fn all_of(segment: &SegmentReader) -> FixedBitSet {
    let mut all = none_of(segment);
    all.insert_range(..);
    all
}

/// The documents that have any of the terms, a set for each segment; all documents where there are no terms. `go_on` is
/// asked before each segment; its error ends the search.
pub(super) fn spoken_of<'a>(
    loaded: &Loaded,
    terms: impl Iterator<Item = &'a QueryTerm>,
    go_on: impl Fn() -> tantivy::Result<()>,
) -> tantivy::Result<Vec<FixedBitSet>> {
    let terms = terms.map(|term| Ok((term, loaded.listed(term)?))).collect::<tantivy::Result<Vec<_>>>()?;
    let segments = loaded.searcher.segment_readers().iter().zip(&loaded.columns).zip(0..);
    let of_segment = |((segment, columns), ordinal): ((&SegmentReader, &Arc<Columns>), SegmentOrdinal)| {
        go_on()?;
        if terms.is_empty() {
            return Ok(all_of(segment));
        }
        let mut bits = none_of(segment);
        for (term, known) in &terms {
            if let Some(info) = known.in_segment(ordinal) {
                let postings = &columns.lists(term.role).postings;
                let basic = IndexRecordOption::Basic;
                add(&mut bits, postings.read_block_postings_from_terminfo(&info, basic)?);
            }
        }
        Ok(bits)
    };
    segments.map(of_segment).collect()
}

/// The documents that are admitted, a set for each segment; `None` where there are no conditions. A facet is counted without
/// its own filter. `go_on` is asked before each condition of each segment; its error ends the search.
pub(super) fn admitted(
    loaded: &Loaded,
    conditions: &Conditions,
    without: Option<FacetKey>,
    go_on: impl Fn() -> tantivy::Result<()>,
) -> tantivy::Result<Option<Vec<FixedBitSet>>> {
    if conditions.is_empty() {
        return Ok(None);
    }
    let scoring = EnableScoring::disabled_from_searcher(&loaded.searcher);
    let found = |query: &dyn Query| query.weight(scoring).map(Documents::Found);
    let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
    for admits in conditions.filters(without) {
        match admits {
            Admits::AnyOf(terms) => wanted.push(Documents::WithAny(terms)),
            Admits::NoneOf(terms) => unwanted.push(Documents::WithAny(terms)),
            Admits::Since(_) => wanted.push(found(admits.query().as_ref())?),
        }
    }
    for query in &conditions.required {
        wanted.push(found(query.as_ref())?);
    }
    for query in &conditions.excluded {
        unwanted.push(found(query.as_ref())?);
    }
    let of_segment = |(segment, columns): (&SegmentReader, &Arc<Columns>)| {
        let mut admitted = all_of(segment);
        for documents in &wanted {
            go_on()?;
            admitted.intersect_with(documents.in_segment(segment, &columns.kept_bits)?.as_ref());
        }
        for documents in &unwanted {
            go_on()?;
            admitted.difference_with(documents.in_segment(segment, &columns.kept_bits)?.as_ref());
        }
        Ok(admitted)
    };
    let segments = loaded.searcher.segment_readers().iter().zip(&loaded.columns);
    segments.map(of_segment).collect::<Result<_, _>>().map(Some)
}

/// Documents that a condition speaks of.
enum Documents<'a> {
    /// Those that have any of the terms.
    WithAny(&'a [Term]),
    /// Those that the engine finds.
    Found(Box<dyn Weight>),
}

impl Documents<'_> {
    fn in_segment(&self, segment: &SegmentReader, kept: &KeptBits) -> tantivy::Result<Arc<FixedBitSet>> {
        let mut bits = none_of(segment);
        match self {
            Self::WithAny(terms) => {
                for term in *terms {
                    match kept.having(segment, term)? {
                        Some(Having::Many(only)) if terms.len() == 1 => return Ok(only),
                        Some(Having::Many(of_term)) => bits.union_with(&of_term),
                        Some(Having::Few(blocks)) => add(&mut bits, *blocks),
                        None => {}
                    }
                }
            }
            Self::Found(weight) => weight.for_each_no_score(segment, &mut |documents| {
                bits.extend(documents.iter().map(|document| *document as usize));
            })?,
        }
        Ok(Arc::new(bits))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tantivy::TantivyError;

    use super::super::made::{opened, terms};
    use super::*;
    use crate::query::FilterPart;

    fn any_of(terms: Vec<Term>) -> Conditions {
        let filters = vec![FilterPart { facet: Some(FacetKey::Method), admits: Admits::AnyOf(terms) }];
        Conditions { filters, required: Vec::new(), excluded: Vec::new() }
    }

    #[test]
    fn the_bits_of_terms_that_many_have_are_kept_and_of_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let loaded = opened(dir.path(), 30_000);
        let term = |text: &str| Term::from_field_text(loaded.fields.method, text);
        let asked = any_of(["get", "post", "put", "unheard"].map(term).to_vec());
        let first = admitted(&loaded, &asked, None, || Ok(())).unwrap();
        let again = admitted(&loaded, &asked, None, || Ok(())).unwrap();
        assert_eq!(first, again);
        for (columns, segment) in loaded.columns.iter().zip(loaded.searcher.segment_readers()) {
            let mut kept = columns.kept_bits.0.lock().unwrap();
            assert_eq!(kept.len(), 2);
            for text in ["get", "post"] {
                let bits = kept.get(&term(text)).unwrap();
                let inverted = segment.inverted_index(loaded.fields.method).unwrap();
                assert_eq!(bits.count_ones(..), inverted.doc_freq(&term(text)).unwrap() as usize, "{text}");
            }
        }
    }

    #[test]
    fn no_more_than_so_many_terms_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let loaded = opened(dir.path(), 1_000);
        for number in 0..200_u32 {
            let site = Term::from_field_text(loaded.fields.site, &format!("s{}.example", number % 10));
            let asked =
                any_of(vec![site, Term::from_field_text(loaded.fields.all, &format!("word{number}"))]);
            admitted(&loaded, &asked, None, || Ok(())).unwrap();
        }
        let kept = loaded.columns.iter().map(|columns| columns.kept_bits.0.lock().unwrap().len());
        assert!(kept.clone().all(|kept| kept <= KEPT_MAX.get()) && kept.sum::<usize>() >= 10);
    }

    #[test]
    fn the_clock_is_looked_at_before_each_condition() {
        let dir = tempfile::tempdir().unwrap();
        let loaded = opened(dir.path(), 1_000);
        let term = Term::from_field_text(loaded.fields.method, "get");
        let looks = Cell::new(0);
        let over = || {
            looks.set(looks.get() + 1);
            Err(TantivyError::InternalError("over".to_owned()))
        };
        assert!(admitted(&loaded, &any_of(vec![term]), None, over).is_err());
        assert!(spoken_of(&loaded, terms(&[("book", 1.0)]).iter(), over).is_err());
        assert_eq!(looks.get(), 2, "nothing is read on once time is over");
    }
}
