//! Reads the files of a model up to a size limit, and hashes them into the model's identity.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::ModelError;

/// Maximum size of a description, which usually has about a kilobyte.
const DESCRIPTION_BYTES_MAX: u64 = 1 << 20;

/// The files of one model.
pub(crate) struct Files<'a> {
    dir: &'a Path,
    hash: Sha256,
}

impl<'a> Files<'a> {
    pub(crate) fn in_dir(dir: &'a Path) -> Self {
        Self { dir, hash: Sha256::new() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Reads a file of at most `max` bytes into memory; later changes of the file have no effect.
    pub(crate) fn read(&mut self, name: &str, max: u64) -> Result<Vec<u8>, ModelError> {
        let path = self.path(name);
        let missing = |source| ModelError::Missing { path: path.clone(), source };
        let file = File::open(&path).map_err(missing)?;
        let bytes = file.metadata().map_err(missing)?.len();
        if bytes > max {
            return Err(ModelError::TooLarge { path, bytes, max });
        }
        let mut content = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
        file.take(max).read_to_end(&mut content).map_err(missing)?;
        self.hash.update((name.len() as u64).to_le_bytes());
        self.hash.update(name);
        self.hash.update((content.len() as u64).to_le_bytes());
        self.hash.update(&content);
        Ok(content)
    }

    /// A JSON object.
    pub(crate) fn description(&mut self, name: &str) -> Result<serde_json::Value, ModelError> {
        let content = self.read(name, DESCRIPTION_BYTES_MAX)?;
        serde_json::from_slice(&content).map_err(|error| self.invalid(name, error.to_string()))
    }

    pub(crate) fn invalid(&self, name: &str, reason: impl Into<String>) -> ModelError {
        ModelError::Invalid { path: self.path(name), reason: reason.into() }
    }

    /// A hash of the files that were read. Independent of the directory.
    pub(crate) fn identity(self) -> [u8; 32] {
        self.hash.finalize().into()
    }
}
