//! `GET /export.jsonl`: everything, or everything since a time, as lines of JSON.
//!
//! Read and written page by page. A page has a bounded number of bytes or one manifest, so memory grows neither with the
//! index nor with the number of large manifests. For a client that stops reading or is too slow, the body is aborted, so
//! that it is visibly incomplete. The member `record` of a line is `manifest` (the capabilities with its id as `manifest_id`
//! follow and replace all earlier ones with it), `capability` (with its declarations; replaces an earlier one with its id),
//! `tombstone` (the manifest is gone, and why), or `end`, the last line of a complete export.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use chrono::{DateTime, Utc};
use futures::stream::unfold;
use futures::{Stream, StreamExt as _};
use indexer::MergedCapability;
use manifest::ManifestId;
use manifest::model::PolicyChoice;
use serde_json::{Map, Value, json};
use store::{FeedChange, FeedEntry, FeedPage, FeedPosition, StoredManifest};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::changes::cursor_at;
use crate::answers::declarations::SharedDeclarations;
use crate::answers::search_parameters::instant;
use crate::answers::{TEXT_IS, capability};
use crate::manifests::off_runtime;
use crate::metrics;
use crate::problem::Problem;
use crate::reader_keys::Admission;
use crate::request::Request;
use crate::response::{Caching, EntityTag, HttpResult, decorated};
use crate::state::App;
use crate::timeouts::{Allowance, MinRate};
use runtime::Share;

/// Manifests read at once, at most; the store bounds their bytes, too.
const MANIFESTS_MAX: u32 = 50;
/// Changes read at once.
const CHANGES_MAX: u32 = 200;
/// Chunks written ahead of the client.
const AHEAD: usize = 4;
const CHUNK_BYTES: usize = 64 * 1024;

/// Everything as lines of JSON.
#[utoipa::path(
    get,
    path = "/export.jsonl",
    tag = "feed",
    params(("updated_since" = Option<String>, Query, description = "Only what changed at or after this date or time, with tombstones for what is gone", max_length = 64)),
    responses((status = 200, description = "One JSON object a line", body = String, content_type = "application/jsonl")),
)]
pub(crate) async fn stream(
    Request { app, client, context, query }: Request,
    admission: Admission,
) -> HttpResult {
    query.only(&["updated_since"])?;
    let since = query.one("updated_since")?.map(instant).transpose()?;
    let feed_id = app.store.feed_id().await?;
    let head = app.store.feed_head().await?;
    let tag = EntityTag::of(&[b"export", feed_id.as_bytes(), format!("{head:?} {since:?}").as_bytes()]);
    if let Some(unchanged) = context.unchanged(&tag, Caching::Search) {
        return Ok(unchanged);
    }
    let share = app
        .export_share(client)
        .ok_or_else(|| Problem::unavailable("too many exports are under way; try again in a moment"))?;
    let (lines, chunks) = LineSender::new(app.config.timeouts.exports);
    let export = Export { app: app.clone(), lines, capabilities: 0, tombstones: 0, admission, _share: share };
    app.tasks.spawn(export.run(since, feed_id, head));
    let mut response = Response::new(Body::from_stream(body(chunks)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
    Ok(decorated(response, &tag, Caching::Search))
}

/// Why an export ends early.
enum ExportError {
    /// The client is gone, does not read, or its key was revoked.
    Client,
    Store(store::StoreError),
}

impl From<store::StoreError> for ExportError {
    fn from(error: store::StoreError) -> Self {
        Self::Store(error)
    }
}

struct Export {
    app: App,
    lines: LineSender,
    capabilities: u64,
    tombstones: u64,
    admission: Admission,
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
        if let Err(ExportError::Store(error)) = ended {
            tracing::warn!(error = &error as &dyn std::error::Error, "export aborted");
        }
    }

    /// Every manifest in the order of ids.
    async fn everything(&mut self) -> Result<(), ExportError> {
        let mut after: Option<ManifestId> = None;
        loop {
            let page = self.app.store.manifests_page(after.as_ref(), MANIFESTS_MAX).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.manifest.id.clone());
            self.manifests(page).await?;
        }
    }

    /// What changed, in the order of the feed. A manifest that changed again meanwhile comes again: its last line counts.
    async fn changes(&mut self, since: DateTime<Utc>) -> Result<(), ExportError> {
        let mut after = self.app.store.feed_position_at(since).await?;
        loop {
            let FeedPage { entries, read_to } = self.app.store.feed_page(after, CHANGES_MAX).await?;
            if read_to == after {
                return Ok(());
            }
            after = read_to;
            let latest = latest(&entries);
            let changed: Vec<ManifestId> = latest.iter().map(|entry| entry.manifest_id.clone()).collect();
            let mut found = HashSet::new();
            for batch in self.app.store.manifest_batches(&self.with_sharing(changed).await?).await? {
                let page = self.app.store.manifests_load(&batch.ids).await?;
                found.extend(self.manifests(page).await?);
            }
            let mut text = Vec::new();
            for entry in latest.into_iter().filter(|entry| !found.contains(&entry.manifest_id)) {
                self.tombstones += 1;
                text.extend(line(&tombstone(entry)));
            }
            self.lines.send(text).await?;
        }
    }

    /// These manifests, and those that declare capabilities of theirs: another of them may lead now.
    async fn with_sharing(&self, mut manifests: Vec<ManifestId>) -> Result<Vec<ManifestId>, ExportError> {
        let shared = self.app.store.capabilities_shared_by(&manifests).await?;
        let listed: HashSet<ManifestId> = manifests.iter().cloned().collect();
        let members = shared.into_iter().flat_map(|shared| shared.members).map(|member| member.manifest);
        let others: BTreeSet<ManifestId> = members.filter(|id| !listed.contains(id)).collect();
        manifests.extend(others);
        Ok(manifests)
    }

    /// Sends the lines of those of the manifests that may be exported, each of which is dropped when it was sent. Returns their
    /// ids.
    async fn manifests(&mut self, mut page: Vec<StoredManifest>) -> Result<Vec<ManifestId>, ExportError> {
        page.retain(may_be_exported);
        let ids: Vec<ManifestId> = page.iter().map(|stored| stored.manifest.id.clone()).collect();
        let shared = Arc::new(SharedDeclarations::exported(&self.app.store, &page).await?);
        for stored in page {
            if !self.admission.is_valid(&self.app.reader_keys, &self.app.store).await {
                return Err(ExportError::Client);
            }
            let mut rest = Some(ManifestLines { stored, shared: Arc::clone(&shared), next: None });
            while let Some(lines) = rest {
                let chunk = off_runtime(move || lines.next_chunk()).await;
                let sent;
                // The error was logged where it happened.
                (sent, rest) = chunk.map_err(|_| ExportError::Client)?;
                self.capabilities += sent.capabilities;
                self.lines.send(sent.text).await?;
            }
        }
        Ok(ids)
    }
}

