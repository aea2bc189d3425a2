//! Vectors of the texts of capabilities, if the operator provides a model.
//!
//! They are in one file next to the index and are optional. If they are missing, belong to another model, or lag behind the index, searches
//! use words only. This crate contains an [`Embedder`] only if it is built with the feature `embedder`.

mod check;
mod code;
mod embedder;
mod file;
mod model;
mod query_embedder;
mod texts;
mod update;

pub use check::{EmbedderReport, check_embedder};
pub(crate) use code::Code;
pub use embedder::{DIMENSION_MAX, Embedder, EmbedderError, VECTORS_MAX, VectorsError};
pub(crate) use file::{Stamp, Vectors, stamp};
pub use model::open_embedder;
pub(crate) use query_embedder::QueryEmbedder;
pub use update::{VectorUpdate, catch_up, keep_current};
