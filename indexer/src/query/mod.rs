//! From what was typed to what is looked for.

mod correct;
mod filter;
mod parse;
mod plan;
mod synonyms;

pub(crate) use correct::{Correction, corrections};
pub(crate) use filter::{FilterPart, filter_parts};
pub(crate) use parse::{Phrase, Wish, parse};
pub(crate) use plan::{Plan, QueryTerm, Role};

/// Longest phrasing, in bytes: the longest request of the public tool-retrieval sets has 1,900.
pub(crate) const QUERY_BYTES_MAX: usize = 4_096;
/// Most phrasings of one wish.
pub(crate) const PHRASINGS_MAX: usize = 5;
