//! The documents of one segment with a term, as bit sets.
//!
//! Most filters use the same few terms, such as a format or a method that many documents have, and facets count such terms. Their bit sets
//! are cached with the segment, which never changes. Other terms have few documents, so their postings are read each time.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use fixedbitset::FixedBitSet;
use lru::LruCache;
use tantivy::postings::BlockSegmentPostings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocId, Searcher, SegmentReader, Term};

/// Maximum number of terms of one segment whose bits are cached: at most sixteen bytes a document.
const TERMS_MAX: NonZeroUsize = NonZeroUsize::new(128).unwrap();
/// A term is cached if at least about one in this many documents contains it. The postings of rarer terms are just as fast to read.
const CACHED_IF_ONE_IN: usize = 64;

/// The bit sets of the terms that filters and facets used most recently.
pub(super) struct TermBits(pub(super) Mutex<LruCache<Term, Arc<FixedBitSet>>>);

impl Default for TermBits {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(TERMS_MAX)))
    }
}

/// The documents that have a term, including deleted ones.
enum TermDocuments {
    Many(Arc<FixedBitSet>),
    Few(Box<BlockSegmentPostings>),
}

impl TermBits {
    /// The documents that have any of the terms. `check_deadline` is called before each term; its error ends the search.
    pub(super) fn with_any(
        &self,
        terms: &[Term],
        segment: &SegmentReader,
        check_deadline: impl Fn() -> tantivy::Result<()>,
    ) -> tantivy::Result<Arc<FixedBitSet>> {
        let mut bits = None;
        for term in terms {
            check_deadline()?;
            match self.documents(segment, term)? {
                Some(TermDocuments::Many(only)) if terms.len() == 1 => return Ok(only),
                Some(TermDocuments::Many(of_term)) => {
                    bits.get_or_insert_with(|| empty(segment)).union_with(&of_term);
                }
                Some(TermDocuments::Few(blocks)) => add(bits.get_or_insert_with(|| empty(segment)), *blocks),
                None => {}
            }
        }
        Ok(Arc::new(bits.unwrap_or_else(|| empty(segment))))
    }

    /// The number of documents among `some` that have a term.
    pub(super) fn count_among(
        &self,
        term: &Term,
        segment: &SegmentReader,
        some: &FixedBitSet,
    ) -> tantivy::Result<usize> {
        Ok(match self.documents(segment, term)? {
            Some(TermDocuments::Many(bits)) => bits.intersection_count(some),
            Some(TermDocuments::Few(mut blocks)) => {
                let mut count = 0;
                while !blocks.docs().is_empty() {
                    count +=
                        blocks.docs().iter().filter(|document| some.contains(**document as usize)).count();
                    blocks.advance();
                }
                count
            }
            None => 0,
        })
    }

    /// `None` if no document has the term.
    fn documents(&self, segment: &SegmentReader, term: &Term) -> tantivy::Result<Option<TermDocuments>> {
        let cached = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bits) = cached().get(term) {
            return Ok(Some(TermDocuments::Many(Arc::clone(bits))));
        }
        let index = segment.inverted_index(term.field())?;
        let Some(info) = index.get_term_info(term)? else { return Ok(None) };
        let blocks = index.read_block_postings_from_terminfo(&info, IndexRecordOption::Basic)?;
        if (info.doc_freq as usize) < segment.max_doc() as usize / CACHED_IF_ONE_IN {
            return Ok(Some(TermDocuments::Few(Box::new(blocks))));
        }
        let mut bits = empty(segment);
        add(&mut bits, blocks);
        let bits = Arc::new(bits);
        cached().put(term.clone(), Arc::clone(&bits));
        Ok(Some(TermDocuments::Many(bits)))
    }
}

/// Adds the documents of a term.
pub(super) fn add(bits: &mut FixedBitSet, mut blocks: BlockSegmentPostings) {
    while !blocks.docs().is_empty() {
        bits.extend(blocks.docs().iter().map(|document| *document as usize));
        blocks.advance();
    }
}

pub(super) fn empty(segment: &SegmentReader) -> FixedBitSet {
    FixedBitSet::with_capacity(segment.max_doc() as usize)
}

/// Documents of a segment as a set.
pub(super) fn set_of(segment: &SegmentReader, documents: &[DocId]) -> FixedBitSet {
    let mut set = empty(segment);
    set.extend(documents.iter().map(|document| *document as usize));
    set
}

/// The documents as a set for each segment.
pub(super) fn sets_of(searcher: &Searcher, documents: &[DocAddress]) -> Vec<FixedBitSet> {
    let mut sets: Vec<FixedBitSet> = searcher.segment_readers().iter().map(empty).collect();
    for address in documents {
        if let Some(set) = sets.get_mut(address.segment_ord as usize) {
            set.insert(address.doc_id as usize);
        }
    }
    sets
}

/// The document of a bit.
#[expect(clippy::cast_possible_truncation, reason = "a segment's documents are numbered by u32")]
pub(super) fn doc_id(bit: usize) -> DocId {
    bit as DocId
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample_index::{manifest, opened};
    use super::*;

    #[test]
    fn caches_the_bits_of_frequent_terms_only() {
        let dir = tempfile::tempdir().unwrap();
        let opened = opened(dir.path(), 30_000);
        let method = opened.fields.facet(crate::filter::FacetKey::Method);
        let term = |text: &str| Term::from_field_text(method, text);
        let terms = ["get", "post", "put", "unheard"].map(term);
        // the writer's threads divide the documents, so a segment may be small
        for (segment, columns) in opened.segments().filter(|(segment, _)| segment.max_doc() >= 1_000) {
            let cached = || {
                let mut cached = columns.term_bits.0.lock().unwrap();
                assert_eq!(cached.len(), 2);
                ["get", "post"].map(|text| Arc::clone(cached.get(&term(text)).unwrap()))
            };
            let first = columns.term_bits.with_any(&terms, segment, || Ok(())).unwrap();
            let of_first = cached();
            assert_eq!(columns.term_bits.with_any(&terms, segment, || Ok(())).unwrap(), first);
            assert!(
                of_first.iter().zip(&cached()).all(|(a, b)| Arc::ptr_eq(a, b)),
                "cached bits are not read again"
            );
        }
    }

    #[test]
    fn bounds_the_number_of_cached_terms() {
        let dir = tempfile::tempdir().unwrap();
        // Segments of so few documents that any term is frequent.
        let opened = opened(dir.path(), 158);
        let mut largest = 0;
        for (segment, columns) in opened.segments() {
            for number in 0..158 {
                let time = Term::from_field_i64(opened.fields.updated_ms, number);
                let manifest =
                    Term::from_field_text(opened.fields.manifest, manifest(number.unsigned_abs()).as_str());
                columns.term_bits.with_any(&[time, manifest], segment, || Ok(())).unwrap();
            }
            let documents = segment.max_doc() as usize;
            assert!(documents < 2 * CACHED_IF_ONE_IN);
            assert_eq!(columns.term_bits.0.lock().unwrap().len(), (2 * documents).min(TERMS_MAX.get()));
            largest = largest.max(documents);
        }
        assert!(2 * largest >= TERMS_MAX.get());
    }
}
