//! Reads rows back from the index.

use std::collections::HashSet;

use chrono::DateTime;
use manifest::CapabilityId;
use tantivy::collector::TopDocs;
use tantivy::query::TermQuery;
use tantivy::schema::IndexRecordOption;
use tantivy::schema::document::{DeserializeError, DocumentDeserialize, DocumentDeserializer, OwnedValue};
use tantivy::{DocAddress, DocSet, TERMINATED, Term};

use super::opened::OpenedIndex;
use crate::analysis::fold_exact;
use crate::answer::Hit;
use crate::error::IndexError;

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
    hit.site_endpoints =
        traits.map(|traits| opened.site_endpoints.of_site(traits.site).collect()).unwrap_or_default();
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

/// Returns those of `names` that a document which is not deleted has exactly.
pub(super) fn held_among(opened: &OpenedIndex, names: &[String]) -> Result<HashSet<String>, IndexError> {
    let failed = IndexError::engine("look names up");
    let mut held = HashSet::new();
    for name in names {
        let forms = [name.to_lowercase(), fold_exact(name)];
        let terms = forms.iter().map(|form| Term::from_field_text(opened.fields.exact, form));
        for term in terms {
            if has_document(opened, &term).map_err(&failed)? {
                held.insert(name.clone());
            }
        }
    }
    Ok(held)
}

fn has_document(opened: &OpenedIndex, term: &Term) -> tantivy::Result<bool> {
    for segment in opened.searcher.segment_readers() {
        let inverted = segment.inverted_index(term.field())?;
        let Some(mut postings) = inverted.read_postings(term, IndexRecordOption::Basic)? else { continue };
        let mut document = postings.doc();
        while document != TERMINATED {
            if !segment.is_deleted(document) {
                return Ok(true);
            }
            document = postings.advance();
        }
    }
    Ok(false)
}

pub(super) fn find(opened: &OpenedIndex, id: &CapabilityId) -> Result<Option<Hit>, IndexError> {
    address_of(opened, id)?.map(|address| row(opened, address)).transpose()
}
