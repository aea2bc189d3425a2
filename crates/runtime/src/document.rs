//! A document with all data that a reader needs, so that another thread or process can read it.

use std::io::{self, BufRead, Read, Write};

use manifest::model::Served;
use manifest::{ContentHash, Discovery, Document, Format, LinkedDocument, Manifest, ManifestUrl};
use serde::{Deserialize, Serialize};

/// Maximum bytes of the header, which contains a few URLs and response headers for each linked document.
const HEADER_BYTES_MAX: u64 = 4 * 1_024 * 1_024;

/// A document to read, and the documents that complete it.
#[derive(Debug, Clone)]
pub struct OwnedDocument {
    pub bytes: Vec<u8>,
    pub url: ManifestUrl,
    pub final_url: Option<ManifestUrl>,
    pub discovery: Discovery,
    pub served: Option<Served>,
    pub linked: Vec<(ManifestUrl, Vec<u8>)>,
    /// The format in which to read the document, instead of the detected one.
    pub force: Option<Format>,
}

/// A document without its bytes: the first line of the input of a [`crate::ReaderProgram`].
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    url: ManifestUrl,
    final_url: Option<ManifestUrl>,
    discovery: Discovery,
    served: Option<Served>,
    force: Option<Format>,
    bytes: usize,
    linked: Vec<(ManifestUrl, usize)>,
}

impl OwnedDocument {
    /// Reads the document. Never fails. May take as long as the work limit of [`manifest::read`] allows.
    pub fn read(&self) -> Manifest {
        let linked: Vec<LinkedDocument<'_>> =
            self.linked.iter().map(|(url, bytes)| LinkedDocument { url, bytes }).collect();
        manifest::read(&Document {
            bytes: &self.bytes,
            url: &self.url,
            final_url: self.final_url.as_ref(),
            discovery: self.discovery,
            served: self.served.as_ref(),
            linked: &linked,
            force: self.force,
        })
    }

    /// The hash of all bytes that are read, including those of linked documents.
    pub fn hash(&self) -> ContentHash {
        if self.linked.is_empty() {
            return ContentHash::of(&self.bytes);
        }
        let hashes: Vec<String> =
            self.parts().map(|bytes| ContentHash::of(bytes).as_str().to_owned()).collect();
        ContentHash::of(hashes.join(" ").as_bytes())
    }

    /// Length of all bytes that are read.
    pub(crate) fn len(&self) -> usize {
        self.parts().map(<[u8]>::len).sum()
    }

    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self.bytes.as_slice()).chain(self.linked.iter().map(|(_, bytes)| bytes.as_slice()))
    }

    /// Writes the header as one line of JSON, then the bytes.
    pub(crate) fn write_to(&self, output: &mut impl Write) -> io::Result<()> {
        let header = Header {
            url: self.url.clone(),
            final_url: self.final_url.clone(),
            discovery: self.discovery,
            served: self.served.clone(),
            force: self.force,
            bytes: self.bytes.len(),
            linked: self.linked.iter().map(|(url, bytes)| (url.clone(), bytes.len())).collect(),
        };
        let mut line = serde_json::to_vec(&header)?;
        line.push(b'\n');
        output.write_all(&line)?;
        self.parts().try_for_each(|part| output.write_all(part))
    }

    /// Reads what [`Self::write_to`] wrote.
    ///
    /// # Errors
    ///
    /// If the header is malformed or has more than [`HEADER_BYTES_MAX`], or bytes are missing.
    pub(crate) fn read_from(input: &mut impl BufRead) -> io::Result<Self> {
        let mut line = Vec::new();
        input.by_ref().take(HEADER_BYTES_MAX).read_until(b'\n', &mut line)?;
        let header: Header = serde_json::from_slice(&line)?;
        let mut take = |length: usize| {
            let mut bytes = Vec::new();
            let taken = input.by_ref().take(length as u64).read_to_end(&mut bytes)?;
            if taken == length { Ok(bytes) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) }
        };
        let bytes = take(header.bytes)?;
        let linked = header.linked.into_iter().map(|(url, length)| Ok((url, take(length)?)));
        Ok(Self {
            bytes,
            url: header.url,
            final_url: header.final_url,
            discovery: header.discovery,
            served: header.served,
            linked: linked.collect::<io::Result<_>>()?,
            force: header.force,
        })
    }
}
