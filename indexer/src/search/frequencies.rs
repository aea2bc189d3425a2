//! How many capabilities have a word. Asked for every word of every request, and the same until the next commit.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use tantivy::schema::Field;
use tantivy::{Searcher, Term};

/// Words that are kept: more than people use, few enough for two megabytes.
const KEPT_MAX: usize = 20_000;

/// Frequencies in the field `all`.
#[derive(Debug, Default)]
pub(crate) struct Frequencies(RwLock<HashMap<String, u64>>);

impl Frequencies {
    /// The frequency of each stem; none of what is no stem.
    pub(crate) fn of<'a>(
        &self,
        searcher: &Searcher,
        field: Field,
        stems: impl Iterator<Item = Option<&'a str>>,
    ) -> tantivy::Result<Vec<u64>> {
        let mut new: Vec<(String, u64)> = Vec::new();
        let kept = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let frequency = |stem: Option<&str>| match (stem, stem.and_then(|stem| kept.get(stem))) {
            (None, _) => Ok(0),
            (_, Some(frequency)) => Ok(*frequency),
            (Some(stem), None) => {
                let frequency = searcher.doc_freq(&Term::from_field_text(field, stem))?;
                new.push((stem.to_owned(), frequency));
                Ok(frequency)
            }
        };
        let found = stems.map(frequency).collect();
        let has_room = kept.len() + new.len() <= KEPT_MAX;
        drop(kept);
        if !new.is_empty() && has_room {
            self.0.write().unwrap_or_else(PoisonError::into_inner).extend(new);
        }
        found
    }
}
