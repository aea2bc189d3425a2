//! Searches: results of the index, with details from the store.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use axum::http::StatusCode;
use indexer::{
    CursorError, Declaration, ExploreRequest, FacetBuckets, FacetCount, FacetKey, Hit, IndexError,
    MergedCapability, SearchAnswer, SearchError, SearchRequest,
};
use manifest::declaration::Member;
use manifest::{CapabilityId, ManifestId, SiteName};
use serde::Serialize;
use serde_json::{Map, Value};
use store::{SharedCapability, StoredManifest};
use tokio::time::Instant;
use utoipa::ToSchema;

use super::declarations::SharedDeclarations;
use super::search_parameters::{SearchParameters, View};
use super::{TEXT_IS, record};
use crate::buffers::ByteCount;
use crate::client::Client;
use crate::index::IndexHandle;
use crate::json_text::ObjectText;
use crate::manifests::{Counted, Kept, ManifestReader};
use crate::overload::capacity_problem;
use crate::parameters::unknown_value;
use crate::permitted::off_runtime;
use crate::problem::Problem;
use runtime::Share;

/// Maximum number of bytes of details, or of servers, on one page, as JSON. The first row is always complete, whatever its size.
pub(crate) const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A page of results.
#[derive(Serialize, ToSchema)]
pub(crate) struct SearchPage {
    #[schema(value_type = Vec<crate::openapi::schemas::CapabilityRow>)]
    pub(crate) results: Vec<ObjectText>,
    total: u64,
    /// How many of the first results are relevant; the others only share a word with the request. Null if the results are not ordered by
    /// relevance.
    relevant: Option<u64>,
    /// Whether every match is counted. Always true unless the index is on a cluster.
    total_is_exact: bool,
    /// The shards of a cluster whose results are missing, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing_shards: Vec<String>,
    /// True if shards are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) partial: bool,
    coverage: f32,
    nothing_good: bool,
    did_you_mean: Option<String>,
    #[schema(value_type = std::collections::HashMap<String, Vec<crate::openapi::schemas::FacetValue>>)]
    facets: BTreeMap<FacetKey, Vec<FacetCount>>,
    next_cursor: Option<String>,
    took_ms: f64,
}

/// Results of a search, with its duration.
pub(crate) struct SearchResults {
    pub(crate) answer: SearchAnswer,
    pub(crate) took_ms: f64,
}

/// Searches on the blocking pool.
pub(crate) async fn search(
    index: &IndexHandle,
    client: Client,
    request: SearchRequest,
) -> Result<SearchResults, Problem> {
    search_now(index, client, request).await?.map_err(|error| search_problem(&error))
}

/// Searches on the blocking pool. A [`Problem`] means that the search did not run: there is no index, or no capacity at the moment.
pub(crate) async fn search_now(
    index: &IndexHandle,
    client: Client,
    mut request: SearchRequest,
) -> Result<Result<SearchResults, SearchError>, Problem> {
    let started = Instant::now();
    // Excluded within the search, so that a near copy of such a result, on another site, takes its place.
    request.filters.without_sites.extend(index.suppressed().names());
    let mut answer = match index.run(client, move |searcher| searcher.search(&request)).await? {
        Ok(answer) => answer,
        Err(error) => return Ok(Err(error)),
    };
    leave_out(&mut answer, |site| index.suppressed().has(site));
    let took_ms = (started.elapsed().as_secs_f64() * 1e5).round() / 1e2;
    Ok(Ok(SearchResults { answer, took_ms }))
}

/// Removes the results of some sites from a page and from the counts, with the results grouped under them.
pub(crate) fn leave_out(answer: &mut SearchAnswer, is_left_out: impl Fn(&SiteName) -> bool) {
    let left_out = |hits: &[Hit]| hits.iter().filter(|hit| is_left_out(&hit.site)).count() as u64;
    if let Some(relevant) = &mut answer.relevant {
        let leading = usize::try_from(*relevant).unwrap_or(usize::MAX).min(answer.hits.len());
        *relevant -= left_out(answer.hits.get(..leading).unwrap_or_default());
    }
    answer.total = answer.total.saturating_sub(left_out(&answer.hits));
    answer.hits.retain(|hit| !is_left_out(&hit.site));
    for hit in &mut answer.hits {
        let Some(group) = &mut hit.group else { continue };
        let listed = group.members.len();
        group.members.retain(|member| !is_left_out(&member.site));
        group.others = group.others.saturating_sub((listed - group.members.len()) as u64);
        if group.others == 0 {
            hit.group = None;
        }
    }
}

