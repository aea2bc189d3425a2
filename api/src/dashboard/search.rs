//! The home page, and the results page: cards, filters, sort order, and advice when nothing was found.

use askama::Template;
use indexer::{FacetKey, Grouping, Hit, SearchAnswer, SearchRequest, Sort};
use manifest::model::Protocol;
use manifest::{Host, SiteName};
use policy::Status;
use serde_json::json;

use super::card::{Card, card, has_inferred, shortened};
use super::facet_groups::{FacetGroup, VALUES_MAX, facet_groups};
use super::frame::{Frame, Section};
use super::links::Link;
use super::time::Moment;
use super::use_it::clients::{self, Client, McpServer};
use super::{icons, labels, links};
use crate::answers::home::{Topic, Topics};
use crate::answers::search::SearchResults;
use crate::answers::stats::StatsAnswer;
use crate::page_context::PageContext;
use crate::parameters::QueryPairs;

/// New sites on the first page.
const NEWEST_SHOWN: usize = 6;
/// Maximum length of the text of an example, in characters.
const EXAMPLE_CHARS_MAX: usize = 60;

/// A link that may be the current one.
struct Choice {
    text: &'static str,
    href: String,
    chosen: bool,
}

/// A site that was added to the index recently.
struct NewSite {
    site: String,
    icon: String,
    capabilities: String,
    since: Moment,
}

struct TopicView {
    name: String,
    href: String,
    count: String,
    examples: Vec<Example>,
}

struct Example {
    name: String,
    href: String,
    site: String,
}

#[derive(Template)]
#[template(path = "home.html")]
pub(crate) struct HomePage {
    frame: Frame,
    numbers: Vec<(String, &'static str)>,
    examples: Vec<Link>,
    topics: Vec<TopicView>,
    newest: Vec<NewSite>,
    clients: Vec<Client>,
    mcp_url: String,
    /// Why the search is not available.
    trouble: Option<String>,
    is_empty: bool,
}

#[derive(Template)]
#[template(path = "search.html")]
pub(crate) struct SearchPage {
    frame: Frame,
    query: String,
    active: Vec<Link>,
    sorts: Vec<Choice>,
    facets: Vec<FacetGroup>,
    /// The site whose name was searched for.
    searched_site: Option<String>,
    /// Its status in words; `None` if it is not listed.
    searched_status: Option<&'static str>,
    did_you_mean: Option<Link>,
    cards: Vec<Card>,
    /// A sentence with the number of results that are grouped under the displayed ones.
    grouped: Option<String>,
    /// Results beyond the relevance cut-off.
    less_related: Vec<Card>,
    nothing_good: bool,
    /// Whether the request has text, but no word to search for.
    has_no_words: bool,
    /// Searches to try instead.
    suggested: Vec<Link>,
    /// Links that remove one filter, each with the number of results without it. Only filters whose removal leads to results.
    dropped: Vec<(Link, String)>,
    summary: String,
    /// Whether less related results are not listed, because of the order.
    has_only_close: bool,
    /// A sentence that is shown if the request names a protocol that no result on the page offers.
    connection: Option<String>,
    /// Link to the sites with the kind of endpoint that a request without results names.
    endpoints: Option<Link>,
    /// Text with the number of less related results.
    less_words: String,
    previous: Option<String>,
    next: Option<String>,
    /// Text of the link to the next page.
    next_words: &'static str,
    /// The feed that follows this search.
    atom: String,
}

impl SearchPage {
    /// Whether any label of the results marks a value as inferred.
    fn has_inferred(&self) -> bool {
        self.cards.iter().chain(&self.less_related).any(|card| has_inferred(&card.tags))
    }
}

/// Content of the home page except the search form.
pub(crate) struct HomeContent<'a> {
    pub(crate) topics: &'a Topics,
    pub(crate) stats: &'a StatsAnswer,
    pub(crate) trouble: Option<String>,
}

