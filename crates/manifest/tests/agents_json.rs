//! agents.json documents, read and checked.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use manifest::model::Format;
use manifest::{Discovery, Document, Manifest, ManifestUrl};
use serde_json::{Value, json};

fn read_bytes(path: &str, bytes: &[u8]) -> Manifest {
    let url = ManifestUrl::parse(&format!("https://clay.example{path}")).unwrap();
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

fn read(document: &Value) -> Manifest {
    read_bytes("/.well-known/agents.json", document.to_string().as_bytes())
}

fn document(members: &Value) -> Value {
    let mut document = json!({
        "schema_version": "0.1.0", "site": {"name": "Clay", "url": "https://clay.example"},
        "capabilities": [{"name": "search", "endpoint": "/search", "method": "GET"}],
    });
    document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    document
}

fn with_capability(members: &Value) -> Manifest {
    let mut capability = json!({"name": "search", "endpoint": "/search", "method": "GET"});
    capability.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    read(&document(&json!({"capabilities": [capability]})))
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

#[test]
fn a_file_without_an_identifying_member_is_read() {
    for missing in ["schema_version", "site", "capabilities"] {
        let mut changed = document(&json!({}));
        changed.as_object_mut().unwrap().remove(missing);
        let manifest = read(&changed);
        assert_eq!(manifest.format(), Format::AgentsJson, "{missing}");
        assert_eq!(places(&manifest, &format!("agents_json.{missing}.missing")), [""]);
    }
    for (member, value) in [
        ("site", json!("Acme")),
        ("site", json!(null)),
        ("capabilities", json!({})),
        ("schema_version", json!(null)),
    ] {
        let manifest = read(&document(&json!({member: value})));
        assert_eq!(manifest.format(), Format::AgentsJson, "{member} {value}");
        let pointer = format!("/{member}");
        assert_eq!(places(&manifest, &format!("agents_json.{member}.mistyped")), [pointer.as_str()]);
    }
}

#[test]
fn a_file_with_two_faults_is_read() {
    let listed = json!({"name": "a", "endpoint": "/a", "method": "GET"});
    for other in [json!(3), json!({"name": "b", "method": "GET"})] {
        for capabilities in [json!([listed, other]), json!([other, listed])] {
            let manifest = read(&json!({"schema_version": "0.1.0", "capabilities": capabilities}));
            assert_eq!(manifest.format(), Format::AgentsJson, "{capabilities}");
            assert_eq!(places(&manifest, "agents_json.site.missing"), [""]);
            assert!(manifest.findings.iter().any(|finding| finding.pointer.starts_with("/capabilities")));
        }
    }
}

#[test]
fn names_have_no_empty_parts() {
    for (name, is_valid) in [
        ("search", true),
        ("cart.add_2", true),
        ("cart..add", false),
        (".cart", false),
        ("cart.", false),
        ("Cart", false),
        ("cart-add", false),
    ] {
        let manifest = with_capability(&json!({"name": name}));
        let found = places(&manifest, "agents_json.capability.name.invalid");
        assert_eq!(found.is_empty(), is_valid, "{name}: {found:?}");
    }
}

#[test]
fn defaults_agree_with_their_parameter() {
    let manifest = with_capability(&json!({"params": {
        "sort": {"type": "string", "enum": ["new"], "default": "cheap"},
        "page": {"type": "integer", "default": "one"},
        "many": {"type": "integer", "enum": [1, "two"]},
        "none": {"type": "string", "enum": []},
        "fits": {"type": "number", "default": 1.5, "enum": [1.5]},
        "seats": {"type": "array", "items": {"type": "integer"}, "default": [1, "a"]},
    }}));
    let at = |name: &str| format!("/capabilities/0/params/{name}");
    assert_eq!(places(&manifest, "agents_json.param.default.unlisted"), [at("sort/default")]);
    assert_eq!(
        places(&manifest, "agents_json.param.default.mistyped"),
        [at("page/default"), at("seats/default/1")]
    );
    assert_eq!(places(&manifest, "agents_json.param.enum.value_mistyped"), [at("many/enum/1")]);
    assert_eq!(places(&manifest, "agents_json.param.enum.empty"), [at("none/enum")]);
}

#[test]
fn endpoints_are_paths() {
    for endpoint in ["https://shop.example/search", "//shop.example/search"] {
        let manifest = with_capability(&json!({"endpoint": endpoint}));
        assert_eq!(
            places(&manifest, "agents_json.path.absolute"),
            ["/capabilities/0/endpoint"],
            "{endpoint}"
        );
    }
}

#[test]
fn the_method_determines_the_location_of_parameters() {
    for (method, place) in
        [("GET", "query"), ("DELETE", "query"), ("POST", "body"), ("PUT", "body"), ("PATCH", "body")]
    {
        let manifest = with_capability(&json!({"method": method, "params": {"q": {"type": "string"}}}));
        let parameters = manifest.capabilities[0].parameters.as_ref().unwrap();
        assert_eq!(parameters["properties"]["q"]["x-in"], place, "{method}");
    }
}

#[test]
fn capabilities_that_need_a_session_have_its_address() {
    let manifest = read(&document(&json!({
        "capabilities": [
            {"name": "search", "endpoint": "/search", "method": "GET"},
            {"name": "cart.view", "endpoint": "/cart", "method": "GET", "requires_session": true},
        ],
        "session": {"create": "/sessions", "ttl_seconds": 30},
    })));
    let (search, cart) = (&manifest.capabilities[0].auth, &manifest.capabilities[1].auth);
    assert_eq!((search.session, search.session_url.as_deref()), (false, None));
    assert_eq!((cart.session, cart.session_url.as_deref()), (true, Some("https://clay.example/sessions")));
    assert_eq!(places(&manifest, "agents_json.session.ttl.too_short"), ["/session/ttl_seconds"]);
}

#[test]
fn session_defaults_apply() {
    let manifest = with_capability(&json!({"requires_session": true}));
    let default = Some("https://clay.example/.well-known/agents/api/session");
    let sessions = manifest.sessions.as_ref().unwrap();
    assert_eq!((sessions.create_url.as_deref(), sessions.delete_url.as_deref()), (default, default));
    assert_eq!(sessions.ttl_s, Some(1_800));
    assert_eq!(manifest.capabilities[0].auth.session_url.as_deref(), default);
    let manifest = read(&document(&json!({"session": {"create": "/s"}})));
    assert_eq!(manifest.sessions.unwrap().delete_url.as_deref(), Some("https://clay.example/s"));
}

#[test]
fn audit_has_a_default_address() {
    let url = |audit: Value| read(&document(&json!({"audit": audit}))).audit.unwrap().url;
    assert_eq!(
        url(json!({"enabled": true})).as_deref(),
        Some("https://clay.example/.well-known/agents/api/audit")
    );
    assert_eq!(url(json!({"enabled": true, "endpoint": "/a"})).as_deref(), Some("https://clay.example/a"));
    assert_eq!(url(json!({})), None);
}

#[test]
fn public_keys_are_ed25519() {
    let is_key = |key: &str| {
        let manifest = read(&document(&json!({"audit": {"public_key": key}})));
        places(&manifest, "agents_json.audit.public_key.invalid").is_empty()
    };
    assert!(is_key("MCowBQYDK2VwAyEABkii3p4rtgXxez3sB2DfGel553kx4EAKWBLMFCYV6YM="));
    assert!(is_key("Bkii3p4rtgXxez3sB2DfGel553kx4EAKWBLMFCYV6YM="));
    assert!(!is_key("MCowBQYDK2VwAyEA...") && !is_key("AAAA") && !is_key("no key"));
    assert!(!is_key("MCowBQYDK2VuAyEABkii3p4rtgXxez3sB2DfGel553kx4EAKWBLMFCYV6YM="), "X25519");
}

#[test]
fn agents_txt_links_to_agents_json() {
    let links = |text: &str| read_bytes("/agents.txt", text.as_bytes()).links;
    let own = links("Name: Clay\nURL: https://clay.example\nCapabilities: search\n");
    assert_eq!(
        (own[0].rel.as_str(), own[0].url.as_str()),
        ("agents-json", "https://clay.example/.well-known/agents.json")
    );
    let other = links(
        "Name: Clay\nURL: https://clay.example\nCapabilities: search\nCapabilities-URL: https://clay.example/a.json\n",
    );
    assert_eq!(other[0].url, "https://clay.example/a.json");
}
