//! Corrections of words that no capability contains: completions to known words, or a similar known word.
//!
//! A correction is searched for in addition to the word, never instead of it: replacing words would harm correct requests more than it
//! would help misspelt ones.

use std::cmp::Reverse;
use std::collections::HashMap;

use tantivy::query::FuzzyTermQuery;
use tantivy::{Searcher, Term};

use super::plan::{Correction, PlanWord};
use crate::analysis::is_stop_word;
use crate::error::{IndexError, SearchError};
use crate::index::{Fields, LiveTerms};
use crate::lexicon::is_common_word;

/// Maximum number of words of one phrasing for which corrections are searched, whether or not any are found. Each search costs as much as a
/// short request.
const ATTEMPTS_MAX: usize = 4;
/// Maximum number of words of all phrasings of a query for which corrections are searched.
pub(crate) const REQUEST_ATTEMPTS_MAX: usize = 8;
/// Maximum number of short words that a suggestion replaces. Each requires a scan of the dictionary.
pub(crate) const SHORT_WORDS_MAX: usize = 2;
/// Maximum length of words that are corrected by two letters. For longer words, the automaton is too expensive.
const TWO_EDITS_CHARS_MAX: usize = 20;
/// Minimum lengths of words that are completed or corrected by one letter, and of words that are corrected by two letters.
const ONE_EDIT_CHARS_MIN: usize = 4;
const TWO_EDITS_CHARS_MIN: usize = 8;
/// Maximum number of words considered in one segment: a word has few similar ones, and a hostile word must not cost more.
const CANDIDATES_MAX: usize = 200;
/// Maximum number of deleted documents that are examined in one segment to skip the words of removed sites.
const DELETED_MAX: usize = 20_000;
/// Maximum number of completions of one word; the most frequent are taken.
const COMPLETIONS_MAX: usize = 3;
/// Maximum number of letters that a completion adds: "tram" may mean "tramway", but rarely a longer compound.
const MISSING_CHARS_MAX: usize = 6;

/// Corrections of words that are neither in the index nor known words of a language. The most likely one of a word comes first.
/// `attempts_left` is reduced by the words for which corrections were searched. `check_deadline` is called before each word; its error ends
/// the search.
pub(crate) fn corrections(
    searcher: &Searcher,
    fields: &Fields,
    words: &[PlanWord],
    attempts_left: &mut usize,
    check_deadline: impl Fn() -> Result<(), SearchError>,
) -> Result<Vec<Correction>, SearchError> {
    let (mut found, mut attempts) = (Vec::new(), 0);
    for (at, word) in words.iter().enumerate() {
        if attempts >= ATTEMPTS_MAX.min(*attempts_left) {
            break;
        }
        check_deadline()?;
        if word.count > 0
            || !is_correctable(&word.text)
            || is_common_word(&word.text)
            || is_written(searcher, fields, word)?
        {
            continue;
        }
        attempts += 1;
        let replacements = replacements(searcher, fields, &word.text)?;
        found.extend(replacements.into_iter().map(|replacement| Correction { word: at, replacement }));
    }
    *attempts_left -= attempts;
    Ok(found)
}

fn is_correctable(word: &str) -> bool {
    word.chars().count() >= ONE_EDIT_CHARS_MIN && word.chars().all(char::is_alphabetic)
}

/// Whether some capability contains the word in this form, although none contains its stem.
fn is_written(searcher: &Searcher, fields: &Fields, word: &PlanWord) -> Result<bool, IndexError> {
    let term = Term::from_field_text(fields.word, &word.text);
    Ok(searcher.doc_freq(&term).map_err(IndexError::engine("look a word up"))? > 0)
}

/// Known words that begin with a word; if there are none, the known word that is most similar.
pub(crate) fn replacements(
    searcher: &Searcher,
    fields: &Fields,
    word: &str,
) -> Result<Vec<String>, IndexError> {
    let completed = completions(searcher, fields, word)?;
    if !completed.is_empty() {
        return Ok(completed);
    }
    let initials: Vec<char> = word.chars().take(2).collect();
    let one = similar_word(searcher, fields, word, &Similarity { edits: 1, initials: &initials })?;
    let is_for_two = (TWO_EDITS_CHARS_MIN..=TWO_EDITS_CHARS_MAX).contains(&word.chars().count());
    if one.is_some() || !is_for_two {
        return Ok(one.into_iter().collect());
    }
    let first = initials.get(..1).unwrap_or_default();
    let two = similar_word(searcher, fields, word, &Similarity { edits: 2, initials: first })?;
    Ok(two.into_iter().collect())
}

