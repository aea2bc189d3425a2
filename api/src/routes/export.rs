//! `GET /export.jsonl`: everything, or everything since a time, as lines of JSON.
//!
//! Read and written page by page; a page has a bounded number of bytes or one manifest, so that memory grows neither with the index nor
//! with how many manifests are large. A client that stops reading or is too slow is
//! left behind: its body breaks off, so that it looks like nothing whole. Lines say by `record` what they are: `manifest` (its capabilities follow and replace all that was known of
//! it), `capability`, `tombstone` (everything of this manifest is gone, and why), and `end`, which a complete export has.

use std::collections::HashSet;
use std::io;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use chrono::{DateTime, Utc};
use futures::stream::unfold;
use futures::{Stream, StreamExt as _};
use indexer::Hit;
use manifest::ManifestId;
use serde_json::{Map, Value, json};
use store::{FeedChange, FeedEntry, FeedPosition, StoredManifest};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::changes::cursor_at;
use super::search::object_of;
use super::search_parameters::instant;
use super::{TEXT_IS, record};
use crate::answer::{Asked, Caching, EntityTag, decorated};
use crate::app::App;
use crate::client::Client;
use crate::manifests::off_runtime;
use crate::metrics;
use crate::pace::{Allowance, Pace};
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use runtime::Share;

/// Manifests read at once, at most; the store bounds their bytes, too.
const MANIFESTS_MAX: u32 = 50;
/// Changes read at once.
const CHANGES_MAX: u32 = 200;
/// Pieces written ahead of the client.
const AHEAD: usize = 4;
const PIECE_BYTES: usize = 64 * 1024;
/// Exports at once: each reads the whole database.
pub(crate) const EXPORTS_MAX: usize = 4;
/// Of these, exports of one client.
pub(crate) const EXPORTS_OF_CLIENT_MAX: usize = 2;

