//! The texts of one commit that get vectors.

use serde::Deserialize;
use tantivy::schema::Value as _;
use tantivy::{DocAddress, Index, ReloadPolicy, Searcher, TantivyDocument};

use super::embedder::VECTORS_MAX;
use crate::analysis::words;
use crate::error::IndexError;
use crate::index::Fields;

/// The distinct texts of one commit.
pub(super) struct CommitTexts {
    searcher: Searcher,
    fields: Fields,
    /// Hashes of the texts, ascending, each with a document that contains the text.
    pub(super) texts: Vec<(u64, DocAddress)>,
    /// Number of texts beyond [`VECTORS_MAX`].
    pub(super) surplus: usize,
}

/// A text, and a capability that has it.
pub(super) struct CapabilityText {
    pub(super) text: String,
    pub(super) capability: String,
    pub(super) name: String,
}

/// The members of a row that are read.
#[derive(Deserialize)]
struct Row {
    id: String,
    name: String,
    description: Option<String>,
}

impl CommitTexts {
    pub(super) fn of(index: &Index) -> Result<Self, IndexError> {
        let failed = IndexError::engine("be read for its vectors");
        let fields = Fields::of(&index.schema()).map_err(&failed)?;
        let reader =
            index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().map_err(&failed)?;
        let searcher = tantivy::IndexReader::searcher(&reader);
        let mut texts = Vec::new();
        for (segment, ordinal) in searcher.segment_readers().iter().zip(0..) {
            let numbers = segment.fast_fields().u64("text_number").map_err(&failed)?;
            let of_segment = segment
                .doc_ids_alive()
                .filter_map(|document| Some((numbers.first(document)?, DocAddress::new(ordinal, document))));
            texts.extend(of_segment);
        }
        texts.sort_unstable();
        texts.dedup_by_key(|(key, _)| *key);
        let surplus = texts.len().saturating_sub(VECTORS_MAX);
        texts.truncate(VECTORS_MAX);
        if surplus > 0 {
            tracing::warn!(surplus, max = VECTORS_MAX, "too many texts: some are found by their words alone");
        }
        Ok(Self { searcher, fields, texts, surplus })
    }

    /// The text of a document: its name as words, and its description.
    pub(super) fn text(&self, address: DocAddress) -> Result<CapabilityText, IndexError> {
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
        Ok(CapabilityText { text, capability: row.id, name: row.name })
    }
}