/// Lines, and how many of them are capabilities.
struct Sent {
    text: Vec<u8>,
    capabilities: u64,
}

/// The lines of one manifest that are not sent yet.
struct ManifestLines {
    stored: StoredManifest,
    shared: Arc<SharedDeclarations>,
    /// The next capability; `None` before the line of the manifest.
    next: Option<usize>,
}

impl ManifestLines {
    /// The next lines, about a chunk and at least one of them, and the rest.
    fn next_chunk(mut self) -> (Sent, Option<Self>) {
        let manifest = &self.stored.manifest;
        let (mut text, mut capabilities) = (Vec::new(), 0);
        let mut next = self.next.unwrap_or_else(|| {
            text = line(&json!({
                "record": "manifest", "id": manifest.id, "url": manifest.url, "site": manifest.url.site(),
                "format": manifest.format(), "status": self.stored.status, "named_by": self.stored.named_by,
                "changed_at": self.stored.changed_at, "capabilities": manifest.capabilities.len(),
            }));
            0
        });
        for capability in manifest.capabilities.iter().skip(next) {
            next += 1;
            let Some(merged) = self.shared.merged(&self.stored, capability) else { continue };
            capabilities += 1;
            text.extend(line(&Value::Object(capability_line(&self.stored, &merged))));
            if text.len() >= CHUNK_BYTES {
                break;
            }
        }
        let has_more = next < manifest.capabilities.len();
        self.next = Some(next);
        (Sent { text, capabilities }, has_more.then_some(self))
    }
}

/// A publisher who denies training, in the manifest or for its URL, excludes it from exports, which are made to be copied as a
/// whole.
fn may_be_exported(stored: &StoredManifest) -> bool {
    stored.training_policy() != PolicyChoice::Deny
}

/// A chunk of an export, or its end: without the end it is incomplete.
enum Chunk {
    Lines(Bytes),
    End,
}

/// Sends lines to a client, at a minimum rate.
struct LineSender {
    chunks: mpsc::Sender<Chunk>,
    allowance: Allowance,
}

impl LineSender {
    fn new(pace: MinRate) -> (Self, mpsc::Receiver<Chunk>) {
        let (chunks, received) = mpsc::channel(AHEAD);
        (Self { chunks, allowance: Allowance::new(pace) }, received)
    }

    async fn send(&mut self, text: Vec<u8>) -> Result<(), ExportError> {
        let mut text = Bytes::from(text);
        while !text.is_empty() {
            let chunk = text.split_to(text.len().min(CHUNK_BYTES));
            self.chunk(Chunk::Lines(chunk)).await?;
        }
        Ok(())
    }

    /// The last line, which makes the export complete.
    async fn end(&mut self, text: Vec<u8>) -> Result<(), ExportError> {
        self.send(text).await?;
        self.chunk(Chunk::End).await
    }

