//! `GET /changes/stream`: the change feed as server-sent events (WHATWG HTML §9.2).
//!
//! The id of each event is a cursor, so a client can resume after it loses the connection: browsers send the last id automatically. Without
//! a cursor, the stream begins with the next change.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::unfold;
use futures::{Stream, StreamExt as _};
use store::{FeedEntry, FeedPosition};

use super::changes::{cursor_at, position};
use crate::metrics;
use crate::problem::Problem;
use crate::reader_keys::Admission;
use crate::request::Request;
use crate::response::HttpResult;
use crate::state::App;
use runtime::Share;

/// Poll interval for the feed; the query reads one indexed row.
const POLL: Duration = Duration::from_secs(1);
/// Number of entries per read.
const BATCH: u32 = 100;
/// Interval of keep-alive comments, below the idle timeouts of proxies.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The change feed as it happens.
#[utoipa::path(
    get,
    path = "/changes/stream",
    tag = "feed",
    params(
        ("cursor" = Option<String>, Query, description = "Begin after this cursor of /changes", max_length = 512),
        ("Last-Event-ID" = Option<String>, Header, description = "Begin after this event"),
    ),
    responses(
        (status = 200, description = "Events named after the change, each with its entry as data", body = String, content_type = "text/event-stream"),
        (status = 410, description = "The event belongs to another feed, or entries after it were deleted by age: begin again", body = crate::problem::ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn stream(
    Request { app, client, query, .. }: Request,
    admission: Admission,
    headers: HeaderMap,
) -> HttpResult {
    query.only(&["cursor"])?;
    let feed_id = app.store.feed_id().await?;
    let last_id = headers.get("last-event-id").and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty());
    let after = match last_id.or(query.one("cursor")?) {
        Some(cursor) => position(&app, &feed_id, cursor).await?,
        None => app.store.feed_head().await?,
    };
    let share = app.stream_share(client).ok_or_else(|| too_many_streams("/changes"))?;
    let follower = Follower { app, feed_id, after, waiting: VecDeque::new(), share, admission };
    Ok(event_stream(events(follower)))
}

/// The 503 for a client when too many streams are open.
pub(super) fn too_many_streams(instead: &str) -> Problem {
    Problem::unavailable(format!(
        "too many streams are open; poll {instead} instead, or try again in a moment"
    ))
}

/// Server-sent events with a comment at the start and after each [`KEEP_ALIVE`], so that a client sees that the stream is open.
pub(super) fn event_stream<S>(events: S) -> Response
where
    S: Stream<Item = Result<Event, Infallible>> + Send + 'static,
{
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("still here");
    let opened = futures::stream::iter([Ok(Event::default().comment("open"))]);
    let mut response = Sse::new(opened.chain(events)).keep_alive(keep_alive).into_response();
    // otherwise nginx and similar proxies would buffer the events
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The position of one stream.
struct Follower {
    app: App,
    feed_id: String,
    after: FeedPosition,
    waiting: VecDeque<FeedEntry>,
    share: Share,
    admission: Admission,
}

fn events(follower: Follower) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    unfold(follower, |mut follower| async move {
        let entry = follower.next().await?;
        let event = Event::default()
            .id(cursor_at(&follower.feed_id, entry.position))
            .event(entry.change.as_str())
            .data(serde_json::to_string(&entry).unwrap_or_default());
        Some((Ok(event), follower))
    })
    .fuse()
}

impl Follower {
    /// Waits for the next entry, without a time limit. `None` when the process stops, the database fails, the client's key was revoked, or
    /// it has too many streams while few are free.
    async fn next(&mut self) -> Option<FeedEntry> {
        loop {
            if self.share.is_too_much() {
                metrics::cut("streams");
                return None;
            }
            if !self.admission.is_valid(&self.app.reader_keys, &self.app.store).await {
                return None;
            }
            if let Some(entry) = self.waiting.pop_front() {
                self.after = entry.position;
                return Some(entry);
            }
            match self.app.store.feed_page(self.after, BATCH).await {
                Ok(page) if page.entries.is_empty() => self.after = page.read_to,
                Ok(page) => self.waiting = page.entries.into(),
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "change stream ends");
                    return None;
                }
            }
            if self.waiting.is_empty() {
                let closing = self.app.closing();
                closing.run_until_cancelled(tokio::time::sleep(POLL)).await?;
            }
        }
    }
}
