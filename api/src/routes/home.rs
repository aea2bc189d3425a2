//! `GET /`: for people the search page, for programs a list of where to begin.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde_json::json;

use super::search;
use crate::client::Client;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::response::{Caching, RequestContext};
use crate::self_description::HOME_LINKS;
use crate::state::App;

/// Where to begin. With parameters of a search, that search.
#[utoipa::path(get, path = "/", tag = "service",
    responses((status = 200, description = "Name, version and addresses", body = Object)))]
pub(crate) async fn show(
    State(app): State<App>,
    context: RequestContext,
    Extension(client): Extension<Client>,
    query: QueryPairs,
) -> Result<Response, Problem> {
    if context.wants_page() || query.pairs().next().is_some() {
        return search::show(State(app), context, Extension(client), query).await.map(with_links);
    }
    let base = app.base_url();
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
    context.json(&answer, Caching::Record).map(with_links)
}

/// The home page says where our own manifests lie.
fn with_links(mut response: Response) -> Response {
    response.headers_mut().insert(header::LINK, HeaderValue::from_static(HOME_LINKS));
    response
}
