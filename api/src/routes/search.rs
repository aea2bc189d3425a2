//! `GET /search`: capabilities that match words and filters, as JSON or as the search page.

use std::collections::{BTreeMap, HashMap};

use axum::extract::State;
use axum::response::Response;
use indexer::{
    CursorProblem, ExploreRequest, FacetBuckets, FacetCount, FacetKey, Hit, IndexError, SearchAnswer,
    SearchError, SearchRequest,
};
use manifest::ManifestId;
use serde::Serialize;
use serde_json::{Map, Value};
use store::StoredManifest;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::search_parameters::{SearchParameters, View};
use super::{TEXT_IS, record};
use crate::answer::{self, Asked, Caching, EntityTag};
use crate::app::App;
use crate::dashboard;
use crate::parameters::{QueryPairs, unknown_value};
use crate::problem::Problem;

/// The answer, names and order as documented.
#[derive(Serialize, ToSchema)]
pub(crate) struct SearchPage {
    #[schema(value_type = Vec<crate::openapi::schemas::CapabilityRow>)]
    results: Vec<Map<String, Value>>,
    total: u64,
    /// Always true: every match is counted.
    total_is_exact: bool,
    coverage: f32,
    nothing_good: bool,
    did_you_mean: Option<String>,
    #[schema(value_type = std::collections::HashMap<String, Vec<crate::openapi::schemas::FacetValue>>)]
    facets: BTreeMap<FacetKey, Vec<FacetCount>>,
    next_cursor: Option<String>,
    took_ms: f64,
}

/// What a search found, and how long that took.
pub(crate) struct Found {
    pub(crate) answer: SearchAnswer,
    pub(crate) took_ms: f64,
}

/// Capabilities that match words and filters.
#[utoipa::path(
    get,
    path = "/search",
    tag = "search",
    params(crate::openapi::schemas::SearchQuery, crate::openapi::schemas::ResultsQuery),
    responses((status = 200, description = "A page of results", body = SearchPage)),
)]
pub(crate) async fn show(
    State(app): State<App>,
    asked: Asked,
    query: QueryPairs,
) -> Result<Response, Problem> {
    let parameters = SearchParameters::read(&query)?;
    if asked.wants_page() {
        return dashboard::search::show(&app, &asked, &query, parameters).await;
    }
    if parameters.asks_nothing() {
        return Err(Problem::bad_request(
            "give \"q\", as in /search?q=book+flight, or at least one filter, as in /search?format=awp",
        ));
    }
    let tag = tag(&app, &asked)?;
    if parameters.view == View::Compact
        && let Some(unchanged) = asked.unchanged(&tag, Caching::Search)
    {
        return Ok(unchanged);
    }
    let found = find(&app, parameters.request.clone()).await?;
    let page = page(&app, found, &parameters).await?;
    let body = serde_json::to_vec(&page).map_err(|error| Problem::internal(&error))?;
    if parameters.view == View::Compact {
        return Ok(answer::tagged(body, "application/json", &tag, Caching::Search));
    }
    // Details come from the store, which may be ahead of the index: their own bytes make the tag.
    let results = serde_json::to_vec(&page.results).map_err(|error| Problem::internal(&error))?;
    let tag = tag.and(&results);
    let unchanged = asked.unchanged(&tag, Caching::Search);
    Ok(unchanged.unwrap_or_else(|| answer::tagged(body, "application/json", &tag, Caching::Search)))
}

/// The same query over the same commit, with the same sites left out, has the same answer, but for the time it took.
fn tag(app: &App, asked: &Asked) -> Result<EntityTag, Problem> {
    let generation = format!("{:?}", app.index().searcher()?.generation());
    let query = asked.uri.query().unwrap_or_default();
    let left_out = app.suppressed().names().join(" ");
    Ok(EntityTag::of(&[b"search", generation.as_bytes(), left_out.as_bytes(), query.as_bytes()]))
}

