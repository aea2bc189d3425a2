//! `GET /healthz`: the process runs. `GET /readyz`: database and index answer, or which of them does not.

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{Asked, Caching};
use crate::app::App;
use crate::parameters::QueryPairs;
use crate::problem::Problem;

#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    status: &'static str,
}

/// Whether the process runs.
#[utoipa::path(get, path = "/healthz", tag = "service",
    responses((status = 200, description = "It does", body = Health)))]
pub(crate) async fn alive(asked: Asked) -> Result<Response, Problem> {
    asked.json(&Health { status: "ok" }, Caching::Never)
}

/// Whether database and index answer.
#[utoipa::path(get, path = "/readyz", tag = "service",
    responses((status = 200, description = "They do", body = Health)))]
pub(crate) async fn ready(
    State(app): State<App>,
    asked: Asked,
    query: QueryPairs,
) -> Result<Response, Problem> {
    query.only(&[])?;
    let mut missing = Vec::new();
    if let Err(error) = app.store().ping().await {
        tracing::warn!(error = &error as &dyn std::error::Error, "database does not answer");
        missing.push("database: it does not answer".to_owned());
    }
    if let Err(problem) = app.index().searcher() {
        missing.push(format!("index: {}", problem.body().detail));
    }
    if missing.is_empty() {
        return asked.json(&Health { status: "ready" }, Caching::Never);
    }
    Err(Problem::unavailable(format!("not ready: {}", missing.join("; "))))
}
