//! Every route with its handler, and the OpenAPI document that describes them.

mod docs;

use std::sync::LazyLock;

use axum::Router;
use axum::http::{Method, Uri};
use axum::response::Redirect;
use axum::routing::get;
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::problem::{NOTHING_HERE, Problem};
use crate::routes::{
    admin, admin_abuse, admin_feedback, admin_keys, admin_spam, assets, badge, bot_keys, capability,
    card_keys, changes, changes_stream, claim, crawl, crawl_stream, export, feedback, feeds, health, home,
    manifest, manifest_diff, mcp_server_versions, mcp_servers, metrics, objection, opensearch, owner, rank,
    raw, report, search, semantic_types, similar, site, site_changes, sitemap, sites, stats, styleguide,
    submit, suggest, tool, validate, validator, watch,
};
use crate::state::App;
use crate::{middleware, openapi};

/// The served OpenAPI document.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| openapi::finish(documented().into_openapi()));

/// Every route inside the middleware.
pub fn router(app: &App) -> Router {
    middleware::wrapped(all(app).with_state(app.clone()), app)
}

/// The routes that the OpenAPI document describes.
fn documented() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::preamble())
        .routes(routes!(home::show))
        .routes(routes!(search::show))
        .routes(routes!(suggest::show))
        .routes(routes!(feedback::submit))
        .routes(routes!(report::submit))
        .routes(routes!(capability::show))
        .routes(routes!(similar::show))
        .routes(routes!(tool::show))
        .routes(routes!(sites::list, submit::submit))
        .routes(routes!(submit::recheck))
        .routes(routes!(claim::show, claim::issue))
        .routes(routes!(claim::check))
        .routes(routes!(owner::opt_out))
        .routes(routes!(owner::searches))
        .routes(routes!(objection::show, objection::send))
        .routes(routes!(rank::show))
        .routes(routes!(badge::show))
        .routes(routes!(feeds::site_changes))
        .routes(routes!(site::show))
        .routes(routes!(site_changes::list))
        .routes(routes!(manifest::show))
        .routes(routes!(raw::show))
        .routes(routes!(manifest::versions))
        .routes(routes!(manifest_diff::show))
        .routes(routes!(semantic_types::list))
        .routes(routes!(stats::show))
        .routes(routes!(crawl::show))
        .routes(routes!(crawl_stream::stream))
        .routes(routes!(validator::show, validate::check))
        .routes(routes!(changes::list))
        .routes(routes!(changes_stream::stream))
        .routes(routes!(feeds::changes))
        .routes(routes!(feeds::search))
        .routes(routes!(watch::add))
        .routes(routes!(watch::show, watch::remove))
        .routes(routes!(watch::rotate))
        .routes(routes!(watch::challenge))
        .routes(routes!(export::stream))
        .routes(routes!(mcp_servers::list))
        .routes(routes!(mcp_server_versions::list))
        .routes(routes!(mcp_server_versions::show))
        .routes(routes!(admin::block))
        .routes(routes!(admin::unblock))
        .routes(routes!(admin_abuse::suspend))
        .routes(routes!(admin_abuse::unsuspend))
        .routes(routes!(admin_abuse::answer))
        .routes(routes!(admin_abuse::reports, admin_abuse::dismiss))
        .routes(routes!(admin_spam::list))
        .routes(routes!(admin::reindex))
        .routes(routes!(admin::queue))
        .routes(routes!(admin_feedback::list, admin_feedback::remove))
        .routes(routes!(admin_keys::list))
        .routes(routes!(watch::list))
        .routes(routes!(watch::end))
        .routes(routes!(metrics::show))
        .routes(routes!(health::healthz))
        .routes(routes!(health::ready))
        .routes(routes!(docs::openapi))
        .merge(crate::ard::routes())
        .merge(crate::tools::routes())
        .merge(crate::mcp::described())
}

/// Every route, including those for browsers only.
fn all(app: &App) -> Router<App> {
    let (documented, _) = documented().split_for_parts();
    documented
        .route("/docs", get(docs::index))
        .route("/types", get(docs::types))
        .route("/admin", get(docs::operator))
        .route("/docs/index.html", get(docs::moved))
        .route("/styleguide", get(styleguide::show))
        .route("/opensearch.xml", get(opensearch::show))
        .route("/sitemap.xml", get(sitemap::show))
        .route("/capabilities/{id}/try", get(capability::build_request))
        .route("/assets/{name}", get(assets::show))
        .route("/favicon.ico", get(assets::icon))
        .route("/.well-known/http-message-signatures-directory", get(bot_keys::show))
        .route("/.well-known/jwks.json", get(card_keys::show))
        .merge(crate::mcp::routes(app))
        .merge(crate::self_description::routes())
        .fallback(unknown)
}

/// Redirects an address that ends with a slash to the one without; there is nothing at others.
async fn unknown(method: Method, uri: Uri) -> Result<Redirect, Problem> {
    let moved = without_slash(&uri).filter(|_| method == Method::GET || method == Method::HEAD);
    let moved = moved.map(|address| Redirect::permanent(&address));
    moved.ok_or_else(|| Problem::not_found(format!("{NOTHING_HERE}; begin at /")))
}

/// The path without the slashes at its end, and the query. `None` if there are none, or if browsers would read the rest as the address of
/// another host.
fn without_slash(uri: &Uri) -> Option<String> {
    let path = uri.path().strip_suffix('/')?.trim_end_matches('/');
    // ARD 0.91: an identifier is found exactly or not at all
    let is_lookup = path.starts_with("/agents/");
    let is_of_this_host =
        !is_lookup && path.starts_with('/') && !path.starts_with("//") && !path.contains('\\');
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    is_of_this_host.then(|| format!("{path}{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_the_slash_are_of_this_host() {
        for (path, expected) in [
            ("/sites/", Some("/sites")),
            ("/sites/skyhop.example//?a=b", Some("/sites/skyhop.example?a=b")),
            ("/sites", None),
            ("/", None),
            ("//other.example/", None),
            ("///", None),
            ("https://other.example/sites/", Some("/sites")),
            ("/agents/", Some("/agents")),
            ("/agents/urn:air:shop.example:api:orders/", None),
        ] {
            assert_eq!(without_slash(&path.parse().unwrap()).as_deref(), expected, "{path}");
        }
    }
}
