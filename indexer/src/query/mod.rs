//! From the text of a request to the terms that are searched for.

mod correct;
mod intent;
mod parse;
mod plan;
mod restriction;

pub(crate) use correct::{
    REQUEST_ATTEMPTS_MAX, SHORT_WORDS_MAX, corrections, is_unknown_short, replacements, short_replacement,
};
pub(crate) use parse::{PHRASINGS_MAX, ParsedQuery, Phrase, QUERY_BYTES_MAX, parse, with_known_operators};
pub(crate) use plan::{Correction, Plan, QueryTerm, Role};
pub(crate) use restriction::{FilterPart, Restriction, restrictions};
