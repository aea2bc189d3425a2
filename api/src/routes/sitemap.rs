//! `GET /sitemap.xml`: the pages that search engines may list (sitemaps.org 0.9): those that always exist, and the sites that
//! have something.

use std::fmt::Write as _;

use store::SitesRequest;

use crate::answers::sites::{SiteLine, sites};
use crate::client::Client;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::state::App;
use crate::xml::escaped;

const PAGES: [&str; 7] = ["/", "/semantic-types", "/sites", "/changes", "/stats", "/validate", "/docs"];
/// Maximum number of sites of one listing, and listings: a sitemap may have 50,000 addresses, and a reader of this one waits
/// for it.
const LISTING_MAX: u32 = 500;
const LISTINGS_MAX: usize = 10;
const LISTING: &str = "sitemap";

pub(crate) async fn show(Request { app, client, context, query }: Request) -> HttpResult {
    query.only(&[])?;
    let base = escaped(&app.base_url());
    let mut body = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for path in PAGES {
        body.push_str(&entry(&base, path, None));
    }
    for line in with_something(&app, client).await? {
        let changed = line.last_visit_at.map(|at| at.format("%Y-%m-%d").to_string());
        body.push_str(&entry(&base, &format!("/sites/{}", line.site), changed.as_deref()));
    }
    body.push_str("</urlset>\n");
    Ok(context.bytes(body.into_bytes(), "application/xml", Caching::Description))
}

fn entry(base: &str, path: &str, changed: Option<&str>) -> String {
    let mut entry = format!("<url><loc>{base}{path}</loc>");
    if let Some(day) = changed {
        let written = write!(entry, "<lastmod>{day}</lastmod>");
        debug_assert!(written.is_ok(), "a String takes any text");
    }
    entry.push_str("</url>\n");
    entry
}

/// The sites with manifests, in the order of their names.
async fn with_something(app: &App, client: Client) -> Result<Vec<SiteLine>, Problem> {
    let _permit = app.site_lists.acquire(client.address).await?;
    let mut listed: Vec<SiteLine> = Vec::new();
    for _ in 0..LISTINGS_MAX {
        let after = listed.last().map(|line| line.site.clone());
        let request =
            SitesRequest { after, max: LISTING_MAX, with_manifests: Some(true), ..SitesRequest::default() };
        let page = sites(&app.store, &app.totals, app.config.counts_kept_for, LISTING, request).await?;
        let is_last = page.next_cursor.is_none();
        listed.extend(page.sites);
        if is_last {
            break;
        }
    }
    Ok(listed)
}
