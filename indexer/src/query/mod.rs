//! From what was typed to what is looked for.

mod associations;
mod correct;
mod filter;
mod parse;
mod plan;
mod synonyms;

pub use associations::{Association, Associations};
pub(crate) use correct::{Correction, corrections};
pub(crate) use filter::{Admits, FilterPart, filter_parts};
pub(crate) use parse::{Phrase, Wish, parse};
pub(crate) use plan::{Plan, QueryTerm, Role};

/// Longest phrasing, in bytes. Requests to agents carry pasted documents (the longest of the public tool-retrieval sets
/// has 18,686 bytes); reading one is cheap, since only the first words count.
pub(crate) const QUERY_BYTES_MAX: usize = 32_768;
/// Most phrasings of one wish.
pub(crate) const PHRASINGS_MAX: usize = 5;
