//! Suggests completions from the names, types, sites and example requests of the index, ranked by the number of sites with each.
//!
//! If no entry begins with the typed text, entries are suggested that contain its words and a word beginning with the last one. If there
//! are none either, the last word is completed or corrected from the words of all texts; a last word of one or two letters is left out.
//!
//! The entries of rare prefixes are read from the dictionary of the `suggest` field; the best of frequent ones are precomputed
//! ([`super::completions`]). Entries that occur only in deleted documents are left out before the best ones are chosen, so that the removal
//! of a large site does not hide other entries. Suggestions are cached until the next commit.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::PoisonError;

use tantivy::schema::Field;
use tantivy::{SegmentReader, Term};

use super::completions::{Entry, SUGGESTIONS_MAX};
use super::counts::Counts;
use super::deadline::Deadline;
use super::opened::OpenedIndex;
use super::site_counts::{SiteCounts, popularity};
use crate::analysis::{Stemming, fold_exact, is_stop_word};
use crate::answer::{Suggestion, SuggestionKind};
use crate::error::{IndexError, SearchError};
use crate::index::{Fields, LiveTerms, REST_MARK, SUGGESTION_MARK};
use crate::query::replacements;

/// Maximum length of a completed prefix, in bytes.
const PREFIX_BYTES_MAX: usize = 80;
/// Maximum number of entries of a segment that are read, and of deleted documents that are examined for them, which takes some
/// milliseconds. Only prefixes that are too long for a list, or whose list has lost most of its entries, may have more; then only the first
/// entries are read.
const WALK_MAX: usize = 50_000;
/// Number of entries read between two checks of the deadline: well below a millisecond.
const ENTRIES_BETWEEN_CHECKS: usize = 256;
/// Maximum number of entries of a segment that are kept; the most frequent are taken.
const KEPT_MAX: usize = 500;
/// Minimum number of remaining entries of a list. With fewer, entries outside the list may be more frequent.
const LISTED_MIN: usize = SUGGESTIONS_MAX / 2;
/// Minimum length of a last word that is completed even if no suggestion contains another word of the text.
const COMPLETED_CHARS_MIN: usize = 3;
/// Maximum number of suggestions that complete a word of descriptions.
const WHOLE_WORDS_MAX: usize = 3;
/// Minimum length of a last word that is corrected.
const CORRECTED_CHARS_MIN: usize = 4;
/// Maximum number of cached prefixes.
const CACHED_MAX: usize = 2_000;

/// The most frequent completions of a prefix.
pub(super) fn suggest(
    opened: &OpenedIndex,
    typed: &str,
    max: usize,
    deadline: Deadline,
) -> Result<Vec<Suggestion>, SearchError> {
    let Some(prefix) = prefix_of(typed) else { return Ok(Vec::new()) };
    let cache = || opened.suggestions.cached.lock().unwrap_or_else(PoisonError::into_inner);
    let cached = cache().get(&prefix).cloned();
    let mut suggestions = if let Some(cached) = cached {
        cached
    } else {
        let found = deadline.bound(|| Ok(complete_or_correct(opened, &prefix, deadline)?))?;
        let mut cache = cache();
        if cache.len() < CACHED_MAX {
            cache.insert(prefix, found.clone());
        }
        found
    };
    suggestions.truncate(max.min(SUGGESTIONS_MAX));
    Ok(suggestions)
}

/// The typed text in the spelling of the dictionary: types and sites keep their punctuation, other text is folded like names.
fn prefix_of(typed: &str) -> Option<String> {
    let typed = typed.trim_start();
    if typed.len() > PREFIX_BYTES_MAX {
        return None;
    }
    let is_whole = typed.contains(':') || (typed.contains('.') && !typed.contains(char::is_whitespace));
    let mut prefix = if is_whole { typed.to_lowercase() } else { fold_exact(typed) };
    if typed.ends_with(char::is_whitespace) && !prefix.is_empty() {
        prefix.push(' ');
    }
    Some(prefix).filter(|prefix| !prefix.is_empty())
}

