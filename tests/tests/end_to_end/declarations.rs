//! A site that declares one operation in several dialects gets one search result.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testweb::{Answer, Host, Web};

use crate::world::{Api, Backend, World};

const SHOP: &str = "table.test";
const AWP: &str = "/agent.json";
const ATP: &str = "/.well-known/agent.json";
const AGENTS_JSON: &str = "/.well-known/agents.json";
const OPEN_API: &str = "/openapi.json";
const FORMATS: [&str; 4] = ["agents_json", "atp", "awp", "openapi"];

/// A site that declares a table booking in four dialects, which disagree about authentication and about a parameter.
fn site() -> Host {
    let awp = json!({
        "awp_version": "0.1", "domain": SHOP, "intent": "Book a table.", "capabilities": {"streaming": false},
        "actions": [{
            "id": "book_table", "description": "Book a table for an evening", "auth_required": true,
            "inputs": {"seats": {"type": "integer", "required": true}, "evening": {"type": "date", "required": true}},
            "outputs": {"booking_id": "string"}, "endpoint": "/api/bookings", "method": "POST",
            "sensitivity": "irreversible", "rate_limit": "30/minute",
        }],
    });
    let atp = json!({
        "@context": "https://atp.dev/schema/v1", "@type": "AgentManifest", "name": "Tables", "version": "1.0.0",
        "description": "Books tables.", "provider": {"name": "Tables", "url": format!("https://{SHOP}")},
        "capabilities": [{
            "id": "reserve-table", "name": "Reserve", "description": "Reserve a table.", "endpoint": "/api/bookings",
            "method": "POST", "semanticType": "travel:booking-create",
            "parameters": [{"name": "seats", "type": "integer", "required": true}],
        }],
    });
    let agents_json = json!({
        "schema_version": "0.1.0", "site": {"name": "Tables", "url": format!("https://{SHOP}")},
        "capabilities": [{
            "name": "book", "description": "Book.", "endpoint": "/api/bookings", "method": "POST",
            "params": {"seats": {"type": "string"}},
        }],
    });
    let open_api = json!({
        "openapi": "3.1.0", "info": {"title": "Tables", "version": "1"},
        "servers": [{"url": format!("https://{SHOP}/api")}],
        "paths": {"/bookings": {"post": {"operationId": "createBooking", "security": [], "responses": {}}}},
    });
    let home =
        format!("<html><head><link rel=service-desc href={OPEN_API}></head><body>Tables</body></html>");
    let host = Host::new(SHOP).file("/", "text/html", home);
    let documents = [(AWP, awp), (ATP, atp), (AGENTS_JSON, agents_json), (OPEN_API, open_api)];
    documents
        .into_iter()
        .fold(host, |host, (path, document)| host.file(path, "application/json", document.to_string()))
}

/// The only result for the site, after its documents changed.
async fn only_result(world: &World) -> (Api, Value) {
    world.crawl(&["--revisit", "0s"]);
    world.index();
    let api = world.api().await;
    let found = api.get(&format!("/search?site={SHOP}")).await;
    assert_eq!(found["total"], 1, "{found}");
    assert_eq!(api.get("/stats").await["capabilities"], 1);
    (api, found["results"][0].clone())
}

fn texts<'v>(list: &'v Value, member: &str) -> BTreeSet<&'v str> {
    list.as_array().unwrap().iter().map(|one| one[member].as_str().unwrap()).collect()
}

pub(crate) async fn several_documents_declare_one_capability(backend: Backend) {
    let world = World::start(backend, Web::builder().host(site())).await;
    world.write_seeds([SHOP]);
    let (api, result) = only_result(&world).await;
    let id = result["id"].as_str().unwrap().to_owned();
    assert_eq!((&result["format"], &result["method"]), (&"awp".into(), &"POST".into()), "{result}");
    assert_eq!(result["endpoint"], format!("https://{SHOP}/api/bookings"));
    assert_eq!(texts(&result["declarations"], "format"), BTreeSet::from(FORMATS));
    for format in FORMATS {
        assert_eq!(api.get(&format!("/search?format={format}")).await["results"][0]["id"], id.as_str());
    }
    for words in ["createBooking", "reserve-table", "book_table"] {
        assert_eq!(api.get(&format!("/search?q={words}")).await["results"][0]["id"], id.as_str(), "{words}");
    }
    let capability = api.get(&format!("/capabilities/{id}")).await;
    assert_eq!(capability["invocation"]["method"], "POST");
    for declaration in texts(&result["declarations"], "id") {
        assert_eq!(api.get(&format!("/capabilities/{declaration}")).await, capability);
    }

    // The documents disagree, and the more cautious statement applies.
    assert!(texts(&result["contradictions"], "fact").is_superset(&["auth_required", "parameter"].into()));
    assert_eq!(result["auth_required"], true);
    let shown = api.get(&format!("/sites/{SHOP}")).await;
    let contradictions = shown["contradictions"].as_array().unwrap();
    let about_auth = contradictions.iter().find(|one| one["fact"] == "auth_required").unwrap();
    assert_eq!(
        (&about_auth["used"], &about_auth["capability_id"]),
        (&"required".into(), &id.as_str().into())
    );

    // Without the leading document, another one leads under the same id.
    drop(api);
    world.web.set(SHOP, AWP, Answer::status(410));
    let (api, result) = only_result(&world).await;
    assert_eq!(result["id"], id.as_str());
    assert_ne!(result["format"], "awp");
    assert_eq!(texts(&result["declarations"], "format"), BTreeSet::from(["agents_json", "atp", "openapi"]));
    assert_eq!(api.get(&format!("/capabilities/{id}")).await["manifest_id"], result["manifest_id"]);

    // Without any of the documents, there is no result.
    drop(api);
    for path in [ATP, AGENTS_JSON, OPEN_API] {
        world.web.set(SHOP, path, Answer::status(410));
    }
    world.crawl(&["--revisit", "0s"]);
    world.index();
    let api = world.api().await;
    assert_eq!(api.get(&format!("/search?site={SHOP}")).await["total"], 0);
    assert_eq!(api.get(&format!("/capabilities/{id}")).await["status"], 404);
    let changes = api.get("/changes?limit=100").await;
    let kinds = texts(&changes["changes"], "change");
    assert!(kinds.is_superset(&["added", "merged", "split", "removed"].into()), "{kinds:?}");
    world.assert_polite();
}
