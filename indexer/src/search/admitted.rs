//! Which documents the conditions of a request admit, and which have its words: a bit for each.
//!
//! Filters ask for a few terms over and over, a format or a method that a good part of all documents have. Their bits are
//! kept beside the segment, which never changes; all other terms are few documents each, and read anew. Phrases, times and
//! exclusions are found by the engine, among what the filters leave.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use fixedbitset::FixedBitSet;
use lru::LruCache;
use tantivy::postings::BlockSegmentPostings;
use tantivy::query::{EnableScoring, Query, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, SegmentOrdinal, SegmentReader, Term};

use super::candidates::Conditions;
use super::columns::Columns;
use super::loaded::Loaded;
use crate::query::{Admits, QueryTerm};
use crate::request::FacetKey;

/// Terms of one segment whose bits are kept: eight bytes a document at most.
const KEPT_MAX: NonZeroUsize = NonZeroUsize::new(64).unwrap();
/// Documents are many when they are about one in so many: reading the postings of fewer is no work.
const MANY_IN: usize = 64;

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
        if (info.doc_freq as usize) < segment.max_doc() as usize / MANY_IN {
            return Ok(Some(Having::Few(Box::new(blocks))));
        }
        let mut bits = empty(segment);
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

fn empty(segment: &SegmentReader) -> FixedBitSet {
    FixedBitSet::with_capacity(segment.max_doc() as usize)
}

fn full(segment: &SegmentReader) -> FixedBitSet {
    let mut full = empty(segment);
    full.insert_range(..);
    full
}

/// The documents that have any of the terms, a set for each segment; all documents where there are no terms. `go_on` is
/// asked before each term of each segment; its error ends the search.
pub(super) fn with_words<'a>(
    loaded: &Loaded,
    terms: impl Iterator<Item = &'a QueryTerm>,
    go_on: impl Fn() -> tantivy::Result<()>,
) -> tantivy::Result<Vec<FixedBitSet>> {
    let terms = terms.map(|term| Ok((term, loaded.listed(term)?))).collect::<tantivy::Result<Vec<_>>>()?;
    let of_segment = |((segment, columns), ordinal): ((&SegmentReader, &Arc<Columns>), SegmentOrdinal)| {
        if terms.is_empty() {
            return Ok(full(segment));
        }
        let mut bits = empty(segment);
        for (term, known) in &terms {
            go_on()?;
            if let Some(info) = known.in_segment(ordinal) {
                let postings = &columns.lists(term.role).postings;
                let basic = IndexRecordOption::Basic;
                add(&mut bits, postings.read_block_postings_from_terminfo(&info, basic)?);
            }
        }
        Ok(bits)
    };
    loaded.segments().zip(0..).map(of_segment).collect()
}

/// The documents that are admitted, a set for each segment; `None` where there are no conditions. A facet is counted without
/// its own filter. `go_on` is asked before each term or query of each segment; its error ends the search.
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
    let (mut wanted, mut unwanted, mut to_find) = (Vec::new(), Vec::new(), Vec::new());
    for admits in conditions.filters(without) {
        match admits {
            Admits::AnyOf(terms) => wanted.push(Documents::WithAny(terms)),
            Admits::NoneOf(terms) => unwanted.push(Documents::WithAny(terms)),
            Admits::Since(_) => to_find.push(found(admits.query().as_ref())?),
        }
    }
    for query in &conditions.required {
        to_find.push(found(query.as_ref())?);
    }
    // Behind the terms: the fewer are left, the less the engine has to look at.
    wanted.extend(to_find);
    for query in &conditions.excluded {
        unwanted.push(found(query.as_ref())?);
    }
    let of_segment = |(segment, columns): (&SegmentReader, &Arc<Columns>)| {
        let mut admitted = full(segment);
        let kept = &columns.kept_bits;
        for documents in &wanted {
            let wanted = documents.among(&admitted, segment, kept, &go_on)?;
            admitted.intersect_with(&wanted);
        }
        for documents in &unwanted {
            let unwanted = documents.among(&admitted, segment, kept, &go_on)?;
            admitted.difference_with(&unwanted);
        }
        Ok(admitted)
    };
    loaded.segments().map(of_segment).collect::<Result<_, _>>().map(Some)
}

/// Documents that a condition names.
enum Documents<'a> {
    /// Those that have any of the terms.
    WithAny(&'a [Term]),
    /// Those that the engine finds.
    Found(Box<dyn Weight>),
}

impl Documents<'_> {
    /// All of them that are among some documents, and maybe others.
    fn among(
        &self,
        some: &FixedBitSet,
        segment: &SegmentReader,
        kept: &KeptBits,
        go_on: impl Fn() -> tantivy::Result<()>,
    ) -> tantivy::Result<Arc<FixedBitSet>> {
        match self {
            Self::WithAny(terms) => with_any(terms, segment, kept, go_on),
            Self::Found(weight) => {
                go_on()?;
                found_among(some, segment, weight.as_ref()).map(Arc::new)
            }
        }
    }
}

