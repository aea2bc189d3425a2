//! `GET /search`: capabilities that match words and filters, as JSON or as the search page.

use std::sync::Arc;

use indexer::{ExploreRequest, FacetCount, FacetKey, FacetRequest, SearchAnswer, SearchRequest, Sort};

use crate::answers::search::{self, SearchPage, SearchResults};
use crate::answers::search_parameters::{LIMIT_MAX, SearchParameters, View, known};
use crate::buffers::Reserved;
use crate::client::Client;
use crate::dashboard;
use crate::dashboard::search::{Fallback, HomeContent, Paging};
use crate::page_context::PageContext;
use crate::parameters::QueryPairs;
use crate::permitted::off_runtime;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{self, Caching, EntityTag, HttpResult, RequestContext};
use crate::state::App;

/// Maximum number of filters that are removed, one at a time, to suggest alternatives when a page has no results.
const FILTERS_TRIED_MAX: usize = 5;
/// Maximum size of a page's query, in bytes of names and values, and maximum number of its filters. Up to two hundred links of the page
/// repeat the query. The search box accepts at most 500 characters.
const PAGE_QUERY_BYTES_MAX: usize = 3 * 1024;
const PAGE_FILTERS_MAX: usize = 24;
/// Maximum number of values of a facet whose own filter is set; the page shows fewer.
const FACET_VALUES_MAX: usize = 50;
/// Maximum page number.
const PAGE_MAX: usize = 1_000_000;

/// Capabilities that match words and filters.
#[utoipa::path(
    get,
    path = "/search",
    tag = "search",
    params(crate::answers::search_query::SearchQuery, crate::answers::search_query::ResultsQuery),
    responses((status = 200, description = "A page of results", body = SearchPage)),
)]
pub(crate) async fn show(Request { app, client, context, query }: Request) -> HttpResult {
    if context.wants_page() {
        let known = [known(), vec!["page"]].concat();
        return page(&app, client, &context, &query.known(&context, &known)?).await;
    }
    let parameters = SearchParameters::read(&query)?;
    parameters.require_query()?;
    let tag = tag(&app, &context)?;
    if parameters.view == View::Compact
        && let Some(unchanged) = context.unchanged(&tag, Caching::Search)
    {
        return Ok(unchanged);
    }
    let request = SearchRequest { accepts_missing_shards: true, ..parameters.request.clone() };
    let results = search::search(&app.index, client, request).await?;
    app.count_search(&results.answer.hits);
    let (page, share) = search::page(app.manifests(client), results, &parameters).await?;
    let response = off_runtime(move || {
        if page.partial {
            let mut response = context.json(&page, Caching::Never)?;
            Reserved::attach(&mut response, share);
            return Ok(response);
        }
        // Details come from the store, which may be ahead of the index, so the tag is a hash of the response.
        let tag = if parameters.view == View::Full {
            let rows: Vec<&[u8]> = page.results.iter().map(|row| row.as_str().as_bytes()).collect();
            tag.and(&rows)
        } else {
            tag
        };
        if let Some(unchanged) = context.unchanged(&tag, Caching::Search) {
            return Ok(unchanged);
        }
        let body = serde_json::to_vec(&page).map_err(|error| Problem::internal(&error))?;
        let mut response = response::tagged(body, "application/json", &tag, Caching::Search);
        Reserved::attach(&mut response, share);
        Ok(response)
    });
    response.await?
}

/// The tag of a response without details. The same query, index commit and excluded sites give the same response, except for the measured
/// time.
fn tag(app: &App, context: &RequestContext) -> Result<EntityTag, Problem> {
    let generation = format!("{:?}", app.index.searcher()?.generation());
    let query = context.uri.query().unwrap_or_default();
    let left_out = app.index.suppressed().names().join(" ");
    Ok(EntityTag::of(&[b"search", generation.as_bytes(), left_out.as_bytes(), query.as_bytes()]))
}

