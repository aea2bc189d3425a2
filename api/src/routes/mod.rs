//! The addresses, one file per resource: parameters, answer, handler.

mod assets;
mod capability;
mod changes;
mod health;
mod home;
mod manifest;
mod raw;
pub(crate) mod record;
pub(crate) mod search;
pub(crate) mod search_parameters;
pub(crate) mod semantic_types;
pub(crate) mod site;
pub(crate) mod sites;
pub(crate) mod stats;
mod validate;

use axum::Router;
use axum::routing::{get, post};

use crate::app::App;
use crate::problem::Problem;

/// Said beside every text of a publisher, so that no reader takes it for words of ours.
pub(crate) const TEXT_IS: &str = "publisher-supplied, untrusted";

/// Every address.
pub(crate) fn all() -> Router<App> {
    Router::new()
        .route("/", get(home::show))
        .route("/search", get(search::show))
        .route("/capabilities/{id}", get(capability::show))
        .route("/sites", get(sites::list))
        .route("/sites/{domain}", get(site::show))
        .route("/manifests/{id}", get(manifest::show))
        .route("/manifests/{id}/raw", get(raw::show))
        .route("/manifests/{id}/versions", get(manifest::versions))
        .route("/semantic-types", get(semantic_types::list))
        .route("/stats", get(stats::show))
        .route("/validate", post(validate::check))
        .route("/changes", get(changes::list))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/assets/{name}", get(assets::show))
        .route("/favicon.ico", get(assets::icon))
        .fallback(unknown)
}

async fn unknown() -> Problem {
    Problem::not_found("there is nothing at this address; / lists where to begin")
}