/// Everything as lines of JSON.
#[utoipa::path(
    get,
    path = "/export.jsonl",
    tag = "feed",
    params(("updated_since" = Option<String>, Query, description = "Only what changed at or after this date or time, with tombstones for what is gone", max_length = 64)),
    responses((status = 200, description = "One JSON object a line", body = String, content_type = "application/jsonl")),
)]
pub(crate) async fn stream(
    State(app): State<App>,
    asked: Asked,
    Extension(client): Extension<Client>,
    query: QueryPairs,
) -> Result<Response, Problem> {
    query.only(&["updated_since"])?;
    let since = query.one("updated_since")?.map(instant).transpose()?;
    let feed_id = app.store().feed_id().await?;
    let head = app.store().feed_head().await?;
    let tag = EntityTag::of(&[b"export", feed_id.as_bytes(), format!("{head:?} {since:?}").as_bytes()]);
    if let Some(unchanged) = asked.unchanged(&tag, Caching::Search) {
        return Ok(unchanged);
    }
    let share = app
        .export_share(client)
        .ok_or_else(|| Problem::unavailable("too many exports are under way; try again in a moment"))?;
    let (lines, pieces) = Lines::new(app.config().patience.exports);
    let export = Export { app: app.clone(), lines, capabilities: 0, tombstones: 0, _share: share };
    app.tasks().spawn(export.run(since, feed_id, head));
    let mut response = Response::new(Body::from_stream(body(pieces)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
    Ok(decorated(response, &tag, Caching::Search))
}

/// Why an export ends early.
enum Broken {
    /// The client is gone, or does not read.
    Client,
    Store(store::StoreError),
}

impl From<store::StoreError> for Broken {
    fn from(error: store::StoreError) -> Self {
        Self::Store(error)
    }
}

struct Export {
    app: App,
    lines: Lines,
    capabilities: u64,
    tombstones: u64,
    _share: Share,
}

impl Export {
    async fn run(mut self, since: Option<DateTime<Utc>>, feed_id: String, head: FeedPosition) {
        let exported = match since {
            None => self.everything().await,
            Some(since) => self.changes(since).await,
        };
        let ended = match exported {
            Ok(()) => {
                let end = json!({
                    "record": "end", "capabilities": self.capabilities, "tombstones": self.tombstones,
                    "changes_cursor": cursor_at(&feed_id, head),
                });
                self.lines.end(line(&end)).await
            }
            Err(broken) => Err(broken),
        };
        if let Err(Broken::Store(error)) = ended {
            tracing::warn!(error = &error as &dyn std::error::Error, "export broke off");
        }
    }

    /// Every manifest in the order of ids.
    async fn everything(&mut self) -> Result<(), Broken> {
        let mut after: Option<ManifestId> = None;
        loop {
            let page = self.app.store().manifests_page(after.as_ref(), MANIFESTS_MAX).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.manifest.id.clone());
            self.manifests(page).await?;
        }
    }

    /// What changed, in the order of the feed. A manifest that changed again meanwhile comes again: its last line counts.
    async fn changes(&mut self, since: DateTime<Utc>) -> Result<(), Broken> {
        let mut after = self.app.store().feed_position_at(since).await?;
        loop {
            let entries = self.app.store().feed_read(after, CHANGES_MAX).await?;
            let Some(last) = entries.last() else { return Ok(()) };
            after = last.position;
            let latest = latest(&entries);
            let ids: Vec<ManifestId> = latest.iter().map(|entry| entry.manifest_id.clone()).collect();
            let mut found = HashSet::new();
            for batch in self.app.store().manifest_batches(&ids).await? {
                let page = self.app.store().manifests_load(&batch.ids).await?;
                found.extend(page.iter().map(|stored| stored.manifest.id.clone()));
                self.manifests(page).await?;
            }
            let mut text = Vec::new();
            for entry in latest.into_iter().filter(|entry| !found.contains(&entry.manifest_id)) {
                self.tombstones += 1;
                text.extend(line(&tombstone(entry)));
            }
            self.lines.send(text).await?;
        }
    }

    /// Sends the lines of some manifests, each of which is dropped when it was sent.
    async fn manifests(&mut self, page: Vec<StoredManifest>) -> Result<(), Broken> {
        for stored in page {
            self.capabilities += stored.manifest.capabilities.len() as u64;
            let mut left = Some(Rows { stored, next: None });
            while let Some(rows) = left {
                let made = off_runtime(move || rows.piece()).await;
                let text;
                // What went wrong was logged.
                (text, left) = made.map_err(|_| Broken::Client)?;
                self.lines.send(text).await?;
            }
        }
        Ok(())
    }
}

/// The lines of one manifest that are left.
struct Rows {
    stored: StoredManifest,
    /// The next capability; `None` before the line of the manifest.
    next: Option<usize>,
}

impl Rows {
    /// Lines up to the size of a piece, one at least, and what is left.
    fn piece(mut self) -> (Vec<u8>, Option<Self>) {
        let manifest = &self.stored.manifest;
        let mut text = Vec::new();
        let mut next = self.next.unwrap_or_else(|| {
            text = line(&json!({
                "record": "manifest", "id": manifest.id, "url": manifest.url, "site": manifest.url.site(),
                "format": manifest.format(), "status": self.stored.status,
                "changed_at": self.stored.changed_at, "capabilities": manifest.capabilities.len(),
            }));
            0
        });
        for capability in manifest.capabilities.iter().skip(next) {
            next += 1;
            text.extend(line(&Value::Object(capability_line(&self.stored, capability))));
            if text.len() >= PIECE_BYTES {
                break;
            }
        }
        let is_left = next < manifest.capabilities.len();
        self.next = Some(next);
        (text, is_left.then_some(self))
    }
}

/// A piece of an export, or its end: one that stops without it broke off.
enum Piece {
    Lines(Bytes),
    End,
}

/// The lines on their way to a client that has to keep the pace.
struct Lines {
    pieces: mpsc::Sender<Piece>,
    allowance: Allowance,
}

impl Lines {
    fn new(pace: Pace) -> (Self, mpsc::Receiver<Piece>) {
        let (pieces, received) = mpsc::channel(AHEAD);
        (Self { pieces, allowance: Allowance::new(pace) }, received)
    }

    async fn send(&mut self, text: Vec<u8>) -> Result<(), Broken> {
        let mut text = Bytes::from(text);
        while !text.is_empty() {
            let piece = text.split_to(text.len().min(PIECE_BYTES));
            self.piece(Piece::Lines(piece)).await?;
        }
        Ok(())
    }

    /// The last line, after which the export is whole.
    async fn end(&mut self, text: Vec<u8>) -> Result<(), Broken> {
        self.send(text).await?;
        self.piece(Piece::End).await
    }

    async fn piece(&mut self, piece: Piece) -> Result<(), Broken> {
        let begun = Instant::now();
        let Ok(free) = timeout(self.allowance.left(), self.pieces.reserve()).await else {
            metrics::cut("slow_reader");
            return Err(Broken::Client);
        };
        let bytes = match &piece {
            Piece::Lines(lines) => lines.len(),
            Piece::End => 0,
        };
        free.map_err(|_| Broken::Client)?.send(piece);
        self.allowance.moved(bytes, begun.elapsed());
        Ok(())
    }
}

/// What the client is sent. Compression asks once more after the end.
fn body(pieces: mpsc::Receiver<Piece>) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let stream = unfold(Some(pieces), |pieces| async move {
        let mut pieces = pieces?;
        match pieces.recv().await {
            Some(Piece::Lines(lines)) => Some((Ok(lines), Some(pieces))),
            Some(Piece::End) => None,
            None => Some((Err(io::Error::other("the export broke off")), None)),
        }
    });
    stream.fuse()
}

