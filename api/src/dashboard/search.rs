//! The search page: the box is the page; then results as cards, facets as links, and an honest empty state.

use askama::Template;
use axum::response::Response;
use chrono::{DateTime, Utc};
use indexer::{FacetKey, SearchAnswer, SearchRequest};

use super::card::{Card, card};
use super::frame::{Frame, Section};
use super::stats::{New, newest};
use super::{links, words};
use crate::answer::{Asked, Caching};
use crate::app::App;
use crate::client::Client;
use crate::clock;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::routes::search::{Found, find};
use crate::routes::search_parameters::SearchParameters;
use crate::routes::stats::current;

/// The facets beside the results, in order.
fn facets() -> Vec<FacetKey> {
    let mut keys: Vec<FacetKey> = FacetKey::ALL.to_vec();
    keys.retain(|key| key.filter().dashboard_position.is_some());
    keys.sort_by_key(|key| key.filter().dashboard_position);
    keys
}

/// Values shown in one group; the JSON twin has more.
const VALUES_MAX: usize = 8;
/// New sites on the first page.
const NEWEST_SHOWN: usize = 5;
/// What to try first: requests whose first result is right on the demo's web, which a test holds them to.
pub const EXAMPLES: [&str; 6] =
    ["book flight", "weather", "reserve a table", "track my parcel", "translate text", "add to cart"];

/// A link with its text.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) text: String,
    pub(crate) href: String,
}

/// A bar of a chart that leads somewhere.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) text: String,
    pub(crate) href: String,
    pub(crate) count: u64,
    pub(crate) count_text: String,
    pub(crate) most: u64,
}

/// Bars from counted values; the longest is the largest of them.
pub(crate) fn bars(rows: impl IntoIterator<Item = (String, String, u64)>) -> Vec<Bar> {
    let rows: Vec<(String, String, u64)> = rows.into_iter().collect();
    let most = rows.iter().map(|(_, _, count)| *count).max().unwrap_or(1).max(1);
    let bar = |(text, href, count)| Bar { text, href, count, count_text: words::grouped(count), most };
    rows.into_iter().map(bar).collect()
}

struct FacetGroup {
    name: &'static str,
    values: Vec<FacetValue>,
}

struct FacetValue {
    text: String,
    href: String,
    count: String,
    chosen: bool,
}

/// What is shown before anything was asked.
struct Landing {
    summary: String,
    examples: Vec<Link>,
    types: Vec<Bar>,
    formats: Vec<Bar>,
    safety: Vec<Bar>,
    newest: Vec<New>,
    trouble: Option<String>,
}

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    frame: Frame,
    box_text: String,
    focus_box: bool,
    kept: Vec<(String, String)>,
    landing: Option<Landing>,
    active: Vec<Link>,
    facets: Vec<FacetGroup>,
    did_you_mean: Option<Link>,
    cards: Vec<Card>,
    nothing_good: bool,
    nearest: Vec<Link>,
    without_filters: String,
    summary: String,
    took: String,
    next: Option<String>,
    /// The feed that follows this search.
    atom: Option<String>,
}

/// Answers `/` and `/search` where a page is preferred.
pub(crate) async fn show(
    app: &App,
    client: Client,
    asked: &Asked,
    query: &QueryPairs,
    parameters: SearchParameters,
) -> Result<Response, Problem> {
    if parameters.asks_nothing() {
        return asked.page(&landing(app, client).await?, Caching::Search);
    }
    let mut request = parameters.request;
    request.facets = facets();
    let found = find(app, client, request.clone()).await?;
    let nearest = if found.answer.hits.is_empty() { nearest(app, client).await } else { Vec::new() };
    let page = results(query, &request, found, nearest, clock::now());
    asked.page(&page, Caching::Search)
}

async fn landing(app: &App, client: Client) -> Result<SearchPage, Problem> {
    let trouble = app.index().searcher().err().map(|problem| problem.body().detail.clone());
    let answer = if trouble.is_some() { SearchAnswer::default() } else { overview(app, client).await? };
    let bars_of = |key: FacetKey, parameter: &str| {
        let counts = answer.facets.get(&key).map(Vec::as_slice).unwrap_or_default();
        bars(counts.iter().take(VALUES_MAX).map(|facet| {
            let href = links::search([(parameter, facet.value.as_str())]);
            (words::facet_value(key, &facet.value), href, facet.count)
        }))
    };
    let now = clock::now();
    let stats = current(app).await?;
    let summary = format!(
        "{} declared in {} of {}. Found politely, read as published, never called.",
        words::counted(stats.capabilities, "capability", "capabilities"),
        words::counted(stats.manifests, "manifest", "manifests"),
        words::counted(u64::try_from(stats.manifests_by_format.len()).unwrap_or(0), "dialect", "dialects"),
    );
    let landing = Landing {
        summary,
        examples: EXAMPLES
            .map(|text| Link { text: text.to_owned(), href: links::search([("q", text)]) })
            .into(),
        types: bars_of(FacetKey::SemanticType, "semantic_type"),
        formats: bars_of(FacetKey::Format, "format"),
        safety: bars_of(FacetKey::Safety, "safety"),
        newest: newest(stats.sites_newest.get(..NEWEST_SHOWN).unwrap_or(&stats.sites_newest), now),
        trouble,
    };
    Ok(SearchPage { landing: Some(landing), focus_box: true, ..blank("What can agents do on the web?") })
}

