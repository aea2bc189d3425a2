//! The fields of an index on the engine, in its schema language.
//!
//! Every term is a value of its own, which the engine keeps whole: it only removes spaces at the ends and changes case. So terms that differ
//! in nothing else count as one, and a search may find a few documents too many.

use crate::interface::EngineFields;

/// The text field that answers phrases. It is not scored.
pub(crate) const PHRASE_FIELD: &str = "word";

/// The id of a document, its primary key.
pub(crate) const ID: &str = "_id";
/// The bytes that are returned with a document.
pub(crate) const STORED: &str = "_stored";
/// The marker of a commit; documents of the index have none.
pub(crate) const MARKER: &str = "_marker";
/// The whole field by which the documents of a manifest are found.
pub(crate) const MANIFEST: &str = "manifest";

/// The definition of an index with these fields.
pub(crate) fn definition(index: &str, fields: &EngineFields) -> String {
    let mut lines = Vec::new();
    let mut field = |name: &str, kind: &str| lines.push(format!("    field {name}: {kind}\n"));
    field(ID, "text<raw> [indexed, stored, fast, primary]");
    field(STORED, "bytes [stored]");
    field(MARKER, "text<raw_ci> [indexed]");
    for name in fields.whole.iter().chain(&fields.texts) {
        field(name, "text<raw_ci> [indexed<k1: 1.2, b: 0.75>]");
    }
    for name in &fields.times {
        field(name, "i64 [fast]");
    }
    format!("index {index} {{\n{}}}\n", lines.concat())
}

/// A term as the engine keeps it; `None` if nothing of it is left.
pub(crate) fn kept(term: &str) -> Option<String> {
    let kept = term.trim().to_lowercase();
    (!kept.is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defines_every_field() {
        let fields = EngineFields {
            whole: vec!["manifest", "site"],
            texts: vec!["all", PHRASE_FIELD],
            times: vec!["updated_ms"],
        };
        let text = definition("agentdex_1", &fields);
        assert!(text.starts_with("index agentdex_1 {\n"), "{text}");
        for field in ["_id", "_stored", "_marker", "manifest", "site", "all", "word", "updated_ms"] {
            assert_eq!(text.matches(&format!("field {field}: ")).count(), 1, "{field}: {text}");
        }
    }

    #[test]
    fn keeps_terms_without_case_and_outer_spaces() {
        assert_eq!(kept(" Book a Flight ").as_deref(), Some("book a flight"));
        assert_eq!(kept(" "), None);
    }
}