/// Searches on the blocking pool.
pub(crate) async fn find(app: &App, request: SearchRequest) -> Result<Found, Problem> {
    let started = Instant::now();
    let mut answer =
        app.index().run(move |searcher| searcher.search(&request)).await?.map_err(|e| search_problem(&e))?;
    let found = answer.hits.len();
    answer.hits.retain(|hit| !app.suppressed().has(&hit.site));
    answer.total = answer.total.saturating_sub((found - answer.hits.len()) as u64);
    let took_ms = (started.elapsed().as_secs_f64() * 1e5).round() / 1e2;
    Ok(Found { answer, took_ms })
}

/// Counts on the blocking pool.
pub(crate) async fn explore(app: &App, mut request: ExploreRequest) -> Result<Vec<FacetBuckets>, Problem> {
    request.filters.without_sites = app.suppressed().names();
    app.index().run(move |searcher| searcher.explore(&request)).await?.map_err(|error| search_problem(&error))
}

pub(crate) fn search_problem(error: &SearchError) -> Problem {
    use axum::http::StatusCode;
    let refused = |parameter: &str| Problem::bad_request(error.to_string()).with_parameter(parameter);
    match error {
        SearchError::Cursor(CursorProblem::Gone) => Problem::new(StatusCode::GONE, error.to_string()),
        SearchError::Cursor(_) => refused("cursor"),
        SearchError::QueryTooLong { .. } | SearchError::TooManyPhrasings { .. } => refused("q"),
        SearchError::TooManyValues { .. } => Problem::bad_request(error.to_string()),
        SearchError::OutOfTime { .. } => Problem::unavailable(error.to_string()),
        SearchError::UnknownValue(unknown) => unknown_value("q", unknown),
        SearchError::Index(error) => index_problem(error),
    }
}

/// An index that is not there says what to do; one that fails is a fault of ours.
pub(crate) fn index_problem(error: &IndexError) -> Problem {
    match error {
        IndexError::Engine { .. } | IndexError::Row(_) => Problem::internal(error),
        _ => Problem::unavailable(error.to_string()),
    }
}

async fn page(app: &App, found: Found, parameters: &SearchParameters) -> Result<SearchPage, Problem> {
    let Found { answer, took_ms } = found;
    let details = match parameters.view {
        View::Compact => HashMap::new(),
        View::Full => manifests_behind(app, &answer.hits).await?,
    };
    let rows = answer.hits.iter().map(|hit| row(hit, details.get(&hit.manifest_id), &parameters.fields));
    Ok(SearchPage {
        results: rows.collect::<Result<_, _>>()?,
        total: answer.total,
        total_is_exact: true,
        coverage: answer.coverage,
        nothing_good: answer.nothing_good,
        did_you_mean: answer.did_you_mean,
        facets: answer.facets,
        next_cursor: answer.next_cursor,
        took_ms,
    })
}

/// The manifests of a page of results, in one batch.
pub(crate) async fn manifests_behind(
    app: &App,
    hits: &[Hit],
) -> Result<HashMap<ManifestId, StoredManifest>, Problem> {
    let mut ids: Vec<ManifestId> = hits.iter().map(|hit| hit.manifest_id.clone()).collect();
    ids.sort();
    ids.dedup();
    let stored = app.store().manifests_load(&ids).await?;
    Ok(stored.into_iter().map(|stored| (stored.manifest.id.clone(), stored)).collect())
}

/// One result: the row of the index, what the store adds, and no more than the members asked for.
pub(crate) fn row(
    hit: &Hit,
    stored: Option<&StoredManifest>,
    fields: &[String],
) -> Result<Map<String, Value>, Problem> {
    let mut row = object_of(hit)?;
    row.insert("text_is".to_owned(), Value::from(TEXT_IS));
    let found = stored.and_then(|stored| Some((stored, record::capability_in(stored, &hit.id)?)));
    if let Some((stored, capability)) = found {
        row.extend(object_of(&record::detail(stored, capability))?);
    }
    if !fields.is_empty() {
        row.retain(|name, _| fields.contains(name));
    }
    Ok(row)
}

pub(crate) fn object_of<T: Serialize>(value: &T) -> Result<Map<String, Value>, Problem> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Ok(Map::from_iter([("value".to_owned(), other)])),
        Err(error) => Err(Problem::internal(&error)),
    }
}
