//! Sites that declare their capabilities in several documents.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use manifest::declaration::{Declared, Excerpt, SiteManifest, fullness, group, operation};
use manifest::{Discovery, Document, Format, Manifest, ManifestUrl, Publisher};
use serde_json::{Value, json};

fn read(path: &str, bytes: &[u8]) -> Manifest {
    let url = ManifestUrl::parse(&format!("https://shop.example{path}")).unwrap();
    manifest::read(&Document {
        bytes,
        url: &url,
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[],
        force: None,
    })
}

/// The capabilities of a site that serves these documents, sorted. A capability is a list of its declarations, the leading one first, each
/// with its format and native id.
fn capabilities(documents: &[(&str, &str)]) -> Vec<Vec<(Format, String)>> {
    let read: Vec<Manifest> = documents.iter().map(|(path, text)| read(path, text.as_bytes())).collect();
    let of_site = |manifest: &Manifest| {
        let declared = manifest.capabilities.iter().map(|capability| Declared {
            id: capability.id.clone(),
            native_id: capability.native_id.clone(),
            operation: operation(capability),
            fullness: fullness(manifest, capability),
        });
        SiteManifest {
            id: manifest.id.clone(),
            host: manifest.url.host(),
            format: manifest.format(),
            content_hash: manifest.content_hash.clone(),
            publisher: Publisher::Site,
            links_away: 0,
            declarations: declared.collect(),
        }
    };
    let groups = group(&read.iter().map(of_site).collect::<Vec<_>>());
    let described = groups.into_iter().map(|group| {
        let members = group.0.into_iter().map(|member| {
            let manifest = read.iter().find(|manifest| manifest.id == member.manifest).unwrap();
            let declared =
                manifest.capabilities.iter().find(|capability| capability.id == member.id).unwrap();
            (manifest.format(), declared.native_id.clone())
        });
        members.collect()
    });
    let mut described: Vec<Vec<(Format, String)>> = described.collect();
    described.sort_unstable();
    described
}

fn declared(format: Format, native_id: &str) -> (Format, String) {
    (format, native_id.to_owned())
}

fn agents_json() -> String {
    json!({
        "schema_version": "0.1.0", "site": {"name": "Shop", "url": "https://shop.example"},
        "capabilities": [
            {"name": "search", "description": "Search products.", "endpoint": "/api/search", "method": "GET",
             "params": {"q": {"type": "string", "required": true}}},
            {"name": "checkout", "description": "Pay.", "endpoint": "/api/checkout", "method": "POST"},
        ],
    })
    .to_string()
}

#[test]
fn agents_txt_and_agents_json_declare_the_same_capabilities() {
    let text = "# agents.txt\nName: Shop\nCapabilities: search, checkout\nCapabilities-URL: /.well-known/agents.json\n";
    let found = capabilities(&[("/agents.txt", text), ("/.well-known/agents.json", &agents_json())]);
    let pair = |name| vec![declared(Format::AgentsJson, name), declared(Format::AgentsTxt, name)];
    assert_eq!(found, [pair("checkout"), pair("search")]);
}

#[test]
fn arws_documents_at_both_paths_are_merged() {
    let document = json!({
        "name": "Shop", "description": "Sells.", "version": "1.0.0",
        "tools": [{"name": "find", "description": "Find.", "inputSchema": {"type": "object"}}],
    });
    let text = document.to_string();
    let found = capabilities(&[("/agent.json", &text), ("/.well-known/agent.json", &text)]);
    assert!(!found.is_empty(), "the document declares something");
    assert!(found.iter().all(|declarations| declarations.len() == 2), "{found:?}");
}