pub(crate) fn home(shown: HomeContent<'_>, context: &PageContext) -> HomePage {
    let HomeContent { topics, stats, trouble } = shown;
    let base = &context.base;
    let data = json!({
        "@context": "https://schema.org", "@graph": [
            {"@type": "WebSite", "name": "agentdex", "url": format!("{base}/"),
             "potentialAction": {"@type": "SearchAction", "query-input": "required name=q",
                "target": {"@type": "EntryPoint", "urlTemplate": format!("{base}/search?q={{q}}")}}},
            {"@type": "Dataset", "name": "What AI agents can do on the web",
             "description": "Capabilities that web sites declare for AI agents, normalised from every format.",
             "url": format!("{base}/"), "isAccessibleForFree": true,
             "distribution": {"@type": "DataDownload", "encodingFormat": "application/x-ndjson", "contentUrl": format!("{base}/export.jsonl")}},
        ]
    });
    let example = |text: &String| Link { text: text.clone(), href: links::search([("q", text.as_str())]) };
    let server = McpServer::of_this_registry(base);
    let has_something = stats.sites_newest.iter().filter(|new| new.capabilities > 0);
    HomePage {
        frame: Frame::new("What can agents do on the web?", Section::Home)
            .at(context, "/")
            .described("Search what web sites let AI agents do: book, order, track, ask. Each result says how to call it, its safety class, and who declares it.")
            .with_json_ld(&data),
        numbers: numbers(stats),
        examples: topics.searches.iter().map(example).collect(),
        topics: topics.fields.iter().map(topic).collect(),
        newest: has_something
            .take(NEWEST_SHOWN)
            .map(|new| NewSite {
                site: new.site.to_string(),
                icon: icons::of_site(new.site.as_str(), 36),
                capabilities: labels::counted(new.capabilities, "capability", "capabilities"),
                since: Moment::new(new.since, context.now),
            })
            .collect(),
        clients: clients::of(&server),
        mcp_url: server.url,
        is_empty: trouble.is_none() && stats.capabilities == 0,
        trouble,
    }
}

/// The size of the index. Documents that cannot be read are not counted as manifests, and sites that could not be visited or read are not
/// counted.
fn numbers(stats: &StatsAnswer) -> Vec<(String, &'static str)> {
    let readable = || stats.adoption.iter().filter(|dialect| dialect.format.is_indexable());
    let visited = [Status::Fresh.as_str(), Status::Stale.as_str()];
    let visited = stats.sites_by_status.iter().filter(|counted| visited.contains(&counted.value));
    let read: u64 = visited.map(|counted| counted.count).sum();
    let number = |count: u64, one: &'static str, many: &'static str| {
        (labels::grouped(count), if count == 1 { one } else { many })
    };
    vec![
        number(stats.capabilities, "capability", "capabilities"),
        number(read.saturating_sub(stats.sites_unreadable), "site that was read", "sites that were read"),
        number(readable().map(|dialect| dialect.manifests).sum(), "manifest", "manifests"),
        number(readable().count() as u64, "format", "formats"),
    ]
}

fn topic(topic: &Topic) -> TopicView {
    TopicView {
        name: labels::capitalised(&topic.namespace),
        href: links::search([("namespace", topic.namespace.as_str())]),
        count: labels::grouped(topic.capabilities),
        examples: topic
            .examples
            .iter()
            .map(|hit| Example {
                name: first_words(hit.description.as_deref().unwrap_or(&hit.name)),
                href: links::capability(&hit.id),
                site: hit.site.to_string(),
            })
            .collect(),
    }
}

/// The first sentence of a description, or its beginning.
fn first_words(description: &str) -> String {
    let next = description.chars().skip(1);
    let ends_sentence = |((_, letter), next): &((usize, char), char)| {
        matches!(letter, '.' | ':' | ';' | '!' | '?') && next.is_whitespace()
    };
    let end = description.char_indices().zip(next).find(ends_sentence).map(|((at, _), _)| at);
    let first = end.and_then(|end| description.get(..end)).unwrap_or(description);
    labels::capitalised(&shortened(first.trim_end_matches('.'), EXAMPLE_CHARS_MAX))
}

/// The position of a page in the list of results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paging {
    /// Number of the page, from 1.
    pub(crate) page: usize,
    pub(crate) per_page: usize,
    /// Number of pages with a page number; later pages are reached by cursor.
    pub(crate) counted_pages: usize,
}