fn with_any(
    terms: &[Term],
    segment: &SegmentReader,
    kept: &KeptBits,
    go_on: impl Fn() -> tantivy::Result<()>,
) -> tantivy::Result<Arc<FixedBitSet>> {
    let mut bits = None;
    for term in terms {
        go_on()?;
        match kept.having(segment, term)? {
            Some(Having::Many(only)) if terms.len() == 1 => return Ok(only),
            Some(Having::Many(of_term)) => bits.get_or_insert_with(|| empty(segment)).union_with(&of_term),
            Some(Having::Few(blocks)) => add(bits.get_or_insert_with(|| empty(segment)), *blocks),
            None => {}
        }
    }
    Ok(Arc::new(bits.unwrap_or_else(|| empty(segment))))
}

/// What the engine finds: among few documents it looks at these alone, else at the whole segment.
fn found_among(
    some: &FixedBitSet,
    segment: &SegmentReader,
    weight: &dyn Weight,
) -> tantivy::Result<FixedBitSet> {
    let mut bits = empty(segment);
    if some.count_ones(..) > some.len() / MANY_IN {
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
        let wanted = numbered(document);
        if found.doc() < wanted {
            found.seek(wanted);
        }
        if found.doc() == wanted {
            bits.insert(document);
        }
    }
    Ok(bits)
}

/// The document of a bit.
#[expect(clippy::cast_possible_truncation, reason = "a segment's documents are numbered by u32")]
pub(super) fn numbered(bit: usize) -> DocId {
    bit as DocId
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tantivy::TantivyError;

    use super::super::candidates::excluded_query;
    use super::super::made::{opened, terms};
    use super::*;
    use crate::query::FilterPart;

    fn any_of(terms: Vec<Term>) -> FilterPart {
        FilterPart { facet: Some(FacetKey::Method), admits: Admits::AnyOf(terms) }
    }

    fn filtered(filters: Vec<FilterPart>) -> Conditions {
        Conditions { filters, ..Conditions::default() }
    }

    #[test]
    fn the_bits_of_terms_that_many_have_are_kept_and_of_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let loaded = opened(dir.path(), 30_000);
        let term = |text: &str| Term::from_field_text(loaded.fields.method, text);
        let asked = filtered(vec![any_of(["get", "post", "put", "unheard"].map(term).to_vec())]);
        let kept = || -> Vec<Arc<FixedBitSet>> {
            let of_segment = |columns: &Arc<Columns>| {
                let mut kept = columns.kept_bits.0.lock().unwrap();
                assert_eq!(kept.len(), 2);
                ["get", "post"].map(|text| Arc::clone(kept.get(&term(text)).unwrap()))
            };
            // the writer's threads share out the documents: one may leave a segment of a few
            let large = loaded.segments().filter(|(segment, _)| segment.max_doc() >= 1_000);
            large.flat_map(|(_, columns)| of_segment(columns)).collect()
        };
        let first = admitted(&loaded, &asked, None, || Ok(())).unwrap();
        let of_first = kept();
        assert!(!of_first.is_empty());
        let again = admitted(&loaded, &asked, None, || Ok(())).unwrap();
        assert_eq!(first, again);
        let is_same = |(a, b): (&Arc<FixedBitSet>, &Arc<FixedBitSet>)| Arc::ptr_eq(a, b);
        assert!(of_first.iter().zip(&kept()).all(is_same), "what is kept is not read again");
    }

    #[test]
    fn no_more_than_so_many_terms_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        // Segments of so few documents that each of them is many.
        let loaded = opened(dir.path(), 158);
        for number in 0..158 {
            let time = Term::from_field_i64(loaded.fields.updated_ms, number);
            admitted(&loaded, &filtered(vec![any_of(vec![time])]), None, || Ok(())).unwrap();
        }
        let documents = || loaded.segments().map(|(segment, _)| segment.max_doc() as usize);
        assert!(
            documents().all(|count| count < 2 * MANY_IN) && documents().any(|count| count >= KEPT_MAX.get())
        );
        let kept = loaded.columns.iter().map(|columns| columns.kept_bits.0.lock().unwrap().len());
        assert!(kept.eq(documents().map(|count| count.min(KEPT_MAX.get()))));
    }

    #[test]
    fn the_clock_is_looked_at_before_each_term_and_query() {
        let dir = tempfile::tempdir().unwrap();
        let loaded = opened(dir.path(), 1_000);
        let term = |text: &str| Term::from_field_text(loaded.fields.method, text);
        let asked = Conditions {
            filters: vec![any_of(vec![term("get"), term("post")]), any_of(vec![term("get")])],
            excluded: excluded_query(&loaded.fields, "hotel").into_iter().collect(),
            ..Conditions::default()
        };
        let looks = Cell::new(0);
        let look = |most: usize| {
            looks.set(looks.get() + 1);
            if looks.get() > most { Err(TantivyError::InternalError("over".to_owned())) } else { Ok(()) }
        };
        let segments = loaded.columns.len();
        admitted(&loaded, &asked, None, || look(usize::MAX)).unwrap();
        assert_eq!(looks.replace(0), segments * 4);
        assert!(admitted(&loaded, &asked, None, || look(2)).is_err());
        assert_eq!(looks.replace(0), 3, "nothing is read on once time is over");
        let words = terms(&[("book", 1.0), ("hotel", 1.0)]);
        with_words(&loaded, words.iter(), || look(usize::MAX)).unwrap();
        assert_eq!(looks.replace(0), segments * 2);
        assert!(with_words(&loaded, words.iter(), || look(1)).is_err());
    }
}