fn complete_or_correct(
    opened: &OpenedIndex,
    prefix: &str,
    deadline: Deadline,
) -> Result<Vec<Suggestion>, IndexError> {
    let found = complete_words(opened, prefix, deadline)?;
    let (before, last) = prefix.rsplit_once(' ').map_or(("", prefix), |(before, last)| (before, last));
    if !found.is_empty() {
        return Ok(found);
    }
    let letters = last.chars().count();
    if letters < COMPLETED_CHARS_MIN && !last.is_empty() && !before.is_empty() {
        return complete_words(opened, before, deadline);
    }
    if letters < CORRECTED_CHARS_MIN {
        return Ok(found);
    }
    let replacements = replacements(&opened.searcher, &opened.fields, last)?;
    for replacement in &replacements {
        let found = complete_words(opened, format!("{before} {replacement}").trim_start(), deadline)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    // what is typed in full needs no suggestion
    let completed = replacements.into_iter().filter(|word| word != last && word.starts_with(last));
    whole_words(opened, before, completed, deadline)
}

/// The text with its last word completed to words of descriptions.
fn whole_words(
    opened: &OpenedIndex,
    before: &str,
    completed: impl Iterator<Item = String>,
    deadline: Deadline,
) -> Result<Vec<Suggestion>, IndexError> {
    let mut found: Vec<(String, u64)> = completed.take(WHOLE_WORDS_MAX).map(|word| (word, 0)).collect();
    count_sites(opened, opened.fields.word, &mut found, deadline)
        .map_err(IndexError::engine("count the sites with a word"))?;
    sort(&mut found);
    let suggestion = |(word, count): (String, u64)| {
        let text = format!("{before} {word}").trim_start().to_owned();
        (!manifest::addresses_reader(&text)).then_some(Suggestion {
            text,
            kind: SuggestionKind::Phrase,
            count,
        })
    };
    Ok(found.into_iter().filter_map(suggestion).collect())
}

/// Entries that begin with a prefix; if there are none, entries with a word that begins with its last word, and with most of its other
/// words.
fn complete_words(
    opened: &OpenedIndex,
    prefix: &str,
    deadline: Deadline,
) -> Result<Vec<Suggestion>, IndexError> {
    let found = complete(opened, prefix, deadline)?;
    let Some((before, last)) = prefix.rsplit_once(' ').filter(|_| found.is_empty()) else { return Ok(found) };
    let stem = |word: &str| Stemming::English.stem(word).into_owned();
    let others: Vec<String> = before.split(' ').filter(|word| !is_stop_word(word)).map(stem).collect();
    if last.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = complete(opened, last, deadline)?;
    let missing = |suggestion: &Suggestion| {
        let has = |other: &&String| suggestion.text.split(' ').any(|word| stem(word) == **other);
        others.len() - others.iter().filter(has).count()
    };
    found.sort_by_cached_key(missing);
    let fewest = found.first().map_or(0, missing);
    found.retain(|suggestion| missing(suggestion) == fewest);
    // One or two letters match too many entries to be useful.
    let is_vague = fewest > 0 && last.chars().count() < COMPLETED_CHARS_MIN;
    Ok(if is_vague { Vec::new() } else { found })
}

fn complete(opened: &OpenedIndex, prefix: &str, deadline: Deadline) -> Result<Vec<Suggestion>, IndexError> {
    let failed = IndexError::engine("complete a prefix");
    let field = opened.fields.suggest;
    let mut counts = Counts::default();
    for segment in opened.searcher.segment_readers() {
        deadline.tantivy_check().map_err(&failed)?;
        let list = opened.suggestions.list(segment, prefix);
        let listed = list.map(|list| live_entries(segment, field, list)).transpose().map_err(&failed)?;
        if let Some(live) = listed.filter(|live| live.len() >= LISTED_MIN) {
            for (entry, count) in live {
                counts.add(entry, u64::from(*count));
            }
            continue;
        }
        let walked = walk(segment, &opened.fields, prefix, deadline).map_err(&failed)?;
        for (entry, count) in &walked {
            counts.add(entry, *count);
        }
    }
    let mut found: Vec<(String, u64)> = counts.by_name.into_iter().collect();
    sort(&mut found);
    found.truncate(SUGGESTIONS_MAX);
    // A site may be in several segments, and an entry may be missing in the list of a segment that has it.
    count_sites(opened, field, &mut found, deadline).map_err(&failed)?;
    sort(&mut found);
    let mut suggestions: Vec<Suggestion> = Vec::new();
    for found in found.into_iter().filter_map(suggestion) {
        if !suggestions.iter().any(|known| known.text == found.text) {
            suggestions.push(found);
        }
    }
    // Entries that begin with the prefix are more likely, and people type words rather than identifiers of types.
    let is_identifier =
        |found: &Suggestion| found.kind == SuggestionKind::SemanticType && !prefix.contains(':');
    suggestions.sort_by_key(|found| (is_identifier(found), !found.text.starts_with(prefix)));
    Ok(suggestions)
}

/// The entries of a list that occur in a document of the segment that is not deleted.
fn live_entries<'l>(
    segment: &SegmentReader,
    field: Field,
    list: &'l [Entry],
) -> tantivy::Result<Vec<&'l Entry>> {
    if !segment.has_deletes() {
        return Ok(list.iter().collect());
    }
    let mut terms = LiveTerms::of(segment, field, WALK_MAX)?;
    let mut live = Vec::new();
    for listed in list {
        if terms.contain_text(&Term::from_field_text(field, &listed.0))? {
            live.push(listed);
        }
    }
    Ok(live)
}

