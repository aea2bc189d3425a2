//! `GET /export.jsonl`: the whole index, or all changes since a time, as lines of JSON.
//!
//! The export is read and written page by page. A page has a bounded number of bytes, or a single manifest, and stays in the compressed
//! form of the database. One manifest at a time is unpacked, with a permit, to build the next lines. So only packed manifests and text are
//! in memory while the export waits for the client, and memory use depends neither on the size of the index nor on the number of large
//! manifests. If a client stops reading or is too slow, the body is aborted, so that the client can see that it is incomplete. The member
//! `record` of a line is `manifest` (the capabilities with its id as `manifest_id` follow and replace all earlier ones with it),
//! `capability` (with its declarations; replaces an earlier one with its id), `tombstone` (the manifest is gone, and why), or `end`, the
//! last line of a complete export.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::io;

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
use store::{
    FeedChange, FeedEntry, FeedPage, FeedPosition, ManifestBatch, PackedManifest, StoreError, StoredManifest,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::changes::cursor_at;
use crate::answers::declarations::SharedDeclarations;
use crate::answers::search_parameters::instant;
use crate::answers::{TEXT_IS, capability};
use crate::client::Client;
use crate::metrics;
use crate::problem::Problem;
use crate::reader_keys::Admission;
use crate::request::Request;
use crate::response::{Caching, EntityTag, HttpResult, decorated};
use crate::state::App;
use crate::timeouts::{Allowance, MinRate};
use runtime::Share;

/// Maximum number of manifests of a page.
const MANIFESTS_MAX: u32 = 50;
/// Maximum number of bytes of a page, as JSON, unless it has a single manifest.
const PAGE_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of lines that are built at a time, for pages of up to eight times this size. For a larger manifest it is an eighth of its bytes,
/// so it is unpacked at most about eight times, which bounds the memory of the lines and the processor time.
const LINES_BYTES: u64 = 1024 * 1024;
const PARTS_OF_A_MANIFEST: u64 = 8;
/// Maximum number of changes per read.
const CHANGES_MAX: u32 = 200;
/// Chunks written ahead of the client.
const AHEAD: usize = 4;
const CHUNK_BYTES: usize = 64 * 1024;

/// Everything as lines of JSON.
#[utoipa::path(
    get,
    path = "/export.jsonl",
    tag = "feed",
    params(("updated_since" = Option<String>, Query, description = "Only changes at or after this date or time, with tombstones for removed manifests", max_length = 64)),
    responses((status = 200, description = "One JSON object per line", body = String, content_type = "application/jsonl")),
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
        .ok_or_else(|| Problem::unavailable("too many exports are in progress; try again in a moment"))?;
    let (lines, chunks) = LineSender::new(app.config.timeouts.exports);
    let export =
        Export { app: app.clone(), client, lines, capabilities: 0, tombstones: 0, admission, _share: share };
    app.tasks.spawn(export.run(since, feed_id, head));
    let mut response = Response::new(Body::from_stream(body(chunks)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
    Ok(decorated(response, &tag, Caching::Search))
}

/// Why an export ends early.
enum ExportError {
    /// The client has disconnected or does not read, or its key was revoked.
    Client,
    Store(StoreError),
    /// The error was logged where it happened.
    Logged,
}

impl From<StoreError> for ExportError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

struct Export {
    app: App,
    client: Client,
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
                self.complete(line(&end)).await
            }
            Err(broken) => Err(broken),
        };
        if let Err(ExportError::Store(error)) = ended {
            tracing::warn!(error = &error as &dyn std::error::Error, "export aborted");
        }
    }

    /// Sends the last line, which makes the export complete.
    async fn complete(&mut self, line: Vec<u8>) -> Result<(), ExportError> {
        self.send(line).await?;
        self.lines.end().await
    }

    /// Sends every manifest, sorted by id.
    async fn everything(&mut self) -> Result<(), ExportError> {
        let mut after: Option<ManifestId> = None;
        loop {
            let sizes = self.app.store.manifest_sizes_after(after.as_ref(), MANIFESTS_MAX).await?;
            let Some(last) = sizes.last() else { return Ok(()) };
            after = Some(last.id.clone());
            for batch in ManifestBatch::split(sizes, PAGE_BYTES_MAX) {
                self.manifests(batch).await?;
            }
        }
    }

    /// Sends the changes in the order of the feed. A manifest that changed again during the export is sent again; its last line is valid.
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
                found.extend(self.manifests(batch).await?);
            }
            let mut text = Vec::new();
            for entry in latest.into_iter().filter(|entry| !found.contains(&entry.manifest_id)) {
                self.tombstones += 1;
                text.extend(line(&tombstone(entry)));
            }
            self.send(text).await?;
        }
    }

    /// Adds the manifests that declare the same capabilities, because their leading declarations may have changed.
    async fn with_sharing(&self, mut manifests: Vec<ManifestId>) -> Result<Vec<ManifestId>, ExportError> {
        let shared = self.app.store.capabilities_shared_by(&manifests).await?;
        let listed: HashSet<ManifestId> = manifests.iter().cloned().collect();
        let members = shared.into_iter().flat_map(|shared| shared.members).map(|member| member.manifest);
        let others: BTreeSet<ManifestId> = members.filter(|id| !listed.contains(id)).collect();
        manifests.extend(others);
        Ok(manifests)
    }

    /// Sends the lines of the manifests that may be exported. Returns their ids.
    async fn manifests(&mut self, batch: ManifestBatch) -> Result<Vec<ManifestId>, ExportError> {
        let app = self.app.clone();
        let reader = app.manifests(self.client);
        let packed = reader.packed(&batch.ids).await?;
        let shared = SharedDeclarations::exported(&app.store, &batch.ids).await?;
        let mut sent = Vec::new();
        let mut rest = Some(UnsentPage { packed: packed.into(), shared, next: None });
        while let Some(page) = rest {
            let made = reader.unpacking(page.largest_bytes(), move || page.next_lines()).await;
            let lines;
            (lines, rest) = made.map_err(|_| ExportError::Logged)?;
            sent.extend(lines.manifests);
            self.capabilities += lines.capabilities;
            self.send(lines.text).await?;
        }
        Ok(sent)
    }

    /// Sends lines, as long as the key of the client is valid.
    async fn send(&mut self, text: Vec<u8>) -> Result<(), ExportError> {
        let mut text = Bytes::from(text);
        while !text.is_empty() {
            if !self.admission.is_valid(&self.app.reader_keys, &self.app.store).await {
                return Err(ExportError::Client);
            }
            self.lines.send(text.split_to(text.len().min(CHUNK_BYTES))).await?;
        }
        Ok(())
    }
}