/// Searches for answers that need the manifests of the results. The page ends before the manifest that would exceed the byte limit of a
/// page; the next page begins with it.
pub(crate) async fn search_readable(
    index: &IndexHandle,
    manifests: ManifestReader<'_>,
    request: SearchRequest,
) -> Result<SearchResults, Problem> {
    let found = search(index, manifests.client, request.clone()).await?;
    let ids: Vec<&ManifestId> = found.answer.hits.iter().map(|hit| &hit.manifest_id).collect();
    let readable = manifests.readable(&ids).await?;
    if readable == found.answer.hits.len() {
        return Ok(found);
    }
    search(index, manifests.client, SearchRequest { limit: readable, ..request }).await
}

/// Number of leading results whose manifests fit within the limits of one page.
pub(crate) async fn readable(manifests: ManifestReader<'_>, hits: &[Hit]) -> Result<usize, Problem> {
    let ids: Vec<&ManifestId> = hits.iter().map(|hit| &hit.manifest_id).collect();
    manifests.readable(&ids).await
}

/// Counts on the blocking pool.
pub(crate) async fn explore(
    index: &IndexHandle,
    client: Client,
    mut request: ExploreRequest,
) -> Result<Vec<FacetBuckets>, Problem> {
    request.filters.without_sites = index.suppressed().names();
    let counted = index.run(client, move |searcher| searcher.explore(&request)).await?;
    counted.map_err(|error| search_problem(&error))
}

pub(crate) fn search_problem(error: &SearchError) -> Problem {
    let refused = |parameter: &str| Problem::bad_request(error.to_string()).with_parameter(parameter);
    match error {
        SearchError::Cursor(CursorError::Expired) => Problem::new(StatusCode::GONE, error.to_string()),
        SearchError::Cursor(_) => refused("cursor"),
        SearchError::QueryTooLong { .. } | SearchError::TooManyPhrasings { .. } => refused("q"),
        SearchError::TooManyValues { .. } => Problem::bad_request(error.to_string()),
        SearchError::OutOfTime { .. } => Problem::unavailable(error.to_string()),
        SearchError::UnknownValue(unknown) => unknown_value("q", unknown),
        SearchError::Index(error) => index_problem(error),
    }
}

/// 503 with advice for a missing index; 500 for one that fails.
pub(crate) fn index_problem(error: &IndexError) -> Problem {
    match error {
        IndexError::Engine { .. } | IndexError::Row(_) => Problem::internal(error),
        _ => Problem::unavailable(error.in_public()),
    }
}

/// The page of results for the response, and the share of buffer memory that its rows use of the client's limit. Rows are serialised off
/// the runtime and counted before the page waits for details.
pub(crate) async fn page(
    manifests: ManifestReader<'_>,
    found: SearchResults,
    parameters: &SearchParameters,
) -> Result<(SearchPage, Option<Share>), Problem> {
    let SearchResults { mut answer, took_ms } = found;
    let fields: Arc<[String]> = parameters.fields.as_slice().into();
    let (of_rows, hits) = (Arc::clone(&fields), std::mem::take(&mut answer.hits));
    let (rows, hits) = off_runtime(move || {
        let rows = PageRows::of(&hits, &of_rows);
        (rows, hits.into_iter().map(without_texts).collect::<Vec<_>>())
    })
    .await?;
    let mut rows = manifests.counted(rows?)?;
    if parameters.view == View::Full {
        rows = with_details(manifests, &hits, rows, Arc::clone(&fields)).await?;
    }
    let (rows, share) = rows.into_parts();
    let page = SearchPage {
        results: off_runtime(move || rows.into_texts(&hits, &fields)).await??,
        total: answer.total,
        relevant: answer.relevant,
        total_is_exact: !answer.completeness.is_estimate,
        partial: !answer.completeness.missing_shards.is_empty(),
        missing_shards: answer.completeness.missing_shards,
        coverage: answer.coverage,
        nothing_good: answer.nothing_good,
        did_you_mean: answer.did_you_mean,
        facets: answer.facets,
        next_cursor: answer.next_cursor,
        took_ms,
    };
    Ok((page, share))
}

