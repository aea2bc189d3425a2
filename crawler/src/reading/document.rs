//! A document with everything that a reader needs, so that another thread or process can read it.

use manifest::model::Served;
use manifest::{ContentHash, Discovery, Document, LinkedDocument, Manifest, ManifestUrl};
use serde::{Deserialize, Serialize};

/// A document to read, and the documents that complete it.
#[derive(Debug, Clone)]
pub(crate) struct OwnedDocument {
    pub(crate) bytes: Vec<u8>,
    pub(crate) url: ManifestUrl,
    pub(crate) final_url: Option<ManifestUrl>,
    pub(crate) discovery: Discovery,
    pub(crate) served: Served,
    pub(crate) linked: Vec<(ManifestUrl, Vec<u8>)>,
}

/// A document without its bytes: the first line of the input of a [`super::ReaderProgram`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    url: ManifestUrl,
    final_url: Option<ManifestUrl>,
    discovery: Discovery,
    served: Served,
    bytes: usize,
    linked: Vec<(ManifestUrl, usize)>,
}

impl OwnedDocument {
    /// Reads it. Never fails; takes as long as the budget of [`manifest::read`] allows.
    pub(crate) fn read(&self) -> Manifest {
        let linked: Vec<LinkedDocument<'_>> =
            self.linked.iter().map(|(url, bytes)| LinkedDocument { url, bytes }).collect();
        manifest::read(&Document {
            bytes: &self.bytes,
            url: &self.url,
            final_url: self.final_url.as_ref(),
            discovery: self.discovery,
            served: Some(&self.served),
            linked: &linked,
            force: None,
        })
    }

    /// Reads it, and estimates the memory of its manifest.
    pub(super) fn read_measured(&self) -> (Manifest, usize) {
        let manifest = self.read();
        let memory_bytes = manifest::budget::manifest_bytes(&manifest);
        (manifest, memory_bytes)
    }

    /// Length of all bytes that are read.
    pub(super) fn hash(&self) -> ContentHash {
        if self.linked.is_empty() {
            return ContentHash::of(&self.bytes);
        }
        let parts = std::iter::once(&self.bytes).chain(self.linked.iter().map(|(_, bytes)| bytes));
        let hashes: Vec<String> = parts.map(|bytes| ContentHash::of(bytes).as_str().to_owned()).collect();
        ContentHash::of(hashes.join(" ").as_bytes())
    }

    pub(super) fn header(&self) -> Header {
        Header {
            url: self.url.clone(),
            final_url: self.final_url.clone(),
            discovery: self.discovery,
            served: self.served.clone(),
            bytes: self.bytes.len(),
            linked: self.linked.iter().map(|(url, bytes)| (url.clone(), bytes.len())).collect(),
        }
    }

    /// Assembles a document from its header and the bytes that follow it; `None` if bytes are missing.
    pub(super) fn from_parts(header: Header, mut rest: &[u8]) -> Option<Self> {
        let mut take = |length: usize| {
            let (taken, after) = rest.split_at_checked(length)?;
            rest = after;
            Some(taken.to_vec())
        };
        let bytes = take(header.bytes)?;
        let linked = header.linked.into_iter().map(|(url, length)| Some((url, take(length)?)));
        Some(Self {
            bytes,
            url: header.url,
            final_url: header.final_url,
            discovery: header.discovery,
            served: header.served,
            linked: linked.collect::<Option<_>>()?,
        })
    }
}
