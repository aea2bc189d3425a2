//! The stored state of a site before a visit is saved.

use std::collections::{BTreeMap, HashMap};

use manifest::model::PolicyChoice;
use manifest::{ContentHash, Host, ManifestId, NamedBy, Publisher, READER_VERSION};
use policy::Status;

use crate::model::{HostOrigin, ResourceState};

/// A manifest before the visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownManifest {
    pub(crate) hash: ContentHash,
    pub(crate) status: Status,
    pub(crate) training: PolicyChoice,
    /// `None` if only programs of an earlier schema wrote it.
    pub(crate) named_by: Option<NamedBy>,
    /// `None` if a program of an earlier schema wrote the current version.
    pub(crate) publisher: Option<Publisher>,
    /// Version of the reader that read it; `None` if a program of an earlier schema wrote the current version.
    pub(crate) reader_version: Option<i64>,
    pub(crate) version: i32,
    pub(crate) in_index: bool,
    /// Its capabilities have no stored statements, which are needed to group and merge them, because it is the only manifest or a program
    /// of an earlier schema wrote it.
    pub(crate) lacks_statements: bool,
    /// Another manifest declares one of its capabilities, too, or one of its capabilities is served under another id.
    pub(crate) shares_capabilities: bool,
}

impl KnownManifest {
    /// Whether an earlier version of the reader read it.
    pub(crate) fn is_outdated(&self) -> bool {
        is_outdated(self.reader_version)
    }
}

/// Whether an earlier version of the reader read a manifest.
pub(crate) fn is_outdated(reader_version: Option<i64>) -> bool {
    reader_version.is_none_or(|version| version < i64::from(READER_VERSION))
}

/// The state of a site before the visit, by id of the URL.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) resources: HashMap<ManifestId, ResourceState>,
    /// URLs that were seeded or linked but not fetched since, with their earlier consecutive misses.
    pub(crate) hints: HashMap<ManifestId, u32>,
    pub(crate) manifests: BTreeMap<ManifestId, KnownManifest>,
    /// The hosts of the site, if it has manifests or the visit found one.
    pub(crate) hosts: HashMap<Host, HostOrigin>,
    /// Stored bytes of a site's documents in the index, if the visit read a document.
    pub(crate) bytes: HashMap<ManifestId, u64>,
    /// Whether the disk of the database has room for small changes only.
    pub(crate) is_disk_nearly_full: bool,
}
