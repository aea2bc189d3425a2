//! Vectors of what capabilities say of themselves, for operators who give a model to make them with.
//!
//! They stand in one file beside the index and are never needed: where they are missing, of another model, or behind the
//! index, searches go by words alone. What makes them is an [`Embedder`]; this crate has none of its own unless it is built
//! with the feature `embedder`.

mod asked;
mod file;
mod keep;
mod model;
mod said;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use crate::error::IndexError;

pub(crate) use asked::Asked;
pub(crate) use file::{Code, Stamp, Vectors, stamp};
pub use keep::{Kept, catch_up, keep_current};
pub use model::open_embedder;

/// Numbers of a vector at most: those of the large models of sentences.
pub const DIMENSION_MAX: usize = 1_024;
/// Vectors that one index has at most. Every search compares its request with all that its filters leave, so that far fewer
/// are comfortable.
pub const VECTORS_MAX: usize = 1_000_000;

/// Turns texts into vectors that lie close together where the texts mean alike.
pub trait Embedder: Send + Sync + std::fmt::Debug {
    /// Numbers of a vector, 1 to [`DIMENSION_MAX`].
    fn dimension(&self) -> usize;

    /// Differs between models whose vectors cannot be compared, and stays the same from start to start.
    fn identity(&self) -> [u8; 32];

    /// One vector for each text, in their order, each of length one. Blocking.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedderError>;
}

/// Why there are no vectors.
#[derive(Debug, thiserror::Error)]
pub enum EmbedderError {
    #[error(
        "this program was built without the embedder that {} is for: build it with `cargo build --release --features embedder`, \
         or leave the embedder out of flags, environment and file",
        dir.display()
    )]
    NotBuilt { dir: PathBuf },
    /// The directory is no model, or its model failed.
    #[error(transparent)]
    Model(Box<dyn std::error::Error + Send + Sync>),
    #[error("the embedder answered {found} and should have answered {wanted}")]
    Answer { found: String, wanted: String },
}

/// Why the vectors are not kept up to date.
#[derive(Debug, thiserror::Error)]
pub enum VectorsError {
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Embedder(#[from] EmbedderError),
    #[error("{} is damaged ({reason})", path.display())]
    Damaged { path: PathBuf, reason: &'static str },
    #[error("{} cannot be read or written: {source}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// Asks an embedder, and takes its word neither for the shape of the answer nor for that it comes to one.
pub(crate) fn codes(embedder: &dyn Embedder, texts: &[&str]) -> Result<Vec<Code>, EmbedderError> {
    let found = catch_unwind(AssertUnwindSafe(|| embedder.embed(texts)))
        .unwrap_or_else(|_| Err(EmbedderError::Model("the model panicked".into())))?;
    let dimension = embedder.dimension();
    let is_sound = found.len() == texts.len() && found.iter().all(|vector| vector.len() == dimension);
    if !is_sound || dimension == 0 || dimension > DIMENSION_MAX {
        let numbers = found.first().map_or(0, Vec::len);
        return Err(EmbedderError::Answer {
            found: format!("{} vectors of {numbers} numbers", found.len()),
            wanted: format!("{} of {dimension}, and of {DIMENSION_MAX} at most", texts.len()),
        });
    }
    Ok(found.iter().map(|vector| Code::of(vector)).collect())
}
