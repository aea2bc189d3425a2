//! Embeds texts as vectors that are close together if the texts have similar meanings.
//!
//! A [`Model`] is read from a directory that the operator names, in the layout of sentence-transformers: `config.json`,
//! `tokenizer.json` and `model.safetensors` of a BERT, with mean pooling. Nothing is downloaded or sent, and the model runs on
//! one core of the CPU. [`inspect`] reports what a directory contains, and [`Model::speed`] how fast the model is.

mod bert;
mod config;
mod files;
mod inspection;
mod math;
mod model;
mod speed;
mod weights;

pub use config::{DIMENSION_MAX, TOKENS_MAX};
pub use inspection::{Inspection, inspect};
pub use model::Model;
pub use speed::Speed;

use std::path::PathBuf;

/// A directory is not a model, or a text cannot be embedded.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error(
        "{} is missing or cannot be read ({source}): an embedder is a directory with config.json, tokenizer.json and model.safetensors",
        path.display()
    )]
    Missing { path: PathBuf, source: std::io::Error },
    #[error("{} has {bytes} bytes; the maximum is {max}", path.display())]
    TooLarge { path: PathBuf, bytes: u64, max: u64 },
    #[error("{} cannot be used: {reason}", path.display())]
    Invalid { path: PathBuf, reason: String },
    #[error("the model could not read a text: {0}")]
    Text(String),
}
