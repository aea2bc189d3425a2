//! Follows the change feed into a tantivy index, and searches it.
//!
//! The index is disposable: it can be rebuilt from the store without fetching anything. One process writes (`follow`), any number of
//! processes read (`Searcher`). A commit contains the feed position, so documents and position are always consistent.

mod agent_endpoints;
mod analysis;
pub mod answer;
mod build;
pub mod cli;
#[cfg(feature = "cluster")]
pub mod cluster;
mod config;
mod declarations;
pub mod error;
mod examples;
pub mod filter;
pub mod follow;
mod index;
mod lexicon;
mod metrics;
mod missing_shards;
mod named_host;
pub mod program;
mod query;
mod reader;
pub mod request;
mod search;
mod sharing;
pub mod snapshot;
mod spam;
pub mod vectors;

#[doc(hidden)]
pub use analysis::stems_of;
pub use answer::{
    Completeness, Explanation, FacetBuckets, FacetCount, Group, GroupMember, Hit, SearchAnswer, SpamCause,
    SpamSite, Suggestion, SuggestionKind,
};
pub use build::IndexBuilder;
#[doc(hidden)]
pub use build::PreparedDocuments;
pub use config::IndexConfig;
pub use declarations::{
    Declaration, DeclarationRole, Declared, MergedCapability, SelectedDeclarations, SharedCapabilities,
    listed,
};
pub use error::{CursorError, IndexError, SearchError};
pub use examples::{Examples, ExamplesError};
pub use filter::{FacetKey, Filter, Filters, Method};
pub use index::{ExampleCheck, SCHEMA_VERSION, UnfoundExample, check_examples};
pub use lexicon::WordWeights;
pub use request::{ExploreRequest, FacetRequest, Grouping, SearchRequest, Sort};
#[doc(hidden)]
pub use search::EngineQuery;
pub use search::{CURSOR_BYTES_MAX, IndexGeneration, ListedCapability, Searcher};
pub use spam::SpamReason;
pub use vectors::{Embedder, EmbedderError};
