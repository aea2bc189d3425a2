//! Caches the dictionary entries of the terms of one field, and their document frequencies. Requests look up every word, and the
//! result is valid until the next commit.

use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::FxHashMap;
use tantivy::postings::TermInfo;
use tantivy::schema::Field;
use tantivy::{Searcher, SegmentOrdinal, Term};

/// Maximum number of cached terms: more than requests use. Most terms are in few segments; if each were in eight, the cache would take ten
/// megabytes.
const TERMS_MAX: usize = 20_000;

/// The entries of one term in the dictionaries of the segments.
#[derive(Debug, Default)]
pub(super) struct TermLocations {
    /// Number of capabilities with the term, including deleted ones in unmerged segments.
    pub(super) frequency: u64,
    by_segment: Vec<(SegmentOrdinal, TermInfo)>,
}

impl TermLocations {
    fn look_up(searcher: &Searcher, field: Field, text: &str) -> tantivy::Result<Self> {
        let term = Term::from_field_text(field, text);
        let mut found = Self::default();
        for (segment, ordinal) in searcher.segment_readers().iter().zip(0..) {
            if let Some(info) = segment.inverted_index(field)?.get_term_info(&term)? {
                found.frequency += u64::from(info.doc_freq);
                found.by_segment.push((ordinal, info));
            }
        }
        Ok(found)
    }

    pub(super) fn in_segment(&self, ordinal: SegmentOrdinal) -> Option<&TermInfo> {
        self.by_segment.iter().find(|(of, _)| *of == ordinal).map(|(_, info)| info)
    }
}

/// Document frequencies in a whole cluster.
#[cfg(feature = "cluster")]
#[derive(Debug, Default)]
pub(crate) struct Frequencies {
    pub(crate) words: FxHashMap<String, u64>,
    pub(crate) bigrams: FxHashMap<String, u64>,
}

/// The terms of one field.
#[derive(Debug)]
pub(crate) struct TermCache {
    field: Field,
    cached: RwLock<FxHashMap<String, Arc<TermLocations>>>,
}

impl TermCache {
    pub(crate) fn of(field: Field) -> Self {
        Self { field, cached: RwLock::default() }
    }

    /// Terms with frequencies of more documents than the index has.
    #[cfg(feature = "cluster")]
    pub(super) fn with_frequencies(
        searcher: &Searcher,
        field: Field,
        frequencies: &FxHashMap<String, u64>,
    ) -> tantivy::Result<Self> {
        let term = |(text, frequency): (&String, &u64)| -> tantivy::Result<_> {
            let found = TermLocations::look_up(searcher, field, text)?;
            Ok((text.clone(), Arc::new(TermLocations { frequency: *frequency, ..found })))
        };
        let cached = frequencies.iter().map(term).collect::<tantivy::Result<_>>()?;
        Ok(Self { field, cached: RwLock::new(cached) })
    }

    /// The frequency of each term; 0 for `None`.
    pub(crate) fn frequencies<'a>(
        &self,
        searcher: &Searcher,
        terms: impl Iterator<Item = Option<&'a str>>,
    ) -> tantivy::Result<Vec<u64>> {
        let frequency = |term: Option<&str>| {
            term.map_or(Ok(0), |term| self.term(searcher, term).map(|found| found.frequency))
        };
        terms.map(frequency).collect()
    }

    pub(super) fn term(&self, searcher: &Searcher, text: &str) -> tantivy::Result<Arc<TermLocations>> {
        let has_room = {
            let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(found) = cached.get(text) {
                return Ok(Arc::clone(found));
            }
            cached.len() < TERMS_MAX
        };
        let found = Arc::new(TermLocations::look_up(searcher, self.field, text)?);
        if has_room {
            let mut cached = self.cached.write().unwrap_or_else(PoisonError::into_inner);
            cached.insert(text.to_owned(), Arc::clone(&found));
        }
        Ok(found)
    }
}
