//! How many capabilities have a word, and what else BM25 asks of a whole index. Asked for every word of every request, and
//! the same until the next commit.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use tantivy::query::{Bm25StatisticsProvider, Bm25Weight};
use tantivy::schema::Field;
use tantivy::{Searcher, Term};

use super::loaded::Loaded;
use crate::index::Fields;

/// Words that are kept: more than people use, few enough for two megabytes.
const KEPT_MAX: usize = 20_000;

/// Frequencies in one field.
#[derive(Debug)]
pub(crate) struct Frequencies {
    field: Field,
    kept: RwLock<HashMap<String, u64>>,
}

impl Frequencies {
    pub(crate) fn in_field(field: Field) -> Self {
        Self { field, kept: RwLock::default() }
    }

    /// The frequency of each term; none of what is no term.
    pub(crate) fn of<'a>(
        &self,
        searcher: &Searcher,
        terms: impl Iterator<Item = Option<&'a str>>,
    ) -> tantivy::Result<Vec<u64>> {
        let mut new: Vec<(String, u64)> = Vec::new();
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let frequency = |term: Option<&str>| match (term, term.and_then(|term| kept.get(term))) {
            (None, _) => Ok(0),
            (_, Some(frequency)) => Ok(*frequency),
            (Some(term), None) => {
                let frequency = searcher.doc_freq(&Term::from_field_text(self.field, term))?;
                new.push((term.to_owned(), frequency));
                Ok(frequency)
            }
        };
        let found = terms.map(frequency).collect();
        let has_room = kept.len() + new.len() <= KEPT_MAX;
        drop(kept);
        if !new.is_empty() && has_room {
            self.kept.write().unwrap_or_else(PoisonError::into_inner).extend(new);
        }
        found
    }
}

/// What BM25 needs to know of a whole index.
#[derive(Debug, Clone)]
pub(crate) struct Statistics {
    documents: u64,
    /// Terms of all documents.
    tokens: [(Field, u64); 2],
}

impl Statistics {
    pub(crate) fn of(searcher: &Searcher, fields: &Fields) -> tantivy::Result<Self> {
        let mut tokens = [fields.all, fields.bigram].map(|field| (field, 0));
        for (field, count) in &mut tokens {
            *count = searcher.total_num_tokens(*field)?;
        }
        Ok(Self { documents: searcher.total_num_docs()?, tokens })
    }

    pub(crate) fn documents(&self) -> u64 {
        self.documents
    }

    pub(crate) fn bm25(&self, field: Field, frequency: u64) -> Bm25Weight {
        #[expect(clippy::cast_precision_loss, reason = "an average of lengths needs no more than f32")]
        let length = self.tokens(field).map_or(1.0, |count| count as f32 / self.documents.max(1) as f32);
        // an index may be empty, and a word that no document has counts as one that is rare
        Bm25Weight::for_one_term_without_explain(frequency, self.documents.max(frequency), length)
    }

    fn tokens(&self, field: Field) -> Option<u64> {
        self.tokens.iter().find(|(of, _)| *of == field).map(|(_, count)| *count)
    }
}

/// The same numbers for the engine, which would look each term up in every segment.
pub(crate) struct Known<'a>(pub(crate) &'a Loaded);

impl Bm25StatisticsProvider for Known<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        let known = self.0.statistics.tokens(field);
        known.map_or_else(|| self.0.searcher.total_num_tokens(field), Ok)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.0.statistics.documents)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let kept = [&self.0.words, &self.0.pairs].into_iter().find(|kept| kept.field == term.field());
        match (kept, term.value().as_str()) {
            (Some(kept), Some(text)) => {
                let found = kept.of(&self.0.searcher, std::iter::once(Some(text)))?;
                Ok(found.first().copied().unwrap_or_default())
            }
            _ => self.0.searcher.doc_freq(term),
        }
    }
}
