//! Stages changes of an index, and commits them.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::try_join_all;
use prost::Message as _;

use crate::client::{Client, MANAGE_MAX, Method, topology};
use crate::documents::{marker, named};
use crate::interface::{EngineDocument, EngineError, EngineWriter};
use crate::markers;
use crate::proto::field_value::Value;
use crate::proto::{
    CommitRequest, CommitResponse, DeleteDocumentsRequest, DocumentMutationResponse, NamedDocument,
    SearchHit, SearchRequest, SearchResponse, TextStats, UpsertDocumentsRequest,
};
use crate::query;
use crate::schema::{ID, MANIFEST, kept};

/// Maximum number of documents of a batch, and of their bytes. The engine accepts 1,000 and 32 MiB.
const BATCH_DOCUMENTS_MAX: usize = 500;
const BATCH_BYTES_MAX: usize = 8 << 20;
/// Maximum number of keys of a deletion. The engine accepts 100,000 of 8 MiB in all.
const BATCH_KEYS_MAX: usize = 10_000;
/// Maximum number of manifests that are looked up with one query, and of documents that one answer lists.
const MANIFESTS_MAX: usize = 50;
const LISTED_MAX: u32 = 10_000;
/// Maximum time of staging a batch: the engine may be busy with a merge.
const STAGE_MAX: Duration = Duration::from_mins(1);
/// Maximum time of a commit. The engine completes one that has begun.
const COMMIT_MAX: Duration = Duration::from_mins(5);

pub(crate) struct Writer {
    client: Client,
    index: String,
    /// The key of a marker on each shard.
    marker_keys: Vec<String>,
    /// Tells the commits of all writers apart.
    name: String,
    commits: AtomicU64,
    staged: Mutex<Staged>,
}

/// What has been staged since the last commit.
#[derive(Default)]
struct Staged {
    has_markers: bool,
    /// Ids by manifest.
    ids: HashMap<String, HashSet<String>>,
}

impl Writer {
    /// Commits what an earlier writer has left, so that it is found.
    pub(crate) async fn open(client: Client, index: String) -> Result<Self, EngineError> {
        commit(&client, &index).await?;
        // After the commit, which needs every shard, so that the topology has all of them.
        let topology = topology(&client, &index, MANAGE_MAX).await?;
        Ok(Self {
            marker_keys: markers::keys(topology.as_ref()),
            client,
            index,
            name: uuid::Uuid::new_v4().simple().to_string(),
            commits: AtomicU64::new(0),
            staged: Mutex::default(),
        })
    }

    /// The value that the markers of the next commit have.
    fn commit_name(&self) -> String {
        format!("{} {}", self.name, self.commits.load(Ordering::Relaxed))
    }

