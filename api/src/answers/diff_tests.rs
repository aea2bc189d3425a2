//! Differences between versions, and which of them break a caller.

use manifest::{Manifest, ManifestUrl};
use serde_json::{Value, json};

use super::{CHANGES_MAX, difference};

fn version(number: Option<&str>, capabilities: &[Value]) -> Manifest {
    let url = ManifestUrl::parse("https://skyhop.example/agent.json").unwrap();
    let whole = capabilities.iter().map(|given| {
        let native = given["native_id"].as_str().unwrap();
        let key = format!("k:{native}");
        let mut value =
            json!({"id": manifest::CapabilityId::of_key(&key), "key": key, "name": native, "kind": "action"});
        value.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        value
    });
    serde_json::from_value(json!({
        "id": manifest::ManifestId::of(&url), "url": url, "origin": url.origin(), "discovery": "root",
        "content_hash": manifest::ContentHash::of(b"x"), "document_version": number,
        "detection": {"format": "awp", "strength": "strong", "evidence": []},
        "capabilities": whole.collect::<Vec<_>>(),
    }))
    .unwrap()
}

fn book(more: &Value) -> Value {
    let mut value = json!({
        "native_id": "book", "description": "Books.",
        "invocation": {"protocol": "http", "method": "POST", "url": "https://skyhop.example/book"},
        "parameters": {"type": "object", "required": ["seat"], "properties": {
            "seat": {"type": "string", "maxLength": 5, "x-in": "body"},
            "cabin": {"type": "string", "enum": ["first", "second"], "x-in": "body"}}},
        "response": {"type": "object", "properties": {"number": {"type": "integer"}}},
        "safety": {"class": "write", "source": "declared", "confirmation": "none"},
    });
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    value
}

fn parameters(required: &[&str], properties: &Value) -> Value {
    book(&json!({"parameters": {"type": "object", "required": required, "properties": properties}}))
}

#[test]
fn reports_added_removed_and_changed_capabilities() {
    let before = version(Some("1.4.0"), &[book(&json!({})), json!({"native_id": "old"})]);
    let after = version(
        Some("1.5.0"),
        &[book(&json!({"description": "Books a seat."})), json!({"native_id": "new"})],
    );
    insta::assert_json_snapshot!(difference(&before, &after));
    let same = difference(&before, &before);
    assert!(!same.breaking && same.changed.is_empty() && same.added.is_empty() && same.removed.is_empty());
}

#[test]
fn flags_breaking_changes_without_a_major_version() {
    let (whole, empty) = ([book(&json!({}))], []);
    for (from, to, raised, flagged) in [
        (Some("1.4"), Some("2.0"), Some(true), false),
        (Some("v1"), Some("v1.9"), Some(false), true),
        (Some("2026-01-01"), None, None, true),
        (None, None, None, true),
    ] {
        let found = difference(&version(from, &whole), &version(to, &empty));
        assert_eq!(found.major_version_raised, raised, "{from:?} {to:?}");
        assert!(found.breaking);
        assert_eq!(found.breaking_without_major_version, flagged, "{from:?} {to:?}");
    }
}

/// Compares the booking with its changed version.
#[track_caller]
fn assert_breaks(after: &Value, broken: Option<&str>) {
    let found = difference(&version(None, &[book(&json!({}))]), &version(None, std::slice::from_ref(after)));
    assert_eq!(found.changed.len(), 1, "{after}");
    match broken {
        Some(words) => {
            assert!(found.breaking_changes.iter().any(|why| why.contains(words)), "{words}: {found:?}");
        }
        None => assert!(!found.breaking, "{found:?}"),
    }
}

#[test]
fn changed_endpoint_or_safety_is_breaking() {
    for (after, broken) in [
        (
            book(
                &json!({"invocation": {"protocol": "http", "method": "PUT", "url": "https://skyhop.example/book"}}),
            ),
            Some("another method"),
        ),
        (
            book(
                &json!({"invocation": {"protocol": "http", "method": "POST", "url": "https://skyhop.example/v2"}}),
            ),
            Some("another address"),
        ),
        (
            book(&json!({"safety": {"class": "irreversible", "source": "declared", "confirmation": "none"}})),
            Some("more severe"),
        ),
        (book(&json!({"safety": {"class": "read", "source": "declared", "confirmation": "none"}})), None),
        (
            book(&json!({"safety": {"class": "write", "source": "declared", "confirmation": "required"}})),
            Some("has to confirm"),
        ),
        (
            book(&json!({"safety": {"class": "write", "source": "declared", "confirmation": "recommended"}})),
            None,
        ),
        (book(&json!({"auth": {"required": "yes", "schemes": ["bearer"]}})), Some("needs authentication")),
        (book(&json!({"deprecated": true})), None),
        (book(&json!({"response": {"type": "object", "properties": {}}})), Some("not answered any more")),
        (
            book(&json!({"response": {"type": "object", "properties": {"number": {"type": "string"}}}})),
            Some("answered as another type"),
        ),
        (
            book(
                &json!({"response": {"type": "object", "properties": {"number": {"type": "integer"}, "more": {}}}}),
            ),
            None,
        ),
    ] {
        assert_breaks(&after, broken);
    }
}

