//! Turns texts into vectors that lie close together where the texts mean alike.
//!
//! A [`Model`] is read from a directory that the operator names, laid out as sentence-transformers writes it: `config.json`,
//! `tokenizer.json` and `model.safetensors` of a BERT, with mean pooling. Nothing is downloaded, nothing is sent anywhere, and
//! everything runs on the processor.

mod files;
mod model;

pub use model::{DIMENSION_MAX, Model, TOKENS_MAX};

use std::path::PathBuf;

/// Why a directory is no model, or a text got no vector.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file that every model has is not there.
    #[error(
        "{} is missing or cannot be read ({source}): an embedder is a directory with config.json, tokenizer.json and model.safetensors",
        path.display()
    )]
    Missing {
        /// What was looked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is larger than any that fits.
    #[error("{} has {bytes} octets and the most is {max}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in octets.
        bytes: u64,
        /// The largest size in octets.
        max: u64,
    },
    /// A file is there and says something else than it should.
    #[error("{} cannot be used: {reason}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// The model is sound and failed on some text.
    #[error("the model could not read a text: {0}")]
    Text(String),
}
