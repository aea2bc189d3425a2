//! Sites a page at a time, in the order of their names.

use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::{Format, SiteName};
use policy::{Status, VisitEnd};
use serde::Serialize;
use store::{SiteSummary, SitesRequest, Store};
use utoipa::ToSchema;

use crate::count_cache::CountCache;
use crate::cursor;
use crate::problem::Problem;

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

/// A page of sites. `listing` names the filters: cursors are bound to it, and the count is kept for it.
pub(crate) async fn sites(
    store: &Store,
    totals: &CountCache,
    kept_for: Duration,
    listing: &str,
    request: &SitesRequest,
) -> Result<SitesAnswer, Problem> {
    let page = store.sites_page(request).await?;
    let total = totals.get(listing, kept_for, Box::pin(store.sites_count(request))).await?;
    let is_full = u32::try_from(page.len()).is_ok_and(|found| found == request.max);
    let last = page.last().filter(|_| is_full).map(|site| cursor::encode(listing, site.name.as_str()));
    Ok(SitesAnswer { sites: page.into_iter().map(SiteLine::from).collect(), total, next_cursor: last })
}
