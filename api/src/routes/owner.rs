//! Routes for the owner of a site, authenticated by its key: opt out, and count the searches that showed the site.

use axum::extract::Path;
use chrono::{DateTime, NaiveDate, TimeDelta};
use manifest::{CapabilityId, SiteName};
use policy::claim::Proof;
use serde::Serialize;
use store::CapabilitySearchCount;
use utoipa::ToSchema;

use super::admin::{BlockAnswer, block_site};
use crate::answers::site::site_of;
use crate::clock;
use crate::owner::OwnerCredentials;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::search_counts::day_of;

/// Days for which counts of searches are kept and shown.
const DAYS_KEPT: i32 = 90;
/// Maximum number of capabilities with their counts: more than an owner reads.
const CAPABILITIES_MAX: u32 = 100;

/// How many searches showed a capability of the site.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchesAnswer {
    #[schema(value_type = String)]
    site: SiteName,
    /// Days (UTC) with searches, the latest first; a day without any is left out.
    days: Vec<SearchesOfDay>,
    /// The capabilities that searches of these days showed, the most frequent first, at most 100.
    capabilities: Vec<SearchesOfCapability>,
    /// Number of days for which counts are kept.
    kept_days: i32,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchesOfCapability {
    #[schema(value_type = String)]
    capability_id: CapabilityId,
    capability_url: String,
    /// Searches of all days whose page of results had it.
    searches: u64,
    /// Days (UTC) on which it was counted, the latest first.
    days: Vec<SearchesOfDay>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchesOfDay {
    #[schema(value_type = String)]
    day: NaiveDate,
    /// Searches whose page of results had a capability of the site, or this one.
    searches: u64,
}

impl SearchesOfDay {
    /// `day` counts the days since 1970-01-01 UTC.
    fn of(day: i32, searches: u64) -> Self {
        Self { day: (DateTime::UNIX_EPOCH + TimeDelta::days(i64::from(day))).date_naive(), searches }
    }
}

/// Blocks the site and deletes its stored data, at the request of its owner.
#[utoipa::path(
    post,
    path = "/sites/{domain}/opt-out",
    tag = "site owners",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 200, description = "It is not visited again", body = BlockAnswer)),
    security(("owner" = [])),
)]
pub(crate) async fn opt_out(
    Request { app, context, query, .. }: Request,
    credentials: OwnerCredentials,
    Path(domain): Path<String>,
) -> HttpResult {
    query.only(&[])?;
    let site = site_of(&domain)?;
    let owner = credentials.admit(&app.store, &site).await?;
    let reason = match owner.proof {
        Proof::Dns => "the owner, verified by a DNS record, opted out",
        Proof::File => "the owner, verified by a file of the site, opted out",
    };
    let outcome = block_site(&app, &site, reason).await?;
    tracing::info!(site.name = %site, owner.proof = %owner.proof, "the owner opted out");
    context.json(&BlockAnswer::of(site, outcome), Caching::Never)
}

/// How many searches showed the site and each of its capabilities, for its owner.
#[utoipa::path(
    get,
    path = "/sites/{domain}/searches",
    tag = "site owners",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 200, description = "Counts of the last 90 days", body = SearchesAnswer)),
    security(("owner" = [])),
)]
pub(crate) async fn searches(
    Request { app, context, query, .. }: Request,
    credentials: OwnerCredentials,
    Path(domain): Path<String>,
) -> HttpResult {
    query.only(&[])?;
    let site = site_of(&domain)?;
    credentials.admit(&app.store, &site).await?;
    let since = day_of(clock::now() - TimeDelta::days(i64::from(DAYS_KEPT)));
    let counts = app.store.search_counts_of(&site, since).await?;
    let days = counts.into_iter().map(|count| SearchesOfDay::of(count.day, count.searches)).collect();
    let counts = app.store.capability_search_counts_of(&site, since, CAPABILITIES_MAX).await?;
    let capabilities = searches_of_capabilities(&counts, &app.base_url());
    let answer = SearchesAnswer { site, days, capabilities, kept_days: DAYS_KEPT };
    context.json(&answer, Caching::Never)
}

/// One item for each capability. The counts of a capability follow each other.
fn searches_of_capabilities(counts: &[CapabilitySearchCount], base: &str) -> Vec<SearchesOfCapability> {
    let by_capability = counts.chunk_by(|one, next| one.capability == next.capability);
    let of_capability = |counts: &[CapabilitySearchCount]| {
        let capability_id = counts.first()?.capability.clone();
        Some(SearchesOfCapability {
            capability_url: format!("{base}/capabilities/{capability_id}"),
            capability_id,
            searches: counts.iter().map(|count| count.searches).sum(),
            days: counts.iter().map(|count| SearchesOfDay::of(count.day, count.searches)).collect(),
        })
    };
    by_capability.filter_map(of_capability).collect()
}
