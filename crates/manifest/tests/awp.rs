//! AWP documents, read and checked.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use manifest::model::{Confirmation, ExecutionModel, Finding, Format, Severity};
use manifest::{Discovery, Document, Manifest, ManifestUrl};
use serde_json::{Value, json};

fn read_at(path: &str, document: &Value) -> Manifest {
    let url = ManifestUrl::parse(&format!("https://skyhop.example{path}")).unwrap();
    manifest::read(&Document {
        bytes: document.to_string().as_bytes(),
        url: &url,
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[],
        force: None,
    })
}

fn read(document: &Value) -> Manifest {
    read_at("/agent.json", document)
}

fn action(members: &Value) -> Value {
    let mut action = json!({
        "id": "book", "description": "Books.", "auth_required": false, "inputs": {}, "outputs": {},
        "endpoint": "/book", "method": "POST",
    });
    action.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    action
}

fn document(members: &Value) -> Value {
    let mut document = json!({
        "awp_version": "0.1", "domain": "skyhop.example", "intent": "Flights.", "errors": {},
        "actions": [action(&json!({}))],
    });
    document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    document
}

fn with_action(members: &Value) -> Manifest {
    read(&document(&json!({"actions": [action(members)]})))
}

/// The pointers of the findings with a code.
fn places<'m>(manifest: &'m Manifest, code: &str) -> Vec<&'m str> {
    manifest
        .findings
        .iter()
        .filter(|finding| finding.code == code)
        .map(|finding| finding.pointer.as_str())
        .collect()
}

fn worst(manifest: &Manifest) -> Vec<&Finding> {
    manifest.findings.iter().filter(|finding| finding.severity == Severity::Must).collect()
}

#[test]
fn a_file_without_an_identifying_member_is_read_as_awp() {
    for missing in ["awp_version", "domain", "intent", "actions"] {
        for path in ["/agent.json", "/.well-known/agent.json"] {
            let mut changed = document(&json!({}));
            changed.as_object_mut().unwrap().remove(missing);
            let manifest = read_at(path, &changed);
            assert_eq!(manifest.format(), Format::Awp, "{missing} at {path}");
            assert_eq!(places(&manifest, &format!("awp.{missing}.missing")), [""], "{missing} at {path}");
        }
    }
    for version in [json!(null), json!(true), json!({}), json!([])] {
        let manifest = read(&document(&json!({"awp_version": version})));
        assert_eq!(places(&manifest, "awp.awp_version.mistyped"), ["/awp_version"]);
    }
    let mut versionless = document(&json!({}));
    versionless.as_object_mut().unwrap().remove("awp_version");
    assert_eq!(read_at("/files/flights.json", &versionless).format(), Format::Awp);
    assert_ne!(read(&json!({"name": "Agent", "actions": [{"name": "run"}]})).format(), Format::Awp);
}

#[test]
fn a_file_inside_a_member_is_reported() {
    let manifest = read(&json!({"manifest": document(&json!({}))}));
    assert_eq!((manifest.format(), manifest.capabilities.len()), (Format::Awp, 1));
    assert_eq!(places(&manifest, "document.wrapped"), ["/manifest"]);
    assert_eq!(manifest.level(), manifest::model::ConformanceLevel::Major);
}

#[test]
fn null_and_empty_texts_are_not_reported_as_missing() {
    for value in [json!(null), json!("")] {
        let manifest = read(&document(&json!({"intent": value})));
        let findings = worst(&manifest);
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!(findings[0].pointer, "/intent");
        assert!(!findings[0].text.contains("missing"), "{}", findings[0].text);
    }
}

#[test]
fn pointers_name_the_element() {
    let manifest = read(&document(&json!({
        "auth": {"type": "oauth2", "required_for": ["book", "ghost"], "optional_for": ["book", 5]},
        "dependencies": {"book": ["ghost"], "ghost": [7]},
        "agent_status": {"operational": true, "degraded_actions": ["book", "ghost"]},
    })));
    assert_eq!(places(&manifest, "awp.auth.unknown_action"), ["/auth/required_for/1"]);
    assert_eq!(places(&manifest, "awp.auth.optional_for.mistyped"), ["/auth/optional_for/1"]);
    assert_eq!(
        places(&manifest, "awp.dependencies.unknown_action"),
        ["/dependencies/book/0", "/dependencies/ghost"]
    );
    assert_eq!(places(&manifest, "awp.dependencies.mistyped"), ["/dependencies/ghost/0"]);
    assert_eq!(places(&manifest, "awp.agent_status.unknown_action"), ["/agent_status/degraded_actions/1"]);
}

