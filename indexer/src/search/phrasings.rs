//! The parsed phrasings of a request, and the conditions from phrasings and filters.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::conditions::{Conditions, exclusion, phrase};
use super::deadline::Deadline;
use super::opened::OpenedIndex;
use super::plans::Lookup;
use crate::error::SearchError;
use crate::filter::Filters;
use crate::query::{PHRASINGS_MAX, ParsedQuery, Phrase, QUERY_BYTES_MAX, parse, restrictions};
use crate::request::SearchRequest;

pub(super) fn parse_phrasings(phrasings: &[String]) -> Result<Vec<ParsedQuery>, SearchError> {
    if phrasings.len() > PHRASINGS_MAX {
        return Err(SearchError::TooManyPhrasings { found: phrasings.len(), max: PHRASINGS_MAX });
    }
    if let Some(long) = phrasings.iter().find(|phrasing| phrasing.len() > QUERY_BYTES_MAX) {
        return Err(SearchError::QueryTooLong { bytes: long.len(), max: QUERY_BYTES_MAX });
    }
    Ok(phrasings.iter().map(|phrasing| parse(phrasing)).collect::<Result<_, _>>()?)
}

pub(super) fn conditions(
    dictionary: &OpenedIndex,
    lookup: &dyn Lookup,
    filters: &Filters,
    phrasings: &[ParsedQuery],
    deadline: Deadline,
) -> Result<Conditions, SearchError> {
    let (searcher, fields) = (&dictionary.searcher, &dictionary.fields);
    let mut parts = restrictions(searcher, fields, filters, || deadline.check())?;
    for phrasing in phrasings {
        parts.extend(restrictions(searcher, fields, &phrasing.filters, || deadline.check())?);
    }
    let excluded = phrasings.iter().flat_map(|phrasing| &phrasing.excluded);
    let excluded = excluded.filter_map(|text| exclusion(dictionary, text)).collect();
    let mut conditions = Conditions { filters: parts, excluded, ..Conditions::default() };
    // Several phrasings are alternatives, so no phrase is required.
    if let [only] = phrasings {
        add_phrases(dictionary, lookup, &mut conditions, &only.phrases)?;
    }
    Ok(conditions)
}

/// Adds all strict phrases, and the other phrases that occur in a document.
fn add_phrases(
    dictionary: &OpenedIndex,
    lookup: &dyn Lookup,
    conditions: &mut Conditions,
    phrases: &[Phrase],
) -> Result<(), SearchError> {
    for quoted in phrases {
        let Some(condition) = phrase(dictionary, quoted.text()) else { continue };
        conditions.required.push(condition);
        if matches!(quoted, Phrase::IfPresent(_)) && !lookup.has_any(conditions)? {
            conditions.required.pop();
        }
    }
    Ok(())
}

/// Hashes what decides the results and their order; a cursor is bound to it. Sites that are left out for now and the set that is searched
/// do not count: neither a block nor a new document between two pages ends a query.
pub(super) fn query_hash(request: &SearchRequest) -> u64 {
    let mut hasher = DefaultHasher::new();
    request.phrasings.hash(&mut hasher);
    let filters = Filters { without_sites: Vec::new(), among: None, ..request.filters.clone() };
    format!("{filters:?} {:?} {}", request.sort, request.group_by).hash(&mut hasher);
    hasher.finish()
}

pub(super) fn replace_word(text: &str, from: &str, to: &str) -> String {
    let mut replaced = String::with_capacity(text.len() + to.len());
    let mut at = 0;
    for word in crate::analysis::words(text) {
        if word.text == from {
            replaced.push_str(text.get(at..word.span.start).unwrap_or_default());
            replaced.push_str(to);
            at = word.span.end;
        }
    }
    replaced.push_str(text.get(at..).unwrap_or_default());
    replaced
}
