//! The embedder of the feature `embedder`: a model in a directory of the operator.

use std::path::Path;
use std::sync::Arc;

use super::embedder::{Embedder, EmbedderError};

/// Reads the model in a directory. Blocking; takes as much memory as the files.
#[cfg(feature = "embedder")]
pub fn open_embedder(dir: &Path) -> Result<Arc<dyn Embedder>, EmbedderError> {
    let model = embedder::Model::open(dir).map_err(|error| EmbedderError::Model(Box::new(error)))?;
    tracing::info!(dir = %dir.display(), dimension = model.dimension(), "embedder opened");
    Ok(Arc::new(model))
}

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
    fn the_error_without_the_feature_names_the_build_option() {
        let error = open_embedder(Path::new("/models/minilm")).unwrap_err().to_string();
        assert!(error.contains("/models/minilm") && error.contains("--features embedder"), "{error}");
    }
}