impl Paging {
    pub(crate) fn skipped(self) -> usize {
        if self.page > self.counted_pages {
            0
        } else {
            self.page.saturating_sub(1).saturating_mul(self.per_page)
        }
    }

    fn previous(self, query: &QueryPairs) -> Option<String> {
        let before = self.page.saturating_sub(1).min(self.counted_pages);
        let query = query.without("cursor");
        match before {
            0 => None,
            1 => Some(links::with_query("/search", query.pairs().filter(|(name, _)| *name != "page"))),
            _ => Some(links::with("/search", &query, "page", &before.to_string())),
        }
    }

    fn next(self, query: &QueryPairs, answer: &SearchAnswer) -> Option<String> {
        let next = self.page.saturating_add(1).to_string();
        if self.page < self.counted_pages {
            return answer.next_cursor.is_some().then(|| links::with("/search", query, "page", &next));
        }
        let others = query.pairs().filter(|(name, _)| !matches!(*name, "cursor" | "page"));
        let cursor = answer.next_cursor.as_deref()?;
        Some(links::with_query("/search", others.chain([("page", next.as_str()), ("cursor", cursor)])))
    }
}

/// Further searches for a page without results.
#[derive(Debug, Default)]
pub(crate) struct Fallback {
    /// The name and value of each filter, with the number of results without this filter.
    pub(crate) without: Vec<(String, String, u64)>,
    /// The counts of the whole index.
    pub(crate) overview: Option<SearchAnswer>,
    /// The status, in words, of the site whose name was searched for, if it is listed.
    pub(crate) site_status: Option<&'static str>,
}

/// The page of results. `query` is the request of the browser.
pub(crate) fn results(
    query: &QueryPairs,
    request: &SearchRequest,
    found: SearchResults,
    paging: Paging,
    fallback: &Fallback,
    context: &PageContext,
) -> SearchPage {
    let answer = found.answer;
    let words = request.phrasings.join(" ");
    let title = if words.is_empty() { "Capabilities".to_owned() } else { words.clone() };
    let shown = answer.hits.iter().skip(paging.skipped()).take(paging.per_page);
    let connection = connection_words(&words, shown.clone());
    let others: u64 = shown.clone().filter_map(|hit| hit.group.as_ref()).map(|group| group.others).sum();
    let mut cards: Vec<Card> = shown.map(|hit| card(hit, &words, context)).collect();
    let relevant = relevant_on_page(&answer, request, paging);
    let mut less_related =
        relevant.filter(|relevant| *relevant < cards.len()).map(|at| cards.split_off(at)).unwrap_or_default();
    let searched_site = searched_site(&words).map(|site| site.to_string());
    let searched_site = searched_site.filter(|_| !answer.hits.iter().any(|hit| hit.native_id == words));
    let is_unread_site = searched_site.is_some() && cards.is_empty();
    if is_unread_site {
        // a user who typed the name of a site does not want results of other sites
        less_related.clear();
    }
    let close = relevant.and(answer.relevant).filter(|close| *close > 0 && *close + others < answer.total);
    let meant = answer.did_you_mean.as_deref();
    let less = answer.total.saturating_sub(others + close.unwrap_or_default());
    let less_words = format!("{} less related", labels::grouped(less));
    let is_less_related = close.is_some() && paging.page > 1 && cards.is_empty();
    let ends_with_close = relevant == Some(cards.len()) && close.is_some();
    let summary = if is_less_related {
        cards = std::mem::take(&mut less_related);
        labels::counted(less, "less related result", "less related results")
    } else {
        labels::counted(close.unwrap_or(answer.total), "result", "results")
    };
    let mut frame = Frame::new(title, Section::Search)
        .at(
            context,
            &links::with_query("/search", query.pairs().filter(|(name, _)| *name == "q" || is_filter(name))),
        )
        .described(&format!(
            "{summary} for {words}: what agents can do, how to call it, and its safety class."
        ))
        .unlisted();
    frame.box_text.clone_from(&words);
    frame.kept = hidden_fields(query);
    SearchPage {
        frame,
        endpoints: endpoints_named(&words).filter(|_| answer.hits.is_empty()),
        searched_status: fallback.site_status,
        searched_site,
        query: words,
        active: active(query).map(|(_, _, link)| link).collect(),
        sorts: sorts(query, request.sort),
        facets: if is_unread_site { Vec::new() } else { facet_groups(query, &answer) },
        grouped: grouped_words(others, request.group_by, paging.page == 1 && answer.next_cursor.is_none()),
        did_you_mean: meant
            .map(|text| Link { text: text.to_owned(), href: links::with("/search", query, "q", text) }),
        cards,
        less_related,
        nothing_good: answer.nothing_good,
        has_no_words: answer.has_no_words,
        suggested: fallback.overview.as_ref().filter(|_| !is_unread_site).map(suggested).unwrap_or_default(),
        dropped: dropped(query, fallback),
        summary,
        has_only_close: request.is_relevant_only,
        connection,
        less_words,
        previous: paging.previous(query),
        next: paging.next(query, &answer),
        next_words: if ends_with_close { "Next: less related" } else { "Next" },
        atom: links::with_query(
            "/search.atom",
            query.pairs().filter(|(name, _)| *name == "q" || is_filter(name)),
        ),
    }
}

