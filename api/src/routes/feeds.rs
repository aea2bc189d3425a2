//! The Atom feeds: all changes, the changes of one site, and the results of a search.

use axum::extract::Path;
use indexer::Hit;
use store::{FeedEntry, FeedPosition};

use super::changes::{feed_bounds, latest_after};
use crate::answers;
use crate::answers::search_parameters::SearchParameters;
use crate::answers::site::{site_of, unknown};
use crate::atom::{self, ENTRIES_MAX, Entry, Feed};
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult, RequestContext};

/// Search parameters that do not apply to a feed.
const NOT_HERE: [&str; 4] = ["cursor", "fields", "facets", "view"];

/// The latest changes as an Atom feed.
#[utoipa::path(get, path = "/changes.atom", tag = "feed",
    responses((status = 200, description = "The latest changes", body = String, content_type = "application/atom+xml")))]
pub(crate) async fn changes(Request { app, client, context, query }: Request) -> HttpResult {
    query.only(&[])?;
    let (first, head) = feed_bounds(&app).await?;
    let changes = app.store.feed_read(latest_after(first, head, ENTRIES_MAX), ENTRIES_MAX).await?;
    let feed_id = app.store.feed_id().await?;
    let base = app.base_url();
    let render = move |context: &RequestContext| {
        let entries = changes.iter().map(|change| change_entry(&base, &feed_id, change));
        let feed = Feed::new(
            "agentdex: changes of the index",
            format!("{base}/changes.atom"),
            format!("{base}/"),
            entries.collect(),
        );
        context.template(&feed, atom::MEDIA_TYPE, Caching::Search)
    };
    app.rendered(client, &context, render).await
}

/// The latest changes of one site as an Atom feed.
#[utoipa::path(get, path = "/sites/{domain}/changes.atom", tag = "feed",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 200, description = "Its latest changes", body = String, content_type = "application/atom+xml")))]
pub(crate) async fn site_changes(
    Request { app, client, context, query }: Request,
    Path(domain): Path<String>,
) -> HttpResult {
    query.only(&[])?;
    let site = site_of(&domain)?;
    let changes = app.store.feed_of_site(&site, FeedPosition::END, ENTRIES_MAX).await?;
    if changes.is_empty() && app.store.site_summary(&site).await?.is_none() {
        return Err(unknown(&site));
    }
    let feed_id = app.store.feed_id().await?;
    let base = app.base_url();
    let render = move |context: &RequestContext| {
        let entries = changes.iter().map(|change| change_entry(&base, &feed_id, change));
        let feed = Feed::new(
            &format!("agentdex: changes of {site}"),
            format!("{base}/sites/{site}/changes.atom"),
            format!("{base}/sites/{site}"),
            entries.collect(),
        );
        context.template(&feed, atom::MEDIA_TYPE, Caching::Search)
    };
    app.rendered(client, &context, render).await
}

/// The best results of a search, newest first.
#[utoipa::path(get, path = "/search.atom", tag = "feed", params(answers::search_query::SearchQuery),
    responses((status = 200, description = "The best answers, the latest first", body = String, content_type = "application/atom+xml")))]
pub(crate) async fn search(Request { app, client, context, query }: Request) -> HttpResult {
    if let Some((name, _)) = query.pairs().find(|(name, _)| NOT_HERE.contains(name)) {
        let detail = format!(
            "\"{name}\" does not apply to a feed, which always contains the best results, newest first"
        );
        return Err(Problem::bad_request(detail).with_parameter(name));
    }
    let mut parameters = SearchParameters::read(&query)?;
    if parameters.is_empty() {
        return Err(Problem::bad_request(
            "give \"q\", as in /search.atom?q=book+flight, or at least one filter",
        ));
    }
    if query.one("limit")?.is_none() {
        parameters.request.limit = usize::try_from(ENTRIES_MAX).unwrap_or(usize::MAX);
    }
    let found = answers::search::search(&app.index, client, parameters.request).await?;
    let base = app.base_url();
    let counted = answers::search::counted(app.manifests(client), &found.answer.hits)?;
    let render = move |context: &RequestContext| {
        let asked_for = context.uri.query().unwrap_or_default();
        let entries = found.answer.hits.iter().map(|hit| hit_entry(&base, hit));
        let feed = Feed::new(
            &format!("agentdex: {}", query.texts("q").join(", ")),
            format!("{base}/search.atom?{asked_for}"),
            format!("{base}/search?{asked_for}"),
            entries.collect(),
        );
        drop(counted);
        context.template(&feed, atom::MEDIA_TYPE, Caching::Search)
    };
    app.rendered(client, &context, render).await
}

fn change_entry(base: &str, feed_id: &str, change: &FeedEntry) -> Entry {
    let what = change.change.as_str().replace('_', " ");
    let reason = change.reason.as_deref().map_or(String::new(), |reason| format!(" ({reason})"));
    Entry::new(
        &["change", feed_id, &change.position.0.to_string()],
        &format!("{}: manifest {what}{reason}", change.site),
        change.site.as_str(),
        format!("{base}/sites/{}", change.site),
        &format!("Manifest {} of {}: {what}{reason}.", change.manifest_id, change.site),
        change.at,
    )
    .with_json(format!("{base}/manifests/{}", change.manifest_id))
}

fn hit_entry(base: &str, hit: &Hit) -> Entry {
    let mark = if hit.addresses_reader { "[its text gives orders to AI models] " } else { "" };
    Entry::new(
        &["capability", hit.id.as_str()],
        &format!("{mark}{} · {}", hit.name, hit.site),
        hit.site.as_str(),
        format!("{base}/capabilities/{}", hit.id),
        hit.description.as_deref().unwrap_or(&hit.name),
        hit.updated_at,
    )
}
