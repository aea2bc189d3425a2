//! A distributed search engine as the place of an index.
//!
//! [`Engine`] is what the index needs of it. [`Summa`] is the client of Summa, a broker with servers that hold one shard each. This crate
//! knows nothing of capabilities: it sends terms that the index has analysed, and returns what it was given to store.
//!
//! An answer names the shards that are missing from it. Whether it may be used is decided by the caller.

mod client;
mod documents;
mod interface;
mod markers;
#[expect(unreachable_pub, clippy::enum_variant_names, reason = "generated")]
mod proto;
mod query;
mod schema;
mod summa;
mod writer;

pub use client::ClusterUrl;
pub use interface::{
    Engine, EngineCondition, EngineDocument, EngineError, EngineFields, EngineResults, EngineSearch,
    EngineStatistics, EngineTerm, EngineWriter,
};
pub use summa::Summa;
