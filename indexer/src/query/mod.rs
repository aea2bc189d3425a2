//! From the text of a request to the terms that are searched for.

mod common;
mod correct;
mod intent;
mod parse;
mod plan;
mod restriction;
mod synonyms;
mod translations;
mod word_weights;

pub(crate) use common::is_common_word;
pub(crate) use correct::{
    REQUEST_ATTEMPTS_MAX, SHORT_WORDS_MAX, corrections, is_unknown_short, replacements, short_replacement,
};
pub(crate) use parse::{PHRASINGS_MAX, ParsedQuery, Phrase, QUERY_BYTES_MAX, parse, with_known_operators};
pub(crate) use plan::{Correction, Plan, QueryTerm, Role};
pub(crate) use restriction::{FilterPart, Restriction, restrictions};
pub use word_weights::WordWeights;