#[test]
fn awp_at_both_paths_and_openapi_are_merged() {
    let awp = json!({
        "awp_version": "0.1", "domain": "shop.example", "intent": "Sell.", "capabilities": {"streaming": false},
        "actions": [
            {"id": "book", "description": "Book a table.", "method": "POST", "endpoint": "/api/bookings",
             "inputs": {"seats": {"type": "integer", "required": true}}},
            {"id": "cancel", "description": "Cancel.", "method": "DELETE", "endpoint": "/api/bookings/{id}"},
        ],
    })
    .to_string();
    let open_api = json!({
        "openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "servers": [{"url": "https://shop.example/api"}],
        "paths": {
            "/bookings": {"post": {"operationId": "createBooking", "responses": {}}},
            "/bookings/{booking}": {"delete": {"operationId": "deleteBooking", "responses": {}}},
            "/menu": {"get": {"operationId": "menu", "responses": {}}},
        },
    })
    .to_string();
    let found = capabilities(&[
        ("/agent.json", &awp),
        ("/.well-known/agent.json", &awp),
        ("/openapi.json", &open_api),
    ]);
    let formats = |declarations: &Vec<(Format, String)>| {
        let mut formats: Vec<(Format, String)> = declarations.clone();
        formats.sort_unstable();
        formats
    };
    let mut found: Vec<_> = found.iter().map(formats).collect();
    found.sort_unstable();
    let three = |awp, open_api| {
        vec![declared(Format::Awp, awp), declared(Format::Awp, awp), declared(Format::OpenApi, open_api)]
    };
    assert_eq!(
        found,
        [
            three("book", "createBooking"),
            three("cancel", "deleteBooking"),
            vec![declared(Format::OpenApi, "menu")],
        ]
    );
}

#[test]
fn a_linked_card_and_one_at_a_well_known_path_are_merged() {
    let card = |name: &str| -> Value {
        json!({
            "protocolVersion": "0.3.0", "name": name, "description": "Answers.", "version": "1",
            "url": "https://shop.example/a2a", "capabilities": {}, "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "ask", "name": "Ask", "description": "Ask.", "tags": ["x"]},
                       {"id": "tell", "name": "Tell", "description": "Tell.", "tags": ["x"]}],
        })
    };
    let (one, other) = (card("Shop").to_string(), card("The shop").to_string());
    for second in [&one, &other] {
        let found = capabilities(&[("/.well-known/agent-card.json", &one), ("/card.json", second)]);
        let pair = |name| vec![declared(Format::A2a, name), declared(Format::A2a, name)];
        assert_eq!(found, [pair("ask"), pair("tell")]);
    }
}

#[test]
fn an_excerpt_of_a_large_declaration_is_bounded() {
    let word = |letter: &str, bytes: usize| letter.repeat(bytes);
    let mut manifest = read("/agents.json", agents_json().as_bytes());
    manifest.url = ManifestUrl::parse(&format!("https://shop.example/{}", word("u", 8_000))).unwrap();
    manifest.name = Some(word("n", 200));
    manifest.language = Some(word("l", 100_000));
    let capability = &mut manifest.capabilities[0];
    let properties: serde_json::Map<String, Value> = (0..5_000)
        .map(|number| (format!("{number}{}", word("p", 150)), json!({"type": word("t", 100), "enum": ["e"]})))
        .collect();
    capability.parameters = Some(json!({"type": "object", "properties": properties}));
    capability.description = Some(word("d", 100_000));
    capability.response = Some(json!({"properties": {"r": word("r", 100_000)}}));
    capability.key = format!("{}#{}", manifest.url, word("k", 200));
    capability.pointer = word("p", 4_096);
    capability.pointer_document = Some(manifest.url.to_string());
    capability.tags = vec![word("t", 100); 5_000];
    capability.auth.scopes = vec![word("s", 100); 5_000];
    capability.safety.message = Some(word("m", 100_000));
    capability.examples = vec![word("e", 100_000)];
    let excerpt = Excerpt::of(&manifest, &manifest.capabilities[0]);
    let json = serde_json::to_vec(&excerpt).unwrap();
    assert!(json.len() < 64 * 1024, "{} bytes", json.len());
    assert_eq!(serde_json::from_slice::<Excerpt>(&json).unwrap(), excerpt);

    let plain = read("/agents.json", agents_json().as_bytes());
    let json = serde_json::to_vec(&Excerpt::of(&plain, &plain.capabilities[0])).unwrap();
    assert!(json.len() < 1_024, "usually it is short: {} bytes", json.len());
}

#[test]
fn requirements_of_x402_have_its_payment_scheme() {
    let requirement = r#"{"scheme": "exact", "network": "base", "asset": "USDC", "maxAmountRequired": "10000", "payTo": "0x1"}"#;
    let document = format!(
        r#"{{"x402Version": 1, "resources": [{{"url": "https://shop.example/a", "accepts": [{requirement}]}}]}}"#
    );
    let manifest = read("/.well-known/x402.json", document.as_bytes());
    let schemes = manifest::declaration::payment_schemes(&manifest, &manifest.capabilities[0]);
    assert_eq!(schemes, ["exact", "x402"]);
}
