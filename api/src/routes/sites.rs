//! `GET /sites`: all known sites, sorted by name, in pages.

use manifest::SiteName;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use store::SitesRequest;

use crate::answers::sites::{SitesAnswer, sites};
use crate::client::Client;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult, RequestContext};
use crate::state::App;
use crate::{cursor, dashboard};

const KNOWN: &[&str] = &["status", "with_manifests", "readable", "prefix", "contains", "limit", "cursor"];
const LIMIT_DEFAULT: u32 = 50;
/// Maximum number of sites on one page: a hundred kilobytes of JSON.
const LIMIT_MAX: u32 = 500;

/// All known sites, sorted by name.
#[utoipa::path(
    get,
    path = "/sites",
    tag = "sites",
    params(
        ("status" = inline(Option<crate::openapi::schemas::StatusWord>), Query, description = "Only sites with this status"),
        ("with_manifests" = Option<bool>, Query, description = "Only sites with, or without, manifests"),
        ("readable" = Option<bool>, Query, description = "Without, or only, sites whose documents were fetched and of which none can be read"),
        ("contains" = Option<String>, Query, description = "Only names that contain this text; needs more time than `prefix`", max_length = 1024),
        ("prefix" = Option<String>, Query, description = "Only names that begin with this text", max_length = 1024),
        ("limit" = Option<u32>, Query, description = "Maximum number of results; the default is 50", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "next_cursor of the previous page", max_length = 512),
    ),
    responses((status = 200, description = "A page of sites", body = SitesAnswer)),
)]
pub(crate) async fn list(Request { app, client, context, query }: Request) -> HttpResult {
    let query = query.known(&context, KNOWN)?;
    let mut request = request(&query)?;
    let listing = listing(&request);
    request.after = query.one("cursor")?.map(|text| after(&listing, text)).transpose()?;
    let answer = answer(&app, client, &listing, request).await?;
    if context.wants_page() {
        let here = app.page_context();
        let render = move |context: &RequestContext| {
            context.page(&dashboard::sites::page(&answer, &query, &here), Caching::Record)
        };
        return app.rendered(client, &context, render).await;
    }
    context.json(&answer, Caching::Record)
}

/// One page, while the client has the permit to read a list.
async fn answer(
    app: &App,
    client: Client,
    listing: &str,
    request: SitesRequest,
) -> Result<SitesAnswer, Problem> {
    let _permit = app.site_lists.acquire(client.address).await?;
    sites(&app.store, &app.totals, app.config.counts_kept_for, listing, request).await
}

/// The name of the list with its parsed filters, to which cursors and cached counts are bound.
fn listing(request: &SitesRequest) -> String {
    let status = request.status.map(|status| format!("status={}", status.as_str()));
    let with_manifests = request.with_manifests.map(|with| format!("with_manifests={with}"));
    let readable = request.readable.map(|readable| format!("readable={readable}"));
    let text = |name: &str, text: &Option<String>| {
        text.as_ref().map(|text| format!("{name}={}", utf8_percent_encode(text, NON_ALPHANUMERIC)))
    };
    let texts = [text("prefix", &request.prefix), text("contains", &request.contains)];
    let filters: Vec<String> =
        [status, with_manifests, readable].into_iter().chain(texts).flatten().collect();
    format!("sites?{}", filters.join("&"))
}

/// The first page of a listing.
fn request(query: &QueryPairs) -> Result<SitesRequest, Problem> {
    Ok(SitesRequest {
        after: None,
        max: query.limit(LIMIT_DEFAULT, LIMIT_MAX)?,
        status: query.one_closed("status")?,
        with_manifests: query.one_parsed("with_manifests")?,
        prefix: query.one("prefix")?.map(str::to_lowercase),
        contains: query.one("contains")?.map(str::to_lowercase),
        readable: query.one_parsed("readable")?,
        time_max: None,
    })
}

/// The site name in a cursor: the page begins after it.
fn after(listing: &str, cursor: &str) -> Result<SiteName, Problem> {
    SiteName::parse(&cursor::decode(listing, cursor)?).map_err(|_| cursor::invalid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::LimitsConfig;
    use crate::test_app;
    use crate::timeouts::ClientTimeouts;

    fn listed(query: &str) -> String {
        listing(&request(&QueryPairs::parse(query).unwrap()).unwrap())
    }

    #[test]
    fn equal_requests_share_one_count() {
        for query in [
            "status=gone",
            "status=+gone",
            "status=%09gone%0A",
            "&status=gone&prefix=",
            "limit=7&status=gone",
        ] {
            assert_eq!(listed(query), "sites?status=gone", "{query}");
        }
        assert_eq!(listed("prefix=A+&status=gone"), listed("status=gone&prefix=a"));
        assert_ne!(listed("prefix=a%26status%3Dgone"), listed("status=gone&prefix=a"));
        assert_ne!(listed("prefix=a%26contains%3Db"), listed("contains=b&prefix=a"));
        assert_ne!(listed("readable=true"), listed("readable=false"));
        assert_ne!(listed("with_manifests=true"), listed("with_manifests=false"));
    }

    #[tokio::test]
    async fn client_with_many_lists_does_not_delay_another() {
        let (app, _dir) = test_app::app(LimitsConfig::default(), ClientTimeouts::default()).await;
        let client = |number: u8| Client { address: [192, 0, 2, number].into(), is_local: false };
        let _scan = app.site_lists.acquire(client(1).address).await.unwrap();
        let mut waiting = Vec::new();
        for _ in 0..20 {
            let mut one =
                Box::pin(answer(&app, client(1), "sites?", SitesRequest { max: 1, ..Default::default() }));
            assert!(futures::poll!(one.as_mut()).is_pending());
            waiting.push(one);
        }
        let other = answer(&app, client(2), "sites?", SitesRequest { max: 1, ..Default::default() });
        assert_eq!(other.await.unwrap().total, Some(0));
    }
}
