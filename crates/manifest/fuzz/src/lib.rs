//! Fuzz targets: each function reads arbitrary bytes with one parser and asserts the invariants of every document.
//!
//! The targets call only public functions, so every input that fails is one that a site could serve. `tests/fuzz_targets.rs` runs them
//! without a fuzzer, on the fixtures and on damaged copies.

use std::fmt::Write as _;

use manifest::model::Served;
use manifest::{Discovery, Document, Format, LinkedDocument, Manifest, ManifestUrl, SiteName, budget, web};

/// Name and function of a target.
pub type Target = (&'static str, fn(&[u8]));

pub const TARGETS: &[Target] = &[
    ("document", document),
    ("json", json),
    ("openapi", openapi),
    ("agents_txt", agents_txt),
    ("llms_txt", llms_txt),
    ("text", text),
    ("types", types),
    ("yaml", yaml),
    ("html", html),
    ("link_header", link_header),
    ("xml", xml),
    ("json_ld", json_ld),
    ("keys", keys),
    ("body", body),
];

/// Paths that the detection uses.
const PATHS: &[&str] = &[
    "/.well-known/agent.json",
    "/agents.json",
    "/.well-known/agents.txt",
    "/.well-known/woa.json",
    "/.well-known/agent-manifest.json",
    "/.well-known/mcp.json",
    "/.well-known/x402",
    "/.well-known/ucp",
    "/llms.txt",
    "/ai.txt",
    "/openapi.yaml",
    "/.well-known/ai-catalog.json",
];

/// Any document: the first byte selects the path; the second decides whether a format is forced and whether headers are known.
pub fn document(data: &[u8]) {
    let [path, how, bytes @ ..] = data else { return };
    let path = PATHS[usize::from(*path) % PATHS.len()];
    let force = Format::ALL.get(usize::from(*how)).copied();
    let served = Served { content_type: Some("text/plain".to_owned()), ..Served::default() };
    assert_invariants(bytes, path, force, (how % 2 == 0).then_some(&served));
}

/// JSON that is read as the format that the first byte selects.
pub fn json(data: &[u8]) {
    let [format, bytes @ ..] = data else { return };
    let force = Format::ALL[usize::from(*format) % Format::ALL.len()];
    assert_invariants(bytes, "/.well-known/agent.json", Some(force), None);
}

/// OpenAPI in YAML and JSON, alone and as the tools of an ARWS manifest.
pub fn openapi(data: &[u8]) {
    assert_invariants(data, "/openapi.yaml", Some(Format::OpenApi), None);
    let url = url("/.well-known/agent-manifest.json");
    let tools = self::url("/openapi.json");
    let linked = [LinkedDocument { url: &tools, bytes: data }];
    let arws = br#"{"name": "a", "description": "b", "tools": "/openapi.json"}"#;
    check(&read(arws, &url, &linked, None, None));
}

/// Every grammar of agents.txt.
pub fn agents_txt(data: &[u8]) {
    assert_invariants(data, "/.well-known/agents.txt", Some(Format::AgentsTxt), None);
}

/// llms.txt and ai.txt: Markdown and prose.
pub fn llms_txt(data: &[u8]) {
    assert_invariants(data, "/llms.txt", Some(Format::LlmsTxt), None);
    assert_invariants(data, "/ai.txt", Some(Format::AiTxt), None);
}

/// Untrusted text as name, description, id and address: sanitising, removal of markup, words, addresses, inferred types.
pub fn text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let quoted = quoted(text);
    let bytes = format!(
        r#"{{"name": {quoted}, "description": {quoted}, "url": {quoted}, "contact": {quoted}, "auth": {quoted},
            "tools": [{{"id": {quoted}, "name": {quoted}, "description": {quoted}, "endpoint": {quoted}}}, {quoted}]}}"#
    );
    let manifest = assert_invariants(bytes.as_bytes(), "/agents.json", Some(Format::Generic), None);
    for capability in &manifest.capabilities {
        assert!(capability.name.chars().count() <= 200, "a name is longer than its cap");
        let described = capability.description.as_deref().unwrap_or_default();
        assert!(described.chars().count() <= 2_000, "a description is longer than its cap");
        assert!(
            !described
                .chars()
                .any(|letter| matches!(letter, '\u{202a}'..='\u{202e}' | '\u{e0000}'..='\u{e007f}'))
        );
    }
}