/// Whether a word is unknown and one letter too short to be corrected.
pub(crate) fn is_unknown_short(word: &PlanWord) -> bool {
    word.count == 0
        && word.text.chars().count() + 1 == ONE_EDIT_CHARS_MIN
        && word.text.chars().all(char::is_alphabetic)
        && !is_common_word(&word.text)
}

/// The known word with the same first letter that is most similar to a short one.
pub(crate) fn short_replacement(
    searcher: &Searcher,
    fields: &Fields,
    word: &PlanWord,
) -> Result<Option<String>, IndexError> {
    if is_written(searcher, fields, word)? {
        return Ok(None);
    }
    let initial: Vec<char> = word.text.chars().take(1).collect();
    similar_word(searcher, fields, &word.text, &Similarity { edits: 1, initials: &initial })
}

/// The most frequent words that begin with a word.
fn completions(searcher: &Searcher, fields: &Fields, word: &str) -> Result<Vec<String>, IndexError> {
    let failed = IndexError::engine("look for longer words");
    let longest = word.chars().count() + MISSING_CHARS_MAX;
    let mut counts: HashMap<String, u32> = HashMap::new();
    for segment in searcher.segment_readers() {
        let inverted = segment.inverted_index(fields.word).map_err(&failed)?;
        let mut live = LiveTerms::of(segment, fields.word, DELETED_MAX).map_err(&failed)?;
        let range = inverted.terms().range().ge(word);
        let mut stream = range.into_stream().map_err(|error| failed(error.into()))?;
        let mut considered = 0;
        while considered < CANDIDATES_MAX
            && !live.is_exhausted()
            && let Some((key, info)) = stream.next()
            && let Some(text) = std::str::from_utf8(key).ok().filter(|text| text.starts_with(word))
        {
            if live.contain(info).map_err(&failed)? {
                considered += 1;
                if text.chars().count() <= longest {
                    *counts.entry(text.to_owned()).or_insert(0) += info.doc_freq;
                }
            }
        }
    }
    let mut words: Vec<(String, u32)> = counts.into_iter().collect();
    words.sort_unstable_by(|(a, of_a), (b, of_b)| (Reverse(of_a), a).cmp(&(Reverse(of_b), b)));
    words.truncate(COMPLETIONS_MAX);
    Ok(words.into_iter().map(|(text, _)| text).collect())
}

/// The similarity that a word must have.
struct Similarity<'a> {
    edits: u8,
    /// The possible first letters. People rarely mistype the first letter except by swapping it with the second, and without a known first
    /// letter, scanning the dictionary would cost more than the search.
    initials: &'a [char],
}

/// A candidate; the better one is greater.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    is_same_initial: bool,
    count: u32,
    text: String,
}

fn similar_word(
    searcher: &Searcher,
    fields: &Fields,
    word: &str,
    similarity: &Similarity<'_>,
) -> Result<Option<String>, IndexError> {
    let failed = IndexError::engine("look for similar words");
    let query = FuzzyTermQuery::new(Term::from_field_text(fields.word, word), similarity.edits, true);
    let automaton = query.automaton().map_err(&failed)?;
    let mut best: Option<Candidate> = None;
    for segment in searcher.segment_readers() {
        let inverted = segment.inverted_index(fields.word).map_err(&failed)?;
        let mut live = LiveTerms::of(segment, fields.word, DELETED_MAX).map_err(&failed)?;
        for initial in similarity.initials {
            let next = char::from_u32(u32::from(*initial) + 1).unwrap_or(char::MAX);
            let range = inverted.terms().search(&automaton).ge(initial.to_string()).lt(next.to_string());
            let mut stream = range.into_stream().map_err(|error| failed(error.into()))?;
            let mut considered = 0;
            while considered < CANDIDATES_MAX
                && !live.is_exhausted()
                && let Some((key, info)) = stream.next()
            {
                if !live.contain(info).map_err(&failed)? {
                    continue;
                }
                considered += 1;
                let text = match std::str::from_utf8(key) {
                    Ok(text) if !is_stop_word(text) => text.to_owned(),
                    _ => continue,
                };
                let is_same_initial = word.starts_with(*initial);
                let candidate = Candidate { is_same_initial, count: info.doc_freq, text };
                if best.as_ref().is_none_or(|best| candidate > *best) {
                    best = Some(candidate);
                }
            }
        }
    }
    Ok(best.map(|candidate| candidate.text))
}
