//! `GET /changes`: the change feed, replayable from any cursor, removals included.
//!
//! Entries are in one order without gaps. A reader continues with `next_cursor`; when `more` is false, it has read all current entries. A
//! cursor into entries that were deleted by age is a 410.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use axum::http::StatusCode;
use manifest::ManifestId;
use serde::Serialize;
use store::{FeedChange, FeedEntry, FeedPage, FeedPosition, StoreError, VersionRecord};
use utoipa::ToSchema;

use crate::answers::version_diff::{DiffAnswer, VERSIONS_MAX, compare};
use crate::client::Client;
use crate::cursor;
use crate::dashboard;
use crate::dashboard::changes::{Summaries, Summary};
use crate::manifests::PAGE_READ_BYTES_MAX;
use crate::problem::{Problem, feed_outrun};
use crate::request::Request;
use crate::response::{Caching, HttpResult, RequestContext};
use crate::state::App;

const LIMIT_DEFAULT: u32 = 100;
/// Maximum number of entries on one page: a few hundred kilobytes of JSON.
const LIMIT_MAX: u32 = 1_000;
/// Rows on the HTML page.
const PAGE_ROWS: u32 = 50;
/// Time limit for comparing versions for one page. Changes that are not compared in time are listed without a summary.
const SUMMARIES_TIME_MAX: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangesAnswer {
    #[schema(value_type = Vec<crate::openapi::schemas::FeedLine>)]
    changes: Vec<FeedEntry>,
    /// The cursor after the last entry; present even if there are no more entries.
    next_cursor: String,
    more: bool,
}

/// The change feed, from the beginning or from a cursor.
#[utoipa::path(
    get,
    path = "/changes",
    tag = "feed",
    params(
        ("cursor" = Option<String>, Query, description = "next_cursor of the previous page", max_length = 512),
        ("limit" = Option<u32>, Query, description = "Maximum number of results; the default is 100", minimum = 1, maximum = 1000),
    ),
    responses(
        (status = 200, description = "Changes in order, removals included", body = ChangesAnswer),
        (status = 410, description = "The cursor belongs to another feed, or entries after it were deleted by age: start again without it", body = crate::problem::ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(Request { app, client, context, query }: Request) -> HttpResult {
    let query = query.known(&context, &["cursor", "limit"])?;
    let feed_id = app.store.feed_id().await?;
    let cursor = query.one("cursor")?;
    let after = match cursor {
        Some(text) => Some(position(&app, &feed_id, text).await?),
        None => None,
    };
    if context.wants_page() {
        return page(&app, client, &context, &feed_id, after).await;
    }
    let after = after.unwrap_or(FeedPosition(0));
    let limit = query.limit(LIMIT_DEFAULT, LIMIT_MAX)?;
    // One entry more than fits on the page: if it exists, there is a next page.
    let FeedPage { entries: mut changes, read_to } = app.store.feed_page(after, limit + 1).await?;
    let page_len = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = changes.len() > page_len;
    changes.truncate(page_len);
    let last = changes.last().filter(|_| more).map_or(read_to, |entry| entry.position);
    let next_cursor = cursor_at(&feed_id, last);
    context.json(&ChangesAnswer { changes, next_cursor, more }, Caching::Search)
}

/// The cursor after a position.
pub(super) fn cursor_at(feed_id: &str, position: FeedPosition) -> String {
    cursor::encode("changes", &format!("{}:{feed_id}", position.0))
}

/// The HTML page of changes, the latest first: those before a cursor, or the last ones.
async fn page(
    app: &App,
    client: Client,
    context: &RequestContext,
    feed_id: &str,
    before: Option<FeedPosition>,
) -> HttpResult {
    let (first, head) = feed_bounds(app).await?;
    let before = before.unwrap_or(head).0;
    let after = latest_after(first, FeedPosition(before), PAGE_ROWS);
    let mut changes = app.store.feed_read(after, PAGE_ROWS).await?;
    changes.retain(|entry| entry.position.0 <= before);
    changes.reverse();
    let earlier = (after >= first).then(|| cursor_at(feed_id, after));
    let mut summaries = summaries(app, client, &changes).await;
    let here = app.page_context();
    let render = move |context: &RequestContext| {
        let page = dashboard::changes::page(&changes, &mut summaries, earlier.as_deref(), &here);
        context.page(&page, Caching::Search)
    };
    app.rendered(client, context, render).await
}

/// Summaries of the changes, from their versions. If they fail or time out, the page is shown without them.
async fn summaries(app: &App, client: Client, changes: &[FeedEntry]) -> Summaries {
    let mut summaries = Summaries::new();
    let fill = fill_summaries(app, client, changes, &mut summaries);
    if !matches!(tokio::time::timeout(SUMMARIES_TIME_MAX, fill).await, Ok(Ok(()))) {
        tracing::debug!("some changes of the page are shown without their details");
    }
    summaries
}

async fn fill_summaries(
    app: &App,
    client: Client,
    changes: &[FeedEntry],
    summaries: &mut Summaries,
) -> Result<(), Problem> {
    let mut versions: HashMap<&ManifestId, Vec<VersionRecord>> = HashMap::new();
    let mut bytes = 0_u64;
    for entry in changes.iter().filter(|entry| has_version(entry.change)) {
        let id = &entry.manifest_id;
        let kept = match versions.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let records = app.manifests(client).version_records(id, VERSIONS_MAX).await;
                // a change of a document that its site forbids now has no details
                let is_withdrawn =
                    records.as_ref().is_err_and(|problem| problem.body().status == StatusCode::GONE);
                unknown.insert(if is_withdrawn { Vec::new() } else { records? })
            }
        };
        // The entry has the time at which its version was first seen. The list begins with the latest.
        let Some(at) = kept.iter().position(|version| version.first_seen_at == entry.at) else { continue };
        let (to, from) = (kept.get(at), kept.get(at + 1));
        let summary = match (entry.change, to, from) {
            (FeedChange::Added, Some(to), _) => {
                let is_readable = to.capabilities > 0 || is_readable(app, entry).await?;
                Summary::of_new(to, is_readable)
            }
            (FeedChange::Changed, Some(to), Some(from)) => {
                let reader = app.manifests(client);
                bytes += reader.versions_bytes(id, [&from.hash, &to.hash]).await?.unwrap_or_default();
                if bytes > PAGE_READ_BYTES_MAX {
                    return Ok(());
                }
                let summarise = |answer: &DiffAnswer, _: &[VersionRecord]| Summary::of_difference(answer);
                let hashes = (Some(from.hash.clone()), Some(to.hash.clone()));
                compare(&app.store, reader, id.clone(), hashes.0, hashes.1, summarise).await?
            }
            _ => continue,
        };
        summaries.insert(entry.position.0, summary);
    }
    Ok(())
}

