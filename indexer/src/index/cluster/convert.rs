//! Documents and terms of our schema in the form of an engine.

use serde::{Deserialize, Serialize};
use tantivy::schema::{Field, Value as _};
use tantivy::{TantivyDocument, Term};

use super::super::schema::{Fields, SCHEMA_VERSION};
use crate::cluster::{EngineDocument, EngineError, EngineTerm, TEXT_FIELDS, TIME_FIELDS};
use crate::filter::FacetKey;

/// Maximum size of a document, uncompressed: several times that of one with the maximum number of terms.
const DOCUMENT_BYTES_MAX: usize = 4 << 20;
/// The fastest level, because a search decompresses hundreds of documents.
const COMPRESSION_LEVEL: i32 = 1;

/// A document as it is stored: the version of its schema, and its values in order.
#[derive(Serialize, Deserialize)]
struct Stored {
    schema_version: u32,
    values: Vec<(u32, StoredValue)>,
}

#[derive(Serialize, Deserialize)]
enum StoredValue {
    Text(String),
    U64(u64),
    I64(i64),
    F64(f64),
    Bool(bool),
    Bytes(Vec<u8>),
}

/// The document of a capability for the engine. `None` if it has no id.
pub(super) fn engine_document(fields: &Fields, document: &TantivyDocument) -> Option<EngineDocument> {
    let id = document.get_first(fields.id)?.as_str()?.to_owned();
    let (mut whole, mut texts, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for (field, value) in document.field_values() {
        let Some(name) = name_of(fields, field) else { continue };
        if let Some(time) = value.as_i64() {
            times.push((name, time));
        } else if let Some(text) = value.as_str() {
            let of_kind = if TEXT_FIELDS.contains(&name) { &mut texts } else { &mut whole };
            of_kind.push((name, text.to_owned()));
        } else if let Some(flag) = value.as_bool() {
            whole.push((name, flag.to_string()));
        } else if field == fields.spam {
            whole.push((name, true.to_string()));
        }
    }
    Some(EngineDocument { id, whole, texts, times, stored: stored(document) })
}

/// The name of a field that the engine has.
fn name_of(fields: &Fields, field: Field) -> Option<&'static str> {
    let [all, bigram, word] = TEXT_FIELDS;
    let [updated_ms, first_seen_ms] = TIME_FIELDS;
    let named = [
        (fields.all, all),
        (fields.bigram, bigram),
        (fields.word, word),
        (fields.updated_ms, updated_ms),
        (fields.first_seen_ms, first_seen_ms),
        (fields.id, "id"),
        (fields.manifest, "manifest"),
        (fields.exact, "exact"),
        (fields.host, "host"),
        (fields.speaker, "speaker"),
        (fields.invocable, "invocable"),
        (fields.spam, "spam"),
    ];
    let facets = FacetKey::ALL.iter().map(|key| (fields.facet(*key), key.as_str()));
    named.into_iter().chain(facets).find(|(of, _)| *of == field).map(|(_, name)| name)
}

/// A term of a text, a value or a flag; `None` if the engine does not have the field.
pub(crate) fn engine_term(fields: &Fields, term: &Term) -> Option<EngineTerm> {
    let value = term.value();
    let text = value.as_str().map(str::to_owned).or_else(|| value.as_bool().map(|flag| flag.to_string()))?;
    Some(EngineTerm { field: name_of(fields, term.field())?, text })
}

/// The name of the field of a time.
pub(crate) fn time_field(fields: &Fields, term: &Term) -> Option<&'static str> {
    name_of(fields, term.field()).filter(|name| TIME_FIELDS.contains(name))
}

fn stored(document: &TantivyDocument) -> Vec<u8> {
    let values = document.field_values().filter_map(|(field, value)| {
        let value = if let Some(text) = value.as_str() {
            StoredValue::Text(text.to_owned())
        } else if let Some(number) = value.as_u64() {
            StoredValue::U64(number)
        } else if let Some(number) = value.as_i64() {
            StoredValue::I64(number)
        } else if let Some(number) = value.as_f64() {
            StoredValue::F64(number)
        } else if let Some(flag) = value.as_bool() {
            StoredValue::Bool(flag)
        } else {
            StoredValue::Bytes(value.as_bytes()?.to_vec())
        };
        Some((field.field_id(), value))
    });
    let stored = Stored { schema_version: SCHEMA_VERSION, values: values.collect() };
    // writing to memory fails only without memory; an empty document is refused when it is read
    let bytes = postcard::to_stdvec(&stored).unwrap_or_default();
    zstd::bulk::compress(&bytes, COMPRESSION_LEVEL).unwrap_or_default()
}

/// The document that was stored.
pub(crate) fn document_of(stored: &[u8]) -> Result<TantivyDocument, EngineError> {
    let bytes = zstd::bulk::decompress(stored, DOCUMENT_BYTES_MAX).map_err(|_| EngineError::Document)?;
    let Stored { schema_version, values } =
        postcard::from_bytes(&bytes).map_err(|_| EngineError::Document)?;
    if schema_version != SCHEMA_VERSION {
        return Err(EngineError::Document);
    }
    let mut document = TantivyDocument::default();
    for (field, value) in values {
        let field = Field::from_field_id(field);
        match value {
            StoredValue::Text(text) => document.add_text(field, text),
            StoredValue::U64(number) => document.add_u64(field, number),
            StoredValue::I64(number) => document.add_i64(field, number),
            StoredValue::F64(number) => document.add_f64(field, number),
            StoredValue::Bool(flag) => document.add_bool(field, flag),
            StoredValue::Bytes(bytes) => document.add_bytes(field, &bytes),
        }
    }
    Ok(document)
}
