//! The index on a distributed engine.
//!
//! The engine has the documents of the capabilities, in shards. It selects by words and conditions, counts, and has the statistics of
//! all shards. Next to each follower of the change feed is a *vocabulary*: a small index on this machine with one document for each
//! manifest. It has what is read from dictionaries (corrections, suggestions, types, languages), facts of sites, and the position in the
//! feed.
//!
//! The follower writes both. It commits the engine first and then the vocabulary with the position, so work that was not committed is
//! repeated with the same result. A rebuild writes into a new index of the engine, named like the generation of the vocabulary.
//!
//! A search asks the engine for a shortlist of the best documents, and ranks them with the ranking of an index on this machine.

mod engine;

use std::path::Path;
use std::sync::Arc;

pub use engine::{
    Engine, EngineCondition, EngineDocument, EngineError, EngineResults, EngineSearch, EngineStatistics,
    EngineTerm, EngineWriter, TEXT_FIELDS, TIME_FIELDS, whole_fields,
};

pub use crate::missing_shards::MissingShards;

/// An engine, and how its answers are used.
#[derive(Clone)]
pub struct Cluster {
    pub engine: Arc<dyn Engine>,
    pub missing_shards: MissingShards,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("missing_shards", &self.missing_shards).finish_non_exhaustive()
    }
}

impl PartialEq for Cluster {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.engine, &other.engine) && self.missing_shards == other.missing_shards
    }
}

impl Eq for Cluster {}

impl Cluster {
    /// Connects to a broker at the first call.
    pub(crate) fn connect(url: &str, missing_shards: MissingShards) -> Result<Self, String> {
        let engine = ::cluster::Summa::with_own_thread(&url.parse()?, engine::fields());
        let engine = engine.map_err(|error| format!("no thread for the cluster can be started: {error}"))?;
        Ok(Self { engine: Arc::new(engine), missing_shards })
    }
}

/// The name of the engine's index that belongs to a generation of the vocabulary.
pub(crate) fn index_name(generation: &Path) -> String {
    generation.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
