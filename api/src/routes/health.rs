//! `GET /healthz`: whether the process runs. `GET /readyz`: whether the database responds and a search can run, or which of the two fails.

use std::convert::Infallible;
use std::time::Duration;

use chrono::{DateTime, Utc};
use indexer::SearchRequest;
use serde::Serialize;
use store::{OUTAGE, StoreError};
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::client::Client;
use crate::clock;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult, RequestContext};
use crate::state::App;

/// Query of the check: a word that an index of capabilities is likely to have.
const SEARCH_WORD: &str = "search";
/// Time limit for the check. If all slots are taken, a client's search has to end within the same time. Far longer than a search takes, but
/// short enough for the client of the probe.
const SEARCH_DEADLINE: Duration = Duration::from_secs(2);
/// Timeout for the position of the feed.
const DATABASE_DEADLINE: Duration = Duration::from_secs(1);
/// Maximum age of the answer, so that any number of probes costs one search per second.
const SEARCH_KEPT_FOR: Duration = Duration::from_secs(1);

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
    responses((status = 200, description = "It runs", body = Health)))]
pub(crate) async fn healthz(context: RequestContext) -> HttpResult {
    context.json(&Health { status: "ok" }, Caching::Never)
}

/// Whether the database answers and a search runs.
#[utoipa::path(get, path = "/readyz", tag = "service",
    responses((status = 200, description = "Both work", body = Readiness)))]
pub(crate) async fn ready(Request { app, context, query, .. }: Request) -> HttpResult {
    query.only(&[])?;
    let mut missing = Vec::new();
    let stalled = app.config.runtime_health.stalled_workers();
    if stalled > 0 {
        missing.push(format!("runtime: {stalled} of its threads are blocked"));
    }
    let head = feed_head(app.store.feed_head()).await;
    if let Err(complaint) = &head {
        missing.push(complaint.clone());
    }
    let mut index_changes_behind = 0;
    match app.index.searcher() {
        Ok(searcher) => {
            let position = searcher.generation().position.0;
            index_changes_behind = head.map_or(0, |head| head.0.saturating_sub(position).max(0));
            missing.extend(app.replica.staleness(index_changes_behind, clock::now()));
            missing.extend(search_failure(&app).await);
        }
        Err(problem) => missing.push(format!("index: {}", problem.body().detail)),
    }
    if missing.is_empty() {
        let snapshot_published_at = app.replica.published_at();
        let readiness = Readiness { status: "ready", index_changes_behind, snapshot_published_at };
        return context.json(&readiness, Caching::Never);
    }
    Err(Problem::unavailable(format!("not ready: {}", missing.join("; "))))
}

