//! Seeds from another registry of agents (ARD 0.91): its list (`GET /agents`, §5.3.5), or the results of its search (`POST /search`,
//! §5.3.2).
//!
//! The list is followed: after the first reading, only entries whose `updatedAt` is later than the last one are requested (Appendix A). ARD
//! has no tombstones, so a reading of all entries removes those that are gone. A registry need not offer the list; then it is searched, as
//! with words in `?q=`.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use manifest::{ManifestUrl, RegistryEntry, SiteScope, registry_publisher};
use policy::BodyKind;
use serde_json::{Value, json};
use store::{Seed, Store};

use crate::harvest::{Harvest, Incomplete};
use crate::page_size::PageSize;
use crate::registry_pages::{ENTRIES_MAX, Page, PageRequest, PagedRegistry, read_pages};
use crate::seeds::SeedError;
use crate::visit::StandaloneRequests;

/// The words of the search if the operator named none.
const WORDS_DEFAULT: &str = "*";
/// Parameter of the operator's URL with the words of a search.
pub(crate) const WORDS: &str = "q";

/// Every entry that a registry lists or, if it has no list or the operator named words, returns for a search.
pub(crate) async fn read_ard_registry(
    requests: &mut StandaloneRequests,
    store: &Store,
    base: &ManifestUrl,
    incomplete: Incomplete,
) -> Result<Vec<Seed>, SeedError> {
    if base.as_url().query_pairs().all(|(key, _)| key != WORDS)
        && let Some(url) = endpoint(base, "agents")
    {
        let harvest = Harvest::of_changes(store, &url, incomplete).await?;
        let is_known = harvest.is_known();
        let list = AgentList { source: Arc::new(base.clone()), url };
        match read_pages(requests, base, incomplete, &list, harvest).await {
            Err(SeedError::NotOffered { reason, .. }) if !is_known && base.as_url().query().is_none() => {
                tracing::info!(registry = %base, reason, "a registry without a list is searched");
            }
            read => return read,
        }
    }
    let search = AgentSearch { source: Arc::new(base.clone()) };
    // the URL of the search, because the same host may also be followed as an MCP registry
    let url = endpoint(base, "search").unwrap_or_else(|| base.clone());
    read_pages(requests, base, incomplete, &search, Harvest::of_selection(store, &url)).await
}

/// The URL of an endpoint of a registry, with the query of the operator. The operator may have named the base of the registry or, as
/// catalogs do, one of its endpoints: a last segment `search` or `agents` is replaced.
fn endpoint(base: &ManifestUrl, name: &str) -> Option<ManifestUrl> {
    let mut url = base.as_url().clone();
    let path = url.path().trim_end_matches('/');
    let root = ["/search", "/agents"].iter().find_map(|endpoint| path.strip_suffix(endpoint)).unwrap_or(path);
    let path = format!("{root}/{name}");
    url.set_path(&path);
    ManifestUrl::parse(url.as_str()).ok()
}

/// The list of a registry.
struct AgentList {
    source: Arc<ManifestUrl>,
    url: ManifestUrl,
}

impl PagedRegistry for AgentList {
    fn request(
        &self,
        since: Option<DateTime<Utc>>,
        token: Option<&str>,
        size: PageSize,
    ) -> Option<PageRequest> {
        let mut url = self.url.as_url().clone();
        if let Some(since) = since {
            let since = since.to_rfc3339_opts(SecondsFormat::Millis, true);
            url.query_pairs_mut().append_pair("filter", &format!("updatedAfter > '{since}'"));
        }
        size.add_to(&mut url, "pageSize");
        if let Some(token) = token {
            url.query_pairs_mut().append_pair("pageToken", token);
        }
        // the kind of body with the largest limit
        Some(PageRequest {
            url: ManifestUrl::parse(url.as_str()).ok()?,
            limit: BodyKind::OpenApi,
            body: None,
        })
    }

    fn list(&self) -> &'static str {
        "items"
    }

    fn read(&self, page: &Value) -> Option<Page> {
        page_of(page, self.list(), &self.source)
    }

    fn next_token<'p>(&self, page: &'p Value) -> Option<&'p str> {
        page["pageToken"].as_str()
    }

    fn advice(&self) -> &'static str {
        "check that the URL is the base of an ARD registry, which answers GET /agents or POST /search"
    }
}

/// The search of a registry.
struct AgentSearch {
    source: Arc<ManifestUrl>,
}

impl PagedRegistry for AgentSearch {
    fn request(&self, _: Option<DateTime<Utc>>, token: Option<&str>, size: PageSize) -> Option<PageRequest> {
        let (url, text) = search_of(&self.source)?;
        Some(PageRequest { url, limit: BodyKind::Manifest, body: Some(search_body(&text, token, size)) })
    }

    fn list(&self) -> &'static str {
        "results"
    }

    fn read(&self, page: &Value) -> Option<Page> {
        page_of(page, self.list(), &self.source)
    }

    fn next_token<'p>(&self, page: &'p Value) -> Option<&'p str> {
        page["pageToken"].as_str()
    }

    fn advice(&self) -> &'static str {
        "check that the URL is the base of an ARD registry, which answers POST /search"
    }
}

/// Splits `https://host/base?q=words` into the URL for the POST and the words.
fn search_of(base: &ManifestUrl) -> Option<(ManifestUrl, String)> {
    let mut url = endpoint(base, "search")?.as_url().clone();
    let words = url.query_pairs().find(|(key, _)| key == WORDS).map(|(_, words)| words.into_owned());
    url.set_query(None);
    Some((ManifestUrl::parse(url.as_str()).ok()?, words.unwrap_or_else(|| WORDS_DEFAULT.to_owned())))
}

