//! The manifest of a document before it is read.

use crate::document::Document;
use crate::model::{Detection, Manifest};
use crate::name::{ContentHash, ManifestId};

/// The hash of the document's bytes and of the documents that were merged into it.
fn content_hash(document: &Document<'_>) -> ContentHash {
    if document.linked.is_empty() {
        return ContentHash::of(document.bytes);
    }
    let linked = document.linked.iter().map(|linked| linked.bytes);
    ContentHash::of_parts(std::iter::once(document.bytes).chain(linked))
}

pub(super) fn blank(document: &Document<'_>, origin: String, detection: Detection) -> Manifest {
    Manifest {
        id: ManifestId::of(document.url),
        content_hash: content_hash(document),
        url: document.url.clone(),
        final_url: document.final_url.cloned(),
        origin,
        declared_origin: None,
        discovery: document.discovery,
        detection,
        document_version: None,
        updated_at: None,
        name: None,
        title: None,
        description: None,
        language: None,
        tags: Vec::new(),
        representative_queries: Vec::new(),
        provider: crate::model::Provider::default(),
        contact: crate::model::Contact::default(),
        auth: Vec::new(),
        features: crate::model::Features::default(),
        errors: Vec::new(),
        hints: serde_json::Map::new(),
        sessions: None,
        audit: None,
        rate_limit: None,
        policies: crate::model::Policies::default(),
        status: crate::model::Status::default(),
        source: crate::model::Source::default(),
        interfaces: Vec::new(),
        payments: Vec::new(),
        links: Vec::new(),
        capabilities: Vec::new(),
        workflows: Vec::new(),
        schemas: serde_json::Map::new(),
        integrity: crate::model::Integrity::default(),
        conformance: Vec::new(),
        findings: Vec::new(),
        served: document.served.cloned().unwrap_or_default(),
    }
}