    async fn chunk(&mut self, chunk: Chunk) -> Result<(), ExportError> {
        let begun = Instant::now();
        let Ok(free) = timeout(self.allowance.left(), self.chunks.reserve()).await else {
            metrics::cut("slow_reader");
            return Err(ExportError::Client);
        };
        let bytes = match &chunk {
            Chunk::Lines(lines) => lines.len(),
            Chunk::End => 0,
        };
        free.map_err(|_| ExportError::Client)?.send(chunk);
        self.allowance.moved(bytes, begun.elapsed());
        Ok(())
    }
}

/// The response body. Fused, since compression polls once more after the end.
fn body(chunks: mpsc::Receiver<Chunk>) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let stream = unfold(Some(chunks), |chunks| async move {
        let mut chunks = chunks?;
        match chunks.recv().await {
            Some(Chunk::Lines(lines)) => Some((Ok(lines), Some(chunks))),
            Some(Chunk::End) => None,
            None => Some((Err(io::Error::other("the export was aborted")), None)),
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

fn capability_line(stored: &StoredManifest, merged: &MergedCapability) -> Map<String, Value> {
    let mut row = Map::from_iter([("record".to_owned(), Value::from("capability"))]);
    row.extend(capability::row(stored, merged).unwrap_or_default());
    row.insert("text_is".to_owned(), TEXT_IS.into());
    row.extend(capability::exported_details(stored, merged).unwrap_or_default());
    row
}

fn line(value: &Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use crate::client::Client;
    use std::net::SocketAddr;
    use std::time::Duration;

    use axum::extract::ConnectInfo;
    use axum::http::{Request, StatusCode};
    use tower::ServiceExt as _;

    use super::*;
    use crate::limits::LimitsConfig;
    use crate::test_app;
    use crate::timeouts::ClientTimeouts;

    const PACE: MinRate = MinRate { allowance: Duration::from_millis(300), bytes_per_second: 1_000_000 };

    #[tokio::test]
    async fn aborts_an_export_whose_client_stops_reading() {
        let (mut lines, chunks) = LineSender::new(PACE);
        let sent = lines.send(vec![b'x'; CHUNK_BYTES * (AHEAD + 1)]).await;
        assert!(matches!(sent, Err(ExportError::Client)));
        drop(lines);
        let seen: Vec<io::Result<Bytes>> = body(chunks).collect().await;
        let (last, before) = seen.split_last().unwrap();
        assert!(last.is_err() && before.len() == AHEAD && before.iter().all(Result::is_ok));
    }

    #[tokio::test]
    async fn limits_exports_to_two_per_client_and_eight_in_all() {
        let (app, _dir) = test_app::app(LimitsConfig::default(), ClientTimeouts::default()).await;
        let client = |number: u8| Client { address: [192, 0, 2, number].into(), is_local: false };
        let own: Vec<_> = [1, 1].map(|number| app.export_share(client(number)).unwrap()).into();
        let get = async |number: u8| {
            let mut request = Request::get("/export.jsonl").body(Body::empty()).unwrap();
            request.extensions_mut().insert(ConnectInfo(SocketAddr::new(client(number).address, 4711)));
            let response = crate::router::router(&app).oneshot(request).await.unwrap();
            (response.status(), response.headers().contains_key("retry-after"))
        };
        assert_eq!(get(1).await, (StatusCode::SERVICE_UNAVAILABLE, true), "its own two run");
        let others: Vec<_> = (2..=7).map(|number| app.export_share(client(number)).unwrap()).collect();
        assert_eq!(get(8).await, (StatusCode::SERVICE_UNAVAILABLE, true), "eight run");
        drop((own, others));
        assert_eq!(get(1).await.0, StatusCode::OK);
    }

    #[tokio::test]
    async fn export_with_an_end_record_is_complete() {
        let (mut lines, chunks) = LineSender::new(PACE);
        let sending = async {
            lines.send(vec![b'x'; CHUNK_BYTES * AHEAD * 2]).await.ok().unwrap();
            lines.end(b"end".to_vec()).await.ok().unwrap();
            drop(lines);
        };
        let ((), seen) = tokio::join!(sending, body(chunks).collect::<Vec<_>>());
        let seen: Vec<Bytes> = seen.into_iter().map(Result::unwrap).collect();
        assert!(seen.iter().all(|chunk| chunk.len() <= CHUNK_BYTES));
        assert_eq!(seen.concat().len(), CHUNK_BYTES * AHEAD * 2 + 3);
    }

    /// 100 bytes a step, each a tenth of a second: a client below the least rate is aborted in the end.
    #[tokio::test]
    async fn aborts_an_export_below_the_minimum_rate() {
        let pace = MinRate { allowance: Duration::from_millis(500), bytes_per_second: 100_000 };
        let (mut lines, mut chunks) = LineSender::new(pace);
        let reading = async {
            let mut read = 0;
            while let Some(Chunk::Lines(chunk)) = chunks.recv().await {
                read += chunk.len();
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
