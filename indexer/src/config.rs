//! Where an index is, and what it is built with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

#[cfg(feature = "cluster")]
use crate::cluster::Cluster;
use crate::examples::Examples;

/// What the documents of an index are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Contents {
    /// Capabilities.
    #[default]
    Capabilities,
    /// Manifests whose capabilities are on a cluster.
    Vocabulary,
}

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

    /// What the directory has.
    #[cfg_attr(not(feature = "cluster"), expect(clippy::unused_self, reason = "the cluster is in self"))]
    pub(crate) const fn contents(&self) -> Contents {
        #[cfg(feature = "cluster")]
        if self.cluster.is_some() {
            return Contents::Vocabulary;
        }
        Contents::Capabilities
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