/// Removes the texts of a result, which its row contains, and keeps the data for reading its declarations.
fn without_texts(hit: Hit) -> Hit {
    Hit {
        key: String::new(),
        native_id: String::new(),
        name: String::new(),
        title: None,
        description: None,
        semantic_types: Vec::new(),
        endpoint: None,
        contradictions: Vec::new(),
        group: None,
        snippet: String::new(),
        explanation: None,
        ..hit
    }
}

/// Counts the texts of results towards the limit of the client while the page or feed waits to be built.
pub(crate) fn counted(manifests: ManifestReader<'_>, hits: &[Hit]) -> Result<ByteCount, Problem> {
    let mut count = manifests.byte_count();
    count.reach(hits.iter().map(bytes_of).sum()).map_err(|full| capacity_problem("bytes", full))?;
    Ok(count)
}

/// Approximate memory of a result, in bytes.
fn bytes_of(hit: &Hit) -> usize {
    let texts = [&hit.key, &hit.native_id, &hit.name, &hit.snippet];
    let optional = [&hit.title, &hit.description, &hit.endpoint].into_iter().flatten();
    let members = hit.group.as_ref().map_or(0, |group| group.members.len());
    let lists = hit.declarations.len() + hit.contradictions.len() + hit.semantic_types.len() + members;
    size_of::<Hit>() * (1 + lists) + texts.into_iter().chain(optional).map(String::len).sum::<usize>()
}

/// Calls `visit` off the runtime with each result of a page that the store still has, and the manifest of its leading declaration.
/// Manifests are read in the order of the results, and a few at a time are in memory. Returns `state`.
pub(crate) async fn for_each_stored<S, V>(
    manifests: ManifestReader<'_>,
    hits: &[Hit],
    state: Counted<S>,
    visit: V,
) -> Result<Counted<S>, Problem>
where
    S: Kept,
    V: Fn(&mut S, &StoredManifest, &MergedCapability) + Clone + Send + 'static,
{
    let mut by_manifest: HashMap<ManifestId, Vec<CapabilityId>> = HashMap::new();
    let mut ids: Vec<ManifestId> = Vec::new();
    for hit in hits {
        let of_manifest = by_manifest.entry(hit.manifest_id.clone()).or_default();
        if of_manifest.is_empty() {
            ids.push(hit.manifest_id.clone());
        }
        of_manifest.push(hit.declared_id().clone());
    }
    let shared = hits.iter().filter(|hit| !hit.declarations.is_empty()).map(shared_of).collect();
    // A request that holds a permit must not wait for another one.
    let state = state.without_permit();
    let shared = SharedDeclarations::following(state.beside(manifests), shared).await?;
    let manifests = shared.beside(manifests);
    let shared = Arc::new(shared);
    let by_manifest = Arc::new(by_manifest);
    let each = move |state: &mut S, stored: StoredManifest| {
        for id in by_manifest.get(&stored.manifest.id).into_iter().flatten() {
            let capability = record::capability_in(&stored, id);
            if let Some(merged) = capability.and_then(|capability| shared.merged(&stored, capability)) {
                visit(state, &stored, &merged);
            }
        }
        ControlFlow::Continue(())
    };
    manifests.each_of(&ids, state, each).await
}

/// The declarations of a result.
fn shared_of(hit: &Hit) -> SharedCapability {
    let member = |declaration: &Declaration| Member {
        id: declaration.id.clone(),
        manifest: declaration.manifest_id.clone(),
    };
    SharedCapability { id: hit.id.clone(), members: hit.declarations.iter().map(member).collect() }
}