/// Lines, the ids of the manifests whose lines begin here, and the number of capability lines.
#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    manifests: Vec<ManifestId>,
    capabilities: u64,
}

/// The manifests of a page whose lines have not all been built.
struct UnsentPage {
    packed: VecDeque<PackedManifest>,
    shared: SharedDeclarations,
    /// The next capability of the first manifest; `None` before the line of the manifest.
    next: Option<usize>,
}

impl UnsentPage {
    /// Bytes of the largest manifest, as JSON.
    fn largest_bytes(&self) -> u64 {
        self.packed.iter().map(PackedManifest::json_bytes).max().unwrap_or_default()
    }

    /// The next lines and the rest of the page. One manifest at a time is unpacked.
    fn next_lines(mut self) -> (Lines, Option<Self>) {
        let mut lines = Lines::default();
        let bytes_max = LINES_BYTES.max(self.largest_bytes() / PARTS_OF_A_MANIFEST);
        let is_full = |lines: &Lines| lines.text.len() as u64 >= bytes_max;
        while let Some(packed) = self.packed.front()
            && !is_full(&lines)
        {
            self.next = packed.unpacked().filter(may_be_exported).and_then(|stored| {
                let next = self.next.unwrap_or_else(|| lines.begin(&stored));
                lines.add(&stored, &self.shared, next, is_full)
            });
            if self.next.is_none() {
                self.packed.pop_front();
            }
        }
        let has_more = !self.packed.is_empty();
        (lines, has_more.then_some(self))
    }
}