/// Everything, counted.
async fn overview(app: &App, client: Client) -> Result<SearchAnswer, Problem> {
    let facets = vec![FacetKey::SemanticType, FacetKey::Format, FacetKey::Safety];
    let request = SearchRequest { limit: 1, facets, ..SearchRequest::default() };
    Ok(find(app, client, request).await?.answer)
}

/// What there is, for those whose search found nothing.
async fn nearest(app: &App, client: Client) -> Vec<Link> {
    let Ok(answer) = overview(app, client).await else { return Vec::new() };
    let types = answer.facets.get(&FacetKey::SemanticType).map(Vec::as_slice).unwrap_or_default();
    let link = |value: &str| Link {
        text: words::facet_value(FacetKey::SemanticType, value),
        href: links::search([("semantic_type", value)]),
    };
    types.iter().take(VALUES_MAX).map(|facet| link(&facet.value)).collect()
}

fn blank(title: &str) -> SearchPage {
    SearchPage {
        frame: Frame::new(title, Section::Search),
        box_text: String::new(),
        focus_box: false,
        kept: Vec::new(),
        landing: None,
        active: Vec::new(),
        facets: Vec::new(),
        did_you_mean: None,
        cards: Vec::new(),
        nothing_good: false,
        nearest: Vec::new(),
        without_filters: "/".to_owned(),
        summary: String::new(),
        took: String::new(),
        next: None,
        atom: None,
    }
}

fn results(
    query: &QueryPairs,
    request: &SearchRequest,
    found: Found,
    nearest: Vec<Link>,
    now: DateTime<Utc>,
) -> SearchPage {
    let answer = found.answer;
    let words_asked = request.phrasings.join(" ");
    let title = if words_asked.is_empty() { "Capabilities".to_owned() } else { words_asked.clone() };
    let meant = answer.did_you_mean.as_deref();
    SearchPage {
        box_text: words_asked,
        kept: kept(query),
        active: active(query),
        facets: facet_groups(query, &answer),
        did_you_mean: meant
            .map(|text| Link { text: text.to_owned(), href: links::with("/search", query, "q", text) }),
        cards: answer.hits.iter().map(|hit| card(hit, now)).collect(),
        nothing_good: answer.nothing_good,
        nearest,
        without_filters: links::search(query.pairs().filter(|(name, _)| *name == "q")),
        summary: words::counted(answer.total, "capability", "capabilities"),
        took: format!("{:.1} ms", found.took_ms),
        atom: Some(links::with_query(
            "/search.atom",
            query.pairs().filter(|(name, _)| *name == "q" || is_filter(name)),
        )),
        next: answer.next_cursor.map(|cursor| links::with("/search", query, "cursor", &cursor)),
        ..blank(&title)
    }
}

fn is_filter(name: &str) -> bool {
    !matches!(name, "q" | "cursor" | "limit" | "sort" | "view" | "fields" | "facets")
}

/// What the form sends along when the words change.
fn kept(query: &QueryPairs) -> Vec<(String, String)> {
    let kept = query.pairs().filter(|(name, _)| is_filter(name) || *name == "sort");
    kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The filters in force, each with the address that takes it away.
fn active(query: &QueryPairs) -> Vec<Link> {
    let filters = query.pairs().filter(|(name, _)| is_filter(name));
    let values = filters.flat_map(|(name, text)| text.split(',').map(move |value| (name, value.trim())));
    let link = |(name, value): (&str, &str)| {
        let key = name.parse::<FacetKey>().ok();
        let label = key.map_or_else(|| name.replace('_', " "), |key| key.filter().label.to_owned());
        let shown = key.map_or_else(|| value.to_owned(), |key| words::facet_value(key, value));
        Link { text: format!("{label}: {shown}"), href: links::toggled(query, name, value) }
    };
    values.filter(|(_, value)| !value.is_empty()).map(link).collect()
}

fn facet_groups(query: &QueryPairs, answer: &SearchAnswer) -> Vec<FacetGroup> {
    let group = |key: FacetKey| {
        let chosen = query.list(key.as_str()).unwrap_or_default();
        let counts = answer.facets.get(&key)?;
        let values = counts.iter().take(VALUES_MAX).map(|facet| FacetValue {
            text: words::facet_value(key, &facet.value),
            href: links::toggled(query, key.as_str(), &facet.value),
            count: words::grouped(facet.count),
            chosen: chosen.contains(&facet.value.as_str()),
        });
        Some(FacetGroup { name: key.filter().label, values: values.collect() })
    };
    facets().into_iter().filter_map(group).filter(|group| !group.values.is_empty()).collect()
}
