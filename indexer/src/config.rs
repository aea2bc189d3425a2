//! Where an index is, and what it is built with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "cluster")]
use crate::cluster::Cluster;
use crate::examples::Examples;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexConfig {
    pub dir: PathBuf,
    /// The operator's example requests.
    pub examples: Arc<Examples>,
    /// The engine that has the capabilities; the directory then has its vocabulary.
    #[cfg(feature = "cluster")]
    pub cluster: Option<Cluster>,
}

impl IndexConfig {
    /// The index of a data directory.
    pub fn in_data_dir(data_dir: &Path) -> Self {
        Self::at(data_dir.join("index"))
    }

    /// An index on this machine, without examples of the operator.
    pub fn at(dir: PathBuf) -> Self {
        Self {
            dir,
            examples: Arc::default(),
            #[cfg(feature = "cluster")]
            cluster: None,
        }
    }
}
