//! Completes what is being typed, from the names, types and word pairs of the index with their counts.
//!
//! The dictionary of the `suggest` field is a finite state transducer, which is walked from the prefix on where few
//! entries begin with it; the best of the others are known beforehand. What one prefix completes to is kept until the
//! next commit.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tantivy::{Searcher, Term};

use super::completions::Completions;
use super::counts::Counts;
use super::loaded::Loaded;
use crate::analysis::fold_exact;
use crate::answer::Suggestion;
use crate::error::IndexError;
use crate::index::{Fields, SUGGESTION_MARK};

/// Most completions of one prefix.
pub(super) const SUGGESTIONS_MAX: usize = 50;
/// Longest prefix that is completed, in bytes.
const PREFIX_BYTES_MAX: usize = 80;
/// Entries of a segment that are walked over. Only a prefix that is longer than those that have lists may be that of more; of
/// its entries the first are taken.
const WALK_MAX: usize = 500;
/// Prefixes whose completions are kept.
const KEPT_MAX: usize = 2_000;

/// What is known of completions beforehand, and those that were asked for since the last commit.
#[derive(Debug, Default)]
pub(crate) struct Suggestions {
    completions: Completions,
    kept: Mutex<HashMap<String, Vec<Suggestion>>>,
}

impl Suggestions {
    /// Reads the segments that were not there before.
    pub(crate) fn of(searcher: &Searcher, fields: &Fields, before: &Self) -> tantivy::Result<Self> {
        let completions = Completions::of(searcher, fields, &before.completions)?;
        Ok(Self { completions, kept: Mutex::default() })
    }
}

/// The most frequent completions of a prefix.
pub(super) fn suggest(loaded: &Loaded, typed: &str, max: usize) -> Result<Vec<Suggestion>, IndexError> {
    let Some(prefix) = prefix_of(typed) else { return Ok(Vec::new()) };
    let kept = || loaded.suggestions.kept.lock().unwrap_or_else(PoisonError::into_inner);
    let found = kept().get(&prefix).cloned();
    let mut suggestions = if let Some(found) = found {
        found
    } else {
        let found = complete(loaded, &prefix)?;
        let mut kept = kept();
        if kept.len() < KEPT_MAX {
            kept.insert(prefix, found.clone());
        }
        found
    };
    suggestions.truncate(max.min(SUGGESTIONS_MAX));
    Ok(suggestions)
}

/// What was typed in the form of the dictionary: types keep their punctuation, everything else is folded like names.
fn prefix_of(typed: &str) -> Option<String> {
    let typed = typed.trim_start();
    if typed.len() > PREFIX_BYTES_MAX {
        return None;
    }
    let mut prefix = if typed.contains(':') { typed.to_lowercase() } else { fold_exact(typed) };
    if typed.ends_with(char::is_whitespace) && !prefix.is_empty() {
        prefix.push(' ');
    }
    Some(prefix).filter(|prefix| !prefix.is_empty())
}

fn complete(loaded: &Loaded, prefix: &str) -> Result<Vec<Suggestion>, IndexError> {
    let failed = IndexError::engine("complete a prefix");
    let mut counts = Counts::default();
    let mut is_cut = false;
    for segment in loaded.searcher.segment_readers() {
        if let Some(list) = loaded.suggestions.completions.list(segment, prefix) {
            is_cut = true;
            for (entry, count) in list {
                counts.add(entry, u64::from(*count));
            }
            continue;
        }
        let inverted = segment.inverted_index(loaded.fields.suggest).map_err(&failed)?;
        let range = inverted.terms().range().ge(prefix);
        let mut stream = range.into_stream().map_err(|error| failed(error.into()))?;
        let mut walked = 0;
        while let Some((key, info)) = stream.next()
            && let Ok(entry) = std::str::from_utf8(key)
            && entry.starts_with(prefix)
        {
            if walked == WALK_MAX {
                is_cut = true;
                break;
            }
            walked += 1;
            counts.add(entry, u64::from(info.doc_freq));
        }
    }
    let mut found: Vec<(String, u64)> = counts.0.into_iter().collect();
    sort(&mut found);
    found.truncate(SUGGESTIONS_MAX);
    if is_cut && loaded.searcher.segment_readers().len() > 1 {
        // An entry may be too rare for the list of one segment and count there all the same.
        for (entry, count) in &mut found {
            let term = Term::from_field_text(loaded.fields.suggest, entry);
            *count = loaded.searcher.doc_freq(&term).map_err(&failed)?;
        }
        sort(&mut found);
    }
    Ok(found.into_iter().filter_map(suggestion).collect())
}

/// The most frequent first, then the shortest.
fn sort(found: &mut [(String, u64)]) {
    found.sort_unstable_by(|(a, of_a), (b, of_b)| {
        (Reverse(of_a), a.len(), a).cmp(&(Reverse(of_b), b.len(), b))
    });
}

fn suggestion((entry, count): (String, u64)) -> Option<Suggestion> {
    let (text, kind) = entry.rsplit_once(SUGGESTION_MARK)?;
    Some(Suggestion { text: text.to_owned(), kind: kind.parse().ok()?, count })
}