/// The position of the feed, or why it is not known in time.
pub(super) async fn feed_head<T>(answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, String> {
    let began = Instant::now();
    match tokio::time::timeout(DATABASE_DEADLINE, answer).await {
        Ok(Ok(head)) => {
            OUTAGE.answered();
            Ok(head)
        }
        Ok(Err(error)) => {
            OUTAGE.failed("the check of readiness", error, began);
            Err("database: it does not answer".to_owned())
        }
        Err(_) => {
            let late = format!("it does not answer within {} s", DATABASE_DEADLINE.as_secs());
            OUTAGE.failed("the check of readiness", &late, began);
            Err(format!("database: {late}"))
        }
    }
}

/// The reason why no search can run; `None` if one can. Cached for a moment.
async fn search_failure(app: &App) -> Option<String> {
    let tried =
        app.searchable.get(SEARCH_KEPT_FOR, async { Ok::<_, Infallible>(try_search(app).await) }).await;
    tried.map_or_else(|never| match never {}, |tried| tried.as_ref().clone().err())
}

/// Runs a search in its own slot, and checks that the slots of clients make progress: a long queue that moves is not a reason to redirect
/// clients.
async fn try_search(app: &App) -> Result<(), String> {
    if !app.index.searches().make_progress(SEARCH_DEADLINE).await {
        return Err(none_could_run());
    }
    let request =
        SearchRequest { phrasings: vec![SEARCH_WORD.to_owned()], limit: 1, ..SearchRequest::default() };
    let searcher = app.index.searcher().map_err(|problem| format!("search: {}", problem.body().detail))?;
    let search =
        app.readiness_limit.run(Client::on_this_machine(), move || searcher.search(&request).map(drop));
    let tried = tokio::time::timeout(SEARCH_DEADLINE, search).await;
    let failure = match tried {
        Ok(Ok(Ok(()))) => return Ok(()),
        Ok(Ok(Err(error))) => {
            tracing::error!(error = &error as &dyn std::error::Error, "the readiness search failed");
            "a search failed".to_owned()
        }
        Ok(Err(problem)) => problem.body().detail.clone(),
        Err(_) => return Err(none_could_run()),
    };
    Err(format!("search: {failure}"))
}

fn none_could_run() -> String {
    format!("search: none could run within {} s", SEARCH_DEADLINE.as_secs())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use http_body_util::BodyExt as _;
    use tokio::task::JoinSet;
    use tower::ServiceExt as _;

    use super::*;
    use crate::limits::LimitsConfig;
    use crate::test_app;
    use crate::timeouts::ClientTimeouts;

    async fn readiness(app: &App) -> (StatusCode, String) {
        let request = Request::get("/readyz").body(Body::empty()).unwrap();
        let answer = crate::router::router(app).oneshot(request).await.unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Work that runs until its sender is dropped.
    fn endless() -> (mpsc::Sender<()>, impl FnOnce() + Send + 'static) {
        let (end, ended) = mpsc::channel::<()>();
        (end, move || assert!(ended.recv().is_err()))
    }

    #[tokio::test]
    async fn readyz_fails_while_no_search_can_run() {
        let (app, _dir) = test_app::app(LimitsConfig::default(), ClientTimeouts::default()).await;
        assert_eq!(readiness(&app).await.0, StatusCode::OK);
        let (mut stuck, mut ends) = (JoinSet::new(), Vec::new());
        while app.index.searches().are_free() {
            let (app, (end, work)) = (app.clone(), endless());
            ends.push(end);
            stuck.spawn(async move { app.index.searches().run(Client::on_this_machine(), work).await });
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(SEARCH_KEPT_FOR).await;
        let (status, text) = readiness(&app).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{text}");
        assert!(text.contains("search: none could run within 2 s"), "{text}");
        drop(ends);
        stuck.join_all().await;
        tokio::time::sleep(SEARCH_KEPT_FOR).await;
        assert_eq!(readiness(&app).await.0, StatusCode::OK);
    }

    #[tokio::test]
    async fn readyz_succeeds_while_a_long_search_queue_moves() {
        let (app, _dir) = test_app::app(LimitsConfig::default(), ClientTimeouts::default()).await;
        let (mut waiting, mut ends) = (JoinSet::new(), Vec::new());
        while app.index.searches().are_free() || ends.len() < 200 {
            let (app, (end, work)) = (app.clone(), endless());
            ends.push(end);
            waiting.spawn(async move { app.index.searches().run(Client::on_this_machine(), work).await });
            tokio::task::yield_now().await;
        }
        let answer = readiness(&app);
        let one_ends = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            ends.remove(0);
        };
        let ((status, text), ()) = tokio::join!(answer, one_ends);
        assert_eq!(status, StatusCode::OK, "{text}");
        drop(ends);
        waiting.join_all().await;
    }

    #[tokio::test]
    async fn readyz_names_a_hanging_database() {
        let hangs = std::future::pending::<Result<(), StoreError>>();
        assert_eq!(feed_head(hangs).await.unwrap_err(), "database: it does not answer within 1 s");
        assert_eq!(feed_head(async { Ok(7) }).await, Ok(7));
    }

    #[tokio::test]
    async fn stuck_documents_do_not_block_searches() {
        let (app, _dir) = test_app::app(LimitsConfig::default(), ClientTimeouts::default()).await;
        let (mut stuck, mut ends) = (JoinSet::new(), Vec::new());
        for number in 0..100 {
            let client = Client { address: [192, 0, 2, number].into(), is_local: false };
            let (app, (end, work)) = (app.clone(), endless());
            ends.push(end);
            stuck.spawn(async move { app.document_readers.run(client, work).await });
        }
        let refused = stuck.join_next().await.unwrap().unwrap().unwrap_err();
        assert_eq!(refused.body().status, StatusCode::SERVICE_UNAVAILABLE);
        let (status, text) = readiness(&app).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        drop(ends);
        stuck.join_all().await;
    }

    #[tokio::test]
    async fn one_client_cannot_fill_the_document_queue() {
        let (app, _dir) = test_app::app(LimitsConfig::default(), ClientTimeouts::default()).await;
        let client = |number: u8| Client { address: [192, 0, 2, number].into(), is_local: false };
        let (mut stuck, mut ends) = (JoinSet::new(), Vec::new());
        for _ in 0..20 {
            let (app, (end, work)) = (app.clone(), endless());
            ends.push(end);
            stuck.spawn(async move { app.document_readers.run(client(1), work).await });
        }
        for _ in 4..20 {
            let refused = stuck.join_next().await.unwrap().unwrap().unwrap_err();
            assert_eq!(refused.body().status, StatusCode::TOO_MANY_REQUESTS);
        }
        let other = app.document_readers.run(client(2), || 7);
        let (answered, ()) = tokio::join!(other, async { drop(ends) });
        assert_eq!(answered.unwrap(), 7);
        stuck.join_all().await;
    }
}
