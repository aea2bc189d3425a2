//! What a misspelt word may have meant.
//!
//! Only a word that no capability has is corrected, and the correction is looked for beside the word, never instead of
//! it: replacing words costs more on correct requests than it wins on misspelt ones.

use tantivy::query::FuzzyTermQuery;
use tantivy::{Searcher, Term};

use super::plan::PlanWord;
use crate::analysis::is_stop_word;
use crate::error::IndexError;
use crate::index::Fields;

/// Words of one request that are corrected at most.
const CORRECTIONS_MAX: usize = 4;
/// Words of these lengths may have one, and two, letters wrong.
const ONE_EDIT_CHARS_MIN: usize = 4;
const TWO_EDITS_CHARS_MIN: usize = 8;
/// Candidates looked at in one segment: near words of a word are few, and a hostile word must not cost more.
const CANDIDATES_MAX: usize = 200;

/// A word of the plan and what it may have meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Correction {
    /// Its place among the words of the plan.
    pub(crate) word: usize,
    pub(crate) meant: String,
}

/// Corrections for those words that are not in the index.
pub(crate) fn corrections(
    searcher: &Searcher,
    fields: &Fields,
    words: &[PlanWord],
) -> Result<Vec<Correction>, IndexError> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if found.len() >= CORRECTIONS_MAX {
            break;
        }
        if !is_correctable(&word.said) || is_known(searcher, fields, word)? {
            continue;
        }
        if let Some(meant) = nearest(searcher, fields, &word.said)? {
            found.push(Correction { word: at, meant });
        }
    }
    Ok(found)
}

fn is_correctable(word: &str) -> bool {
    word.chars().count() >= ONE_EDIT_CHARS_MIN && word.chars().all(char::is_alphabetic)
}

fn is_known(searcher: &Searcher, fields: &Fields, word: &PlanWord) -> Result<bool, IndexError> {
    let count = |term: Term| searcher.doc_freq(&term).map_err(IndexError::engine("look a word up"));
    Ok(count(Term::from_field_text(fields.all, &word.stem))? > 0
        || count(Term::from_field_text(fields.word, &word.said))? > 0)
}

/// A candidate; the better one is greater.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    is_same_initial: bool,
    is_one_edit: bool,
    count: u32,
    text: String,
}

fn nearest(searcher: &Searcher, fields: &Fields, word: &str) -> Result<Option<String>, IndexError> {
    let chars = word.chars().count();
    let near = near_words(searcher, fields, word, 1)?;
    if near.is_some() || chars < TWO_EDITS_CHARS_MIN {
        return Ok(near);
    }
    near_words(searcher, fields, word, 2)
}

fn near_words(
    searcher: &Searcher,
    fields: &Fields,
    word: &str,
    distance: u8,
) -> Result<Option<String>, IndexError> {
    let failed = IndexError::engine("look for near words");
    let query = FuzzyTermQuery::new(Term::from_field_text(fields.word, word), distance, true);
    let mut best: Option<Candidate> = None;
    for segment in searcher.segment_readers() {
        let inverted = segment.inverted_index(fields.word).map_err(&failed)?;
        let automaton = query.automaton().map_err(&failed)?;
        let mut stream =
            inverted.terms().search(automaton).into_stream().map_err(|error| failed(error.into()))?;
        for _ in 0..CANDIDATES_MAX {
            let Some((key, info)) = stream.next() else { break };
            let text = match std::str::from_utf8(key) {
                Ok(text) if !is_stop_word(text) => text,
                _ => continue,
            };
            let candidate = Candidate {
                is_same_initial: text.chars().next() == word.chars().next(),
                is_one_edit: distance == 1,
                count: info.doc_freq,
                text: text.to_owned(),
            };
            if best.as_ref().is_none_or(|best| candidate > *best) {
                best = Some(candidate);
            }
        }
    }
    Ok(best.map(|candidate| candidate.text))
}
