//! Every folder below `fixtures/<format>/<case>/` is a case: a document, an optional `about.json` that describes how it was served, and the
//! expected manifest (`expected.snap`).

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

mod support;

use std::collections::BTreeSet;

use manifest::model::{Auth, AuthScheme};
use manifest::{Discovery, Document, Manifest, ManifestUrl, Severity};
use serde_json::{Map, Value, json};
use support::Case;

#[test]
fn every_fixture_becomes_its_expected_manifest() {
    for case in Case::all() {
        let manifest = case.read();
        assert_eq!(manifest.format().as_str(), case.format, "{}", case.folder.display());
        assert_eq!(manifest, case.read(), "{} reads differently twice", case.folder.display());
        insta::with_settings!({
            snapshot_path => &case.folder,
            prepend_module_to_snapshot => false,
            omit_expression => true,
            description => "",
        }, {
            insta::assert_json_snapshot!("expected", manifest);
        });
    }
}

/// Maximum number of items of each list of a manifest that are read.
const LISTED_MAX: usize = 5_000;

/// Manifests of documents whose lists of credentials, interfaces, links, payments and workflows have one item more than is read, and which
/// have more types than are read. Their snapshots would take megabytes.
fn overfull() -> Vec<Manifest> {
    let count = LISTED_MAX + 1;
    let map = |value: Value| (0..count).map(|n| (format!("m{n}"), value.clone())).collect::<Map<_, _>>();
    let protocol = json!({"endpoint": "https://x.example/p", "agent_card": "https://x.example/card.json"});
    let nested = format!("{}x{}", "array[".repeat(8), "]".repeat(8));
    let awp = json!({"awp_version": "0.2", "domain": "x.example", "intent": "i", "actions": [],
        "protocols": map(protocol), "entities": {"E": {"fields": map(json!(nested))}}});
    let a2a = json!({"name": "n", "description": "d", "version": "1", "capabilities": {}, "skills": [],
        "supportedInterfaces": [{"url": "https://x.example/a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "securitySchemes": map(json!({"httpAuthSecurityScheme": {"scheme": "bearer"}}))});
    let payments = json!({"standard": "https://agents-txt.com", "version": "1.0",
        "site": {"name": "a", "url": "https://x.example"},
        "payments": {"x402": {"chains": vec!["base"; count]}}});
    // the memory limit of a manifest is reached before the limit on their number
    let steps = vec![json!({"operationId": "o".repeat(200)}); 100];
    let methods = "GET,HEAD,POST,PUT,DELETE,PATCH,OPTIONS";
    let flow =
        |at: usize| json!({"name": format!("f{at}"), "path": "/f", "methods": methods, "steps": steps});
    let flows = json!({"name": "a", "flows": (0..150).map(flow).collect::<Vec<_>>()});
    let documents = [
        ("/agent.json", awp),
        ("/.well-known/agent-card.json", a2a),
        ("/agents.txt", payments),
        ("/.well-known/agent.json", flows),
    ];
    documents
        .into_iter()
        .map(|(path, document)| {
            let url = ManifestUrl::parse(&format!("https://x.example{path}")).unwrap();
            manifest::read(&Document {
                bytes: document.to_string().as_bytes(),
                url: &url,
                final_url: None,
                discovery: Discovery::WellKnown,
                served: None,
                linked: &[],
                force: None,
            })
        })
        .collect()
}

#[test]
fn reads_list_items_up_to_the_limit_and_reports_that_more_were_dropped() {
    let [awp, a2a, payments, flows] = overfull().try_into().unwrap();
    let reported = |manifest: &Manifest, list: &str| {
        let code = format!("document.{list}.too_many");
        manifest.findings.iter().filter(|finding| finding.code == code).count()
    };
    for (manifest, list, kept) in [
        (&awp, "interfaces", awp.interfaces.len()),
        (&awp, "links", awp.links.len()),
        (&a2a, "auth", a2a.auth.len()),
        (&payments, "payments", payments.payments.len()),
    ] {
        assert_eq!((kept, reported(manifest, list)), (LISTED_MAX, 1), "{list}: {:#?}", manifest.findings);
    }
    assert_eq!(reported(&flows, "workflows"), 1, "{:#?}", flows.findings);
}

#[test]
fn every_scheme_of_a_call_has_an_entry_in_the_credentials() {
    let mut wrong = Vec::new();
    for case in Case::all() {
        let manifest = case.read();
        for call in &manifest.capabilities {
            for scheme in &call.auth.schemes {
                let has_no_entry =
                    matches!(scheme, AuthScheme::Session | AuthScheme::Other | AuthScheme::Unknown);
                let is_entry = |auth: &Auth| auth.scheme == *scheme;
                if !has_no_entry && !manifest.auth.iter().any(is_entry) {
                    wrong.push(format!("{} {} {scheme:?}", case.folder.display(), call.native_id));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_fixture_causes_every_core_finding() {
    let provoked: BTreeSet<String> = Case::all()
        .iter()
        .map(Case::read)
        .chain(overfull())
        .flat_map(|manifest| manifest.findings)
        .map(|finding| finding.code.into_owned())
        .collect();
    let core = [
        "arws",
        "awp",
        "atp",
        "atp_schema",
        "agents_json",
        "agents_txt_0",
        "document",
        "json",
        "text",
        "origin",
        "address",
        "safety",
        "woa",
    ];
    let silent: Vec<String> = manifest::catalogue()
        .into_iter()
        .map(|entry| entry.code)
        .filter(|code| core.contains(&code.split('.').next().unwrap_or_default()) && !provoked.contains(code))
        .collect();
    assert!(silent.is_empty(), "no fixture causes {silent:#?}");
}

#[test]
fn every_finding_of_a_fixture_is_in_the_catalogue() {
    let known: BTreeSet<String> = manifest::catalogue().into_iter().map(|entry| entry.code).collect();
    for case in Case::all() {
        for finding in case.read().findings {
            assert!(known.contains(finding.code.as_ref()), "{} is not in the catalogue", finding.code);
            assert!(!finding.text.is_empty() && !finding.fix.is_empty(), "{}", finding.code);
        }
    }
}

/// Members that a specification defines and that its parser uses, by format. None of them may be kept as unread.
const DEFINED: &[(&str, &[&str])] = &[
    (
        "agents_txt",
        &["version", "standard", "site", "payments", "required", "chains", "methods", "discovery"],
    ),
    ("manifest_v1", &["manifest_version", "id", "scopes", "require", "retention_days", "log_all"]),
    ("skills_index", &["name", "description", "url", "digest", "whenToUse"]),
    ("webmcp", &["name", "description", "readOnlyHint"]),
    ("mcp_card", &["name", "description", "version", "readOnlyHint", "destructiveHint", "idempotentHint"]),
];

#[test]
fn members_that_a_specification_defines_are_not_unread() {
    let mut wrong = Vec::new();
    for case in Case::all() {
        let Some((_, names)) = DEFINED.iter().find(|(format, _)| *format == case.format) else { continue };
        let manifest = case.read();
        // A value that breaks its rule is kept as published.
        if manifest.findings.iter().any(|finding| finding.severity == Severity::Must) {
            continue;
        }
        let unread = manifest.hints.get("unread").and_then(Value::as_object).cloned().unwrap_or_default();
        for pointer in unread.keys() {
            let is_index = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
            let name = pointer.rsplit('/').find(|part| !is_index(part)).unwrap_or_default();
            if names.contains(&name) {
                wrong.push(format!("{} {pointer}", case.folder.display()));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