fn search_body(text: &str, token: Option<&str>, size: PageSize) -> Value {
    let mut body = json!({ "query": { "text": text }, "pageSize": size.entries() });
    if let (Some(token), Some(object)) = (token, body.as_object_mut()) {
        object.insert("pageToken".to_owned(), token.into());
    }
    body
}

/// The entries of a page. `None` without a list, or if the next page is not named by a text.
fn page_of(page: &Value, list: &str, registry: &Arc<ManifestUrl>) -> Option<Page> {
    let entries = page[list].as_array()?.as_slice();
    let next = &page["pageToken"];
    if !next.is_null() && !next.is_string() {
        return None;
    }
    let entries = entries.get(..ENTRIES_MAX).unwrap_or(entries);
    Some(Page {
        is_empty: entries.is_empty(),
        seeds: seeds_of(entries, registry),
        entries: entries.iter().filter_map(RegistryEntry::of_agent).collect(),
    })
}

/// The seeds in a page of entries: the URL of each document, and its publisher. They count as links of the registry, not as seeds of the
/// operator.
fn seeds_of(entries: &[Value], registry: &Arc<ManifestUrl>) -> Vec<Seed> {
    let of_url = |entry: &Value| {
        let url = ManifestUrl::parse(entry["url"].as_str()?).ok()?;
        SiteScope::Public.check_url(&url).is_ok().then_some(url)
    };
    let of_publisher = |entry: &Value| registry_publisher(entry["identifier"].as_str()?);
    let seeds = entries.iter().flat_map(|entry| {
        let document = of_url(entry).map(|url| Seed::linked(url, Arc::clone(registry)));
        let publisher = of_publisher(entry).map(|host| Seed::linked_host(host, Arc::clone(registry)));
        document.into_iter().chain(publisher)
    });
    seeds.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derives_the_search_url_from_the_registry_base() {
        for (base, search, words) in [
            ("https://r.example/", "https://r.example/search", "*"),
            ("https://r.example/ard?q=book%20flight", "https://r.example/ard/search", "book flight"),
            ("https://r.example/v1/search", "https://r.example/v1/search", "*"),
            ("https://r.example/agents?q=x", "https://r.example/search", "x"),
            ("https://r.example/v1/agents/?q=x", "https://r.example/v1/search", "x"),
            ("https://r.example/my-agents?q=x", "https://r.example/my-agents/search", "x"),
        ] {
            let (url, text) = search_of(&ManifestUrl::parse(base).unwrap()).unwrap();
            assert_eq!((url.as_str(), text.as_str()), (search, words), "{base}");
        }
    }

    #[test]
    fn lists_the_entries_of_a_registry_that_have_changed() {
        let at = DateTime::UNIX_EPOCH;
        for (base, since, token, expected) in [
            ("https://r.example/", None, None, "https://r.example/agents?pageSize=100"),
            ("https://r.example/v1/search", None, None, "https://r.example/v1/agents?pageSize=100"),
            (
                "https://r.example/agents/",
                None,
                Some("a&b"),
                "https://r.example/agents?pageSize=100&pageToken=a%26b",
            ),
            (
                "https://r.example/ard",
                Some(at),
                None,
                "https://r.example/ard/agents?filter=updatedAfter+%3E+%271970-01-01T00%3A00%3A00.000Z%27&pageSize=100",
            ),
            (
                "https://r.example/?filter=x&pageSize=7",
                None,
                Some("2"),
                "https://r.example/agents?filter=x&pageSize=7&pageToken=2",
            ),
        ] {
            let base = ManifestUrl::parse(base).unwrap();
            let url = endpoint(&base, "agents").unwrap();
            let list = AgentList { source: Arc::new(base), url };
            let request = list.request(since, token, PageSize::MAX).unwrap();
            assert_eq!((request.url.as_str(), request.body), (expected, None));
        }
    }

    #[test]
    fn a_page_without_a_list_or_with_another_token_is_no_page() {
        let registry = Arc::new(ManifestUrl::parse("https://registry.example/").unwrap());
        for page in [json!({}), json!({"items": {}}), json!({"items": [], "pageToken": 7}), json!([])] {
            assert!(page_of(&page, "items", &registry).is_none(), "{page}");
        }
        let many: Vec<Value> =
            (0..300).map(|number| json!({"identifier": format!("urn:air:a.example:x:{number}")})).collect();
        let page = page_of(&json!({"items": many, "pageToken": null}), "items", &registry).unwrap();
        assert_eq!((page.entries.len(), page.seeds.len(), page.is_empty), (100, 100, false));
    }

    #[test]
    fn registry_entries_become_links_of_the_registry() {
        let answer = json!({ "results": [
            { "identifier": "urn:air:a.example:agents:one", "url": "https://a.example/card.json", "score": 90 },
            { "identifier": "nonsense", "url": "ftp://b.example" }, 7,
            { "identifier": "urn:air:co.uk:agents:one", "url": "https://a.internal/card.json" },
            { "identifier": "urn:air:x.onion:agents:one", "url": "https://a.example:22/card.json" },
        ]});
        let registry = Arc::new(ManifestUrl::parse("https://registry.example/").unwrap());
        let seeds = seeds_of(answer["results"].as_array().unwrap(), &registry);
        let shown: Vec<String> = seeds
            .iter()
            .map(|seed| seed.url.as_ref().map_or_else(|| seed.host.to_string(), ToString::to_string))
            .collect();
        assert_eq!(shown, ["https://a.example/card.json", "a.example"]);
        assert!(seeds.iter().all(|seed| seed.origin.source() == Some(&registry)), "{seeds:?}");
    }
}