/// The home page, or the page of results.
async fn page(app: &App, client: Client, context: &RequestContext, query: &QueryPairs) -> HttpResult {
    let query = &filters_as_parameters(query);
    let number = page_number(query)?;
    let parameters = SearchParameters::read(&query.without("page"))?;
    let here = app.page_context();
    if parameters.is_empty() {
        return home(app, client, context, here).await;
    }
    require_short(query)?;
    let mut request = parameters.request;
    request.explain = false;
    let per_page = request.limit;
    let paging = Paging {
        page: number,
        per_page,
        counted_pages: (usize::try_from(LIMIT_MAX).unwrap_or(usize::MAX) / per_page.max(1)).max(1),
    };
    if request.cursor.is_none() {
        request.limit = per_page * paging.page.min(paging.counted_pages);
    }
    request.facets = dashboard::facet_groups::facets();
    let results = page_results(app, client, &mut request).await?;
    let shown = results.answer.hits.iter().skip(paging.skipped()).take(per_page);
    app.count_search(shown);
    let is_unrelated = results.answer.relevant == Some(0) && !request.phrasings.is_empty();
    let fallback = if results.answer.hits.is_empty() || is_unrelated {
        fallback(app, client, query).await?
    } else {
        Fallback::default()
    };
    let fallback = Fallback { site_status: site_status(app, &request).await?, ..fallback };
    let counted = search::counted(app.manifests(client), &results.answer.hits)?;
    // the page is ordered by relevance if no result is relevant
    let query = if request.sort == Sort::Relevance { query.without("sort") } else { query.clone() };
    let render = move |context: &RequestContext| {
        let page = dashboard::search::results(&query, &request, results, paging, &fallback, &here);
        drop(counted);
        context.page(&page, Caching::Search)
    };
    app.rendered(client, context, render).await
}

/// The results of a page. In an order other than by relevance, a request with words lists its relevant results; if it has none, the page is
/// ordered by relevance.
async fn page_results(
    app: &App,
    client: Client,
    request: &mut SearchRequest,
) -> Result<SearchResults, Problem> {
    request.is_relevant_only = request.sort != Sort::Relevance && !request.phrasings.is_empty();
    let mut results = search::search(&app.index, client, request.clone()).await?;
    if request.is_relevant_only && results.answer.total == 0 && request.cursor.is_none() {
        (request.is_relevant_only, request.sort) = (false, Sort::Relevance);
        results = search::search(&app.index, client, request.clone()).await?;
    }
    if !request.phrasings.is_empty() && results.answer.relevant.is_some() {
        count_relevant(app, client, request, &mut results.answer).await?;
    }
    Ok(results)
}

/// Replaces the counts of the facets whose own filter is set by those of the relevant results without this filter, if there are any.
async fn count_relevant(
    app: &App,
    client: Client,
    request: &SearchRequest,
    answer: &mut SearchAnswer,
) -> Result<(), Problem> {
    for key in &request.facets {
        let (filters, was_set) = request.filters.without(*key);
        if !was_set {
            continue;
        }
        let facet = FacetRequest { key: *key, values_max: FACET_VALUES_MAX, count_min: 1 };
        let explored = ExploreRequest { phrasings: request.phrasings.clone(), filters, facets: vec![facet] };
        for counted in search::explore(&app.index, client, explored).await? {
            let values = counted.values.into_iter();
            let relevant: Vec<FacetCount> =
                values.map(|value| FacetCount { relevant: Some(value.count), ..value }).collect();
            if !relevant.is_empty() {
                answer.facets.insert(*key, relevant);
            }
        }
    }
    Ok(())
}

/// Moves filters in the query text (`format:woa`) to parameters, which the page shows as chips. Returns the query unchanged if the text has
/// no filters, or if it has operators that may apply to words and filters.
fn filters_as_parameters(query: &QueryPairs) -> QueryPairs {
    let unchanged = || query.clone();
    let texts = query.texts("q");
    let [words] = texts.as_slice() else { return unchanged() };
    if words.contains(['"', '(', ')', '|'])
        || words.split_whitespace().any(|word| matches!(word, "OR" | "NOT"))
    {
        return unchanged();
    }
    let is_filter = |word: &&str| {
        let Some((name, value)) = word.split_once(':').filter(|(_, value)| !value.is_empty()) else {
            return false;
        };
        !value.starts_with("//") && name.parse::<FacetKey>().is_ok_and(|key| key.filter().parameter.is_some())
    };
    let (filters, others): (Vec<&str>, Vec<&str>) = words.split_whitespace().partition(is_filter);
    if filters.is_empty() {
        return unchanged();
    }
    let others = others.join(" ");
    let pairs = query
        .pairs()
        .filter(|(name, _)| *name != "q")
        .chain((!others.is_empty()).then_some(("q", others.as_str())));
    let pairs = pairs.chain(filters.iter().filter_map(|word| word.split_once(':')));
    let moved = QueryPairs::checked(pairs.map(|(name, value)| Ok((name.to_owned(), value.to_owned()))));
    // a value that the parameter does not accept stays in the text
    moved
        .ok()
        .filter(|moved| SearchParameters::read(&moved.without("page")).is_ok())
        .unwrap_or_else(unchanged)
}

