//! `GET /badge/{domain}.svg`: an image with facts about a site.

use askama::Template;
use axum::extract::Path;
use policy::Status;
use store::SiteSummary;

use crate::answers::site::site_of;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult, RequestContext};

/// Width of a character, in tenths of a pixel. Texts are stretched or narrowed to it, whatever font the browser uses.
const CHARACTER_TENTHS: usize = 60;
/// Padding on either side of a text, in pixels.
const MARGIN: usize = 6;
const LABEL: &str = "agentdex";

#[derive(Template)]
#[template(path = "badge.svg")]
struct Badge {
    label: &'static str,
    facts: String,
    label_width: usize,
    facts_width: usize,
}

/// A badge with facts about a site.
#[utoipa::path(
    get,
    path = "/badge/{file}",
    tag = "site owners",
    params(("file" = String, Path, description = "A domain name and `.svg`", example = "skyhop.example.svg")),
    responses((status = 200, description = "A picture", body = String, content_type = "image/svg+xml")),
)]
pub(crate) async fn show(
    Request { app, client, context, query }: Request,
    Path(file): Path<String>,
) -> HttpResult {
    query.only(&[])?;
    let domain = file.strip_suffix(".svg").ok_or_else(|| {
        Problem::not_found("the name of a badge is a domain and .svg, as in /badge/skyhop.example.svg")
    })?;
    let site = site_of(domain)?;
    let summary = app.store.site_summary(&site).await?;
    let facts = summary.map_or_else(|| "not known here".to_owned(), |summary| facts(&summary));
    let badge = Badge { label: LABEL, label_width: width(LABEL), facts_width: width(&facts), facts };
    let render = move |context: &RequestContext| context.template(&badge, "image/svg+xml", Caching::Record);
    app.rendered(client, &context, render).await
}

fn facts(summary: &SiteSummary) -> String {
    let seen = summary
        .last_visit_at
        .map_or_else(|| "not visited yet".to_owned(), |at| format!("visited {}", at.format("%Y-%m-%d")));
    match summary.status {
        Status::OptedOut => "blocked".to_owned(),
        Status::Suspended => "suspended".to_owned(),
        _ if summary.manifests == 0 => format!("no manifest · {seen}"),
        _ => {
            let formats: Vec<&str> = summary.formats.iter().map(|format| format.label()).collect();
            let count = summary.capabilities;
            let noun = if count == 1 { "capability" } else { "capabilities" };
            format!("{count} {noun} · {} · {seen}", formats.join(", "))
        }
    }
}

fn width(text: &str) -> usize {
    text.chars().count() * CHARACTER_TENTHS / 10 + 2 * MARGIN
}