/// Types, rates and durations of AWP.
pub fn types(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let quoted = quoted(text);
    let bytes = format!(
        r#"{{"awp_version": "0.1", "domain": "a.example", "intent": "b", "auth": {{"type": {quoted}, "token_expiry": {quoted}}},
            "entities": {{"thing": {{"fields": {{"a": {quoted}}}}}}},
            "actions": [{{"id": "a", "description": "b", "method": "POST", "endpoint": {quoted}, "rate_limit": {quoted},
                "inputs": {{"a": {quoted}, "b": {{"type": {quoted}}}}}, "outputs": {{"a": {quoted}}},
                "idempotency": {{"supported": true, "window": {quoted}}}}}]}}"#
    );
    assert_invariants(bytes.as_bytes(), "/agent.json", Some(Format::Awp), None);
}

/// OpenAPI in YAML, after a valid beginning.
pub fn yaml(data: &[u8]) {
    let bytes = [b"openapi: 3.0.0\ninfo: {title: a, version: '1'}\n", data].concat();
    assert_invariants(&bytes, "/openapi.yaml", None, None);
}

/// The head of a page.
pub fn html(data: &[u8]) {
    let head = web::read_head(data);
    assert!(head.links.len() <= 200, "more links than the cap");
    for link in &head.links {
        assert!(link.href.len() <= 2_048 && link.rels.len() <= 16, "a link is longer than its caps");
    }
    assert_eq!(head, web::read_head(data), "two readings differ");
}

/// One Link header.
pub fn link_header(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let links = web::link_header(text);
    assert!(links.len() <= 200, "more links than the cap");
    assert!(links.iter().all(|link| link.href.len() <= 2_048), "a target is longer than its cap");
}

/// Any XML, alone and as the content of a sitemap or an OPML file.
pub fn xml(data: &[u8]) {
    for head in [&b""[..], b"<urlset><url><loc>", b"<opml><outline xmlUrl='"] {
        let bytes = [head, data].concat();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let outcome = web::each_url(bytes.as_slice(), |url| first.push(url.to_owned()));
        assert_eq!(outcome, web::each_url(bytes.as_slice(), |url| second.push(url.to_owned())));
        assert_eq!(first, second, "two readings differ");
        assert!(first.iter().all(|url| url.len() <= 8_192), "a URL is longer than its cap");
    }
}

/// The JSON-LD of a page: the bytes are read as a page, and as the content of a script.
pub fn json_ld(data: &[u8]) {
    let site = SiteName::parse("fuzz.example").expect("a valid name");
    let script = [b"<script type=\"application/ld+json\">", data, b"</script>"].concat();
    for page in [data, &script] {
        let entries = web::page_entries(page, &site);
        assert_eq!(entries, web::page_entries(page, &site), "two readings differ");
        if let Some(entries) = entries {
            assert!(entries.len() <= 1_024 * 1_024 + 2, "more entries than the cap");
            check(&read(&entries, &url("/"), &[], None, None));
        }
    }
}

/// The protected header and the signature of a card, whose key is at `/jwks.json`.
const HEADER: &str =
    "eyJhbGciOiJFZERTQSIsImtpZCI6ImtleS0xIiwiamt1IjoiaHR0cHM6Ly9mdXp6LmV4YW1wbGUvandrcy5qc29uIn0";
