//! Documents as messages of the engine.

use std::collections::BTreeSet;

use crate::interface::EngineDocument;
use crate::proto::field_value::Value;
use crate::proto::{FieldEntry, FieldValue, NamedDocument};
use crate::schema::{ID, MARKER, PHRASE_FIELD, STORED, kept};

/// Every marker has this value; the other one is that of its commit.
pub(crate) const IS_MARKER: &str = "marker";

pub(crate) fn named(document: EngineDocument) -> NamedDocument {
    let mut fields = vec![text(ID, document.id)];
    for (name, value) in document.whole {
        fields.extend(kept(&value).map(|value| text(name, value)));
    }
    let (phrases, scored): (Vec<_>, Vec<_>) =
        document.texts.into_iter().partition(|(name, _)| *name == PHRASE_FIELD);
    for (name, terms) in scored {
        fields.extend(terms.split(' ').filter_map(kept).map(|term| text(name, term)));
    }
    let phrases: BTreeSet<String> = phrases.iter().flat_map(|(_, words)| words_and_pairs(words)).collect();
    fields.extend(phrases.into_iter().map(|value| text(PHRASE_FIELD, value)));
    fields.extend(document.times.into_iter().map(|(name, at)| entry(name, Value::I64(at))));
    fields.push(entry(STORED, Value::BytesValue(document.stored)));
    NamedDocument { fields }
}

/// The document that marks a commit on one shard.
pub(crate) fn marker(key: &str, commit: &str) -> NamedDocument {
    NamedDocument {
        fields: vec![
            text(ID, key.to_owned()),
            text(MARKER, IS_MARKER.to_owned()),
            text(MARKER, commit.to_owned()),
        ],
    }
}

/// The words of a text, and each pair of neighbours, joined by a space.
fn words_and_pairs(words: &str) -> Vec<String> {
    let words: Vec<String> = words.split(' ').filter_map(kept).collect();
    let pairs = words.windows(2).map(|pair| pair.join(" "));
    let pairs: Vec<String> = pairs.collect();
    words.into_iter().chain(pairs).collect()
}

/// The terms that a text has if it contains a phrase: its word, or its pairs of neighbours.
pub(crate) fn of_phrase<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let words: Vec<String> = words.filter_map(kept).collect();
    if words.len() < 2 { words } else { words.windows(2).map(|pair| pair.join(" ")).collect() }
}

fn text(name: &str, value: String) -> FieldEntry {
    entry(name, Value::Text(value))
}

fn entry(name: &str, value: Value) -> FieldEntry {
    FieldEntry { name: name.to_owned(), value: Some(FieldValue { value: Some(value) }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(document: &NamedDocument, field: &str) -> Vec<String> {
        let of_field = document.fields.iter().filter(|entry| entry.name == field);
        let texts = of_field.filter_map(|entry| match &entry.value.as_ref()?.value {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        });
        texts.collect()
    }

    #[test]
    fn repeated_terms_stay_repeated_and_phrases_do_not_span_texts() {
        let document = named(EngineDocument {
            id: "C1".to_owned(),
            whole: vec![("method", "GET".to_owned()), ("method", " ".to_owned())],
            texts: vec![
                ("all", "book flight book".to_owned()),
                ("word", "Book a flight".to_owned()),
                ("word", "book".to_owned()),
            ],
            times: vec![("updated_ms", 7)],
            stored: vec![1, 2],
        });
        assert_eq!(values(&document, ID), ["C1"]);
        assert_eq!(values(&document, "method"), ["get"]);
        assert_eq!(values(&document, "all"), ["book", "flight", "book"]);
        assert_eq!(values(&document, "word"), ["a", "a flight", "book", "book a", "flight"]);
    }

    #[test]
    fn a_phrase_asks_for_its_pairs() {
        assert_eq!(of_phrase(["Book"].into_iter()), ["book"]);
        assert_eq!(of_phrase(["book", "a", "flight"].into_iter()), ["book a", "a flight"]);
        assert!(of_phrase([""].into_iter()).is_empty());
    }
}