#[test]
fn narrowed_parameters_are_breaking() {
    let seat = json!({"type": "string", "maxLength": 5, "x-in": "body"});
    let cabin = json!({"type": "string", "enum": ["first", "second"], "x-in": "body"});
    for (after, broken) in [
        (
            parameters(&["seat", "cabin"], &json!({"seat": seat, "cabin": cabin})),
            Some("\"cabin\" has to be given"),
        ),
        (
            parameters(&["seat", "day"], &json!({"seat": seat, "cabin": cabin, "day": {"type": "string"}})),
            Some("\"day\" has to be given"),
        ),
        (parameters(&["seat"], &json!({"seat": seat, "cabin": cabin, "day": {"type": "string"}})), None),
        (parameters(&[], &json!({"seat": seat, "cabin": cabin})), None),
        (parameters(&["seat"], &json!({"seat": seat})), Some("\"cabin\" is not taken")),
        (
            parameters(&["seat"], &json!({"seat": {"type": "integer", "x-in": "body"}, "cabin": cabin})),
            Some("another type"),
        ),
        (
            parameters(
                &["seat"],
                &json!({"seat": {"type": ["string", "null"], "maxLength": 5, "x-in": "body"}, "cabin": cabin}),
            ),
            None,
        ),
        (
            parameters(
                &["seat"],
                &json!({"seat": {"type": "string", "maxLength": 4, "x-in": "body"}, "cabin": cabin}),
            ),
            Some("tighter"),
        ),
        (
            parameters(
                &["seat"],
                &json!({"seat": {"type": "string", "maxLength": 9, "x-in": "body"}, "cabin": cabin}),
            ),
            None,
        ),
        (
            parameters(
                &["seat"],
                &json!({"seat": {"type": "string", "maxLength": 5, "x-in": "query"}, "cabin": cabin}),
            ),
            Some("is sent in another part of the request"),
        ),
        (
            parameters(
                &["seat"],
                &json!({"seat": seat, "cabin": {"type": "string", "enum": ["first"], "x-in": "body"}}),
            ),
            Some("fewer values"),
        ),
    ] {
        assert_breaks(&after, broken);
    }
}

/// Comparing all pairs of values would take minutes.
#[test]
fn compares_long_lists_of_values_in_linear_time() {
    let values: Vec<u32> = (0..140_000).collect();
    let reversed: Vec<u32> = values.iter().rev().copied().collect();
    let of = |values: &[u32], scopes: Vec<String>| {
        let mut value = parameters(&["seat"], &json!({"seat": {"type": "integer", "enum": values}}));
        value["auth"] = json!({"required": "yes", "schemes": [], "scopes": scopes});
        version(None, &[value])
    };
    let scopes: Vec<String> = values.iter().map(ToString::to_string).collect();
    let (before, after) = (of(&values, scopes.clone()), of(&reversed, scopes.into_iter().rev().collect()));
    let started = tokio::time::Instant::now();
    let found = difference(&before, &after);
    assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(!found.breaking && found.changed.len() == 1);
    let fewer = difference(&before, &of(&reversed[1..], Vec::new()));
    assert_eq!(fewer.breaking_changes, ["book: \"seat\" takes fewer values"]);
}

#[test]
fn lists_a_limited_number_of_changes_and_judges_all() {
    let of = |count: usize, kind: &str| {
        let properties: serde_json::Map<String, Value> =
            (0..count).map(|number| (format!("p{number}"), json!({"type": kind}))).collect();
        version(None, &[parameters(&[], &Value::Object(properties))])
    };
    let found = difference(&of(3_000, "string"), &of(3_000, "string"));
    assert_eq!((found.changed.len(), found.fields_left_out, found.breaking), (0, 0, false));
    let found = difference(&of(3_000, "string"), &of(3_000, "integer"));
    assert_eq!(found.changed[0].fields.len(), CHANGES_MAX);
    assert_eq!(found.fields_left_out, 1_000);
    assert_eq!(found.breaking_changes.len(), CHANGES_MAX);

    // The last parameter in the order of names is the only one that breaks a caller.
    let more = |last: &str| {
        let mut properties: serde_json::Map<String, Value> = (0..3_000)
            .map(|number| (format!("p{number}"), json!({"type": "string", "description": last})))
            .collect();
        properties.insert("z".to_owned(), json!({"type": last}));
        version(None, &[parameters(&[], &Value::Object(properties))])
    };
    let found = difference(&more("string"), &more("integer"));
    assert!(found.breaking && found.breaking_changes.is_empty());
    assert_eq!(found.fields_left_out, 1_001);
}

#[test]
fn leaves_large_values_out() {
    let of = |letter: &str| {
        let huge = json!({"type": "string", "description": letter.repeat(300_000)});
        version(None, &[parameters(&[], &json!({"a": huge, "b": {"type": "string", "description": letter}}))])
    };
    let found = difference(&of("x"), &of("y"));
    let [a, b] = found.changed[0].fields.as_slice() else { panic!("{:?}", found.changed) };
    assert!(a.values_left_out && a.from.is_null() && a.to.is_null());
    assert!(!b.values_left_out && b.from["description"] == "x" && b.to["description"] == "y");
    let json = serde_json::to_value(b).unwrap();
    assert!(json.get("values_left_out").is_none());
}
