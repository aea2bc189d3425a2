//! Inferred safety classes. They never override the publisher's declaration.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

use manifest::model::TypeSource;
use manifest::{Discovery, Document, Manifest, ManifestUrl, SafetyClass};
use serde_json::{Value, json};

fn read(document: &Value) -> Manifest {
    manifest::read(&Document {
        bytes: document.to_string().as_bytes(),
        url: &ManifestUrl::parse("https://shop.example/.well-known/agent.json").unwrap(),
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[],
        force: None,
    })
}

/// The safety class of each capability by its id, and whether the publisher declared it.
fn classes(manifest: &Manifest) -> Vec<(&str, SafetyClass, bool)> {
    let classes = manifest.capabilities.iter().map(|capability| {
        let is_declared = capability.safety.source == TypeSource::Declared;
        (capability.native_id.as_str(), capability.safety.class, is_declared)
    });
    classes.collect()
}

#[test]
fn the_method_determines_the_class_if_none_is_declared() {
    let methods = ["get", "head", "options", "post", "put", "patch", "delete"];
    let operations: serde_json::Map<String, Value> = methods
        .into_iter()
        .map(|method| {
            (
                method.to_owned(),
                json!({"operationId": method, "responses": {"200": {"description": "Done."}}}),
            )
        })
        .collect();
    let description =
        json!({"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "paths": {"/x": operations}});
    let manifest = read(&description);
    let mut found = classes(&manifest);
    found.sort_unstable_by_key(|(id, ..)| methods.iter().position(|method| method == id));
    let expected = [
        ("get", SafetyClass::Read),
        ("head", SafetyClass::Read),
        ("options", SafetyClass::Read),
        ("post", SafetyClass::Write),
        ("put", SafetyClass::Write),
        ("patch", SafetyClass::Write),
        ("delete", SafetyClass::Destructive),
    ];
    assert_eq!(found, expected.map(|(id, class)| (id, class, false)));
}

#[test]
fn a_declared_class_is_never_lowered_and_a_name_does_not_change_it() {
    let capability = |id: &str, method: &str, side_effects: Option<bool>| {
        let mut capability =
            json!({"id": id, "name": id, "description": "Does it.", "endpoint": "/x", "method": method});
        if let Some(stated) = side_effects {
            capability["sideEffects"] = stated.into();
        }
        capability
    };
    let manifest = read(&json!({
        "@context": "https://atp.dev/schema/v1", "@type": "AgentManifest", "name": "Shop",
        "description": "A shop.", "version": "1.0.0", "capabilities": [
            capability("track-visit", "GET", Some(true)),
            capability("drop-cart", "DELETE", Some(false)),
            capability("delete-account", "GET", None),
        ],
    }));
    assert_eq!(
        classes(&manifest),
        [
            ("track-visit", SafetyClass::Write, true),
            ("drop-cart", SafetyClass::Destructive, false),
            ("delete-account", SafetyClass::Read, false),
        ]
    );
    let understated = manifest.findings.iter().filter(|finding| finding.code == "safety.understated").count();
    assert_eq!(understated, 1, "{:?}", manifest.findings);
}
