//! The search page: the search box, results as cards, facets as links, and suggestions when nothing was found.

use askama::Template;
use chrono::{DateTime, Utc};
use indexer::{FacetKey, SearchAnswer, SearchRequest};

use super::bars::{Bar, bars};
use super::card::{Card, card};
use super::frame::{Frame, Section};
use super::links::Link;
use super::stats::{NewSiteRow, newest};
use super::{labels, links};
use crate::answers::search::SearchResults;
use crate::answers::stats::StatsAnswer;
use crate::parameters::QueryPairs;

/// The facets beside the results, in order.
pub(crate) fn facets() -> Vec<FacetKey> {
    let mut keys: Vec<FacetKey> = FacetKey::ALL.to_vec();
    keys.retain(|key| key.filter().dashboard_position.is_some());
    keys.sort_by_key(|key| key.filter().dashboard_position);
    keys
}

/// Values shown in one group; the JSON answer has more.
const VALUES_MAX: usize = 8;
/// New sites on the first page.
const NEWEST_SHOWN: usize = 5;
/// Example queries; a test checks that each finds the right first result in the demo.
pub const EXAMPLES: [&str; 6] =
    ["book flight", "weather", "reserve a table", "track my parcel", "translate text", "add to cart"];

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

/// The content of the page without a query.
struct Landing {
    summary: String,
    examples: Vec<Link>,
    types: Vec<Bar>,
    formats: Vec<Bar>,
    safety: Vec<Bar>,
    newest: Vec<NewSiteRow>,
    trouble: Option<String>,
}

#[derive(Template)]
#[template(path = "search.html")]
pub(crate) struct SearchPage {
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
    suggested: Vec<Link>,
    without_filters: String,
    summary: String,
    took: String,
    next: Option<String>,
    /// The feed that follows this search.
    atom: Option<String>,
}

/// The page without a search: examples, and statistics of the index. `trouble` states why searching is impossible.
pub(crate) fn landing(
    counted: &SearchAnswer,
    stats: &StatsAnswer,
    trouble: Option<String>,
    now: DateTime<Utc>,
) -> SearchPage {
    let bars_of = |key: FacetKey, parameter: &str| {
        let counts = counted.facets.get(&key).map(Vec::as_slice).unwrap_or_default();
        bars(counts.iter().take(VALUES_MAX).map(|facet| {
            let href = links::search([(parameter, facet.value.as_str())]);
            (labels::facet_value(key, &facet.value), href, facet.count)
        }))
    };
    let summary = format!(
        "{} declared in {} of {}. Found politely, read as published, never called.",
        labels::counted(stats.capabilities, "capability", "capabilities"),
        labels::counted(stats.manifests, "manifest", "manifests"),
        labels::counted(u64::try_from(stats.manifests_by_format.len()).unwrap_or(0), "dialect", "dialects"),
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
    SearchPage { landing: Some(landing), focus_box: true, ..blank("What can agents do on the web?") }
}

/// Links to the most frequent types, shown for searches without results.
fn suggested(counted: &SearchAnswer) -> Vec<Link> {
    let types = counted.facets.get(&FacetKey::SemanticType).map(Vec::as_slice).unwrap_or_default();
    let link = |value: &str| Link {
        text: labels::facet_value(FacetKey::SemanticType, value),
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
        suggested: Vec::new(),
        without_filters: "/".to_owned(),
        summary: String::new(),
        took: String::new(),
        next: None,
        atom: None,
    }
}

/// The page of results; `counted` is given if there are none.
pub(crate) fn results(
    query: &QueryPairs,
    request: &SearchRequest,
    found: SearchResults,
    counted: Option<&SearchAnswer>,
    now: DateTime<Utc>,
) -> SearchPage {
    let answer = found.answer;
    let words_asked = request.phrasings.join(" ");
    let title = if words_asked.is_empty() { "Capabilities".to_owned() } else { words_asked.clone() };
    let meant = answer.did_you_mean.as_deref();
    SearchPage {
        box_text: words_asked,
        kept: hidden_fields(query),
        active: active(query),
        facets: facet_groups(query, &answer),
        did_you_mean: meant
            .map(|text| Link { text: text.to_owned(), href: links::with("/search", query, "q", text) }),
        cards: answer.hits.iter().map(|hit| card(hit, now)).collect(),
        nothing_good: answer.nothing_good,
        suggested: counted.map(suggested).unwrap_or_default(),
        without_filters: links::search(query.pairs().filter(|(name, _)| *name == "q")),
        summary: labels::counted(answer.total, "capability", "capabilities"),
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

/// Hidden fields of the form: the filters and the order.
fn hidden_fields(query: &QueryPairs) -> Vec<(String, String)> {
    let kept = query.pairs().filter(|(name, _)| is_filter(name) || *name == "sort");
    kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The active filters, each with the URL that removes it.
fn active(query: &QueryPairs) -> Vec<Link> {
    let filters = query.pairs().filter(|(name, _)| is_filter(name));
    let values = filters.flat_map(|(name, text)| text.split(',').map(move |value| (name, value.trim())));
    let link = |(name, value): (&str, &str)| {
        let key = name.parse::<FacetKey>().ok();
        let label = key.map_or_else(|| name.replace('_', " "), |key| key.filter().label.to_owned());
        let shown = key.map_or_else(|| value.to_owned(), |key| labels::facet_value(key, value));
        Link { text: format!("{label}: {shown}"), href: links::toggled(query, name, value) }
    };
    values.filter(|(_, value)| !value.is_empty()).map(link).collect()
}

fn facet_groups(query: &QueryPairs, answer: &SearchAnswer) -> Vec<FacetGroup> {
    let group = |key: FacetKey| {
        let chosen = query.list(key.as_str()).unwrap_or_default();
        let counts = answer.facets.get(&key)?;
        let values = counts.iter().take(VALUES_MAX).map(|facet| FacetValue {
            text: labels::facet_value(key, &facet.value),
            href: links::toggled(query, key.as_str(), &facet.value),
            count: labels::grouped(facet.count),
            chosen: chosen.contains(&facet.value.as_str()),
        });
        Some(FacetGroup { name: key.filter().label, values: values.collect() })
    };
    facets().into_iter().filter_map(group).filter(|group| !group.values.is_empty()).collect()
}
