//! `GET /`: the search page for people, a list of entry points for programs.

use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde_json::json;

use super::search;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::self_description::HOME_LINKS;

/// The entry points. With search parameters, the results of the search.
#[utoipa::path(get, path = "/", tag = "service",
    responses((status = 200, description = "Name, version and addresses", body = Object)))]
pub(crate) async fn show(request: Request) -> HttpResult {
    if request.context.wants_page() || request.query.pairs().next().is_some() {
        return search::show(request).await.map(with_links);
    }
    let base = request.app.base_url();
    let links = [
        ("search", "/search?q={words}"),
        ("suggest", "/suggest?q={beginning}"),
        ("capability", "/capabilities/{id}"),
        ("manifest", "/manifests/{id}"),
        ("site", "/sites/{domain}"),
        ("sites", "/sites"),
        ("semantic_types", "/semantic-types"),
        ("changes", "/changes"),
        ("changes_stream", "/changes/stream"),
        ("changes_atom", "/changes.atom"),
        ("crawl", "/crawl"),
        ("crawl_stream", "/crawl/stream"),
        ("export", "/export.jsonl"),
        ("mcp_servers", "/v0.1/servers"),
        ("validate", "/validate"),
        ("stats", "/stats"),
        ("openapi", "/openapi.json"),
        ("documentation", "/docs"),
        ("ready", "/readyz"),
    ];
    let links: serde_json::Map<_, _> =
        links.into_iter().map(|(name, path)| (name.to_owned(), format!("{base}{path}").into())).collect();
    let answer = json!({
        "name": "agentdex",
        "description": "finds out what AI agents can do on the web",
        "version": env!("CARGO_PKG_VERSION"),
        "links": links,
    });
    request.context.json(&answer, Caching::Record).map(with_links)
}

/// Links the home page to the manifests of this server.
fn with_links(mut response: Response) -> Response {
    response.headers_mut().insert(header::LINK, HeaderValue::from_static(HOME_LINKS));
    response
}
