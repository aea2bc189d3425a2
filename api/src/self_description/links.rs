//! `/.well-known/api-catalog`: a link set (RFC 9727, RFC 9264).

use serde_json::{Value, json};

use super::own::Own;

pub(super) fn catalog(own: &Own) -> Value {
    let openapi =
        |path: &str, title: &str| json!({"href": own.url(path), "type": "application/json", "title": title});
    json!({"linkset": [{
        "anchor": own.url("/"),
        "service-desc": [openapi("/tools/openapi.json", "The tools")],
        "service-doc": [{"href": own.url("/llms.txt"), "type": "text/markdown", "title": "What there is"}],
        "service-meta": [{"href": own.url("/.well-known/ai-catalog.json"), "type": "application/json", "title": "Catalog"}],
        "status": [{"href": own.url("/readyz"), "type": "application/json", "title": "Status"}],
    }]})
}