/// The status, in words, of the site that a request names; `None` if it names no site, or an unlisted one.
async fn site_status(app: &App, request: &SearchRequest) -> Result<Option<&'static str>, Problem> {
    let Some(site) = dashboard::search::searched_site(&request.phrasings.join(" ")) else { return Ok(None) };
    let summary = app.store.site_summary(&site).await?;
    Ok(summary.map(|known| dashboard::site_status(known.status, known.manifests, &known.formats).0))
}

/// Rejects a query that is too long to be repeated in the links of a page.
fn require_short(query: &QueryPairs) -> Result<(), Problem> {
    let repeated = query.pairs().filter(|(name, _)| *name != "cursor");
    let bytes: usize = repeated.map(|(name, value)| name.len() + value.len()).sum();
    if bytes > PAGE_QUERY_BYTES_MAX || dashboard::search::filter_values(query).count() > PAGE_FILTERS_MAX {
        return Err(Problem::bad_request(format!(
            "the results page repeats the request in its links, so a request may have at most {PAGE_QUERY_BYTES_MAX} bytes and \
             {PAGE_FILTERS_MAX} filters; request application/json instead"
        )));
    }
    Ok(())
}

/// The number of a page of results.
fn page_number(query: &QueryPairs) -> Result<usize, Problem> {
    let number = query.one_parsed("page")?.unwrap_or(1_usize);
    if number > PAGE_MAX {
        let detail =
            format!("\"page\" is a whole number of at most {PAGE_MAX}; GET /export.jsonl has every result");
        return Err(Problem::bad_request(detail).with_parameter("page"));
    }
    Ok(number.max(1))
}

async fn home(app: &App, client: Client, context: &RequestContext, here: PageContext) -> HttpResult {
    let trouble = app.index.searcher().err().map(|problem| problem.body().detail.clone());
    let stats = app.stats().await?;
    let topics = if trouble.is_some() { Arc::default() } else { app.topics().await? };
    let render = move |context: &RequestContext| {
        let shown = HomeContent { topics: &topics, stats: &stats, trouble };
        context.page(&dashboard::search::home(shown, &here), Caching::Search)
    };
    app.rendered(client, context, render).await
}

/// Alternatives to a search without results: without each of its filters, and in the whole index.
async fn fallback(app: &App, client: Client, query: &QueryPairs) -> Result<Fallback, Problem> {
    let mut fallback = Fallback::default();
    let words = query.texts("q");
    let active: Vec<(&str, &str)> = dashboard::search::filter_values(query).take(FILTERS_TRIED_MAX).collect();
    for dropped in &active {
        let others: Vec<(&str, &str)> = active.iter().filter(|other| *other != dropped).copied().collect();
        let answer = found(app, client, &words, &others, Vec::new()).await?;
        let count = answer.relevant.filter(|_| !words.is_empty()).unwrap_or(answer.total);
        fallback.without.push((dropped.0.to_owned(), dropped.1.to_owned(), count));
    }
    fallback.overview = Some(found(app, client, &[], &[], dashboard::facet_groups::facets()).await?);
    Ok(fallback)
}

/// Counts the results for words and filters.
async fn found(
    app: &App,
    client: Client,
    words: &[&str],
    filters: &[(&str, &str)],
    facets: Vec<FacetKey>,
) -> Result<SearchAnswer, Problem> {
    let words = words.iter().map(|text| ("q", *text));
    let pairs =
        words.chain(filters.iter().copied()).map(|(name, value)| Ok((name.to_owned(), value.to_owned())));
    let request = SearchParameters::read(&QueryPairs::checked(pairs)?)?.request;
    let request = SearchRequest { limit: 1, facets, ..request };
    Ok(search::search(&app.index, client, request).await?.answer)
}
