//! The document of a manifest in the vocabulary: what is read from dictionaries, and the facts of its site.

use std::collections::{BTreeSet, HashSet};

use manifest::ManifestId;
use serde::{Deserialize, Serialize};
use tantivy::collector::DocSetCollector;
use tantivy::query::TermQuery;
use tantivy::schema::{Field, IndexRecordOption, Value as _};
use tantivy::{Searcher, TantivyDocument, Term};

use super::super::schema::Fields;
use crate::error::IndexError;
use crate::filter::FacetKey;

/// The stored row of a manifest.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    manifest: String,
    /// The capabilities in the engine that the manifest leads.
    capabilities: Vec<String>,
}

/// The document of a manifest with these capabilities.
pub(super) fn document(
    fields: &Fields,
    manifest: &ManifestId,
    capabilities: &[TantivyDocument],
) -> Result<TantivyDocument, IndexError> {
    let mut document = TantivyDocument::default();
    document.add_text(fields.manifest, manifest.as_str());
    let facets = [FacetKey::SemanticType, FacetKey::Language, FacetKey::AgentEndpoint];
    let facets = facets.map(|key| fields.facet(key));
    for field in [fields.id, fields.suggest, fields.speaker].into_iter().chain(facets) {
        for value in values(capabilities, field) {
            document.add_text(field, value);
        }
    }
    let words = values(capabilities, fields.word);
    let words: BTreeSet<&str> = words.iter().flat_map(|text| text.split(' ')).collect();
    document.add_text(fields.word, words.into_iter().collect::<Vec<_>>().join(" "));
    let first = |field: Field| capabilities.iter().find_map(move |document| document.get_first(field));
    if let Some(site) = first(fields.site_number).and_then(|value| value.as_u64()) {
        document.add_u64(fields.site_number, site);
    }
    if let Some(updated_ms) = first(fields.updated_ms).and_then(|value| value.as_i64()) {
        document.add_i64(fields.updated_ms, updated_ms);
    }
    if let Some(facts) = first(fields.site_facts).and_then(|value| value.as_bytes()) {
        document.add_bytes(fields.site_facts, facts);
    }
    let capabilities = values(capabilities, fields.id).into_iter().map(str::to_owned).collect();
    let row = Row { manifest: manifest.as_str().to_owned(), capabilities };
    document.add_bytes(fields.row, &serde_json::to_vec(&row).map_err(IndexError::Row)?);
    Ok(document)
}

/// The distinct texts of a field.
fn values(documents: &[TantivyDocument], field: Field) -> BTreeSet<&str> {
    let values = documents.iter().flat_map(|document| document.get_all(field));
    values.filter_map(|value| value.as_str()).collect()
}

/// The capabilities of a committed manifest.
pub(super) fn capabilities_of(
    searcher: &Searcher,
    fields: &Fields,
    manifest: &ManifestId,
) -> Result<Vec<String>, IndexError> {
    let rows = rows_with(searcher, fields, &Term::from_field_text(fields.manifest, manifest.as_str()))?;
    Ok(rows.into_iter().flat_map(|row| row.capabilities).collect())
}

/// Whether a committed manifest that has not changed since leads a capability.
pub(super) fn is_led_by_another(
    searcher: &Searcher,
    fields: &Fields,
    capability: &str,
    changed: &HashSet<&str>,
) -> Result<bool, IndexError> {
    let rows = rows_with(searcher, fields, &Term::from_field_text(fields.id, capability))?;
    Ok(rows.iter().any(|row| !changed.contains(row.manifest.as_str())))
}

fn rows_with(searcher: &Searcher, fields: &Fields, term: &Term) -> Result<Vec<Row>, IndexError> {
    let failed = IndexError::engine("look a manifest up");
    let query = TermQuery::new(term.clone(), IndexRecordOption::Basic);
    let found = searcher.search(&query, &DocSetCollector).map_err(&failed)?;
    let row = |address| {
        let document: TantivyDocument = searcher.doc(address).map_err(&failed)?;
        let bytes = document.get_first(fields.row).and_then(|value| value.as_bytes()).unwrap_or_default();
        serde_json::from_slice(bytes).map_err(IndexError::Row)
    };
    found.into_iter().map(row).collect()
}
