//! The fields of the engine's documents, and what a client of an engine does.

pub use ::cluster::{
    Engine, EngineCondition, EngineDocument, EngineError, EngineResults, EngineSearch, EngineStatistics,
    EngineTerm, EngineWriter,
};

use ::cluster::EngineFields;

use crate::filter::FacetKey;

/// Fields of analysed terms, joined by a space. Documents are scored by `all` and `bigram`, and phrases are looked up in `word`.
pub const TEXT_FIELDS: [&str; 3] = ["all", "bigram", "word"];
/// Fields of times, in milliseconds since 1970.
pub const TIME_FIELDS: [&str; 2] = ["updated_ms", "first_seen_ms"];

/// Fields of whole values, each of which is one term.
pub fn whole_fields() -> Vec<&'static str> {
    let own = ["id", "manifest", "exact", "host", "speaker", "invocable", "spam"];
    own.into_iter().chain(FacetKey::ALL.iter().map(|key| key.as_str())).collect()
}

pub(super) fn fields() -> EngineFields {
    EngineFields { whole: whole_fields(), texts: TEXT_FIELDS.to_vec(), times: TIME_FIELDS.to_vec() }
}
