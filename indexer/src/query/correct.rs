//! What a word may have meant that no capability has: the beginning of known words, or a known word misspelt.
//!
//! What it may have meant is looked for beside the word, never instead of it: replacing words costs more on correct
//! requests than it wins on misspelt ones.

use std::cmp::Reverse;
use std::collections::HashMap;

use tantivy::query::FuzzyTermQuery;
use tantivy::{Searcher, Term};

use super::plan::PlanWord;
use crate::analysis::is_stop_word;
use crate::error::IndexError;
use crate::index::Fields;

/// Words of one request that are corrected at most.
const CORRECTED_MAX: usize = 4;
/// Words of these lengths may be completed or have one letter wrong, and have two letters wrong.
const ONE_EDIT_CHARS_MIN: usize = 4;
const TWO_EDITS_CHARS_MIN: usize = 8;
/// Candidates looked at in one segment: near words of a word are few, and a hostile word must not cost more.
const CANDIDATES_MAX: usize = 200;
/// Known words that one word may be the beginning of, the most frequent first.
const COMPLETIONS_MAX: usize = 3;
/// Letters that may be missing at the end: "tram" may mean "tramway", and says nothing of longer compounds.
const MISSING_CHARS_MAX: usize = 6;

/// A word of the plan and what it may have meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Correction {
    /// Its place among the words of the plan.
    pub(crate) word: usize,
    pub(crate) meant: String,
}

/// Corrections for those words that are not in the index, given how many capabilities have each. The likeliest of a word
/// comes first.
pub(crate) fn corrections(
    searcher: &Searcher,
    fields: &Fields,
    words: &[PlanWord],
    frequencies: &[u64],
) -> Result<Vec<Correction>, IndexError> {
    let (mut found, mut corrected) = (Vec::new(), 0);
    for (at, (word, frequency)) in words.iter().zip(frequencies).enumerate() {
        if corrected >= CORRECTED_MAX {
            break;
        }
        if *frequency > 0 || !is_correctable(&word.said) || is_written(searcher, fields, word)? {
            continue;
        }
        let meant = meant(searcher, fields, &word.said)?;
        corrected += usize::from(!meant.is_empty());
        found.extend(meant.into_iter().map(|meant| Correction { word: at, meant }));
    }
    Ok(found)
}

fn is_correctable(word: &str) -> bool {
    word.chars().count() >= ONE_EDIT_CHARS_MIN && word.chars().all(char::is_alphabetic)
}

/// Whether some capability has the word in this form, though not its stem.
fn is_written(searcher: &Searcher, fields: &Fields, word: &PlanWord) -> Result<bool, IndexError> {
    let term = Term::from_field_text(fields.word, &word.said);
    Ok(searcher.doc_freq(&term).map_err(IndexError::engine("look a word up"))? > 0)
}

fn meant(searcher: &Searcher, fields: &Fields, word: &str) -> Result<Vec<String>, IndexError> {
    let completed = completions(searcher, fields, word)?;
    if !completed.is_empty() {
        return Ok(completed);
    }
    let initials: Vec<char> = word.chars().take(2).collect();
    let one = near_word(searcher, fields, word, &Nearness { edits: 1, initials: &initials })?;
    if one.is_some() || word.chars().count() < TWO_EDITS_CHARS_MIN {
        return Ok(one.into_iter().collect());
    }
    let first = initials.get(..1).unwrap_or_default();
    let two = near_word(searcher, fields, word, &Nearness { edits: 2, initials: first })?;
    Ok(two.into_iter().collect())
}

/// The most frequent words that begin with a word.
fn completions(searcher: &Searcher, fields: &Fields, word: &str) -> Result<Vec<String>, IndexError> {
    let failed = IndexError::engine("look for longer words");
    let longest = word.chars().count() + MISSING_CHARS_MAX;
    let mut counts: HashMap<String, u32> = HashMap::new();
    for segment in searcher.segment_readers() {
        let inverted = segment.inverted_index(fields.word).map_err(&failed)?;
        let range = inverted.terms().range().ge(word);
        let mut stream = range.into_stream().map_err(|error| failed(error.into()))?;
        for _ in 0..CANDIDATES_MAX {
            let Some((key, info)) = stream.next() else { break };
            let Some(text) = std::str::from_utf8(key).ok().filter(|text| text.starts_with(word)) else {
                break;
            };
            if text.chars().count() <= longest {
                *counts.entry(text.to_owned()).or_insert(0) += info.doc_freq;
            }
        }
    }
    let mut words: Vec<(String, u32)> = counts.into_iter().collect();
    words.sort_unstable_by(|(a, of_a), (b, of_b)| (Reverse(of_a), a).cmp(&(Reverse(of_b), b)));
    Ok(words.into_iter().take(COMPLETIONS_MAX).map(|(text, _)| text).collect())
}

/// How near a word has to be.
struct Nearness<'a> {
    edits: u8,
    /// The letters that it may begin with. People rarely err in the first one but to swap it with the second, and
    /// without a beginning to look under, the walk over the dictionary costs more than the search.
    initials: &'a [char],
}

/// A candidate; the better one is greater.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    is_same_initial: bool,
    count: u32,
    text: String,
}

fn near_word(
    searcher: &Searcher,
    fields: &Fields,
    word: &str,
    nearness: &Nearness<'_>,
) -> Result<Option<String>, IndexError> {
    let failed = IndexError::engine("look for near words");
    let query = FuzzyTermQuery::new(Term::from_field_text(fields.word, word), nearness.edits, true);
    let automaton = query.automaton().map_err(&failed)?;
    let mut best: Option<Candidate> = None;
    for segment in searcher.segment_readers() {
        let inverted = segment.inverted_index(fields.word).map_err(&failed)?;
        for initial in nearness.initials {
            let next = char::from_u32(u32::from(*initial) + 1).unwrap_or(char::MAX);
            let range = inverted.terms().search(&automaton).ge(initial.to_string()).lt(next.to_string());
            let mut stream = range.into_stream().map_err(|error| failed(error.into()))?;
            for _ in 0..CANDIDATES_MAX {
                let Some((key, info)) = stream.next() else { break };
                let text = match std::str::from_utf8(key) {
                    Ok(text) if !is_stop_word(text) => text.to_owned(),
                    _ => continue,
                };
                let is_same_initial = word.starts_with(*initial);
                best = best.max(Some(Candidate { is_same_initial, count: info.doc_freq, text }));
            }
        }
    }
    Ok(best.map(|candidate| candidate.text))
}
