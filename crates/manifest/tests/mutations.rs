//! Invariants of reading damaged documents in every format: reading terminates, is deterministic and stays within the caps, and capability
//! ids are unique.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be read has to fail the test")]

mod support;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use manifest::{Discovery, Document, Format, Manifest, ManifestUrl};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;
use support::Case;

fn read(bytes: &[u8], force: Option<Format>) -> Manifest {
    let url = ManifestUrl::parse("https://mutant.example/.well-known/agents.json").unwrap();
    manifest::read(&Document {
        bytes,
        url: &url,
        final_url: None,
        discovery: Discovery::Submitted,
        served: None,
        linked: &[],
        force,
    })
}

fn assert_invariants(manifest: &Manifest, again: &Manifest) {
    assert_eq!(manifest, again);
    assert!(manifest.capabilities.len() <= 5_000);
    let ids: BTreeSet<&str> =
        manifest.capabilities.iter().map(|capability| capability.native_id.as_str()).collect();
    assert_eq!(ids.len(), manifest.capabilities.len());
    for finding in &manifest.findings {
        assert!(finding.pointer.is_empty() || finding.pointer.starts_with('/'), "{}", finding.pointer);
    }
}

/// Values of wrong types, as publishers write them.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        select(vec!["GET /x", "https://", "{", "/a/{b", ":", "60/", "urn:air:a:b", "[](", "P", "#/"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let keys = select(vec!["name", "id", "url", "type", "$ref", "tools", "entries", "skills", "é"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..4).prop_map(|members| members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

fn pointers(value: &Value, here: &str, found: &mut Vec<String>) {
    found.push(here.to_owned());
    match value {
        Value::Object(map) => {
            for (key, member) in map {
                pointers(member, &format!("{here}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(list) => {
            for (index, item) in list.iter().enumerate() {
                pointers(item, &format!("{here}/{index}"), found);
            }
        }
        _ => {}
    }
}

static DOCUMENTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    Case::all().iter().map(|case| case.bytes.clone()).filter(|bytes| bytes.len() < 20_000).collect()
});

#[test]
fn every_fixture_satisfies_the_invariants() {
    for case in Case::all() {
        let manifest = case.read();
        assert_eq!(manifest.format().as_str(), case.format, "{}", case.folder.display());
        assert_invariants(&manifest, &case.read());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_documents_satisfy_the_invariants_in_any_format(
        case in any::<Index>(), at in any::<Index>(), value in any_value(), format in select(Format::ALL),
    ) {
        let bytes = case.get(&DOCUMENTS);
        let damaged = if let Ok(mut document) = serde_json::from_slice::<Value>(bytes) {
            let mut all = Vec::new();
            pointers(&document, "", &mut all);
            if let Some(slot) = document.pointer_mut(at.get(&all).as_str()) {
                *slot = value;
            }
            document.to_string().into_bytes()
        } else {
            let mut text = bytes.clone();
            text.truncate(at.index(bytes.len().max(1)));
            text.extend_from_slice(value.to_string().as_bytes());
            text
        };
        assert_invariants(&read(&damaged, None), &read(&damaged, None));
        assert_invariants(&read(&damaged, Some(format)), &read(&damaged, Some(format)));
    }

    #[test]
    fn any_value_satisfies_the_invariants_in_every_format(value in any_value(), format in select(Format::ALL)) {
        let bytes = value.to_string();
        assert_invariants(&read(bytes.as_bytes(), Some(format)), &read(bytes.as_bytes(), Some(format)));
    }

    #[test]
    fn any_text_satisfies_the_invariants_in_every_format(text in "\\PC{0,80}(\n\\PC{0,40}){0,6}", format in select(Format::ALL)) {
        assert_invariants(&read(text.as_bytes(), Some(format)), &read(text.as_bytes(), Some(format)));
    }
}
