//! `GET /healthz`: the process runs. `GET /readyz`: database and index answer, or which of them does not.

use axum::extract::State;
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{Asked, Caching};
use crate::app::App;
use crate::clock;
use crate::parameters::QueryPairs;
use crate::problem::Problem;

#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    status: &'static str,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Readiness {
    status: &'static str,
    /// Changes that the index does not show yet.
    index_changes_behind: i64,
    /// When the snapshot that serves was published, on a replica without an indexer.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_published_at: Option<DateTime<Utc>>,
}

/// Whether the process runs.
#[utoipa::path(get, path = "/healthz", tag = "service",
    responses((status = 200, description = "It does", body = Health)))]
pub(crate) async fn alive(asked: Asked) -> Result<Response, Problem> {
    asked.json(&Health { status: "ok" }, Caching::Never)
}

/// Whether database and index answer.
#[utoipa::path(get, path = "/readyz", tag = "service",
    responses((status = 200, description = "They do", body = Readiness)))]
pub(crate) async fn ready(
    State(app): State<App>,
    asked: Asked,
    query: QueryPairs,
) -> Result<Response, Problem> {
    query.only(&[])?;
    let mut missing = Vec::new();
    let stalled = app.config().runtime_health.stalled_workers();
    if stalled > 0 {
        missing.push(format!("runtime: {stalled} of its threads are blocked"));
    }
    let head = app.store().feed_head().await;
    if let Err(error) = &head {
        tracing::warn!(error = error as &dyn std::error::Error, "database does not answer");
        missing.push("database: it does not answer".to_owned());
    }
    let mut index_changes_behind = 0;
    match app.index().searcher() {
        Ok(searcher) => {
            let position = searcher.generation().position.0;
            index_changes_behind = head.map_or(0, |head| head.0.saturating_sub(position).max(0));
            missing.extend(app.replica().complaint(index_changes_behind, clock::now()));
        }
        Err(problem) => missing.push(format!("index: {}", problem.body().detail)),
    }
    if missing.is_empty() {
        let snapshot_published_at = app.replica().published_at();
        let readiness = Readiness { status: "ready", index_changes_behind, snapshot_published_at };
        return asked.json(&readiness, Caching::Never);
    }
    Err(Problem::unavailable(format!("not ready: {}", missing.join("; "))))
}
