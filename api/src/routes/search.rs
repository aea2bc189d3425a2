//! `GET /search`: capabilities that match words and filters, as JSON or as the search page.

use indexer::{FacetKey, SearchAnswer, SearchRequest};

use crate::answers::search::{self, SearchPage};
use crate::answers::search_parameters::{SearchParameters, View};
use crate::client::Client;
use crate::manifests::off_runtime;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{self, Caching, EntityTag, HttpResult, RequestContext};
use crate::state::App;
use crate::{clock, dashboard};

/// Capabilities that match words and filters.
#[utoipa::path(
    get,
    path = "/search",
    tag = "search",
    params(crate::answers::search_query::SearchQuery, crate::answers::search_query::ResultsQuery),
    responses((status = 200, description = "A page of results", body = SearchPage)),
)]
pub(crate) async fn show(Request { app, client, context, query }: Request) -> HttpResult {
    let parameters = SearchParameters::read(&query)?;
    if context.wants_page() {
        return page(&app, client, &context, &query, parameters).await;
    }
    parameters.require_query()?;
    let tag = tag(&app, &context)?;
    if parameters.view == View::Compact
        && let Some(unchanged) = context.unchanged(&tag, Caching::Search)
    {
        return Ok(unchanged);
    }
    let results = search::search(&app.index, client, parameters.request.clone()).await?;
    let page = search::page(app.manifests(client), results, &parameters).await?;
    if parameters.view == View::Compact {
        let body = serde_json::to_vec(&page).map_err(|error| Problem::internal(&error))?;
        return Ok(response::tagged(body, "application/json", &tag, Caching::Search));
    }
    let response = off_runtime(move || {
        let body = serde_json::to_vec(&page).map_err(|error| Problem::internal(&error))?;
        // Details come from the store, which may be ahead of the index: their own bytes make the tag.
        let results = serde_json::to_vec(&page.results).map_err(|error| Problem::internal(&error))?;
        let tag = tag.and(&results);
        let unchanged = context.unchanged(&tag, Caching::Search);
        Ok(unchanged.unwrap_or_else(|| response::tagged(body, "application/json", &tag, Caching::Search)))
    });
    response.await?
}

/// The same query over the same commit, with the same sites left out, has the same answer, but for the time it took.
fn tag(app: &App, context: &RequestContext) -> Result<EntityTag, Problem> {
    let generation = format!("{:?}", app.index.searcher()?.generation());
    let query = context.uri.query().unwrap_or_default();
    let left_out = app.index.suppressed().names().join(" ");
    Ok(EntityTag::of(&[b"search", generation.as_bytes(), left_out.as_bytes(), query.as_bytes()]))
}

/// The page where a search is typed, or its results.
async fn page(
    app: &App,
    client: Client,
    context: &RequestContext,
    query: &QueryPairs,
    parameters: SearchParameters,
) -> HttpResult {
    if parameters.is_empty() {
        let trouble = app.index.searcher().err().map(|problem| problem.body().detail.clone());
        let counted = if trouble.is_some() { SearchAnswer::default() } else { overview(app, client).await? };
        let stats = app.stats().await?;
        let page = dashboard::search::landing(&counted, &stats, trouble, clock::now());
        return context.page(&page, Caching::Search);
    }
    let mut request = parameters.request;
    request.facets = dashboard::search::facets();
    let results = search::search(&app.index, client, request.clone()).await?;
    // What there is, for clients whose search found nothing.
    let counted = if results.answer.hits.is_empty() { overview(app, client).await.ok() } else { None };
    let page = dashboard::search::results(query, &request, results, counted.as_ref(), clock::now());
    context.page(&page, Caching::Search)
}

async fn overview(app: &App, client: Client) -> Result<SearchAnswer, Problem> {
    let facets = vec![FacetKey::SemanticType, FacetKey::Format, FacetKey::Safety];
    let request = SearchRequest { limit: 1, facets, ..SearchRequest::default() };
    Ok(search::search(&app.index, client, request).await?.answer)
}
