//! Seeds from the web: a list at a URL, and the results of another registry of agents (ARD, `POST /search`).
//!
//! The operator names both. Requests follow the rules of the host, also after a redirect ([`StandaloneRequests`]). A list that robots.txt
//! forbids is not read.

use std::sync::Arc;

use http::HeaderMap;
use http::header::LOCATION;
use manifest::{ManifestUrl, RegistryEntry, SiteScope};
use policy::redirect::{Purpose, RedirectDecision, decide};
use policy::{BodyKind, FetchOutcome};
use serde_json::{Value, json};
use store::Seed;

use crate::harvest::{Harvest, Incomplete};
use crate::registry_pages::{Page, PageRequest, PagedRegistry, denial, read_pages};
use crate::seeds::SeedError;
use crate::visit::{Message, StandaloneRequests};

/// Maximum number of redirects of a list; Tranco's has one.
const HOPS_MAX: usize = 3;
/// What to do about redirects that are not followed.
const FINAL_URL: &str = "name the URL of the list itself";
/// Results per page; the maximum of ARD.
const PAGE_SIZE: u32 = 100;
/// The query if the operator named none.
const QUERY_DEFAULT: &str = "*";

/// The bytes of a list at a URL.
pub(crate) async fn fetch_list(
    requests: &mut StandaloneRequests,
    url: &ManifestUrl,
) -> Result<Vec<u8>, SeedError> {
    let unfetched = |(reason, advice): (String, &'static str)| SeedError::Unfetched {
        name: url.to_string(),
        reason,
        advice,
    };
    let mut chain = vec![url.clone()];
    while let Some(current) = chain.last() {
        // the kind of body with the largest limit
        let answer = requests.send(current, BodyKind::OpenApi, Message::Get(&HeaderMap::new())).await;
        let reply = answer.map_err(|error| unfetched((error.to_string(), error.advice())))?;
        let head = &reply.head;
        match (FetchOutcome::of_response(head.status.as_u16(), &head.headers), reply.body) {
            (None, Some(body)) => return Ok(body.bytes),
            (None, None) if chain.len() > HOPS_MAX => {
                return Err(unfetched((format!("more than {HOPS_MAX} redirects"), FINAL_URL)));
            }
            (None, None) => match decide(&chain, head.text(&LOCATION), Purpose::Resource) {
                RedirectDecision::Follow(next) | RedirectDecision::OtherSite(next) => chain.push(next),
                RedirectDecision::Refuse(refusal) => {
                    return Err(unfetched((format!("its redirect is not followed: {refusal}"), FINAL_URL)));
                }
            },
            (Some(_), _) => return Err(unfetched(denial(&reply.head, "check the URL"))),
        }
    }
    Err(unfetched(("there is no URL to request".to_owned(), FINAL_URL)))
}

/// Every entry that a registry returns for the query in `?q=` of the URL.
pub(crate) async fn search_registry(
    requests: &mut StandaloneRequests,
    base: &ManifestUrl,
    incomplete: Incomplete,
    harvest: Harvest,
) -> Result<Vec<Seed>, SeedError> {
    let registry = AgentRegistry { source: Arc::new(base.clone()) };
    read_pages(requests, base, incomplete, &registry, harvest).await
}

struct AgentRegistry {
    source: Arc<ManifestUrl>,
}

impl PagedRegistry for AgentRegistry {
    fn request(&self, token: Option<&str>) -> Option<PageRequest> {
        let (url, text) = search_of(&self.source)?;
        Some(PageRequest { url, limit: BodyKind::Manifest, body: Some(search_body(&text, token)) })
    }

    fn read(&self, page: &Value) -> Option<Page> {
        let results = page["results"].as_array()?.as_slice();
        let results = results.get(..PAGE_SIZE as usize).unwrap_or(results);
        Some(Page {
            is_empty: results.is_empty(),
            seeds: seeds_of(results, &self.source),
            entries: results.iter().filter_map(RegistryEntry::of_agent).collect(),
        })
    }

    fn next_token<'p>(&self, page: &'p Value) -> Option<&'p str> {
        page["pageToken"].as_str()
    }

    fn advice(&self) -> &'static str {
        "check that the URL is the base of an ARD registry, which answers POST /search"
    }
}

/// Splits `https://host/base?q=words` into the URL for the POST and the words.
pub(crate) fn search_of(base: &ManifestUrl) -> Option<(ManifestUrl, String)> {
    let mut url = base.as_url().clone();
    let words = url.query_pairs().find(|(key, _)| key == "q").map(|(_, words)| words.into_owned());
    url.set_query(None);
    let path = url.path().trim_end_matches('/');
    let path = if path.ends_with("/search") { path.to_owned() } else { format!("{path}/search") };
    url.set_path(&path);
    Some((ManifestUrl::parse(url.as_str()).ok()?, words.unwrap_or_else(|| QUERY_DEFAULT.to_owned())))
}

fn search_body(text: &str, token: Option<&str>) -> Value {
    let mut body = json!({ "query": { "text": text }, "pageSize": PAGE_SIZE });
    if let (Some(token), Some(object)) = (token, body.as_object_mut()) {
        object.insert("pageToken".to_owned(), token.into());
    }
    body
}

/// The seeds in a page of results: the URL of each document, and its publisher, which is part of the URN (`urn:air:PUBLISHER:…`). They
/// count as links of the registry, not as seeds of the operator.
fn seeds_of(results: &[Value], registry: &Arc<ManifestUrl>) -> Vec<Seed> {
    let of_url = |entry: &Value| {
        let url = ManifestUrl::parse(entry["url"].as_str()?).ok()?;
        SiteScope::Public.check_url(&url).is_ok().then_some(url)
    };
    let of_publisher = |entry: &Value| {
        let publisher = entry["identifier"].as_str()?.split(':').nth(2)?;
        let host = manifest::Host::parse(publisher).ok()?;
        SiteScope::Public.check_host(&host).is_ok().then_some(host)
    };
    let seeds = results.iter().flat_map(|entry| {
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
        ] {
            let (url, text) = search_of(&ManifestUrl::parse(base).unwrap()).unwrap();
            assert_eq!((url.as_str(), text.as_str()), (search, words), "{base}");
        }
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
