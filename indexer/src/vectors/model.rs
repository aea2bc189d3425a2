//! The one embedder that ships, where it was built in: a model in a directory of the operator's.

use std::path::Path;
use std::sync::Arc;

use super::{Embedder, EmbedderError};

/// Reads the model in a directory. Blocking: takes a moment and as much memory as its files.
#[cfg(feature = "embedder")]
pub fn open_embedder(dir: &Path) -> Result<Arc<dyn Embedder>, EmbedderError> {
    let model = embedder::Model::open(dir).map_err(|error| EmbedderError::Model(Box::new(error)))?;
    tracing::info!(dir = %dir.display(), dimension = model.dimension(), "embedder opened");
    Ok(Arc::new(model))
}

/// Says how to get a program that can.
#[cfg(not(feature = "embedder"))]
pub fn open_embedder(dir: &Path) -> Result<Arc<dyn Embedder>, EmbedderError> {
    Err(EmbedderError::NotBuilt { dir: dir.to_owned() })
}

#[cfg(feature = "embedder")]
impl Embedder for embedder::Model {
    fn dimension(&self) -> usize {
        Self::dimension(self)
    }

    fn identity(&self) -> [u8; 32] {
        Self::identity(self)
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedderError> {
        Self::embed(self, texts).map_err(|error| EmbedderError::Model(Box::new(error)))
    }
}

#[cfg(all(test, not(feature = "embedder")))]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_the_embedder_says_how_to_get_one_with_it() {
        let error = open_embedder(Path::new("/models/minilm")).unwrap_err().to_string();
        assert!(error.contains("/models/minilm") && error.contains("--features embedder"), "{error}");
    }
}
