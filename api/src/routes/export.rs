//! `GET /export.jsonl`: everything, or everything since a time, as lines of JSON.
//!
//! Read and written page by page, so that memory does not grow with the index. A client that stops reading or is too slow is
//! left behind: its body breaks off, so that it looks like nothing whole. Lines say by `record` what they are: `manifest` (its capabilities follow and replace all that was known of
//! it), `capability`, `tombstone` (everything of this manifest is gone, and why), and `end`, which a complete export has.

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
use crate::metrics;
use crate::pace::{Allowance, Pace};
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use runtime::Share;

/// Manifests read at once, at most. Where they are large, fewer are read (see `PAGE_BYTES`).
const MANIFESTS_MAX: u32 = 50;
/// Manifests read first, of which nothing is known yet.
const MANIFESTS_FIRST: u32 = 1;
/// Bytes of lines that the manifests read at once may come to: beyond it, half as many are read the next time.
const PAGE_BYTES: usize = 1024 * 1024;
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
        let mut manifests_max = MANIFESTS_FIRST;
        loop {
            let page = self.app.store().manifests_page(after.as_ref(), manifests_max).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.manifest.id.clone());
            let bytes = self.manifests(page).await?;
            manifests_max = next_page(manifests_max, bytes);
        }
    }

    /// What changed, in the order of the feed. A manifest that changed again meanwhile comes again: its last line counts.
    async fn changes(&mut self, since: DateTime<Utc>) -> Result<(), Broken> {
        let mut after = self.app.store().feed_position_at(since).await?;
        let mut manifests_max = MANIFESTS_FIRST;
        loop {
            let entries = self.app.store().feed_read(after, CHANGES_MAX).await?;
            let Some(last) = entries.last() else { return Ok(()) };
            after = last.position;
            let latest = latest(&entries);
            let ids: Vec<ManifestId> = latest.iter().map(|entry| entry.manifest_id.clone()).collect();
            let mut rest = &ids[..];
            while !rest.is_empty() {
                let (ids, others) = rest.split_at(rest.len().min(manifests_max as usize));
                rest = others;
                let page = self.app.store().manifests_load(ids).await?;
                let found: Vec<ManifestId> = page.iter().map(|stored| stored.manifest.id.clone()).collect();
                let bytes = self.manifests(page).await?;
                manifests_max = next_page(manifests_max, bytes);
                let gone = latest
                    .iter()
                    .filter(|entry| ids.contains(&entry.manifest_id) && !found.contains(&entry.manifest_id));
                let mut text = Vec::new();
                for entry in gone {
                    self.tombstones += 1;
                    text.extend(line(&tombstone(entry)));
                }
                self.lines.send(text).await?;
            }
        }
    }

    /// Sends the lines of some manifests, each of which is let go of when it was sent; answers the bytes of the lines.
    async fn manifests(&mut self, page: Vec<StoredManifest>) -> Result<usize, Broken> {
        let mut bytes = 0;
        for stored in page {
            let mut text = line(&json!({
                "record": "manifest", "id": stored.manifest.id, "url": stored.manifest.url,
                "site": stored.manifest.url.site(), "format": stored.manifest.format(), "status": stored.status,
                "changed_at": stored.changed_at, "capabilities": stored.manifest.capabilities.len(),
            }));
            for capability in &stored.manifest.capabilities {
                self.capabilities += 1;
                text.extend(line(&Value::Object(capability_line(&stored, capability))));
                if text.len() >= PIECE_BYTES {
                    bytes += text.len();
                    self.lines.send(std::mem::take(&mut text)).await?;
                }
            }
            bytes += text.len();
            self.lines.send(text).await?;
        }
        Ok(bytes)
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

/// How many manifests to read next, after so many that came to so many bytes.
fn next_page(manifests: u32, bytes: usize) -> u32 {
    let next = if bytes > PAGE_BYTES { manifests / 2 } else { manifests.saturating_mul(2) };
    next.clamp(1, MANIFESTS_MAX)
}

/// The last entry of each manifest.
fn latest(entries: &[FeedEntry]) -> Vec<&FeedEntry> {
    let mut seen = std::collections::HashSet::new();
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
    use std::time::Duration;

    use super::*;

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

    #[test]
    fn fewer_manifests_are_read_at_once_where_they_are_large() {
        let mut manifests = MANIFESTS_MAX;
        for expected in [25, 12, 6, 3, 1, 1] {
            manifests = next_page(manifests, PAGE_BYTES + 1);
            assert_eq!(manifests, expected);
        }
        for expected in [2, 4, 8, 16, 32, 50, 50] {
            manifests = next_page(manifests, PAGE_BYTES);
            assert_eq!(manifests, expected);
        }
    }
}
