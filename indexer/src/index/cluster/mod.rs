//! The documents of an index, divided between a distributed engine and its vocabulary on this machine.

mod convert;
mod vocabulary;
mod writer;

pub(crate) use convert::{document_of, engine_term, time_field};
pub(crate) use writer::ClusterWriter;
