//! `/.well-known/api-catalog`: a link set (RFC 9727, RFC 9264).

use serde_json::{Value, json};

use super::identity::ServerIdentity;

pub(super) fn catalog(identity: &ServerIdentity) -> Value {
    let openapi = |path: &str, title: &str| json!({"href": identity.url(path), "type": "application/json", "title": title});
    json!({"linkset": [{
        "anchor": identity.url("/"),
        "service-desc": [openapi("/tools/openapi.json", "The tools")],
        "service-doc": [{"href": identity.url("/llms.txt"), "type": "text/markdown", "title": "What there is"}],
        "service-meta": [{"href": identity.url("/.well-known/ai-catalog.json"), "type": "application/json", "title": "Catalog"}],
        "status": [{"href": identity.url("/readyz"), "type": "application/json", "title": "Status"}],
    }]})
}
