//! The embedder of texts, and its errors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use super::code::Code;
use crate::error::IndexError;

/// Maximum length of a vector: the length in large sentence models.
pub const DIMENSION_MAX: usize = 1_024;
/// Maximum number of vectors of one index. Far fewer are advisable, because a search compares all vectors that match its filters.
pub const VECTORS_MAX: usize = 1_000_000;

/// Embeds texts as vectors that are close together if the texts have similar meanings.
pub trait Embedder: Send + Sync + std::fmt::Debug {
    /// Length of a vector, 1 to [`DIMENSION_MAX`].
    fn dimension(&self) -> usize;

    /// Differs between models whose vectors cannot be compared; the same after a restart.
    fn identity(&self) -> [u8; 32];

    /// One vector for each text, in order, each with norm one. Blocking.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedderError>;
}

/// The reason why there are no vectors.
#[derive(Debug, thiserror::Error)]
pub enum EmbedderError {
    #[error(
        "the sentence model {} cannot be used: this program was built without the feature `embedder`; build it with \
         `cargo build --release --features embedder`, or leave the embedder out of flags, environment and file",
        dir.display()
    )]
    NotBuilt { dir: PathBuf },
    /// The model cannot be read, or failed.
    #[error(transparent)]
    Model(Box<dyn std::error::Error + Send + Sync>),
    #[error("the embedder returned {found} instead of {wanted}")]
    Answer { found: String, wanted: String },
}

/// The reason why the vectors are not kept up to date.
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

/// Calls an embedder, which may panic or return vectors of a wrong shape.
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