/// The last entry of each manifest.
fn latest(entries: &[FeedEntry]) -> Vec<&FeedEntry> {
    let mut seen = HashSet::new();
    let mut latest: Vec<&FeedEntry> =
        entries.iter().rev().filter(|entry| seen.insert(&entry.manifest_id)).collect();
    latest.reverse();
    latest
}

fn tombstone(entry: &FeedEntry) -> Value {
    let reason = entry.reason.as_deref().filter(|_| entry.change == FeedChange::Removed);
    json!({
        "record": "tombstone", "id": entry.manifest_id, "site": entry.site, "at": entry.at,
        "reason": reason.unwrap_or("removed"),
    })
}

fn capability_line(stored: &StoredManifest, capability: &manifest::Capability) -> Map<String, Value> {
    let mut row = Map::from_iter([("record".to_owned(), Value::from("capability"))]);
    row.extend(object_of(&Hit::of(stored, capability)).unwrap_or_default());
    row.retain(|name, _| name != "score" && name != "snippet");
    row.insert("text_is".to_owned(), TEXT_IS.into());
    row.extend(object_of(&record::detail(stored, capability)).unwrap_or_default());
    row
}

fn line(value: &Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use axum::extract::ConnectInfo;
    use axum::http::{Request, StatusCode};
    use tower::ServiceExt as _;

    use super::*;
    use crate::limits::LimitsConfig;
    use crate::pace::Patience;
    use crate::test_app;

    const PACE: Pace = Pace { allowance: Duration::from_millis(300), bytes_per_second: 1_000_000 };

    #[tokio::test]
    async fn an_export_that_its_client_does_not_read_breaks_off() {
        let (mut lines, pieces) = Lines::new(PACE);
        let sent = lines.send(vec![b'x'; PIECE_BYTES * (AHEAD + 1)]).await;
        assert!(matches!(sent, Err(Broken::Client)));
        drop(lines);
        let seen: Vec<io::Result<Bytes>> = body(pieces).collect().await;
        let (last, before) = seen.split_last().unwrap();
        assert!(last.is_err() && before.len() == AHEAD && before.iter().all(Result::is_ok));
    }

    #[tokio::test]
    async fn two_exports_of_one_client_and_four_of_all_run_at_once() {
        let (app, _dir) = test_app::app(LimitsConfig::default(), Patience::default()).await;
        let client = |number: u8| Client { address: [192, 0, 2, number].into(), is_local: false };
        let shares: Vec<_> = [1, 1, 2].map(|number| app.export_share(client(number)).unwrap()).into();
        let get = async |number: u8| {
            let mut request = Request::get("/export.jsonl").body(Body::empty()).unwrap();
            request.extensions_mut().insert(ConnectInfo(SocketAddr::new(client(number).address, 4711)));
            let response = crate::app::router(&app).oneshot(request).await.unwrap();
            (response.status(), response.headers().contains_key("retry-after"))
        };
        assert_eq!(get(1).await, (StatusCode::SERVICE_UNAVAILABLE, true), "its own two run");
        let fourth = app.export_share(client(2)).unwrap();
        assert_eq!(get(3).await, (StatusCode::SERVICE_UNAVAILABLE, true), "four run");
        drop((shares, fourth));
        assert_eq!(get(1).await.0, StatusCode::OK);
    }

    #[tokio::test]
    async fn an_export_is_whole_when_it_says_so() {
        let (mut lines, pieces) = Lines::new(PACE);
        let sending = async {
            lines.send(vec![b'x'; PIECE_BYTES * AHEAD * 2]).await.ok().unwrap();
            lines.end(b"end".to_vec()).await.ok().unwrap();
            drop(lines);
        };
        let ((), seen) = tokio::join!(sending, body(pieces).collect::<Vec<_>>());
        let seen: Vec<Bytes> = seen.into_iter().map(Result::unwrap).collect();
        assert!(seen.iter().all(|piece| piece.len() <= PIECE_BYTES));
        assert_eq!(seen.concat().len(), PIECE_BYTES * AHEAD * 2 + 3);
    }

    /// 100 bytes a step, each a tenth of a second: a client below the least rate is left behind in the end.
    #[tokio::test]
    async fn a_client_below_the_least_rate_loses_its_export() {
        let pace = Pace { allowance: Duration::from_millis(500), bytes_per_second: 100_000 };
        let (mut lines, mut pieces) = Lines::new(pace);
        let reading = async {
            let mut read = 0;
            while let Some(Piece::Lines(piece)) = pieces.recv().await {
                read += piece.len();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            read
        };
        let sending = async {
            let mut sent = 0;
            while lines.send(vec![b'x'; 100]).await.is_ok() {
                sent += 1;
            }
            drop(lines);
            sent
        };
        let (read, sent) = tokio::join!(reading, sending);
        assert_eq!(read, sent * 100);
    }
}