/// A sentence with the number of results that are grouped under the results of the page. It explains why the page has fewer rows than the
/// total.
fn grouped_words(others: u64, by: Grouping, is_one_page: bool) -> Option<String> {
    let place = if is_one_page { "" } else { " on this page" };
    let how = if by == Grouping::Site { "below the best of their site" } else { "grouped as copies" };
    (others > 0).then(|| format!("{} {how}{place}", labels::grouped(others)))
}

/// The agent protocol that a request names.
fn named_protocol(words: &str) -> Option<Protocol> {
    let known = [("mcp", Protocol::Mcp), ("a2a", Protocol::A2a)];
    let mut named = words.split(|c: char| !c.is_alphanumeric());
    let of = |word: &str| known.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
    named.find_map(of).map(|(_, protocol)| *protocol)
}

/// The sites with an endpoint of the protocol that a request names.
fn endpoints_named(words: &str) -> Option<Link> {
    let protocol = named_protocol(words)?;
    let text = format!("Sites with an {}", labels::agent_endpoint(protocol)?);
    Some(Link { text, href: links::search([(FacetKey::AgentEndpoint.as_str(), protocol.as_str())]) })
}

/// A sentence for a request that names an agent protocol, if no result on the page has an endpoint for it.
fn connection_words<'a>(words: &str, hits: impl Iterator<Item = &'a Hit>) -> Option<String> {
    let protocol = named_protocol(words)?;
    let endpoint = labels::agent_endpoint(protocol)?;
    let mut hits = hits.peekable();
    if hits.peek().is_none()
        || hits.any(|hit| hit.protocol == Some(protocol) || hit.site_endpoints.contains(&protocol))
    {
        return None;
    }
    Some(format!(
        "None of these sites has an {endpoint} of its own. Every result can be used through the MCP server of this registry."
    ))
}

/// The site that a request names, if the whole request is a host name or a URL.
pub(crate) fn searched_site(words: &str) -> Option<SiteName> {
    let words = words.trim();
    let bare = words.strip_prefix("https://").or_else(|| words.strip_prefix("http://")).unwrap_or(words);
    let host = bare.split('/').next().filter(|host| host.contains('.'))?;
    Some(Host::parse(&host.to_lowercase()).ok()?.site())
}

