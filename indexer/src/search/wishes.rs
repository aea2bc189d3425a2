//! What a request wishes for: its phrasings as they are understood, and the conditions that all of them set.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::candidates::{Conditions, add_phrases, excluded_query};
use super::loaded::Loaded;
use crate::error::SearchError;
use crate::query::{PHRASINGS_MAX, QUERY_BYTES_MAX, Wish, filter_parts, parse};
use crate::request::{Filters, SearchRequest};

pub(super) fn read_wishes(phrasings: &[String]) -> Result<Vec<Wish>, SearchError> {
    if phrasings.len() > PHRASINGS_MAX {
        return Err(SearchError::TooManyPhrasings { found: phrasings.len(), max: PHRASINGS_MAX });
    }
    if let Some(long) = phrasings.iter().find(|phrasing| phrasing.len() > QUERY_BYTES_MAX) {
        return Err(SearchError::QueryTooLong { bytes: long.len(), max: QUERY_BYTES_MAX });
    }
    Ok(phrasings.iter().map(|phrasing| parse(phrasing)).collect::<Result<_, _>>()?)
}

pub(super) fn conditions(
    loaded: &Loaded,
    filters: &Filters,
    wishes: &[Wish],
) -> Result<Conditions, SearchError> {
    let (searcher, fields) = (&loaded.searcher, &loaded.fields);
    let mut parts = filter_parts(searcher, fields, filters)?;
    for wish in wishes {
        parts.extend(filter_parts(searcher, fields, &wish.filters)?);
    }
    let excluded = wishes.iter().flat_map(|wish| &wish.excluded);
    let excluded = excluded.filter_map(|text| excluded_query(fields, text)).collect();
    let mut conditions = Conditions { filters: parts, excluded, ..Conditions::default() };
    // Phrasings of one wish are alternatives: only a phrase of the single phrasing is required.
    if let [only] = wishes {
        add_phrases(loaded, &mut conditions, &only.phrases)?;
    }
    Ok(conditions)
}

/// What a cursor is bound to: everything that decides which results there are, and their order.
pub(super) fn query_number(request: &SearchRequest) -> u64 {
    let mut hasher = DefaultHasher::new();
    request.phrasings.hash(&mut hasher);
    format!("{:?} {:?}", request.filters, request.sort).hash(&mut hasher);
    hasher.finish()
}

pub(super) fn replace_word(text: &str, said: &str, meant: &str) -> String {
    let mut replaced = String::with_capacity(text.len() + meant.len());
    let mut at = 0;
    for word in crate::analysis::words(text) {
        if word.text == said {
            replaced.push_str(text.get(at..word.span.start).unwrap_or_default());
            replaced.push_str(meant);
            at = word.span.end;
        }
    }
    replaced.push_str(text.get(at..).unwrap_or_default());
    replaced
}
