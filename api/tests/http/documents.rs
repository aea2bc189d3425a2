//! Normalised manifests of the test sites, written out so that snapshots do not depend on a parser.

use manifest::{CapabilityId, ContentHash, Manifest, ManifestId, ManifestUrl};
use serde_json::{Value, json};

/// Hostile text: elements, attributes, entities, right-to-left overrides, absurd length.
pub(crate) const HOSTILE: &str =
    "</p><script>alert(1)</script><img src=x onerror=alert(2)>\"'&lt;\u{202e}evil";

/// A manifest with this URL, format and capabilities, and with the members of `more`.
fn manifest(url: &str, format: &str, capabilities: &[Value], more: &Value) -> Manifest {
    let parsed = ManifestUrl::parse(url).unwrap();
    let mut value = json!({
        "id": ManifestId::of(&parsed),
        "content_hash": ContentHash::of(body_of(url).as_bytes()),
        "url": url,
        "origin": parsed.origin(),
        "discovery": "well_known",
        "detection": {"format": format, "strength": "strong", "version": "0.1", "evidence": ["its own marker"]},
        "served": {"at": "2026-11-21T07:00:00Z", "status": 200, "content_type": "application/json", "bytes": 42},
        "capabilities": capabilities.iter().map(|given| capability(url, format, given)).collect::<Vec<_>>(),
    });
    let members = value.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    serde_json::from_value(value).unwrap()
}

fn capability(url: &str, format: &str, given: &Value) -> Value {
    let key = format!("{url}#{format}:{}", given["native_id"].as_str().unwrap());
    let mut value = json!({"id": CapabilityId::of_key(&key), "key": key, "kind": "action"});
    value.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
    value
}

/// The document that a site serves at this URL.
pub(crate) fn body_of(url: &str) -> String {
    json!({"published_at": url}).to_string()
}

pub(crate) const SKYHOP: &str = "https://skyhop.example/.well-known/agent.json";
pub(crate) const WEATHER: &str = "https://weather.example/openapi.json";
pub(crate) const EVIL: &str = "https://evil.example/agent.json";
pub(crate) const SECRETIVE: &str = "https://secretive.example/agent.json";

/// An airline with an irreversible booking.
pub(crate) fn skyhop() -> Manifest {
    let book = json!({
        "native_id": "book_seat", "name": "Book seat", "description": "Book a flight: a seat on one of our departures.",
        "semantic_types": [{"type": "travel:flight-booking", "source": "inferred", "confidence": 0.9, "rule": "name.book-flight"}],
        "invocation": {"protocol": "http", "method": "POST", "url": "https://skyhop.example/api/bookings"},
        "parameters": {"type": "object", "required": ["departure_date"], "properties": {
            "departure_date": {"type": "string", "format": "date", "description": "Day of departure", "x-in": "body"},
            "cabin": {"type": "string", "enum": ["economy", "first"], "default": "economy", "x-in": "body"}}},
        "response": {"type": "object", "properties": {"booking_id": {"type": "string", "description": "Number of the booking"}}},
        "auth": {"required": "yes", "schemes": ["oauth2"], "scopes": ["bookings:write"]},
        "safety": {"class": "irreversible", "source": "declared", "confirmation": "required"},
        "execution": {"model": "sync"}, "rate_limit": {"requests": 60, "window_s": 60},
        "examples": ["book me a flight to Lisbon on Friday"], "depends_on": ["search_flights"], "pointer": "/actions/0",
    });
    let search = json!({
        "native_id": "search_flights", "name": "Search flights", "description": "Find departures between two airports on a day.",
        "invocation": {"protocol": "http", "method": "GET", "url": "https://skyhop.example/api/flights"},
        "auth": {"required": "no", "schemes": ["none"]},
        "safety": {"class": "read", "source": "inferred", "confirmation": "none"},
        "inferred": {"safety": "method.get"}, "pointer": "/actions/1",
    });
    let findings = json!([
        {"code": "awp.action.inputs.missing", "severity": "should", "spec": "AWP 0.1 §9", "pointer": "/actions/0/inputs",
         "text": "the action declares no inputs", "fix": "List the inputs with their types."},
        {"code": "awp.contact.missing", "severity": "may", "spec": "AWP 0.1 §4", "pointer": "",
         "text": "no contact is named", "fix": "Add contact."}]);
    let more = json!({"name": "Skyhop", "findings": findings, "conformance": [{"spec": "AWP 0.1", "level": "minor"}]});
    manifest(SKYHOP, "awp", &[book, search], &more)
}

/// A service that only reads.
pub(crate) fn weather() -> Manifest {
    let forecast = json!({
        "native_id": "getForecast", "name": "getForecast", "title": "Get forecast", "kind": "operation",
        "description": "Weather forecast for a place, hour by hour.",
        "semantic_types": [{"type": "weather:forecast", "source": "declared", "confidence": 1.0}],
        "invocation": {"protocol": "http", "method": "GET", "url_template": "https://weather.example/v1/{place}"},
        "safety": {"class": "read", "source": "inferred", "confirmation": "none"}, "pointer": "/paths/~1v1~1{place}/get",
    });
    manifest(WEATHER, "openapi", &[forecast], &json!({"name": "Weather"}))
}

/// A site with one capability.
pub(crate) fn offer(site: &str, name: &str, description: &str, semantic_type: &str) -> Manifest {
    let offered = json!({
        "native_id": name, "name": name, "description": description,
        "semantic_types": [{"type": semantic_type, "source": "declared", "confidence": 1.0}],
        "invocation": {"protocol": "http", "method": "POST", "url": format!("https://{site}/api")},
        "safety": {"class": "write", "source": "declared", "confirmation": "none"}, "pointer": "/actions/0",
    });
    manifest(&format!("https://{site}/agent.json"), "generic", &[offered], &json!({"name": site}))
}

/// An MCP server without tools.
pub(crate) fn server(url: &str, name: &str) -> Manifest {
    let interfaces =
        json!([{"protocol": "mcp", "url": "https://tools.example/mcp", "transport": "streamable-http"}]);
    manifest(url, "mcp_card", &[], &json!({"name": name, "interfaces": interfaces}))
}

/// A hostile publisher.
pub(crate) fn evil() -> Manifest {
    let steal = json!({
        "native_id": HOSTILE, "name": HOSTILE, "description": format!("plunder {HOSTILE} {}", "x".repeat(3_000)),
        "semantic_types": [{"type": "evil:<b>", "source": "declared", "confidence": 1.0}],
        "invocation": {"protocol": "http", "method": "GET", "url": "javascript:alert(3)"},
        "parameters": {"type": "object", "properties": {HOSTILE: {"type": "string", "description": HOSTILE, "default": HOSTILE}}},
        "examples": [HOSTILE], "pointer": "/actions/0", "pointer_document": "javascript:alert(4)",
    });
    manifest(EVIL, "generic", &[steal], &json!({"name": HOSTILE, "description": HOSTILE}))
}

/// A publisher that forbids copies.
pub(crate) fn secretive() -> Manifest {
    let tell = json!({"native_id": "whisper", "name": "Whisper", "description": "Whispers a secret."});
    let policies =
        json!({"training": "deny", "inference": "deny", "attribution": "required", "caching_allowed": false});
    manifest(SECRETIVE, "atp", &[tell], &json!({"policies": policies}))
}
