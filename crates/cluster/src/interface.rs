//! What the index needs of an engine. All calls block.

use std::time::Duration;

/// The fields of documents. Their names consist of lower-case ASCII letters and `_`, and do not start with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineFields {
    /// Each value is one term.
    pub whole: Vec<&'static str>,
    /// Values are analysed terms, joined by a space. Documents are scored by `all` and `bigram`, and phrases are looked up in `word`; no
    /// phrase spans two values.
    pub texts: Vec<&'static str>,
    /// Milliseconds since 1970.
    pub times: Vec<&'static str>,
}

/// A client of an engine. Indexes have names; one of them is read at a time.
pub trait Engine: Send + Sync {
    /// The statistics of all shards.
    fn statistics(
        &self,
        index: &str,
        terms: &[EngineTerm],
        time_max: Duration,
    ) -> Result<EngineStatistics, EngineError>;

    /// The results of each search.
    fn search(
        &self,
        index: &str,
        searches: &[EngineSearch],
        time_max: Duration,
    ) -> Result<Vec<EngineResults>, EngineError>;

    /// A writer of an index that exists. Changes that an earlier writer has made and not committed become visible.
    fn writer(&self, index: &str) -> Result<Box<dyn EngineWriter>, EngineError>;

    /// A writer of an empty index, which replaces one of the same name.
    fn create(&self, index: &str) -> Result<Box<dyn EngineWriter>, EngineError>;

    /// Removes all other indexes that were made by [`Self::create`].
    fn remove_others(&self, index: &str) -> Result<(), EngineError>;
}

/// Changes one index. The engine applies changes in the order of the calls, and makes them visible with the next commit at the latest.
pub trait EngineWriter: Send + Sync {
    /// Adds documents, each of which replaces the one with its id.
    fn upsert(&self, documents: Vec<EngineDocument>) -> Result<(), EngineError>;

    /// Deletes documents. Ids that the index does not have are ignored.
    fn delete(&self, ids: &[String]) -> Result<(), EngineError>;

    /// Deletes the documents with any of these values in the whole field `manifest`, also those that earlier calls added.
    fn delete_manifests(&self, manifests: &[String]) -> Result<(), EngineError>;

    /// Returns when all changes are durable and visible. After an error, any of them may be lost, here or in an earlier call: open another
    /// writer, and repeat all changes since the last commit.
    fn commit(&self) -> Result<(), EngineError>;
}

/// The document of one capability. A field may have several values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineDocument {
    /// Unique; also a value of the field `id`.
    pub id: String,
    /// Values of [`EngineFields::whole`].
    pub whole: Vec<(&'static str, String)>,
    /// Values of [`EngineFields::texts`].
    pub texts: Vec<(&'static str, String)>,
    /// Values of [`EngineFields::times`].
    pub times: Vec<(&'static str, i64)>,
    /// Returned by searches as it is, and not read by the engine.
    pub stored: Vec<u8>,
}

/// A term of a field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EngineTerm {
    pub field: &'static str,
    pub text: String,
}

/// The statistics of all shards together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EngineStatistics {
    pub documents: u64,
    /// Mean numbers of terms of the fields `all` and `bigram`.
    pub all_length: f32,
    pub bigram_length: f32,
    /// Number of documents with each of the terms.
    pub frequencies: Vec<u64>,
    /// The shards that did not answer.
    pub missing: Vec<String>,
}

/// A selection of documents.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EngineSearch {
    /// Documents have any of these terms. Their score is the sum of BM25 (k1 1.2, b 0.75) times the weight, with the statistics of all
    /// shards. Without terms, all documents are selected, in any order.
    pub scored: Vec<(EngineTerm, f32)>,
    /// Conditions that all documents satisfy.
    pub required: Vec<EngineCondition>,
    /// Conditions that no document satisfies.
    pub excluded: Vec<EngineCondition>,
    /// Maximum number of returned documents; the others are only counted.
    pub limit: usize,
    /// Whole fields by whose values all selected documents are counted.
    pub facets: Vec<&'static str>,
}

/// A condition on a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineCondition {
    AnyOf(Vec<EngineTerm>),
    AllOf(Vec<EngineTerm>),
    /// Contains the terms next to each other, in this order.
    Phrase(Vec<EngineTerm>),
    /// Has this time or a later one.
    Since {
        field: &'static str,
        from_ms: i64,
    },
}

/// The documents of one search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineResults {
    /// What was stored with each document, the best first.
    pub stored: Vec<Vec<u8>>,
    /// Number of selected documents.
    pub total: u64,
    pub total_is_exact: bool,
    /// The counts of each facet; `None` if the engine cannot count it.
    pub facets: Vec<Option<Vec<(String, u64)>>>,
    /// The shards that did not answer.
    pub missing: Vec<String>,
}

/// A call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    #[error("the search engine cannot be reached: {reason}")]
    Unavailable { reason: String },
    #[error("shards of the search engine do not answer: {}", missing.join(", "))]
    MissingShards { missing: Vec<String> },
    #[error("the search engine did not answer in time")]
    OutOfTime,
    /// A bug in this program or in the engine.
    #[error("the search engine rejected a request: {reason}")]
    Rejected { reason: String },
    /// A document of the engine is not one of this version.
    #[error(
        "a document of the search engine cannot be read: rebuild its index with an indexer of this version"
    )]
    Document,
    /// The engine does not sort by columns.
    #[error("more capabilities match than can be sorted: add a filter or words")]
    Unsorted,
}