impl Lines {
    /// Adds the line of a manifest. The lines of its capabilities follow.
    fn begin(&mut self, stored: &StoredManifest) -> usize {
        let manifest = &stored.manifest;
        self.manifests.push(manifest.id.clone());
        self.text.extend(line(&json!({
            "record": "manifest", "id": manifest.id, "url": manifest.url, "site": manifest.url.site(),
            "format": manifest.format(), "status": stored.status, "named_by": stored.named_by,
            "changed_at": stored.changed_at, "capabilities": manifest.capabilities.len(),
        })));
        0
    }

    /// Adds the lines of the capabilities from index `next`, at least one, until the limit of bytes is reached. Returns the index of the
    /// next capability if there are more.
    fn add(
        &mut self,
        stored: &StoredManifest,
        shared: &SharedDeclarations,
        mut next: usize,
        is_full: impl Fn(&Self) -> bool,
    ) -> Option<usize> {
        let capabilities = &stored.manifest.capabilities;
        for capability in capabilities.iter().skip(next) {
            next += 1;
            let Some(merged) = shared.merged(stored, capability) else { continue };
            self.capabilities += 1;
            self.text.extend(line(&Value::Object(capability_line(stored, &merged))));
            if is_full(self) {
                break;
            }
        }
        (next < capabilities.len()).then_some(next)
    }
}

/// Whether a manifest may be exported. Exports are meant to be copied as a whole, so a manifest is excluded if its publisher denies
/// training, in the manifest or for its URL.
fn may_be_exported(stored: &StoredManifest) -> bool {
    stored.training_policy() != PolicyChoice::Deny
}

