//! `GET /sites`: every site that is known, a page at a time, in the order of names.

use manifest::SiteName;
use store::SitesRequest;

use crate::answers::sites::{SitesAnswer, sites};
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::{clock, cursor, dashboard};

const KNOWN: &[&str] = &["status", "with_manifests", "prefix", "limit", "cursor"];
const LIMIT_DEFAULT: u32 = 50;
/// Most sites on one page: a hundred kilobytes of JSON.
const LIMIT_MAX: u32 = 500;

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
pub(crate) async fn list(Request { app, context, query, .. }: Request) -> HttpResult {
    query.only(KNOWN)?;
    let listing = listing(&query);
    let max = query.limit(LIMIT_DEFAULT, LIMIT_MAX)?;
    let request = request(&query, &listing, max)?;
    let kept_for = app.config.counts_kept_for;
    let answer = sites(&app.store, &app.totals, kept_for, &listing, &request).await?;
    if context.wants_page() {
        return context.page(&dashboard::sites::page(&answer, &query, clock::now()), Caching::Record);
    }
    context.json(&answer, Caching::Record)
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
