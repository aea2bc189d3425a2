//! The publisher of a manifest: members that name it, and the site that serves the document.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

use manifest::model::SignatureStatus;
use manifest::{Binding, Discovery, Document, IdentityMark, Manifest, ManifestUrl, NamedBy, Severity, read};
use serde_json::{Value, json};

fn manifest(url: &str, body: &Value) -> Manifest {
    let url = ManifestUrl::parse(url).unwrap();
    read(&Document {
        bytes: body.to_string().as_bytes(),
        url: &url,
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[],
        force: None,
    })
}

/// A document that declares a publisher.
type Body<'a> = &'a dyn Fn(&str) -> Value;

#[test]
fn members_that_name_another_publisher_make_a_manifest_foreign() {
    let awp = |domain: &str| json!({"awp_version": "0.1", "domain": domain, "intent": "x", "actions": []});
    let atp = |url: &str| {
        json!({"@type": "AgentManifest", "version": "0.1",
        "provider": {"name": "x", "url": url}, "capabilities": []})
    };
    let agents =
        |url: &str| json!({"schema_version": "0.1.0", "site": {"name": "x", "url": url}, "capabilities": []});
    let card = |url: &str| {
        json!({"name": "x", "description": "x", "version": "1", "capabilities": {}, "skills": [],
        "supportedInterfaces": [{"url": "https://cloud.example/a", "protocolBinding": "JSONRPC"}],
        "provider": {"organization": "x", "url": url}})
    };
    let cases: [(&str, &str, Body<'_>); 4] = [
        ("/agent.json", "domain", &awp),
        ("/.well-known/agent.json", "provider.url", &atp),
        ("/.well-known/agents.json", "site.url", &agents),
        ("/.well-known/agent-card.json", "provider.url", &card),
    ];
    for (path, member, body) in cases {
        for (declared, binding) in [
            ("https://a.example", Binding::Bound),
            ("https://www.a.example/about", Binding::Bound),
            ("https://b.example", Binding::Foreign),
        ] {
            let manifest = manifest(&format!("https://a.example{path}"), &body(declared));
            let identity = manifest.identity(NamedBy::Site);
            assert_eq!(identity.declared[0].member, member, "{path}");
            assert_eq!(identity.binding, binding, "{path} {declared}");
            assert!(!identity.verified, "{path}");
            assert_eq!(identity.marks().last().unwrap().as_str(), binding.as_str(), "{path} {declared}");
            let of_others = manifest.identity(NamedBy::Others);
            assert_eq!(of_others.binding, Binding::NamedByOthers, "{path} {declared}");
            assert_eq!(of_others.marks(), [IdentityMark::Unsigned, IdentityMark::NamedByOthers]);
        }
    }
}

#[test]
fn an_entry_has_the_identity_that_it_declares() {
    let entry = |identifier: &str, identity: &str| {
        json!({"identifier": identifier, "displayName": "x",
        "type": "application/mcp-server-card+json", "url": "https://cloud.example/mcp.json",
        "trustManifest": {"identity": identity}})
    };
    let catalog = json!({"entries": [
        entry("urn:air:a.example:x", "did:web:a.example"),
        entry("urn:air:b.example:x", "did:web:a.example"),
        entry("urn:air:a.example:y", "did:web:b.example:agents"),
        entry("urn:air:a.example:z", "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK"),
    ]});
    let manifest = manifest("https://a.example/.well-known/ard.json", &catalog);
    let bindings: Vec<&str> = manifest
        .capabilities
        .iter()
        .map(|capability| manifest.identity_of(capability, NamedBy::Site).binding.as_str())
        .collect();
    assert_eq!(bindings, ["bound", "foreign", "foreign", "bound"]);
    let codes: Vec<(&str, Severity)> = manifest
        .findings
        .iter()
        .filter(|finding| finding.code.ends_with(".foreign"))
        .map(|finding| (finding.code.as_ref(), finding.severity))
        .collect();
    let must = Severity::Must;
    assert_eq!(codes, [("ard.entry.publisher.foreign", must), ("ard.trust_manifest.identity.foreign", must)]);
}

/// Applies every rule about the serving site to a document whose site is not known.
#[test]
fn a_document_of_an_unknown_site_has_no_foreign_publisher() {
    let entry = json!({"identifier": "urn:air:a.example:x", "displayName": "x", "type": "application/mcp-server-card+json",
        "url": "https://a.example/mcp.json", "trustManifest": {"identity": "did:web:a.example"}});
    let awp = json!({"awp_version": "0.1", "domain": "a.example", "intent": "i", "actions": [
        {"id": "buy", "description": "Buys", "endpoint": "https://a.example/buy", "method": "POST"}]});
    for (path, body) in [("/.well-known/ard.json", json!({"entries": [entry]})), ("/agent.json", awp)] {
        let codes = |host: &str| {
            let manifest = manifest(&format!("https://{host}{path}"), &body);
            let binding = manifest.identity(NamedBy::Site).binding;
            let of_entries = manifest.capabilities.iter();
            let of_entries = of_entries.map(|one| manifest.identity_of(one, NamedBy::Site).binding);
            let is_foreign = of_entries.chain([binding]).any(|binding| binding.as_str() == "foreign");
            let about_site = |code: &&str| code.ends_with(".foreign") || code.starts_with("origin.");
            let codes = manifest.findings.iter().map(|finding| finding.code.as_ref()).filter(about_site);
            (is_foreign, codes.map(str::to_owned).collect::<Vec<_>>())
        };
        for unknown in ["document.invalid", "site.invalid"] {
            assert_eq!(codes(unknown), (false, vec![]), "{path}");
        }
        let (is_foreign, found) = codes("b.example");
        assert!(is_foreign && !found.is_empty(), "{path}: {found:?}");
    }
}

#[test]
fn states_the_identity_that_atp_requires_of_agents() {
    let body = json!({"@type": "AgentManifest", "version": "0.1",
        "provider": {"name": "x", "url": "https://a.example"},
        "auth": {"agentIdentity": {"required": true, "format": "did:web"}}, "capabilities": []});
    let manifest = manifest("https://a.example/.well-known/agent.json", &body);
    let identity = manifest.identity(NamedBy::Site);
    assert_eq!(identity.demanded_of_agents.and_then(|demanded| demanded.format.as_deref()), Some("did:web"));
    assert_eq!((identity.verified, identity.signature.status), (false, SignatureStatus::Unsigned));
}
