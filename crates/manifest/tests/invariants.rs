//! Invariants of reading any input: no panic, deterministic, within the caps, and the manifest survives a round trip through
//! JSON.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

use std::collections::HashSet;

use manifest::{Discovery, Document, Format, Manifest, ManifestUrl, read};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The caps of the crate: capabilities, and findings of one code.
const CAPABILITIES_MAX: usize = 5_000;
const FINDINGS_PER_CODE_MAX: usize = 20;

fn read_at(bytes: &[u8], path: &str, force: Option<Format>) -> Manifest {
    let url = ManifestUrl::parse(&format!("https://laws.example{path}")).unwrap();
    let document = Document {
        bytes,
        url: &url,
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[],
        force,
    };
    let manifest = read(&document);
    assert_eq!(manifest, read(&document), "two readings differ");
    manifest
}

fn assert_invariants(manifest: &Manifest) {
    assert!(manifest.capabilities.len() <= CAPABILITIES_MAX);
    let ids: HashSet<&str> = manifest.capabilities.iter().map(|capability| capability.id.as_str()).collect();
    assert_eq!(ids.len(), manifest.capabilities.len(), "capability ids repeat");
    for finding in &manifest.findings {
        let same = manifest.findings.iter().filter(|other| other.code == finding.code).count();
        assert!(same <= FINDINGS_PER_CODE_MAX, "{} is repeated {same} times", finding.code);
    }
    let text = serde_json::to_string(manifest).unwrap();
    let back: Manifest = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), text);
}

/// A document that is not read gets no findings about missing members.
#[test]
fn a_document_that_is_too_long_has_a_single_finding() {
    let padding = "x".repeat(5 * 1_024 * 1_024);
    let text = format!(r#"{{"awp_version": "0.1", "domain": "laws.example", "pad": "{padding}"}}"#);
    let manifest = read_at(text.as_bytes(), "/agent.json", None);
    let codes: Vec<&str> = manifest.findings.iter().map(|finding| finding.code.as_ref()).collect();
    assert_eq!((manifest.format(), codes), (Format::Awp, vec!["document.too_long"]));
    assert_eq!(manifest.level(), manifest::model::ConformanceLevel::Major);
}

const PATHS: &[&str] = &[
    "/.well-known/agent.json",
    "/agent.json",
    "/.well-known/agents.json",
    "/.well-known/agents.txt",
    "/.well-known/woa.json",
    "/.well-known/agent-manifest.json",
    "/.well-known/llms.txt",
    "/.well-known/mcp.json",
    "/.well-known/x402",
];

/// Member names of the dialects, so that arbitrary values reach the parsers.
const NAMES: &[&str] = &[
    "awp_version",
    "actions",
    "id",
    "inputs",
    "outputs",
    "endpoint",
    "method",
    "auth",
    "entities",
    "fields",
    "errors",
    "dependencies",
    "protocols",
    "via",
    "@type",
    "@context",
    "capabilities",
    "name",
    "description",
    "parameters",
    "response",
    "$ref",
    "workflows",
    "steps",
    "schemas",
    "policies",
    "woa_version",
    "agents",
    "transports",
    "rest",
    "operations",
    "schema_version",
    "protocol_version",
    "site",
    "url",
    "session",
    "params",
    "type",
    "tools",
    "skills",
    "openapi",
    "paths",
    "entries",
    "identifier",
    "x402Version",
    "resources",
    "ucp",
    "services",
    "data",
    "flows",
    "specVersion",
    "serverInfo",
];

const TEXTS: &[&str] = &[
    "0.1",
    "1",
    "GET",
    "/a/{b}/:c",
    "https://a.example/x",
    "http://localhost",
    "AgentManifest",
    "enum[a, array[b",
    "array[array[x]]",
    "object[x]",
    "#/schemas/A",
    "#/$defs/a",
    "24h",
    "9999999999999999999h",
    "30/minute",
    "🦀\u{202e}",
    "<script>",
    "[a](b",
    "",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(TEXTS).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let name = prop_oneof![4 => prop::sample::select(NAMES).prop_map(str::to_owned), 1 => ".{0,6}".prop_map(String::from)];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((name, inner), 0..6).prop_map(|pairs| Value::Object(Map::from_iter(pairs))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_satisfy_the_invariants(bytes in prop::collection::vec(any::<u8>(), 0..400), path in prop::sample::select(PATHS)) {
        assert_invariants(&read_at(&bytes, path, None));
    }

    #[test]
    fn any_text_satisfies_the_invariants(text in "[ -~\n\u{80}-\u{3ff}]{0,300}", path in prop::sample::select(PATHS)) {
        assert_invariants(&read_at(text.as_bytes(), path, None));
    }

    #[test]
    fn any_json_in_any_format_satisfies_the_invariants(
        value in value(),
        path in prop::sample::select(PATHS),
        format in prop::option::of(prop::sample::select(Format::ALL)),
    ) {
        assert_invariants(&read_at(value.to_string().as_bytes(), path, format));
    }
}

#[test]
fn ids_do_not_depend_on_order_or_on_other_members() {
    let action = |id: &str| json!({"id": id, "description": "x", "endpoint": "/x", "method": "GET"});
    let read = |actions: Value| {
        read_at(json!({"awp_version": "0.1", "actions": actions}).to_string().as_bytes(), "/agent.json", None)
    };
    let (first, second) =
        (read(json!([action("a"), action("b")])), read(json!([action("c"), action("b"), action("a")])));
    let id = |manifest: &Manifest, name: &str| {
        manifest.capabilities.iter().find(|c| c.native_id == name).unwrap().id.clone()
    };
    assert_eq!(id(&first, "a"), id(&second, "a"));
    assert_eq!(id(&first, "b"), id(&second, "b"));
}

#[test]
fn hostile_shapes_satisfy_the_invariants() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{{\"actions\": {}1{}}}", open.repeat(100_000), close.repeat(100_000));
        assert_invariants(&read_at(deep.as_bytes(), "/agent.json", None));
    }
    let wide = json!({"capabilities": vec![Value::from("x"); 50_000]}).to_string();
    assert_invariants(&read_at(wide.as_bytes(), "/agents.json", None));
    let brackets = json!({"tools": [{"name": "a", "description": "[".repeat(60_000)}]}).to_string();
    assert_invariants(&read_at(brackets.as_bytes(), "/.well-known/mcp.json", None));
}