#[test]
fn repeated_ids_are_reported_at_the_second() {
    let manifest = read(&document(&json!({"actions": [action(&json!({})), action(&json!({}))]})));
    assert_eq!(places(&manifest, "awp.action.id.duplicate"), ["/actions/1/id"]);
}

#[test]
fn types_become_json_schema() {
    let manifest = read(&document(&json!({
        "entities": {"flight": {"fields": {"number": "string", "seats": "array[integer]"}}},
        "actions": [action(&json!({
            "inputs": {"day": {"type": "ISO8601"}, "cabin": {"type": "enum[first, economy]"}, "bad": {"type": "enum["}},
            "outputs": {"flights": "array[flight]", "best": "object[ghost]", "worst": 5},
        }))],
    })));
    let capability = &manifest.capabilities[0];
    let parameters = capability.parameters.as_ref().unwrap();
    assert_eq!(parameters["properties"]["cabin"]["enum"], json!(["first", "economy"]));
    assert_eq!(parameters["properties"]["day"]["format"], "date-time");
    let response = capability.response.as_ref().unwrap();
    assert_eq!(response["properties"]["flights"]["items"]["$ref"], "#/$defs/flight");
    assert_eq!(response["$defs"]["flight"]["properties"]["seats"]["items"]["type"], "integer");
    assert_eq!(places(&manifest, "awp.type.malformed"), ["/actions/0/inputs/bad/type"]);
    assert_eq!(places(&manifest, "awp.type.entity_unknown"), ["/actions/0/outputs/best"]);
    assert_eq!(places(&manifest, "awp.output.mistyped"), ["/actions/0/outputs/worst"]);
}

#[test]
fn an_enum_lists_its_values() {
    let manifest = read(&document(&json!({
        "actions": [action(&json!({"outputs": {"state": "enum", "size": {"type": "enum", "options": ["s"]}}}))],
        "entities": {"Seat": {"fields": {"class": {"type": "enum"}, "row": "integer"}}},
    })));
    let at = places(&manifest, "awp.type.malformed");
    assert_eq!(at, ["/entities/Seat/fields/class", "/actions/0/outputs/state"]);
}

#[test]
fn defaults_agree_with_their_input() {
    let manifest = with_action(&json!({"inputs": {
        "cabin": {"type": "enum", "options": ["first"], "default": "economy"},
        "seats": {"type": "integer", "default": "two"},
        "fits": {"type": "airport_code", "default": "ZRH"},
        "whole": {"type": "float", "default": 2},
    }}));
    assert_eq!(places(&manifest, "awp.input.default.unlisted"), ["/actions/0/inputs/cabin/default"]);
    assert_eq!(places(&manifest, "awp.input.default.mistyped"), ["/actions/0/inputs/seats/default"]);
}

#[test]
fn contradictions_are_reported_at_the_element() {
    let manifest = read(&document(&json!({
        "capabilities": {"idempotency": false},
        "auth": {"type": "none", "required_for": ["book"], "optional_for": ["book"]},
        "actions": [action(&json!({
            "sensitivity": "irreversible", "reversible": true, "requires_human_confirmation": false,
            "poll_endpoint": "/jobs", "idempotency": {"supported": true, "key_field": "key"},
        }))],
    })));
    for (code, pointer) in [
        ("awp.action.auth_required.contradicted", "/actions/0/auth_required"),
        ("awp.auth.optional_for.contradicted", "/auth/optional_for/0"),
        ("awp.auth.type.contradicted", "/auth/type"),
        ("awp.action.reversible.contradicted", "/actions/0/reversible"),
        ("awp.action.requires_human_confirmation.contradicted", "/actions/0/requires_human_confirmation"),
        ("awp.action.poll_endpoint.unused", "/actions/0/poll_endpoint"),
        ("awp.idempotency.supported.contradicted", "/actions/0/idempotency/supported"),
    ] {
        assert_eq!(places(&manifest, code), [pointer], "{code}");
    }
    let manifest = with_action(&json!({"sensitivity": "standard", "reversible": false}));
    assert_eq!(places(&manifest, "awp.action.sensitivity.contradicted"), ["/actions/0/sensitivity"]);
}

