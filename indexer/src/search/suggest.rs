//! Suggests completions from the names, types and bigrams of the index, by frequency.
//!
//! The entries of rare prefixes are read from the dictionary of the `suggest` field; the best of frequent ones are
//! precomputed ([`super::completions`]). Suggestions are cached until the next commit.

use std::cmp::Reverse;
use std::sync::PoisonError;

use tantivy::Term;

use super::completions::SUGGESTIONS_MAX;
use super::counts::Counts;
use super::opened::OpenedIndex;
use crate::analysis::fold_exact;
use crate::answer::Suggestion;
use crate::error::IndexError;
use crate::index::SUGGESTION_MARK;

/// Longest prefix that is completed, in bytes.
const PREFIX_BYTES_MAX: usize = 80;
/// Maximum number of entries of a segment that are read. Only a prefix that is too long for a list may have more; of these the first are
/// taken.
const WALK_MAX: usize = 500;
/// Maximum number of cached prefixes.
const CACHED_MAX: usize = 2_000;

/// The most frequent completions of a prefix.
pub(super) fn suggest(opened: &OpenedIndex, typed: &str, max: usize) -> Result<Vec<Suggestion>, IndexError> {
    let Some(prefix) = prefix_of(typed) else { return Ok(Vec::new()) };
    let cache = || opened.suggestions.cached.lock().unwrap_or_else(PoisonError::into_inner);
    let cached = cache().get(&prefix).cloned();
    let mut suggestions = if let Some(cached) = cached {
        cached
    } else {
        let found = complete(opened, &prefix)?;
        let mut cache = cache();
        if cache.len() < CACHED_MAX {
            cache.insert(prefix, found.clone());
        }
        found
    };
    suggestions.truncate(max.min(SUGGESTIONS_MAX));
    Ok(suggestions)
}

/// The typed text as the dictionary spells it: types keep their punctuation, everything else is folded like names.
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

fn complete(opened: &OpenedIndex, prefix: &str) -> Result<Vec<Suggestion>, IndexError> {
    let failed = IndexError::engine("complete a prefix");
    let mut counts = Counts::default();
    let mut is_cut = false;
    for segment in opened.searcher.segment_readers() {
        if let Some(list) = opened.suggestions.list(segment, prefix) {
            is_cut = true;
            for (entry, count) in list {
                counts.add(entry, u64::from(*count));
            }
            continue;
        }
        let inverted = segment.inverted_index(opened.fields.suggest).map_err(&failed)?;
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
    let mut found: Vec<(String, u64)> = counts.by_name.into_iter().collect();
    sort(&mut found);
    found.truncate(SUGGESTIONS_MAX);
    if is_cut && opened.searcher.segment_readers().len() > 1 {
        // An entry may be missing in the list of a segment that has it.
        for (entry, count) in &mut found {
            let term = Term::from_field_text(opened.fields.suggest, entry);
            *count = opened.searcher.doc_freq(&term).map_err(&failed)?;
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