/// Replaces the counts of terms of a field by those over all segments, without deleted documents.
fn count_sites(
    opened: &OpenedIndex,
    field: Field,
    found: &mut [(String, u64)],
    deadline: Deadline,
) -> tantivy::Result<()> {
    let mut of_entries = vec![(HashSet::new(), 0); found.len()];
    for segment in opened.searcher.segment_readers() {
        let mut counts = SiteCounts::of(segment, &opened.fields, field, WALK_MAX)?.without_deleted(segment);
        for ((entry, _), (sites, documents)) in found.iter().zip(&mut of_entries) {
            deadline.tantivy_check()?;
            *documents += counts.add_term(&Term::from_field_text(field, entry), sites)?;
        }
    }
    for ((_, count), (sites, documents)) in found.iter_mut().zip(&of_entries) {
        *count = popularity(sites, *documents).max(1);
    }
    Ok(())
}

/// Reads the entries of a segment that begin with a prefix and occur in a document that is not deleted.
fn walk(
    segment: &SegmentReader,
    fields: &Fields,
    prefix: &str,
    deadline: Deadline,
) -> tantivy::Result<Vec<(String, u64)>> {
    let inverted = segment.inverted_index(fields.suggest)?;
    let mut live = LiveTerms::of(segment, fields.suggest, WALK_MAX)?;
    let mut sites = SiteCounts::of(segment, fields, fields.suggest, WALK_MAX)?;
    let mut stream = inverted.terms().range().ge(prefix).into_stream()?;
    let mut entries = Vec::new();
    let mut read = 0;
    while read < WALK_MAX
        && !live.is_exhausted()
        && let Some((key, info)) = stream.next()
        && let Ok(entry) = std::str::from_utf8(key)
        && entry.starts_with(prefix)
    {
        if read.is_multiple_of(ENTRIES_BETWEEN_CHECKS) {
            deadline.tantivy_check()?;
        }
        read += 1;
        if !live.contain(info)? {
            continue;
        }
        entries.push((entry.to_owned(), u64::from(sites.count(info)?)));
        if entries.len() == 2 * KEPT_MAX {
            keep_best(&mut entries);
        }
    }
    keep_best(&mut entries);
    Ok(entries)
}

fn keep_best(entries: &mut Vec<(String, u64)>) {
    sort(entries);
    entries.truncate(KEPT_MAX);
}

/// Sorts by frequency, then by length.
fn sort(found: &mut [(String, u64)]) {
    found.sort_unstable_by(|(a, of_a), (b, of_b)| {
        (Reverse(of_a), a.len(), a).cmp(&(Reverse(of_b), b.len(), b))
    });
}

fn suggestion((entry, count): (String, u64)) -> Option<Suggestion> {
    let (text, kind) = entry.rsplit_once(SUGGESTION_MARK)?;
    let text = text.rsplit_once(REST_MARK).map_or(text, |(_, whole)| whole);
    if manifest::addresses_reader(text) {
        return None;
    }
    Some(Suggestion { text: text.to_owned(), kind: kind.parse().ok()?, count })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::sample_index;
    use super::*;

    const TEST_TIME_MAX: Duration = Duration::from_mins(10);

    #[test]
    fn suggestions_end_at_their_deadline() {
        let dir = tempfile::tempdir().unwrap();
        let opened = sample_index::opened(dir.path(), 100);
        for typed in ["so", "somersaultz", "nothing somersault", "quitlz"] {
            let over = suggest(&opened, typed, 8, Deadline::after(Duration::ZERO));
            assert!(matches!(over, Err(SearchError::OutOfTime { .. })), "{typed}: {over:?}");
            suggest(&opened, typed, 8, Deadline::after(TEST_TIME_MAX)).unwrap();
        }
    }

    /// In each segment, the first entries belong to deleted documents, and there are more of them than fit into a list.
    #[test]
    fn entries_of_deleted_capabilities_do_not_hide_others() {
        let dir = tempfile::tempdir().unwrap();
        let opened = sample_index::opened(dir.path(), 10_000);
        let segments = opened.searcher.segment_readers();
        let is_listed = |segment: &SegmentReader| opened.suggestions.list(segment, "so").is_some();
        assert!(segments.iter().any(|segment| segment.has_deletes() && is_listed(segment)));
        for typed in ["so", "somersault"] {
            let found = suggest(&opened, typed, 8, Deadline::after(TEST_TIME_MAX)).unwrap();
            assert_eq!(found.len(), 8, "{found:?}");
            assert!(found.iter().all(|found| found.text.starts_with("somersaultz")), "{found:?}");
        }
        assert!(suggest(&opened, "somersaulta", 8, Deadline::after(TEST_TIME_MAX)).unwrap().is_empty());
        let corrected = |word| replacements(&opened.searcher, &opened.fields, word).unwrap();
        assert_eq!(corrected("quill"), ["quillz"], "the beginning of a word");
        assert_eq!(corrected("quitlz"), ["quillz"], "a misspelt word");
    }
}