const SIGNATURE: &str =
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Key documents: the JSON Web Keys of a card and the DID document of a catalog entry. Also the header and the signature.
pub fn keys(data: &[u8]) {
    let signed = |header: &str, signature: &str| {
        format!(
            r#"{{"name": "a", "description": "b", "version": "1", "capabilities": {{}}, "skills": [],
                "supportedInterfaces": [{{"url": "https://fuzz.example/a2a", "protocolBinding": "JSONRPC"}}],
                "signatures": [{{"protected": {header}, "signature": {signature}}}]}}"#
        )
    };
    let catalog = format!(
        r#"{{"entries": [{{"identifier": "urn:air:fuzz.example:a", "displayName": "a", "type": "text/plain",
            "url": "https://fuzz.example/a", "trustManifest": {{"identity": "did:web:fuzz.example",
            "signature": "{HEADER}..{SIGNATURE}"}}}}]}}"#
    );
    let (set, did) = (url("/jwks.json"), url("/.well-known/did.json"));
    let linked = [LinkedDocument { url: &set, bytes: data }, LinkedDocument { url: &did, bytes: data }];
    let card = signed(&quoted(HEADER), &quoted(SIGNATURE));
    check(&read(card.as_bytes(), &url("/.well-known/agent-card.json"), &linked, None, None));
    check(&read(catalog.as_bytes(), &url("/.well-known/ard.json"), &linked, None, None));
    let Ok(text) = std::str::from_utf8(data) else { return };
    for card in [signed(&quoted(text), &quoted(SIGNATURE)), signed(&quoted(HEADER), &quoted(text))] {
        check(&read(card.as_bytes(), &url("/.well-known/agent-card.json"), &linked, None, None));
    }
}

/// The JSON of a request or of a registry: JSON over budget is never parsed.
pub fn body(data: &[u8]) {
    let parsed = budget::parse_within_budget::<Vec<Vec<String>>>(data, &budget::BODY);
    let is_over = matches!(parsed, Err(budget::BodyError::OverBudget(_)));
    assert_eq!(is_over, budget::check(data, &budget::BODY).is_err(), "two counts differ");
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\0'..='\u{1f}' => {
                write!(quoted, "\\u{:04x}", u32::from(letter)).expect("a string takes anything");
            }
            _ => quoted.push(letter),
        }
    }
    quoted + "\""
}

fn url(path: &str) -> ManifestUrl {
    ManifestUrl::parse(&format!("https://fuzz.example{path}")).expect("a valid path")
}

fn read(
    bytes: &[u8],
    url: &ManifestUrl,
    linked: &[LinkedDocument<'_>],
    force: Option<Format>,
    served: Option<&Served>,
) -> Manifest {
    let discovery = Discovery::Submitted;
    manifest::read(&Document { bytes, url, final_url: None, discovery, served, linked, force })
}

/// Reads twice, asserts the invariants and returns the manifest.
fn assert_invariants(bytes: &[u8], path: &str, force: Option<Format>, served: Option<&Served>) -> Manifest {
    let url = url(path);
    let manifest = read(bytes, &url, &[], force, served);
    assert_eq!(manifest, read(bytes, &url, &[], force, served), "two readings differ");
    assert_eq!(manifest::finding_positions(bytes, &manifest.findings).len(), manifest.findings.len());
    check(&manifest);
    manifest
}

/// Asserts the caps, unique ids and non-empty findings of a manifest.
fn check(manifest: &Manifest) {
    assert!(manifest.capabilities.len() <= 5_000, "more capabilities than the cap");
    let mut ids: Vec<&str> = manifest.capabilities.iter().map(|capability| capability.id.as_str()).collect();
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count, "capability ids repeat");
    for finding in &manifest.findings {
        assert!(finding.pointer.is_empty() || finding.pointer.starts_with('/'), "{}", finding.pointer);
        assert!(!finding.text.is_empty() && !finding.fix.is_empty(), "{}", finding.code);
    }
}
