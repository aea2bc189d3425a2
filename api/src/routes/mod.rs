//! The addresses, one file per resource: parameters, answer, handler.

mod admin;
mod admin_feedback;
mod assets;
mod badge;
mod bot_keys;
mod capability;
mod changes;
mod changes_stream;
pub(crate) mod crawl;
mod crawl_stream;
mod docs;
mod export;
mod feedback;
mod feeds;
mod health;
mod home;
mod manifest;
pub(crate) mod manifest_diff;
mod mcp_servers;
pub(crate) mod metrics;
mod rank;
mod raw;
pub(crate) mod record;
pub(crate) mod search;
pub(crate) mod search_parameters;
pub(crate) mod semantic_types;
mod similar;
pub(crate) mod site;
mod site_changes;
pub(crate) mod sites;
pub(crate) mod stats;
pub(crate) mod submit;
mod suggest;
mod tool;
pub(crate) mod validate;
mod validator;

use axum::Router;
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use changes_stream::{STREAMS_MAX, STREAMS_OF_CLIENT_MAX};
pub(crate) use export::{EXPORTS_MAX, EXPORTS_OF_CLIENT_MAX};

use crate::app::App;
use crate::openapi;
use crate::problem::Problem;

/// Said beside every text of a publisher, so that no reader takes it for words of ours.
pub(crate) const TEXT_IS: &str = "publisher-supplied, untrusted";

/// Every address with its operation in the OpenAPI document.
pub(crate) fn documented() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::preamble())
        .routes(routes!(home::show))
        .routes(routes!(search::show))
        .routes(routes!(suggest::show))
        .routes(routes!(feedback::tell))
        .routes(routes!(capability::show))
        .routes(routes!(similar::show))
        .routes(routes!(tool::show))
        .routes(routes!(sites::list, submit::submit))
        .routes(routes!(submit::recheck))
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
        .routes(routes!(export::stream))
        .routes(routes!(mcp_servers::list))
        .routes(routes!(admin::block))
        .routes(routes!(admin::unblock))
        .routes(routes!(admin::reindex))
        .routes(routes!(admin::queue))
        .routes(routes!(admin_feedback::list, admin_feedback::remove))
        .routes(routes!(metrics::show))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(docs::openapi))
        .merge(crate::ard::routes())
        .merge(crate::offer::routes())
        .merge(crate::mcp::described())
}

/// Every address, those that only browsers ask for included.
pub(crate) fn all(app: &App) -> Router<App> {
    let (documented, _) = documented().split_for_parts();
    documented
        .route("/docs", get(docs::index))
        .route("/docs/", get(docs::index))
        .route("/docs/{file}", get(docs::file))
        .route("/assets/{name}", get(assets::show))
        .route("/favicon.ico", get(assets::icon))
        .route("/.well-known/http-message-signatures-directory", get(bot_keys::show))
        .merge(crate::mcp::routes(app))
        .merge(crate::self_description::routes())
        .fallback(unknown)
}

async fn unknown() -> Problem {
    Problem::not_found("there is nothing at this address; / lists where to begin")
}
