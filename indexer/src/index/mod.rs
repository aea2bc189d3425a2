//! The index at rest: its fields, how a capability becomes a document, where it lies, and who writes it.

mod directory;
mod document;
mod forward;
mod payload;
mod schema;
mod writer;

pub(crate) use directory::{Generations, WriterLock};
pub(crate) use document::all_terms;
pub(crate) use forward::{Part as StemPart, decoded, gram_number, stem_number};
pub(crate) use payload::Payload;
pub(crate) use schema::{Fields, SUGGESTION_MARK, SchemaParts, register_tokenizers, schema};
pub(crate) use writer::{Opened, Writer, open_for_writing};

/// Version of fields and analysis: an index of another version is rebuilt.
pub const SCHEMA_VERSION: u32 = 5;
/// Version of the ranking: a cursor of another version is gone.
pub(crate) const RANKING_VERSION: u16 = 4;