/// A chunk of an export, or the end marker. An export without the end marker is incomplete.
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

    /// Sends one chunk of lines, of at most [`CHUNK_BYTES`].
    async fn send(&mut self, lines: Bytes) -> Result<(), ExportError> {
        self.chunk(Chunk::Lines(lines)).await
    }

    /// Sends the end marker, which completes the export.
    async fn end(&mut self) -> Result<(), ExportError> {
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

/// The response body. Fused, because compression polls once more after the end.
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
    use std::net::SocketAddr;
    use std::time::Duration;

    use axum::extract::ConnectInfo;
    use axum::http::{Request, StatusCode};
    use tower::ServiceExt as _;

    use super::*;
    use crate::limits::LimitsConfig;
    use crate::manifests::tests::{declared, url_of, visit};
    use crate::test_app;
    use crate::timeouts::ClientTimeouts;

    const PACE: MinRate = MinRate { allowance: Duration::from_millis(300), bytes_per_second: 1_000_000 };

    #[tokio::test]
    async fn aborts_an_export_whose_client_stops_reading() {
        let (mut lines, chunks) = LineSender::new(PACE);
        let chunk = Bytes::from(vec![b'x'; CHUNK_BYTES]);
        for _ in 0..AHEAD {
            assert!(lines.send(chunk.clone()).await.is_ok());
        }
        assert!(matches!(lines.send(chunk).await, Err(ExportError::Client)));
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
        assert_eq!(
            get(1).await,
            (StatusCode::SERVICE_UNAVAILABLE, true),
            "the client already has two exports"
        );
        let others: Vec<_> = (2..=7).map(|number| app.export_share(client(number)).unwrap()).collect();
        assert_eq!(get(8).await, (StatusCode::SERVICE_UNAVAILABLE, true), "eight run");
        drop((own, others));
        assert_eq!(get(1).await.0, StatusCode::OK);
    }

    #[tokio::test]
    async fn export_with_an_end_record_is_complete() {
        let (mut lines, chunks) = LineSender::new(PACE);
        let sending = async {
            for _ in 0..AHEAD * 2 {
                lines.send(Bytes::from(vec![b'x'; CHUNK_BYTES])).await.ok().unwrap();
            }
            lines.end().await.ok().unwrap();
            drop(lines);
        };
        let ((), seen) = tokio::join!(sending, body(chunks).collect::<Vec<_>>());
        let seen: Vec<Bytes> = seen.into_iter().map(Result::unwrap).collect();
        assert_eq!(seen.concat().len(), CHUNK_BYTES * AHEAD * 2);
    }

    /// Reads 100 bytes every tenth of a second: an export below the minimum rate is eventually aborted.
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
            while lines.send(Bytes::from(vec![b'x'; 100])).await.is_ok() {
                sent += 1;
            }
            drop(lines);
            sent
        };
        let (read, sent) = tokio::join!(reading, sending);
        assert_eq!(read, sent * 100);
    }

    /// A page with the manifests of these sites, in this order. No other manifest declares their capabilities.
    async fn page_of(app: &App, sites: &[String]) -> UnsentPage {
        let ids: Vec<ManifestId> = sites.iter().map(|name| ManifestId::of(&url_of(name))).collect();
        let shared = SharedDeclarations::exported(&app.store, &ids).await.unwrap();
        let packed = app.store.manifests_packed(&ids).await.unwrap();
        UnsentPage { packed: packed.into(), shared, next: None }
    }

    /// Objects of one member take many times the memory of their JSON.
    #[tokio::test]
    async fn a_page_holds_the_tree_of_one_manifest_and_none_while_it_waits() {
        let (app, _dir) = test_app::app(LimitsConfig::default(), ClientTimeouts::default()).await;
        let sites: Vec<String> = (0..8).map(|number| format!("s{number}")).collect();
        let many = vec![json!({"a": 1}); 12_000];
        let tree = allocation_counter::measure(|| drop(std::hint::black_box(many.clone()))).bytes_max;
        for name in &sites {
            let mut manifest = declared(name, 0);
            manifest.capabilities[0].response = Some(json!({"enum": many}));
            visit(&app, name, manifest).await;
        }
        let page = page_of(&app, &sites).await;
        let mut made = None;
        let spent = allocation_counter::measure(|| made = Some(page.next_lines()));
        let (lines, rest) = made.unwrap();
        assert_eq!((lines.manifests.len(), lines.capabilities, rest.is_none()), (8, 8, true));
        // The manifest, its merged capability, and the value of its line.
        assert!(spent.bytes_max < 5 * tree, "{} bytes, a tree has {tree}", spent.bytes_max);
        assert!(spent.bytes_current < 2 * 1024 * 1024, "{} bytes stay", spent.bytes_current);
    }

    #[tokio::test]
    async fn lines_of_a_large_manifest_are_made_in_parts() {
        let (app, _dir) = test_app::app(LimitsConfig::default(), ClientTimeouts::default()).await;
        let mut manifest = declared("large", 60_000);
        let first = manifest.capabilities[0].clone();
        for number in 1..60 {
            let native_id = format!("book-{number}");
            let id = manifest::CapabilityId::of_key(&native_id);
            let other = manifest::Capability { id, native_id: native_id.clone(), ..first.clone() };
            manifest.capabilities.push(manifest::Capability { key: native_id, ..other });
        }
        visit(&app, "large", manifest).await;
        visit(&app, "small", declared("small", 0)).await;
        let mut rest = Some(page_of(&app, &["large".to_owned(), "small".to_owned()]).await);
        let (mut text, mut parts) = (Vec::new(), 0);
        while let Some(page) = rest {
            let lines;
            (lines, rest) = page.next_lines();
            assert!(lines.text.len() < 1_200_000, "{} bytes", lines.text.len());
            text.extend(lines.text);
            parts += 1;
        }
        let records: Vec<Value> = text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        let names: Vec<&str> = records.iter().map(|line| line["record"].as_str().unwrap()).collect();
        let expected = [&["manifest"][..], &["capability"; 60], &["manifest", "capability"]].concat();
        assert!(parts > 2 && names == expected, "{parts} parts: {names:?}");
        let ids: HashSet<&str> = records.iter().filter_map(|line| line["id"].as_str()).collect();
        assert_eq!(ids.len(), 63, "each capability is listed once");
    }
}
