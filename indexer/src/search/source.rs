//! Where searches find their documents: an index on this machine, or a cluster.

use std::collections::HashSet;

use manifest::CapabilityId;

#[cfg(feature = "cluster")]
use super::cluster::ClusterSource;
use super::opened::OpenedIndex;
use super::{rows, spam_list};
use crate::answer::{Hit, SpamSite};
use crate::error::IndexError;

#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Local(&'a OpenedIndex),
    #[cfg(feature = "cluster")]
    Cluster(ClusterSource<'a>),
}

impl Source<'_> {
    pub(super) fn find(self, id: &CapabilityId) -> Result<Option<Hit>, IndexError> {
        match self {
            Self::Local(opened) => rows::find(opened, id),
            #[cfg(feature = "cluster")]
            Self::Cluster(cluster) => cluster.find(id),
        }
    }

    pub(super) fn held_among(self, names: &[String]) -> Result<HashSet<String>, IndexError> {
        match self {
            Self::Local(opened) => rows::held_among(opened, names),
            #[cfg(feature = "cluster")]
            Self::Cluster(cluster) => cluster.held_among(names),
        }
    }

    pub(super) fn spam(self, max: usize) -> Result<Vec<SpamSite>, IndexError> {
        match self {
            Self::Local(opened) => spam_list::list(opened, max),
            #[cfg(feature = "cluster")]
            Self::Cluster(cluster) => cluster.spam(max),
        }
    }
}
