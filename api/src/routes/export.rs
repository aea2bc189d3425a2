//! `GET /export.jsonl`: everything, or everything since a time, as lines of JSON.
//!
//! Read and written page by page, so that memory does not grow with the index; a client that stops reading is left
//! behind. Lines say by `record` what they are: `manifest` (its capabilities follow and replace all that was known of
//! it), `capability`, `tombstone` (everything of this manifest is gone, and why), and `end`, which a complete export has.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use chrono::{DateTime, Utc};
use futures::StreamExt as _;
use futures::stream::unfold;
use indexer::Hit;
use manifest::ManifestId;
use serde_json::{Map, Value, json};
use store::{FeedChange, FeedEntry, FeedPosition, StoredManifest};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::changes::cursor_at;
use super::search::object_of;
use super::search_parameters::instant;
use super::{TEXT_IS, record};
use crate::answer::{Asked, Caching, EntityTag, decorated};
use crate::app::App;
use crate::parameters::QueryPairs;
use crate::problem::Problem;

/// Manifests read at once: a few megabytes at most.
const MANIFESTS_MAX: u32 = 50;
/// Changes read at once.
const CHANGES_MAX: u32 = 200;
/// Pieces written ahead of the client.
const AHEAD: usize = 4;
/// How long a client may take for one piece.
const CLIENT_MAX: Duration = Duration::from_secs(30);
/// Exports at once: each reads the whole database.
pub(crate) const EXPORTS_MAX: usize = 4;

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
    let permit = app
        .export_permit()
        .ok_or_else(|| Problem::unavailable("too many exports are under way; try again in a moment"))?;
    let (lines, pieces) = mpsc::channel::<io::Result<Bytes>>(AHEAD);
    let export = Export { app: app.clone(), lines, capabilities: 0, tombstones: 0, _permit: permit };
    app.tasks().spawn(export.run(since, feed_id, head));
    let body = unfold(pieces, |mut pieces| async move { Some((pieces.recv().await?, pieces)) });
    // Compression asks once more after the end.
    let mut response = Response::new(Body::from_stream(body.fuse()));
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
    lines: mpsc::Sender<io::Result<Bytes>>,
    capabilities: u64,
    tombstones: u64,
    _permit: OwnedSemaphorePermit,
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
                self.send(line(&end)).await
            }
            Err(broken) => Err(broken),
        };
        if let Err(Broken::Store(error)) = ended {
            tracing::warn!(error = &error as &dyn std::error::Error, "export broke off");
            let said = self.lines.send(Err(io::Error::other("the export broke off"))).await;
            tracing::debug!(client_gone = said.is_err(), "export ended");
        }
    }

    /// Every manifest in the order of ids.
    async fn everything(&mut self) -> Result<(), Broken> {
        let mut after: Option<ManifestId> = None;
        loop {
            let page = self.app.store().manifests_page(after.as_ref(), MANIFESTS_MAX).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.manifest.id.clone());
            self.manifests(&page).await?;
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
            for ids in ids.chunks(MANIFESTS_MAX as usize) {
                let page = self.app.store().manifests_load(ids).await?;
                self.manifests(&page).await?;
                let gone = latest.iter().filter(|entry| {
                    ids.contains(&entry.manifest_id)
                        && !page.iter().any(|stored| stored.manifest.id == entry.manifest_id)
                });
                let mut text = Vec::new();
                for entry in gone {
                    self.tombstones += 1;
                    text.extend(line(&tombstone(entry)));
                }
                self.send(text).await?;
            }
        }
    }

    async fn manifests(&mut self, page: &[StoredManifest]) -> Result<(), Broken> {
        for stored in page {
            let mut text = line(&json!({
                "record": "manifest", "id": stored.manifest.id, "url": stored.manifest.url,
                "site": stored.manifest.url.site(), "format": stored.manifest.format(), "status": stored.status,
                "changed_at": stored.changed_at, "capabilities": stored.manifest.capabilities.len(),
            }));
            for capability in &stored.manifest.capabilities {
                self.capabilities += 1;
                text.extend(line(&Value::Object(capability_line(stored, capability))));
            }
            self.send(text).await?;
        }
        Ok(())
    }

    async fn send(&self, text: Vec<u8>) -> Result<(), Broken> {
        if text.is_empty() {
            return Ok(());
        }
        self.lines.send_timeout(Ok(text.into()), CLIENT_MAX).await.map_err(|_| Broken::Client)
    }
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
