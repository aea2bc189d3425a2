//! Follows the change feed into a tantivy index, and searches it.
//!
//! The index is disposable: everything in it is rebuilt from the store without fetching anything. One process writes
//! (`follow`), any number of processes read (`Searcher`); a commit carries the feed position, so that the documents and
//! the position move together.

mod analysis;
pub mod answer;
mod build;
pub mod cli;
pub mod error;
pub mod follow;
mod index;
pub mod learning;
mod query;
mod reader;
pub mod request;
mod search;
pub mod snapshot;
pub mod vectors;

pub use answer::{FacetBuckets, FacetCount, Hit, SearchAnswer, Suggestion, SuggestionKind};
pub use build::IndexBuilder;
#[doc(hidden)]
pub use build::PreparedDocuments;
pub use error::{CursorProblem, IndexError, SearchError};
pub use follow::IndexConfig;
pub use index::SCHEMA_VERSION;
pub use query::{Association, Associations};
pub use request::{ExploreRequest, FacetKey, FacetWanted, Filters, Method, SearchRequest, Sort};
#[doc(hidden)]
pub use search::BareSearch;
pub use search::{IndexGeneration, Searcher};
pub use vectors::{Embedder, EmbedderError};
