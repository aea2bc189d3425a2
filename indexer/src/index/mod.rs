//! The index on disk: its fields, the document of a capability, its directory, and its writer.

#[cfg(feature = "cluster")]
mod cluster;
mod directory;
mod document;
mod forward;
mod live;
mod payload;
mod schema;
mod shared;
mod writer;

#[cfg(feature = "cluster")]
pub(crate) use cluster::{document_of, engine_term, time_field};
pub(crate) use directory::{Generations, WriterLock};
pub(crate) use document::NAME_WEIGHT;
pub(crate) use document::site_number;
pub use document::{ExampleCheck, UnfoundExample, check_examples};
pub(crate) use forward::{
    Part as StemPart, decoded, gram_number, is_own_address, is_same_address, precedence, stem_number,
};
pub(crate) use live::LiveTerms;
pub(crate) use payload::Payload;
pub use schema::SCHEMA_VERSION;
#[cfg(any(test, feature = "cluster"))]
pub(crate) use schema::schema;
#[cfg(feature = "cluster")]
pub(crate) use schema::tokenizers;
pub(crate) use schema::{Fields, RANKING_VERSION, REST_MARK, SUGGESTION_MARK, register_tokenizers};
pub(crate) use shared::{Following, Shared};
pub(crate) use writer::{Opened, Writer, open_for_writing};