/// How many of the first results on the page are relevant; `None` if that is not known.
fn relevant_on_page(answer: &SearchAnswer, request: &SearchRequest, paging: Paging) -> Option<usize> {
    let relevant = answer.relevant.filter(|_| request.cursor.is_none() && !request.phrasings.is_empty())?;
    Some(usize::try_from(relevant).unwrap_or(usize::MAX).saturating_sub(paging.skipped()))
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

fn is_filter(name: &str) -> bool {
    !matches!(
        name,
        "q" | "cursor" | "page" | "limit" | "sort" | "view" | "fields" | "facets" | "explain" | "group_by"
    )
}

/// Hidden fields of the form: the filters and the order.
fn hidden_fields(query: &QueryPairs) -> Vec<(String, String)> {
    let kept = query.pairs().filter(|(name, _)| is_filter(name) || matches!(*name, "sort" | "group_by"));
    kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The values of filters, with their names.
pub(crate) fn filter_values(query: &QueryPairs) -> impl Iterator<Item = (&str, &str)> {
    let filters = query.pairs().filter(|(name, _)| is_filter(name));
    let values = filters.flat_map(|(name, text)| text.split(',').map(move |value| (name, value.trim())));
    values.filter(|(_, value)| !value.is_empty())
}

/// The active filters: name, value, and the link that removes it.
fn active(query: &QueryPairs) -> impl Iterator<Item = (&str, &str, Link)> {
    filter_values(query).map(|(name, value)| {
        let key = name.parse::<FacetKey>().ok();
        let label = key.map_or_else(|| name.replace('_', " "), |key| key.filter().label.to_owned());
        let shown = key.map_or_else(|| value.to_owned(), |key| labels::facet_value(key, value));
        (name, value, Link { text: format!("{label}: {shown}"), href: links::toggled(query, name, value) })
    })
}

/// Links that remove one filter, with the number of results without it.
fn dropped(query: &QueryPairs, fallback: &Fallback) -> Vec<(Link, String)> {
    let count = |name: &str, value: &str| {
        let counted = fallback.without.iter().find(|(n, v, _)| n == name && v == value);
        counted.map(|(_, _, count)| *count).filter(|count| *count > 0)
    };
    let link = |(name, value, link): (&str, &str, Link)| {
        Some((link, labels::counted(count(name, value)?, "result", "results")))
    };
    active(query).filter_map(link).collect()
}

fn sorts(query: &QueryPairs, chosen: Sort) -> Vec<Choice> {
    let query = query.without("cursor").without("page");
    let choice = |(sort, text): (Sort, &'static str)| Choice {
        text,
        href: if sort == Sort::Relevance {
            links::search(query.pairs().filter(|(name, _)| *name != "sort"))
        } else {
            links::with("/search", &query, "sort", sort.as_str())
        },
        chosen: sort == chosen,
    };
    let all = [
        (Sort::Relevance, "Best match"),
        (Sort::Updated, "Updated"),
        (Sort::FirstSeen, "New"),
        (Sort::Name, "A to Z"),
    ];
    all.map(choice).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_the_first_sentence_of_a_description() {
        for (description, shown) in [
            ("take a piece out of the cart", "Take a piece out of the cart"),
            ("Track a parcel. Needs its number.", "Track a parcel"),
            ("Version 1.2 of the weather.", "Version 1.2 of the weather"),
            ("", ""),
        ] {
            assert_eq!(first_words(description), shown);
        }
        assert!(first_words(&"word ".repeat(40)).chars().count() <= EXAMPLE_CHARS_MAX + 1);
    }

    #[test]
    fn grouped_results_are_counted() {
        for (others, by, is_one_page, words) in [
            (0, Grouping::Copies, true, None),
            (3, Grouping::Copies, true, Some("3 grouped as copies")),
            (1, Grouping::Copies, false, Some("1 grouped as copies on this page")),
            (2, Grouping::Site, true, Some("2 below the best of their site")),
        ] {
            assert_eq!(grouped_words(others, by, is_one_page).as_deref(), words);
        }
    }

    #[test]
    fn name_of_a_site_is_recognised() {
        for (words, site) in [
            ("skyhop.example", Some("skyhop.example")),
            (" www.Skyhop.example ", Some("skyhop.example")),
            ("https://skyhop.example/agent.json?x=1", Some("skyhop.example")),
            ("book a flight", None),
            ("book.flight now", None),
            ("flight", None),
            ("v1.2", None),
        ] {
            assert_eq!(searched_site(words).map(|found| found.to_string()).as_deref(), site, "{words}");
        }
    }
}