/// Members that `view=full` adds to a row.
enum Details {
    Whole(ObjectText),
    /// The earlier rows have reached the limit on details of the page, or on the manifests that are read for it.
    LeftOut,
}

/// The rows of a page as text, and the details of the first of them.
struct PageRows {
    rows: Vec<ObjectText>,
    row_bytes: usize,
    details: HashMap<CapabilityId, Details>,
    detail_bytes: usize,
    failed: Option<Problem>,
}

impl Kept for PageRows {
    fn bytes(&self) -> usize {
        self.row_bytes + self.detail_bytes
    }
}

impl PageRows {
    /// The rows with only the members in `fields` (all if empty).
    fn of(hits: &[Hit], fields: &[String]) -> Result<Self, Problem> {
        let text = |hit: &Hit| {
            let mut row = row(hit)?;
            if !fields.is_empty() {
                row.retain(|name, _| fields.contains(name));
            }
            ObjectText::of(&row)
        };
        let rows = hits.iter().map(text).collect::<Result<Vec<_>, _>>()?;
        let row_bytes = rows.iter().map(ObjectText::len).sum();
        Ok(Self { rows, row_bytes, details: HashMap::new(), detail_bytes: 0, failed: None })
    }

    /// Adds the details of a result if they fit.
    fn add(&mut self, stored: &StoredManifest, merged: &MergedCapability, fields: &[String]) {
        let details = if self.detail_bytes < PAGE_BYTES_MAX {
            let text = ObjectText::of(&record::detail(stored, merged)).and_then(|text| text.only(fields));
            match text {
                Ok(text) if self.detail_bytes == 0 || self.detail_bytes + text.len() <= PAGE_BYTES_MAX => {
                    self.detail_bytes += text.len();
                    Details::Whole(text)
                }
                Ok(_) => Details::LeftOut,
                Err(problem) => {
                    self.failed = Some(problem);
                    return;
                }
            }
        } else {
            Details::LeftOut
        };
        self.details.insert(merged.capability.id.clone(), details);
    }

    /// The rows of these results with their details.
    fn into_texts(mut self, hits: &[Hit], fields: &[String]) -> Result<Vec<ObjectText>, Problem> {
        let with_details = |(row, hit): (ObjectText, &Hit)| match self.details.remove(&hit.id) {
            Some(Details::Whole(details)) => row.with(&details),
            Some(Details::LeftOut) => {
                let left_out = Map::from_iter([("details_left_out".to_owned(), Value::from(true))]);
                row.with(&ObjectText::of(&left_out)?.only(fields)?)
            }
            None => Ok(row),
        };
        self.rows.into_iter().zip(hits).map(with_details).collect()
    }
}

/// Adds the details of the results of a page, up to a number of bytes; they have only the members in `fields`.
async fn with_details(
    manifests: ManifestReader<'_>,
    hits: &[Hit],
    rows: Counted<PageRows>,
    fields: Arc<[String]>,
) -> Result<Counted<PageRows>, Problem> {
    let (read, unread) = hits.split_at(readable(manifests, hits).await?.min(hits.len()));
    let add = move |rows: &mut PageRows, stored: &StoredManifest, merged: &MergedCapability| {
        rows.add(stored, merged, &fields);
    };
    let mut rows = for_each_stored(manifests, read, rows, add).await?;
    rows.details.extend(unread.iter().map(|hit| (hit.id.clone(), Details::LeftOut)));
    rows.failed.take().map_or(Ok(rows), Err)
}

/// One result: the row of the index.
pub(crate) fn row(hit: &Hit) -> Result<Map<String, Value>, Problem> {
    let mut row = object_of(hit)?;
    row.insert("text_is".to_owned(), Value::from(TEXT_IS));
    Ok(row)
}

pub(crate) fn object_of<T: Serialize>(value: &T) -> Result<Map<String, Value>, Problem> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Ok(Map::from_iter([("value".to_owned(), other)])),
        Err(error) => Err(Problem::internal(&error)),
    }
}
