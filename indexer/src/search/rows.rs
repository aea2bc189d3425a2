//! Reads rows back from the index.

use std::collections::HashSet;

use chrono::DateTime;
use manifest::CapabilityId;
use manifest::entry::publisher_of;
use tantivy::collector::TopDocs;
use tantivy::query::TermQuery;
use tantivy::schema::IndexRecordOption;
use tantivy::schema::document::{DeserializeError, DocumentDeserialize, DocumentDeserializer, OwnedValue};
use tantivy::{DocAddress, DocSet, TERMINATED, Term};

use super::opened::OpenedIndex;
use crate::answer::Hit;
use crate::error::IndexError;
use crate::filter::FacetKey;

/// The bytes of a stored row, without the overhead of a `TantivyDocument`.
struct RowBytes(Vec<u8>);

impl DocumentDeserialize for RowBytes {
    fn deserialize<'de, D: DocumentDeserializer<'de>>(mut document: D) -> Result<Self, DeserializeError> {
        while let Some((_, value)) = document.next_field::<OwnedValue>()? {
            if let OwnedValue::Bytes(bytes) = value {
                return Ok(Self(bytes));
            }
        }
        Ok(Self(Vec::new()))
    }
}

/// The row of a document; score and snippet are empty.
pub(super) fn row(opened: &OpenedIndex, address: DocAddress) -> Result<Hit, IndexError> {
    let failed = IndexError::engine("read a document");
    let RowBytes(json) = opened.searcher.doc(address).map_err(&failed)?;
    let mut hit: Hit = serde_json::from_slice(&json).map_err(IndexError::Row)?;
    let columns = opened.columns.get(address.segment_ord as usize);
    let first_seen_ms = columns.and_then(|columns| columns.first_seen_ms.first(address.doc_id));
    let first_seen_at = first_seen_ms.and_then(DateTime::from_timestamp_millis);
    hit.first_seen_at = first_seen_at.unwrap_or_default();
    let traits = columns.and_then(|columns| columns.traits(address.doc_id));
    hit.site_endpoints = traits
        .map(|traits| opened.site_endpoints.of_document(address, traits.site).collect())
        .unwrap_or_default();
    Ok(hit)
}

fn address_of(opened: &OpenedIndex, id: &CapabilityId) -> Result<Option<DocAddress>, IndexError> {
    let term = Term::from_field_text(opened.fields.id, id.as_str());
    let query = TermQuery::new(term, IndexRecordOption::Basic);
    let found = opened
        .searcher
        .search(&query, &TopDocs::with_limit(1).order_by_score())
        .map_err(IndexError::engine("find a capability"))?;
    Ok(found.first().map(|(_, address)| *address))
}

/// Those of some identifiers that a document of their publisher has which is not deleted. A title may be any text, also an identifier, so a
/// document of another publisher does not count.
pub(super) fn held_among(
    opened: &OpenedIndex,
    identifiers: &[String],
) -> Result<HashSet<String>, IndexError> {
    let failed = IndexError::engine("look identifiers up");
    let publishers = opened.fields.facet(FacetKey::Publisher);
    let mut held = HashSet::new();
    for identifier in identifiers {
        let form = identifier.to_lowercase();
        let publisher = Term::from_field_text(publishers, publisher_of(&form));
        let named = Term::from_field_text(opened.fields.exact, &form);
        if has_document(opened, &named, &publisher).map_err(&failed)? {
            held.insert(identifier.clone());
        }
    }
    Ok(held)
}

/// Whether a document that is not deleted has both terms.
fn has_document(opened: &OpenedIndex, one: &Term, other: &Term) -> tantivy::Result<bool> {
    for segment in opened.searcher.segment_readers() {
        let read = |term: &Term| -> tantivy::Result<_> {
            let inverted = segment.inverted_index(term.field())?;
            Ok(inverted.read_postings(term, IndexRecordOption::Basic)?)
        };
        let (Some(mut found), Some(mut others)) = (read(one)?, read(other)?) else { continue };
        let mut document = found.doc();
        while document != TERMINATED {
            let reached = if others.doc() < document { others.seek(document) } else { others.doc() };
            if reached == document && !segment.is_deleted(document) {
                return Ok(true);
            }
            document = found.advance();
        }
    }
    Ok(false)
}

pub(super) fn find(opened: &OpenedIndex, id: &CapabilityId) -> Result<Option<Hit>, IndexError> {
    address_of(opened, id)?.map(|address| row(opened, address)).transpose()
}
