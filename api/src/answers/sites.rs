//! Paginated list of sites, sorted by name.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::{Format, SiteName};
use policy::{Status, VisitEnd};
use serde::Serialize;
use store::{SITE_LISTS_MAX, SiteSummary, SitesRequest, Store, StoreError};
use utoipa::ToSchema;

use crate::count_cache::CountCache;
use crate::cursor;
use crate::fair_permits::{FairPermits, Permit};
use crate::problem::Problem;

/// Timeout for reading a page, and also for counting.
const TIME_MAX: Duration = Duration::from_secs(2);
/// Maximum wait for a permit. Together with both timeouts, it is shorter than the deadline of a request.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Maximum number of sites in the sitemap, and number of sites read with one statement.
const LISTED_MAX: usize = 5_000;
const LISTED_PAGE: u32 = 500;

/// One page of sites.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SitesAnswer {
    pub(crate) sites: Vec<SiteLine>,
    /// Number of sites on all pages. Cached for some seconds, or up to five minutes if counting takes long. Null while there are too many
    /// to count.
    pub(crate) total: Option<u64>,
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

/// Permits to read a list of sites, which may need a table scan. Each client gets at most one, because running statements cannot be
/// interrupted for other clients.
#[derive(Debug)]
pub(crate) struct SiteListPermits(FairPermits);

impl Default for SiteListPermits {
    fn default() -> Self {
        Self(FairPermits::with_client_max(usize::try_from(SITE_LISTS_MAX).unwrap_or(1), 1))
    }
}

impl SiteListPermits {
    pub(crate) async fn acquire(&self, client: IpAddr) -> Result<Permit, Problem> {
        let permit = tokio::time::timeout(WAIT_MAX, self.0.acquire(client, 1)).await;
        let permit = permit
            .map_err(|_| Problem::unavailable("too many lists are being read; try again in a moment"))?;
        permit.map_err(|error| Problem::internal(&error))
    }
}

/// The first sites with manifests, sorted by name: at most [`LISTED_MAX`]. Each page takes its own permit.
pub(crate) async fn with_manifests(
    store: &Store,
    totals: &CountCache,
    kept_for: Duration,
    permits: &SiteListPermits,
) -> Result<Vec<SiteLine>, Problem> {
    let mut listed: Vec<SiteLine> = Vec::new();
    while listed.len() < LISTED_MAX {
        let after = listed.last().map(|line| line.site.clone());
        let request =
            SitesRequest { after, max: LISTED_PAGE, with_manifests: Some(true), ..SitesRequest::default() };
        let permit = permits.acquire(IpAddr::V4(Ipv4Addr::LOCALHOST)).await?;
        let page = sites(store, totals, kept_for, "with manifests", request).await?;
        drop(permit);
        let is_last = page.next_cursor.is_none();
        listed.extend(page.sites);
        if is_last {
            break;
        }
    }
    Ok(listed)
}

/// A page of sites. `listing` names the filters: cursors are bound to it, and the count is kept for it.
pub(crate) async fn sites(
    store: &Store,
    totals: &CountCache,
    kept_for: Duration,
    listing: &str,
    request: SitesRequest,
) -> Result<SitesAnswer, Problem> {
    let request = SitesRequest { time_max: Some(TIME_MAX), ..request };
    let page = store.sites_page(&request).await?;
    let count = async {
        match store.sites_count(&request).await {
            Err(StoreError::Interrupted { .. }) => Ok(None),
            counted => counted.map(Some),
        }
    };
    let total = totals.get(listing, kept_for, Box::pin(count)).await?;
    let is_full = u32::try_from(page.len()).is_ok_and(|found| found == request.max);
    let last = page.last().filter(|_| is_full).map(|site| cursor::encode(listing, site.name.as_str()));
    Ok(SitesAnswer { sites: page.into_iter().map(SiteLine::from).collect(), total, next_cursor: last })
}
