//! The manifests of agentdex itself, in every dialect that it reads, all generated from the list of tools.
//!
//! URLs are absolute and begin with `--public-url`. All declared endpoints exist: the interface of the card, the agents of WoA, the MCP
//! tools and all other endpoints use the same code.

mod a2a;
mod agents_json;
mod agents_txt;
mod arws;
mod atp;
mod awp;
mod catalog;
mod identity;
mod links;
mod plain;
mod tools;
mod woa;

#[cfg(test)]
mod tests;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::Value;

use self::identity::ServerIdentity;
use crate::clock;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::response::{Caching, RequestContext};
use crate::state::App;

/// A document with its media type.
enum SelfDescription {
    Json(Value, &'static str),
    Text(String, &'static str),
}

const JSON: &str = "application/json";
const JSON_UTF8: &str = "application/json; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const MARKDOWN: &str = "text/markdown; charset=utf-8";

/// A path and the document served there.
type DocumentRoute = (&'static str, fn(&ServerIdentity) -> SelfDescription);

/// All paths.
const DOCUMENTS: [DocumentRoute; 17] = [
    ("/agent.json", |identity| SelfDescription::Json(awp::manifest(identity), JSON)),
    ("/.well-known/agent.json", |identity| SelfDescription::Json(atp::manifest(identity), JSON)),
    ("/.well-known/woa.json", |identity| {
        SelfDescription::Json(woa::document(identity), "application/woa+json")
    }),
    ("/.well-known/agents.json", |identity| {
        SelfDescription::Json(agents_json::manifest(identity), JSON_UTF8)
    }),
    ("/agents.txt", |identity| SelfDescription::Text(agents_txt::file(identity), TEXT)),
    ("/.well-known/agents.txt", |identity| SelfDescription::Text(agents_txt::file(identity), TEXT)),
    ("/.well-known/agent-manifest.json", |identity| SelfDescription::Json(arws::manifest(identity), JSON)),
    ("/tools/openapi.json", |identity| SelfDescription::Json(tools::document(identity), JSON)),
    ("/.well-known/agent-card.json", |identity| SelfDescription::Json(a2a::card(identity), JSON)),
    ("/.well-known/ai-catalog.json", |identity| SelfDescription::Json(catalog::catalog(identity), JSON)),
    ("/.well-known/ard.json", |identity| SelfDescription::Json(catalog::manifest(identity), JSON)),
    ("/.well-known/api-catalog", |identity| {
        SelfDescription::Json(
            links::catalog(identity),
            "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"",
        )
    }),
    ("/llms.txt", |identity| SelfDescription::Text(plain::llms(identity), MARKDOWN)),
    ("/.well-known/llms.txt", |identity| SelfDescription::Text(plain::llms(identity), MARKDOWN)),
    ("/robots.txt", |identity| SelfDescription::Text(plain::robots(identity), TEXT)),
    ("/.well-known/security.txt", |identity| {
        SelfDescription::Text(plain::security(identity, clock::now()), TEXT)
    }),
    ("/security.txt", |identity| SelfDescription::Text(plain::security(identity, clock::now()), TEXT)),
];

/// The routes of all descriptions, and of the agent that the A2A card names.
pub(crate) fn routes() -> Router<App> {
    let router = Router::new().route("/a2a", post(a2a::answer));
    DOCUMENTS.into_iter().fold(router, |router, (path, make)| {
        let serve = move |State(app): State<App>, context: RequestContext, query: QueryPairs| async move {
            query.only(&[])?;
            let identity = ServerIdentity::at(&app.base_url()).signed_by(app.config.card_signer.clone());
            served(&context, make(&identity))
        };
        router.route(path, get(serve))
    })
}

/// The entry of this registry's own catalog with an identifier; `base` is its address.
pub(crate) fn own_entry(base: &str, identifier: &str) -> Option<Value> {
    let mut catalog = catalog::catalog(&ServerIdentity::at(base));
    let entries = catalog["entries"].as_array_mut().map(std::mem::take)?;
    entries.into_iter().find(|entry| entry["identifier"] == identifier)
}

/// The identifiers of the entries in the catalog of this server.
pub(crate) fn own_identifiers(base: &str) -> Vec<String> {
    let catalog = catalog::catalog(&ServerIdentity::at(base));
    let entries = catalog["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().filter_map(|entry| entry["identifier"].as_str()).map(str::to_owned).collect()
}

/// Links to the manifests, which ATP §2.2 and RFC 9727 §3 require of a home page.
pub(crate) const HOME_LINKS: &str = "</.well-known/agent.json>; rel=\"agent-manifest\", </.well-known/api-catalog>; rel=\"api-catalog\", \
     </.well-known/ard.json>; rel=\"ard\", </.well-known/ai-catalog.json>; rel=\"ai-catalog\"";

fn served(context: &RequestContext, document: SelfDescription) -> Result<Response, Problem> {
    let (body, content_type) = match document {
        SelfDescription::Json(value, content_type) => {
            (serde_json::to_vec(&value).map_err(|error| Problem::internal(&error))?, content_type)
        }
        SelfDescription::Text(text, content_type) => (text.into_bytes(), content_type),
    };
    let mut response = context.bytes(body, content_type, Caching::Description);
    // ATP §2.2 requires these two headers on the manifest itself, in addition to the CORS header that every response has
    let headers = response.headers_mut();
    let name = |name: &'static str| HeaderName::from_static(name);
    headers.insert(name("access-control-allow-methods"), HeaderValue::from_static("GET, OPTIONS"));
    headers.insert(name("access-control-allow-headers"), HeaderValue::from_static("Accept, Authorization"));
    headers.insert(header::LINK, HeaderValue::from_static(HOME_LINKS));
    Ok(response)
}