    fn with_staged<T>(&self, change: impl FnOnce(&mut Staged) -> T) -> T {
        change(&mut self.staged.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stages the markers, if nothing has been staged since the last commit.
    async fn mark(&self) -> Result<(), EngineError> {
        if self.with_staged(|staged| std::mem::replace(&mut staged.has_markers, true)) {
            return Ok(());
        }
        let commit = self.commit_name();
        self.stage(self.marker_keys.iter().map(|key| marker(key, &commit)).collect()).await
    }

    async fn stage(&self, documents: Vec<NamedDocument>) -> Result<(), EngineError> {
        let request = UpsertDocumentsRequest { index_name: self.index.clone(), documents };
        let staged: DocumentMutationResponse = self.client.call(Method::UPSERT, &request, STAGE_MAX).await?;
        accepted(staged)
    }

    async fn upsert_all(&self, documents: Vec<EngineDocument>) -> Result<(), EngineError> {
        self.mark().await?;
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for document in documents {
            self.remember(&document);
            let document = named(document);
            let document_bytes = document.encoded_len();
            let is_full = batch.len() >= BATCH_DOCUMENTS_MAX || bytes + document_bytes > BATCH_BYTES_MAX;
            if is_full && !batch.is_empty() {
                self.stage(std::mem::take(&mut batch)).await?;
                bytes = 0;
            }
            batch.push(document);
            bytes += document_bytes;
        }
        if batch.is_empty() { Ok(()) } else { self.stage(batch).await }
    }

    fn remember(&self, document: &EngineDocument) {
        let manifests = document.whole.iter().filter(|(field, _)| *field == MANIFEST);
        self.with_staged(|staged| {
            for (_, manifest) in manifests {
                staged.ids.entry(manifest.clone()).or_default().insert(document.id.clone());
            }
        });
    }

    async fn delete_all(&self, ids: &[String]) -> Result<(), EngineError> {
        self.mark().await?;
        for keys in ids.chunks(BATCH_KEYS_MAX) {
            let request =
                DeleteDocumentsRequest { index_name: self.index.clone(), primary_keys: keys.to_vec() };
            let staged = self.client.call(Method::DELETE, &request, STAGE_MAX).await?;
            accepted(staged)?;
        }
        Ok(())
    }

    /// The ids of the documents of manifests, committed or staged, without those that another manifest has by now.
    async fn ids_of(&self, manifests: &[String]) -> Result<Vec<String>, EngineError> {
        let parts = manifests.chunks(MANIFESTS_MAX).map(|part| self.committed_ids(part));
        let committed = try_join_all(parts).await?.into_iter().flatten();
        Ok(self.with_staged(|staged| {
            let own = manifests.iter().filter_map(|manifest| staged.ids.remove(manifest)).flatten();
            let all: HashSet<String> = own.chain(committed).collect();
            let is_elsewhere = |id: &String| staged.ids.values().any(|ids| ids.contains(id));
            all.into_iter().filter(|id| !is_elsewhere(id)).collect()
        }))
    }

    /// Documents of one manifest at a time if those of all of them do not fit into one answer.
    async fn committed_ids(&self, manifests: &[String]) -> Result<Vec<String>, EngineError> {
        let found = self.list(manifests).await?;
        if found.len() < LISTED_MAX as usize || manifests.len() == 1 {
            return Ok(found);
        }
        let each = manifests.iter().map(|manifest| self.list(std::slice::from_ref(manifest)));
        Ok(try_join_all(each).await?.into_iter().flatten().collect())
    }

    async fn list(&self, manifests: &[String]) -> Result<Vec<String>, EngineError> {
        let Some(query) = query::of_manifests(manifests) else { return Ok(Vec::new()) };
        let request = SearchRequest {
            index_name: self.index.clone(),
            query: Some(query),
            limit: LISTED_MAX,
            fields_to_load: vec![ID.to_owned()],
            text_stats: Some(TextStats::default()),
            ..SearchRequest::default()
        };
        let found: SearchResponse = self.client.call(Method::SEARCH, &request, STAGE_MAX).await?;
        whole(&found)?;
        Ok(found.hits.into_iter().filter_map(id).collect())
    }

    /// Commits, and looks for the markers.
    async fn commit_all(&self) -> Result<(), EngineError> {
        if !self.with_staged(|staged| staged.has_markers) {
            return Ok(());
        }
        commit(&self.client, &self.index).await?;
        let request = SearchRequest {
            index_name: self.index.clone(),
            query: kept(&self.commit_name()).map(|commit| query::of_commit(&commit)),
            limit: u32::try_from(self.marker_keys.len()).unwrap_or(u32::MAX),
            fields_to_load: vec![ID.to_owned()],
            text_stats: Some(TextStats::default()),
            ..SearchRequest::default()
        };
        let found: SearchResponse = self.client.call(Method::SEARCH, &request, MANAGE_MAX).await?;
        whole(&found)?;
        if found.hits.len() < self.marker_keys.len() {
            return Err(lost("a server was restarted before the commit"));
        }
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.with_staged(|staged| *staged = Staged::default());
        Ok(())
    }
}

impl EngineWriter for Writer {
    fn upsert(&self, documents: Vec<EngineDocument>) -> Result<(), EngineError> {
        self.client.wait(self.upsert_all(documents))
    }

    fn delete(&self, ids: &[String]) -> Result<(), EngineError> {
        self.client.wait(self.delete_all(ids))
    }

    fn delete_manifests(&self, manifests: &[String]) -> Result<(), EngineError> {
        self.client.wait(async {
            let ids = self.ids_of(manifests).await?;
            if ids.is_empty() { Ok(()) } else { self.delete_all(&ids).await }
        })
    }

    fn commit(&self) -> Result<(), EngineError> {
        self.client.wait(self.commit_all())
    }
}

async fn commit(client: &Client, index: &str) -> Result<(), EngineError> {
    let request = CommitRequest { index_name: index.to_owned() };
    let done: CommitResponse = client.call(Method::COMMIT, &request, COMMIT_MAX).await?;
    if done.success { Ok(()) } else { Err(lost("the engine did not commit")) }
}

fn lost(reason: &str) -> EngineError {
    EngineError::Unavailable { reason: reason.to_owned() }
}

/// An error if any document was not accepted. The engine rejects single documents while its queue is full, too.
fn accepted(response: DocumentMutationResponse) -> Result<(), EngineError> {
    match response.errors.into_iter().next() {
        None => Ok(()),
        Some(first) => Err(lost(&first.error)),
    }
}

/// An error if a shard did not answer: a writer needs all documents.
fn whole(found: &SearchResponse) -> Result<(), EngineError> {
    if found.missing_partitions == 0 { Ok(()) } else { Err(lost("a shard did not answer")) }
}

/// The id of a document.
fn id(mut hit: SearchHit) -> Option<String> {
    let values = hit.fields.remove(ID)?.values;
    match values.into_iter().next()?.value? {
        Value::Text(id) => Some(id),
        Value::BytesValue(_) | Value::U64(_) | Value::I64(_) => None,
    }
}
