//! The texts of one commit that have vectors.

use serde::Deserialize;
use tantivy::schema::Value as _;
use tantivy::{DocAddress, Index, ReloadPolicy, Searcher, TantivyDocument};

use super::VECTORS_MAX;
use crate::analysis::words;
use crate::error::IndexError;
use crate::index::Fields;

/// What one commit says.
pub(super) struct Said {
    searcher: Searcher,
    fields: Fields,
    /// The numbers of its texts, rising, each with a document that says it.
    pub(super) texts: Vec<(u64, DocAddress)>,
    /// Texts beyond the most that get vectors.
    pub(super) beyond: usize,
}

/// What is embedded, and a capability that says it.
pub(super) struct Wording {
    pub(super) text: String,
    pub(super) capability: String,
    pub(super) name: String,
}

/// What of a row is embedded.
#[derive(Deserialize)]
struct Row {
    id: String,
    name: String,
    description: Option<String>,
}

impl Said {
    pub(super) fn of(index: &Index) -> Result<Self, IndexError> {
        let failed = IndexError::engine("be read for its vectors");
        let fields = Fields::of(&index.schema())
            .ok_or_else(|| failed(tantivy::TantivyError::SchemaError("a field is missing".to_owned())))?;
        let reader =
            index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().map_err(&failed)?;
        let searcher = tantivy::IndexReader::searcher(&reader);
        let mut texts = Vec::new();
        for (segment, ordinal) in searcher.segment_readers().iter().zip(0..) {
            let numbers = segment.fast_fields().u64("text_number").map_err(&failed)?;
            let said = segment
                .doc_ids_alive()
                .filter_map(|document| Some((numbers.first(document)?, DocAddress::new(ordinal, document))));
            texts.extend(said);
        }
        texts.sort_unstable();
        texts.dedup_by_key(|(key, _)| *key);
        let beyond = texts.len().saturating_sub(VECTORS_MAX);
        texts.truncate(VECTORS_MAX);
        if beyond > 0 {
            tracing::warn!(beyond, max = VECTORS_MAX, "texts beyond the most are found by their words alone");
        }
        Ok(Self { searcher, fields, texts, beyond })
    }

    /// What a document says: its name, written as words, and its description.
    pub(super) fn text(&self, address: DocAddress) -> Result<Wording, IndexError> {
        let document: TantivyDocument =
            self.searcher.doc(address).map_err(IndexError::engine("read a document"))?;
        let json = document.get_first(self.fields.row).and_then(|value| value.as_bytes()).unwrap_or_default();
        let row: Row = serde_json::from_slice(json).map_err(IndexError::Row)?;
        let mut text = String::new();
        for word in words(&row.name) {
            text.push_str(&word.text);
            text.push(' ');
        }
        text.truncate(text.trim_end().len());
        if let Some(description) = row.description.filter(|description| !description.is_empty()) {
            text.push_str(": ");
            text.push_str(&description);
        }
        Ok(Wording { text, capability: row.id, name: row.name })
    }
}
