//! The terms of an entry: core terms by their usual names, and the others as published (ARD 0.91 §3.4, §4.1).

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::budget;
use crate::object::Object;
use crate::public_address::not_public;
use crate::term::TermContext;

/// Members that have fields in the model.
const READ: [&str; 14] = [
    "@id",
    "@type",
    "capabilities",
    "data",
    "description",
    "displayName",
    "identifier",
    "mediaType",
    "representativeQueries",
    "tags",
    "type",
    "updatedAt",
    "url",
    "version",
];
/// Members that only search results have; the registry sets them.
const OF_RESULTS: [&str; 2] = ["score", "source"];
/// Maximum number of members kept from one entry; published ones have up to a dozen.
const MEMBERS_MAX: usize = 64;
/// Memory for all members of one entry: a trust manifest with attestations takes about two KiB.
const BYTES_MAX: usize = 8 * 1_024;
/// Maximum number of bytes of a member's name: the longest IRI of a term.
const NAME_BYTES_MAX: usize = 512;

/// The members of an entry, with core terms by their usual names and other terms by their IRIs. `None` if they already have these names.
pub(super) fn with_usual_names(entry: &Map<String, Value>) -> Option<Map<String, Value>> {
    let context = TermContext::of(entry.get("@context"));
    let usual = |name: &str| match context.core_term(name) {
        Some("type") if name == "mediaType" => name.to_owned(),
        Some(core) => core.to_owned(),
        None if TermContext::default().core_term(name).is_some() => context.resolve(name),
        None => name.to_owned(),
    };
    if entry.keys().all(|name| name.starts_with('@') || usual(name) == *name) {
        return None;
    }
    let mut renamed = Map::new();
    for (name, value) in entry {
        let name = if name.starts_with('@') { name.clone() } else { usual(name) };
        renamed.entry(name).or_insert_with(|| value.clone());
    }
    Some(renamed)
}

/// The members of an entry that are kept: as many as fit, sorted by name, `@context` first. Members with an address that is not public are
/// left out, because agents read them. If the context gives core terms another meaning, or contains such an address, it is left out and
/// terms are named by their IRIs, because the entries of this registry use the core terms.
pub(super) fn published(entry: &Object<'_>) -> Map<String, Value> {
    let context = TermContext::of(entry.map.get("@context"));
    let keeps_context = context.keeps_core_terms() && entry.map.get("@context").is_none_or(is_public);
    let mut kept = Map::new();
    let mut left = BYTES_MAX;
    let own_context = entry.map.get_key_value("@context").filter(|_| keeps_context);
    let is_read = |name: &str| name == "@context" || READ.contains(&name) || OF_RESULTS.contains(&name);
    let others = entry.map.iter().filter(|(name, _)| !is_read(name));
    for (name, value) in own_context.into_iter().chain(others) {
        let is_core = name.starts_with('@') || TermContext::default().core_term(name).is_some();
        let name = if keeps_context || is_core { name.clone() } else { context.resolve(name) };
        let value = if name == "metadata" { Cow::Owned(plain(value)) } else { Cow::Borrowed(value) };
        let bytes = name.len() + budget::memory_of(&*value, left);
        let fits = kept.len() < MEMBERS_MAX && name.len() <= NAME_BYTES_MAX && bytes <= left;
        if fits && !value.is_null() && is_public(&value) {
            left -= bytes;
            kept.insert(name, value.into_owned());
        }
    }
    kept
}

/// The plain values of `metadata`; null unless there are some.
fn plain(metadata: &Value) -> Value {
    let members = metadata.as_object().into_iter().flatten();
    let plain = members.filter(|(_, value)| !value.is_object() && !value.is_array() && !value.is_null());
    let plain: Map<String, Value> = plain.map(|(name, value)| (name.clone(), value.clone())).collect();
    if plain.is_empty() { Value::Null } else { Value::Object(plain) }
}

fn is_public(value: &Value) -> bool {
    match value {
        Value::String(text) => not_public(text).is_none(),
        Value::Array(values) => values.iter().all(is_public),
        Value::Object(members) => members.values().all(is_public),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(entry: &Value) -> Value {
        Value::Object(published(&Object::root(entry.as_object().unwrap())))
    }

    #[test]
    fn keeps_context_terms_trust_and_plain_metadata() {
        let kept = of(
            &json!({"@context": {"a": "https://a.example/ns#"}, "identifier": "urn:air:a.example:x", "tags": ["y"],
            "a:tier": "gold", "seats": 3, "metadata": {"region": "north", "deep": {"x": 1}, "none": null},
            "trustManifest": {"identity": "did:web:a.example"}}),
        );
        assert_eq!(
            kept,
            json!({"@context": {"a": "https://a.example/ns#"}, "a:tier": "gold", "seats": 3, "metadata": {"region": "north"},
                   "trustManifest": {"identity": "did:web:a.example"}})
        );
        assert_eq!(of(&json!({"identifier": "x", "metadata": {"deep": []}, "nothing": null})), json!({}));
    }

    #[test]
    fn reads_core_terms_under_every_name() {
        let renamed = |entry: &Value| with_usual_names(entry.as_object().unwrap()).map(Value::Object);
        let entry = json!({"@context": {"a": "https://agenticresourcediscovery.org/ns#", "tags": "https://a.example/ns#labels"},
                           "a:displayName": "A", "a:mediaType": "text/plain", "tags": ["x"]});
        assert_eq!(
            renamed(&entry),
            Some(json!({"@context": entry["@context"], "displayName": "A", "type": "text/plain",
                        "https://a.example/ns#labels": ["x"]}))
        );
        for usual in
            [json!({"displayName": "A", "type": "x", "a:b": 1, "seats": 2}), json!({"mediaType": "x"})]
        {
            assert_eq!(renamed(&usual), None, "{usual}");
        }
        let kept = of(
            &json!({"@context": {"tags": "https://a.example/ns#labels", "b": "https://b.example/#"}, "b:tier": 1}),
        );
        assert_eq!(kept, json!({"https://b.example/#tier": 1}));
    }

    #[test]
    fn leaves_out_addresses_that_are_not_public() {
        let kept = of(&json!({"a:endpoint": "http://10.0.0.1/x", "a:list": [{"at": "https://localhost/"}],
                              "a:home": "https://a.example/"}));
        assert_eq!(kept, json!({"a:home": "https://a.example/"}));
    }

    #[test]
    fn members_of_one_entry_are_bounded() {
        let long = of(&json!({"a:long": "x".repeat(BYTES_MAX), "a:short": "y"}));
        assert_eq!(long, json!({"a:short": "y"}));
        let many: Map<String, Value> = (0..1_000).map(|number| (format!("a:{number}"), json!(1))).collect();
        assert!(of(&Value::Object(many)).as_object().unwrap().len() <= MEMBERS_MAX);
        let name = "n".repeat(NAME_BYTES_MAX + 1);
        assert_eq!(of(&json!({name: 1})), json!({}));
    }
}