#[test]
fn consequences_without_sensitivity_are_reported() {
    let reported = |id: &str, method: &str| {
        let manifest = with_action(&json!({"id": id, "method": method}));
        places(&manifest, "awp.action.sensitivity.undeclared") == ["/actions/0"]
    };
    for id in ["checkout", "withdraw", "submit_order", "place_order", "book_flight", "buy"] {
        assert!(reported(id, "POST") && !reported(id, "GET"), "{id}");
    }
    assert!(!reported("list_orders", "POST") && !reported("view_order", "POST"));
    assert!(reported("pay_invoice", "POST") && reported("drop", "DELETE") && reported("cancelOrder", "PUT"));
    assert!(
        !reported("list_payments", "POST") && !reported("search", "POST") && !reported("pay_invoice", "GET")
    );
}

#[test]
fn confirmation_follows_from_sensitivity() {
    let confirmation = |members: Value| with_action(&members).capabilities[0].safety.confirmation;
    assert_eq!(confirmation(json!({"sensitivity": "standard"})), Confirmation::None);
    assert_eq!(confirmation(json!({"sensitivity": "destructive"})), Confirmation::Recommended);
    assert_eq!(confirmation(json!({"sensitivity": "irreversible"})), Confirmation::Required);
    assert_eq!(confirmation(json!({"requires_human_confirmation": true})), Confirmation::Required);
}

#[test]
fn execution_model_defaults_to_sync() {
    let model = |members: Value| with_action(&members).capabilities[0].execution.model;
    assert_eq!(model(json!({})), ExecutionModel::Sync);
    assert_eq!(model(json!({"execution_model": "async", "poll_endpoint": "/jobs"})), ExecutionModel::Async);
    assert_eq!(model(json!({"execution_model": "later"})), ExecutionModel::Unknown);
}

#[test]
fn manifest_flag_does_not_make_actions_idempotent() {
    let manifest = read(&document(&json!({"capabilities": {"idempotency": true}})));
    assert_eq!(manifest.features.idempotency, Some(true));
    assert_eq!(manifest.capabilities[0].idempotency.supported, None);
}

#[test]
fn key_field_is_a_parameter() {
    let parameters = |inputs: Value| {
        let contract = json!({"supported": true, "key_field": "request_id"});
        let manifest = with_action(&json!({"inputs": inputs, "idempotency": contract}));
        manifest.capabilities[0].parameters.clone().unwrap()["properties"]["request_id"].clone()
    };
    assert_eq!(
        (parameters(json!({}))["type"].clone(), parameters(json!({}))["x-in"].clone()),
        (json!("string"), json!("body"))
    );
    let own = parameters(json!({"request_id": {"type": "integer", "required": true}}));
    assert_eq!(own["type"], "integer");
}

#[test]
fn reports_recoveries_that_a_program_cannot_follow() {
    let found = |recovery: &str| {
        let manifest = read(&document(&json!({"errors": {"E": {"recovery": recovery}}})));
        let code = manifest.findings.iter().find(|finding| finding.code.starts_with("awp.error.recovery"));
        code.map(|finding| (finding.severity, finding.pointer.clone()))
    };
    for recovery in
        ["call /token, then retry", "wait 60 seconds", "run book first", "see https://skyhop.example/e"]
    {
        assert_eq!(found(recovery), None, "{recovery}");
    }
    for (recovery, severity) in [
        ("retry with other parameters", Severity::May),
        ("Sorry, please contact our support team", Severity::Must),
        ("oops", Severity::Must),
        ("ask a human", Severity::Must),
        ("use your judgement", Severity::Must),
    ] {
        assert_eq!(found(recovery), Some((severity, "/errors/E/recovery".to_owned())), "{recovery}");
    }
}

#[test]
fn a_service_that_is_down_degrades_every_action() {
    let degraded = |status: Value| read(&document(&json!({"agent_status": status}))).capabilities[0].degraded;
    assert!(degraded(json!({"operational": false})));
    assert!(degraded(json!({"operational": true, "degraded_actions": ["book"]})));
    assert!(!degraded(json!({"operational": true})));
}
