//! Admin routes, which require a bearer token: block and unblock a site, rebuild the index, list the queue.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use manifest::SiteName;
use serde::{Deserialize, Serialize};
use store::BlockOutcome;
use utoipa::ToSchema;

use crate::admin::Admin;
use crate::answers::site::site_of;
use crate::client::Client;
use crate::clock;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::state::App;
use crate::text::one_line;

const REASON_CHARS_MAX: usize = 500;
/// Maximum number of parked visits that are listed.
const PARKED_MAX: u32 = 50;

/// Why a site is blocked; the body may be left out.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BlockRequest {
    /// Shown on the record of the site.
    #[schema(max_length = 500)]
    reason: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BlockAnswer {
    #[schema(value_type = String)]
    site: SiteName,
    blocked: bool,
    /// False if the site was already in this state.
    changed: bool,
    manifests_removed: u32,
    documents_removed: u32,
}

impl BlockAnswer {
    pub(super) fn of(site: SiteName, outcome: BlockOutcome) -> Self {
        let (changed, manifests_removed, documents_removed) = match outcome {
            BlockOutcome::AlreadyBlocked => (false, 0, 0),
            BlockOutcome::Blocked { manifests_removed, documents_removed } => {
                (true, manifests_removed, documents_removed)
            }
        };
        Self { site, blocked: true, changed, manifests_removed, documents_removed }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReindexAnswer {
    status: &'static str,
    message: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueueAnswer {
    due: u64,
    leased: u64,
    blocked: u64,
    parked_total: u64,
    /// The parked visits that continue first.
    parked: Vec<ParkedLine>,
    oldest_due_at: Option<DateTime<Utc>>,
    next_due_at: Option<DateTime<Utc>>,
    /// Number of entries of the feed that the index has not read; null if there is no index.
    index_behind: Option<i64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ParkedLine {
    #[schema(value_type = String)]
    site: SiteName,
    goes_on_at: DateTime<Utc>,
    reason: String,
}

/// Blocks a site whose owner opted out, and purges its stored data.
#[utoipa::path(
    post,
    path = "/admin/sites/{domain}/block",
    tag = "admin",
    params(("domain" = String, Path, description = "A domain name")),
    request_body = Option<BlockRequest>,
    responses((status = 200, description = "It is blocked", body = BlockAnswer)),
    security(("admin" = [])),
)]
pub(crate) async fn block(
    Request { app, context, query, .. }: Request,
    admin: Admin,
    Path(domain): Path<String>,
    body: Bytes,
) -> HttpResult {
    query.only(&[])?;
    let site = site_of(&domain)?;
    let reason = reason(&body)?;
    let outcome = block_site(&app, &site, &reason).await?;
    tracing::info!(admin.name = admin.name, site.name = %site, reason, "site blocked");
    context.json(&BlockAnswer::of(site, outcome), Caching::Never)
}

/// Blocks a site and immediately removes it from all responses of this process.
pub(super) async fn block_site(app: &App, site: &SiteName, reason: &str) -> Result<BlockOutcome, Problem> {
    let outcome = app.store.site_block(site, reason, clock::now()).await?;
    suppress(app, site).await;
    Ok(outcome)
}

/// Excludes a site from all responses of this process until the index has removed it, which takes a second or two.
pub(super) async fn suppress(app: &App, site: &SiteName) {
    app.index.suppressed().add(site);
    app.clear_caches().await;
}

/// Ends [`suppress`] after a block or a suspension was lifted, unless the other one still applies.
pub(super) async fn end_suppression(app: &App, site: &SiteName) -> Result<(), Problem> {
    if app.store.blocked_among(std::slice::from_ref(site)).await?.is_empty() {
        app.index.suppressed().remove(site);
    }
    Ok(())
}

/// Lifts a block; the site is visited soon, unless it is suspended.
#[utoipa::path(
    post,
    path = "/admin/sites/{domain}/unblock",
    tag = "admin",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 200, description = "It is not blocked", body = BlockAnswer)),
    security(("admin" = [])),
)]
pub(crate) async fn unblock(
    Request { app, context, query, .. }: Request,
    admin: Admin,
    Path(domain): Path<String>,
) -> HttpResult {
    query.only(&[])?;
    let site = site_of(&domain)?;
    let changed = app.store.site_unblock(&site, clock::now()).await?;
    end_suppression(&app, &site).await?;
    tracing::info!(admin.name = admin.name, site.name = %site, "site unblocked");
    let answer = BlockAnswer { site, blocked: false, changed, manifests_removed: 0, documents_removed: 0 };
    context.json(&answer, Caching::Never)
}

/// Rebuilds the index; searches continue meanwhile.
#[utoipa::path(post, path = "/admin/reindex", tag = "admin",
    responses((status = 202, description = "The rebuild was requested", body = ReindexAnswer)), security(("admin" = [])))]
pub(crate) async fn reindex(Request { app, query, .. }: Request, admin: Admin) -> HttpResult {
    query.only(&[])?;
    let config = indexer::IndexConfig::at(app.index.dir().to_owned());
    let requested = app
        .index
        .searches()
        .run(Client::on_this_machine(), move || indexer::follow::request_rebuild(&config))
        .await?;
    requested.map_err(|error| {
        tracing::error!(error = &error as &dyn std::error::Error, "the rebuild was not requested");
        Problem::unavailable(
            "this process cannot write to the index directory: run `indexer rebuild` instead",
        )
    })?;
    tracing::info!(admin.name = admin.name, "rebuild of the index requested");
    let answer = ReindexAnswer { status: "asked", message: "a running indexer begins within a second" };
    Ok((StatusCode::ACCEPTED, axum::Json(answer)).into_response())
}

/// The state of the crawl's queue.
#[utoipa::path(get, path = "/admin/queue", tag = "admin",
    responses((status = 200, description = "The queue", body = QueueAnswer)), security(("admin" = [])))]
pub(crate) async fn queue(Request { app, context, query, .. }: Request, admin: Admin) -> HttpResult {
    query.only(&[])?;
    tracing::debug!(admin.name = admin.name, "queue read");
    let numbers = app.stats().await?;
    let parked = app.store.parked_idle_list(clock::now(), PARKED_MAX).await?;
    let parked = parked.into_iter().map(|(site, goes_on_at, reason)| ParkedLine { site, goes_on_at, reason });
    let answer = QueueAnswer {
        due: numbers.sites_due,
        leased: numbers.sites_leased,
        blocked: numbers.sites_blocked,
        parked_total: numbers.sites_parked,
        parked: parked.collect(),
        oldest_due_at: numbers.oldest_due_at,
        next_due_at: app.store.next_due_at().await?,
        index_behind: numbers.index_position.map(|position| numbers.feed_position - position),
    };
    context.json(&answer, Caching::Never)
}

fn reason(body: &[u8]) -> Result<String, Problem> {
    let request: BlockRequest = if body.iter().all(u8::is_ascii_whitespace) {
        BlockRequest::default()
    } else {
        manifest::budget::parse_within_budget(body, &manifest::budget::REQUEST).map_err(|error| {
            Problem::bad_request(format!(
                "the body does not have the expected format ({error}): send {{\"reason\": \"…\"}}"
            ))
        })?
    };
    let reason = request.reason.unwrap_or_else(|| "requested from the operator".to_owned());
    Ok(one_line(&reason, REASON_CHARS_MAX))
}