/// Whether the site of an entry has a document that can be read.
async fn is_readable(app: &App, entry: &FeedEntry) -> Result<bool, Problem> {
    let site = app.store.site_summary(&entry.site).await?;
    Ok(!site.is_some_and(|site| dashboard::is_unreadable(&site.formats)))
}

/// Whether an entry has a version of its manifest.
const fn has_version(change: FeedChange) -> bool {
    matches!(change, FeedChange::Added | FeedChange::Changed)
}

/// The positions of the first remaining entry and of the last one.
pub(super) async fn feed_bounds(app: &App) -> Result<(FeedPosition, FeedPosition), StoreError> {
    let head = app.store.feed_head().await?;
    Ok((app.store.feed_first().await?, head))
}

/// The position before the latest entries: a limited number of them, and none that retention deleted.
pub(super) fn latest_after(first: FeedPosition, last: FeedPosition, entries_max: u32) -> FeedPosition {
    FeedPosition(last.0.saturating_sub(i64::from(entries_max)).max(first.0.saturating_sub(1)).max(0))
}

/// The position in a cursor of this feed; an error if entries after it were deleted.
pub(super) async fn position(app: &App, feed_id: &str, cursor: &str) -> Result<FeedPosition, Problem> {
    let text = cursor::decode("changes", cursor)?;
    let (position, of_feed) = text.split_once(':').unwrap_or((&text, ""));
    if of_feed != feed_id {
        let detail = "this cursor belongs to a feed that is no longer served: begin again without it";
        return Err(Problem::new(StatusCode::GONE, detail).with_parameter("cursor"));
    }
    let position = position.parse().map(FeedPosition).map_err(|_| cursor::invalid())?;
    let (first, head) = feed_bounds(app).await?;
    match position.0 {
        beyond if beyond < 0 || beyond > head.0 => Err(cursor::invalid()),
        // the cursor of a reader that has not read any entry
        0 => Ok(position),
        deleted if deleted < first.0.saturating_sub(1) => Err(feed_outrun()),
        _ => Ok(position),
    }
}
