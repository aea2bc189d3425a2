//! `GET /sites/{domain}/changes`: the changes of one site, the latest first.

use axum::extract::Path;
use manifest::SiteName;
use serde::Serialize;
use store::{FeedEntry, FeedPosition};
use utoipa::ToSchema;

use crate::answers::site::site_of;
use crate::cursor;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};

const LIMIT_DEFAULT: u32 = 50;
/// Maximum number of entries on one page.
const LIMIT_MAX: u32 = 500;

/// Changes of one site, the latest first. For a site that opted out, only these are kept.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SiteChangesAnswer {
    #[schema(value_type = String)]
    site: SiteName,
    #[schema(value_type = Vec<crate::openapi::schemas::FeedLine>)]
    changes: Vec<FeedEntry>,
    /// Cursor of the earlier changes; null on the last page.
    next_cursor: Option<String>,
}

/// What changed at a site.
#[utoipa::path(
    get,
    path = "/sites/{domain}/changes",
    tag = "sites",
    params(
        ("domain" = String, Path, description = "A domain name"),
        ("cursor" = Option<String>, Query, description = "next_cursor of the previous page", max_length = 512),
        ("limit" = Option<u32>, Query, description = "Maximum number of results; the default is 50", minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "Changes, the latest first", body = SiteChangesAnswer)),
)]
pub(crate) async fn list(
    Request { app, context, query, .. }: Request,
    Path(domain): Path<String>,
) -> HttpResult {
    query.only(&["cursor", "limit"])?;
    let site = site_of(&domain)?;
    let listing = format!("changes of {site}");
    let before = query.one("cursor")?.map_or(Ok(FeedPosition::END), |text| position(&listing, text))?;
    let limit = query.limit(LIMIT_DEFAULT, LIMIT_MAX)?;
    let changes = app.store.feed_of_site(&site, before, limit).await?;
    if changes.is_empty() && app.store.site_summary(&site).await?.is_none() {
        return Err(crate::answers::site::unknown(&site));
    }
    let is_full = u32::try_from(changes.len()).is_ok_and(|found| found == limit);
    let last = changes.last().filter(|_| is_full);
    let next_cursor = last.map(|entry| cursor::encode(&listing, &entry.position.0.to_string()));
    context.json(&SiteChangesAnswer { site, changes, next_cursor }, Caching::Search)
}

fn position(listing: &str, cursor: &str) -> Result<FeedPosition, Problem> {
    let position = cursor::decode(listing, cursor)?.parse();
    position.map(FeedPosition).map_err(|_| cursor::invalid())
}
