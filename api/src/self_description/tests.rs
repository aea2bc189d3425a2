//! Our own parsers read our own descriptions: the right dialect, the right capabilities, and no findings of level should or must.

use manifest::{Discovery, Document, Format, LinkedDocument, Manifest, ManifestUrl, NamedBy, Severity};

use super::*;
use crate::tools::Tool;

const BASE: &str = "https://dex.example";

fn read(path: &str, linked: &[LinkedDocument<'_>]) -> Manifest {
    let identity = ServerIdentity::at(BASE);
    let (_, make) = DOCUMENTS.iter().find(|(place, _)| *place == path).unwrap();
    let bytes = match make(&identity) {
        SelfDescription::Json(value, _) => serde_json::to_vec(&value).unwrap(),
        SelfDescription::Text(text, _) => text.into_bytes(),
    };
    let url = ManifestUrl::parse(&identity.url(path)).unwrap();
    let discovery = Discovery::WellKnown;
    manifest::read(&Document {
        bytes: &bytes,
        url: &url,
        final_url: None,
        discovery,
        served: None,
        linked,
        force: None,
    })
}

#[track_caller]
fn assert_no_serious_findings(manifest: &Manifest) {
    let serious: Vec<String> = manifest
        .findings
        .iter()
        .filter(|finding| finding.severity >= Severity::Should)
        .map(|finding| format!("{} at {}: {}", finding.code, finding.pointer, finding.text))
        .collect();
    assert!(serious.is_empty(), "{} has findings: {serious:#?}", manifest.url);
}

#[test]
fn every_self_description_parses_with_every_capability() {
    for (path, format) in [
        ("/agent.json", Format::Awp),
        ("/.well-known/agent.json", Format::Atp),
        ("/.well-known/woa.json", Format::Woa),
        ("/.well-known/agents.json", Format::AgentsJson),
        ("/agents.txt", Format::AgentsTxt),
        ("/tools/openapi.json", Format::OpenApi),
    ] {
        let manifest = read(path, &[]);
        assert_eq!(manifest.format(), format, "{path}: {:?}", manifest.detection);
        assert_no_serious_findings(&manifest);
        let names: Vec<String> =
            manifest.capabilities.iter().map(|capability| capability.native_id.replace('-', "_")).collect();
        // ARWS requires credentials and idempotency keys for tools that write, so only tools that read are listed
        let is_arws = path == "/tools/openapi.json";
        for tool in Tool::ALL.iter().filter(|tool| !(is_arws && **tool == Tool::SubmitSite)) {
            assert!(
                names.iter().any(|name| name.starts_with(tool.as_str())),
                "{path} lacks {tool}: {names:?}"
            );
        }
    }
}

#[test]
fn atp_manifest_declares_safety_and_endpoints() {
    let manifest = read("/.well-known/agent.json", &[]);
    for capability in &manifest.capabilities {
        let expected = if capability.native_id == "submit-site" { "write" } else { "read" };
        assert_eq!(capability.safety.class.as_str(), expected, "{}", capability.native_id);
        assert!(capability.invocation.endpoint().unwrap().starts_with(BASE));
    }
}

#[test]
fn remaining_descriptions_parse_without_serious_findings() {
    for (path, format) in [
        ("/.well-known/agent-card.json", Format::A2a),
        ("/.well-known/ai-catalog.json", Format::Ard),
        ("/.well-known/ard.json", Format::Ard),
        ("/.well-known/api-catalog", Format::ApiCatalog),
        ("/llms.txt", Format::LlmsTxt),
        ("/.well-known/llms.txt", Format::LlmsTxt),
    ] {
        let manifest = read(path, &[]);
        assert_eq!(manifest.format(), format, "{path}: {:?}", manifest.detection);
        assert_no_serious_findings(&manifest);
    }
}

#[test]
fn arws_manifest_parses_with_its_openapi_document() {
    let identity = ServerIdentity::at(BASE);
    let tools = serde_json::to_vec(&tools::document(&identity)).unwrap();
    let url = ManifestUrl::parse(&identity.url("/tools/openapi.json")).unwrap();
    let manifest = read("/.well-known/agent-manifest.json", &[LinkedDocument { url: &url, bytes: &tools }]);
    assert_eq!(manifest.format(), Format::Arws);
    assert_no_serious_findings(&manifest);
    assert_eq!(manifest.capabilities.len(), Tool::ALL.len() - 1, "ARWS does not list the submit tool");
}

#[test]
fn a_signed_card_verifies_with_the_served_key() {
    // the key of RFC 9421, appendix B.1.4
    let der = data_encoding::BASE64
        .decode(b"MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF")
        .unwrap();
    let signer = std::sync::Arc::new(manifest::CardSigner::from_pkcs8(&der).unwrap());
    let keys = signer.key_set().to_string();
    let identity = ServerIdentity::at(BASE).signed_by(Some(signer));
    let card = a2a::card(&identity).to_string();
    let url = |path: &str| ManifestUrl::parse(&identity.url(path)).unwrap();
    let manifest = manifest::read(&Document {
        bytes: card.as_bytes(),
        url: &url("/.well-known/agent-card.json"),
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[LinkedDocument { url: &url("/.well-known/jwks.json"), bytes: keys.as_bytes() }],
        force: None,
    });
    assert!(manifest.identity(NamedBy::Site).verified, "{:?}", manifest.identity(NamedBy::Site).signature);
    assert_no_serious_findings(&manifest);
}

#[test]
fn descriptions_use_the_public_url_and_no_loopback_address() {
    let identity = ServerIdentity::at(BASE);
    for (path, make) in DOCUMENTS {
        let text = match make(&identity) {
            SelfDescription::Json(value, _) => value.to_string(),
            SelfDescription::Text(text, _) => text,
        };
        assert!(!text.contains("127.0.0.1") && !text.contains("localhost"), "{path}");
        assert!(text.contains(BASE) || matches!(path, "/agent.json" | "/.well-known/agent.json"), "{path}");
    }
}
