//! `GET /sites`: every site that is known, a page at a time, in the order of names.

use axum::extract::State;
use axum::response::Response;
use chrono::{DateTime, Utc};
use manifest::{Format, SiteName};
use policy::{Status, VisitEnd};
use serde::Serialize;
use store::{SiteSummary, SitesRequest};
use utoipa::ToSchema;

use crate::answer::{Asked, Caching};
use crate::app::App;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::{clock, cursor, dashboard};

const KNOWN: &[&str] = &["status", "with_manifests", "prefix", "limit", "cursor"];
/// Sites on one page, unless asked otherwise.
const LIMIT_DEFAULT: u32 = 50;
/// Most sites on one page: a hundred kilobytes of JSON.
const LIMIT_MAX: u32 = 500;

/// One page of sites.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SitesAnswer {
    pub(crate) sites: Vec<SiteLine>,
    /// On all pages; some seconds old, and up to five minutes where there are so many that counting them takes its time.
    pub(crate) total: u64,
    pub(crate) next_cursor: Option<String>,
}

/// A site in one line.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SiteLine {
    #[schema(value_type = String)]
    pub(crate) site: SiteName,
    #[schema(inline, value_type = crate::openapi::schemas::StatusWord)]
    pub(crate) status: Status,
    pub(crate) manifests: u32,
    pub(crate) capabilities: u32,
    #[schema(inline, value_type = crate::openapi::schemas::FormatWords)]
    pub(crate) formats: Vec<Format>,
    pub(crate) first_seen_at: DateTime<Utc>,
    pub(crate) last_visit_at: Option<DateTime<Utc>>,
    #[schema(inline, value_type = Option<crate::openapi::schemas::EndWord>)]
    pub(crate) last_end: Option<VisitEnd>,
    pub(crate) next_visit_at: Option<DateTime<Utc>>,
    pub(crate) next_visit_reason: Option<String>,
}

impl From<SiteSummary> for SiteLine {
    fn from(summary: SiteSummary) -> Self {
        Self {
            site: summary.name,
            status: summary.status,
            manifests: summary.manifests,
            capabilities: summary.capabilities,
            formats: summary.formats,
            first_seen_at: summary.first_seen_at,
            last_visit_at: summary.last_visit_at,
            last_end: summary.last_end,
            next_visit_at: summary.next_visit_at,
            next_visit_reason: summary.next_visit_reason,
        }
    }
}

/// Every site that is known, in the order of names.
#[utoipa::path(
    get,
    path = "/sites",
    tag = "sites",
    params(
        ("status" = inline(Option<crate::openapi::schemas::StatusWord>), Query, description = "Only those that stand so"),
        ("with_manifests" = Option<bool>, Query, description = "Only those with, or those without, manifests"),
        ("prefix" = Option<String>, Query, description = "Only names that begin so", max_length = 1024),
        ("limit" = Option<u32>, Query, description = "At most so many; 50 unless given", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "next_cursor of the page before", max_length = 512),
    ),
    responses((status = 200, description = "A page of sites", body = SitesAnswer)),
)]
pub(crate) async fn list(
    State(app): State<App>,
    asked: Asked,
    query: QueryPairs,
) -> Result<Response, Problem> {
    query.only(KNOWN)?;
    let listing = listing(&query);
    let max = query.limit(LIMIT_DEFAULT, LIMIT_MAX)?;
    let request = request(&query, &listing, max)?;
    let page = app.store().sites_page(&request).await?;
    let kept_for = app.config().counts_kept_for;
    let count = Box::pin(app.store().sites_count(&request));
    let total = app.totals().get(&listing, kept_for, count).await?;
    let is_full = u32::try_from(page.len()).is_ok_and(|found| found == max);
    let last = page.last().filter(|_| is_full).map(|site| cursor::encode(&listing, site.name.as_str()));
    let answer =
        SitesAnswer { sites: page.into_iter().map(SiteLine::from).collect(), total, next_cursor: last };
    if asked.wants_page() {
        return asked.page(&dashboard::sites::page(&answer, &query, clock::now()), Caching::Record);
    }
    asked.json(&answer, Caching::Record)
}

/// The listing with its filters: what a cursor is bound to.
fn listing(query: &QueryPairs) -> String {
    let filters = query.pairs().filter(|(name, _)| !matches!(*name, "cursor" | "limit"));
    let mut filters: Vec<String> = filters.map(|(name, value)| format!("{name}={value}")).collect();
    filters.sort();
    format!("sites?{}", filters.join("&"))
}

fn request(query: &QueryPairs, listing: &str, max: u32) -> Result<SitesRequest, Problem> {
    let after = query.one("cursor")?.map(|text| cursor::decode(listing, text)).transpose()?;
    let after = after.map(|name| SiteName::parse(&name)).transpose().map_err(|_| {
        Problem::bad_request("\"cursor\" is not one of ours: pass next_cursor on unchanged")
            .with_parameter("cursor")
    })?;
    Ok(SitesRequest {
        after,
        max,
        status: query.one_closed("status")?,
        with_manifests: query.one_parsed("with_manifests")?,
        prefix: query.one("prefix")?.map(str::to_lowercase),
    })
}
