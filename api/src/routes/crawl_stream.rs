//! `GET /crawl/stream`: the health of the crawl as server-sent events (WHATWG HTML §9.2), whenever it has changed.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::Event;
use futures::Stream;
use futures::stream::unfold;

use super::changes_stream::{event_stream, too_many_streams};
use crate::metrics;
use crate::reader_keys::Admission;
use crate::request::Request;
use crate::response::HttpResult;
use crate::state::App;
use runtime::Share;

/// Poll interval for changes; all streams share one query.
const POLL: Duration = Duration::from_secs(2);

/// The health of the crawl: the current state, then an event after every change.
#[utoipa::path(
    get,
    path = "/crawl/stream",
    tag = "service",
    responses((status = 200, description = "Events named crawl, each with the answer of /crawl as data", body = String, content_type = "text/event-stream")),
)]
pub(crate) async fn stream(Request { app, client, query, .. }: Request, admission: Admission) -> HttpResult {
    query.only(&[])?;
    let share = app.stream_share(client).ok_or_else(|| too_many_streams("/crawl"))?;
    Ok(event_stream(events(Watcher { app, last_sent: None, share, admission })))
}

/// One stream, with the state that it sent last.
struct Watcher {
    app: App,
    last_sent: Option<String>,
    share: Share,
    admission: Admission,
}

fn events(watcher: Watcher) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    unfold(watcher, |mut watcher| async move {
        let data = watcher.next().await?;
        let event = Event::default().event("crawl").data(&data);
        watcher.last_sent = Some(data);
        Some((Ok(event), watcher))
    })
}

impl Watcher {
    /// Waits for the next state that differs, without a time limit. `None` when the process stops, the database fails, the client's key was
    /// revoked, or it has too many streams while few are free.
    async fn next(&self) -> Option<String> {
        loop {
            if self.share.is_too_much() {
                metrics::cut("streams");
                return None;
            }
            if !self.admission.is_valid(&self.app.reader_keys, &self.app.store).await {
                return None;
            }
            let answer = self.app.crawl().await;
            let answer = answer.inspect_err(|_| tracing::warn!("a stream of the crawl ends")).ok()?;
            let data = serde_json::to_string(&answer).ok()?;
            if self.last_sent.as_ref() != Some(&data) {
                return Some(data);
            }
            self.app.closing().run_until_cancelled(tokio::time::sleep(POLL)).await?;
        }
    }
}
