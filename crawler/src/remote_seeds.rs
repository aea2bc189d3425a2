//! Seeds from the web: a list at a URL, and the results of another registry of agents (ARD, `POST /search`).
//!
//! The operator names both. They are requested under the rules of their host, after redirects too
//! ([`StandaloneRequests`]). A list that robots.txt forbids is not read.

use std::sync::Arc;

use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use manifest::{ManifestUrl, SiteScope};
use policy::outcome::bot_wall_header;
use policy::redirect::{Purpose, RedirectDecision, decide};
use policy::{BodyKind, FetchOutcome};
use serde_json::{Value, json};
use store::Seed;

use crate::seeds::SeedError;
use crate::visit::{Message, StandaloneError, StandaloneRequests};
use egress::{Head, Reply};

/// Redirects of a list; Tranco's has one.
const HOPS_MAX: usize = 3;
/// Results per page; the maximum of ARD.
const PAGE_SIZE: u32 = 100;
/// Longest token of a page that is sent back.
pub(crate) const TOKEN_BYTES_MAX: usize = 4 * 1_024;
/// Pages of one registry: a hundred thousand entries.
pub(crate) const PAGES_MAX: usize = 1_000;
/// The query if the operator named none.
const QUERY_DEFAULT: &str = "*";

/// How to treat a registry whose daily budget ends before its last page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Incomplete {
    /// Uses the pages read so far.
    Used,
    /// Uses nothing: sites that are not named would be removed.
    Refused,
}

/// The bytes of a list at a URL.
pub(crate) async fn fetch_list(
    requests: &mut StandaloneRequests,
    url: &ManifestUrl,
) -> Result<Vec<u8>, SeedError> {
    let unfetched = |reason: String| SeedError::Unfetched { name: url.to_string(), reason };
    let mut chain = vec![url.clone()];
    while let Some(current) = chain.last() {
        // the largest cap
        let answer = requests.ask(current, BodyKind::OpenApi, Message::Get(&HeaderMap::new())).await;
        let reply = answer.map_err(|error| unfetched(error.to_string()))?;
        let head = &reply.head;
        match (FetchOutcome::of_response(head.status.as_u16(), &head.headers), reply.body) {
            (None, Some(body)) => return Ok(body.bytes),
            (None, None) if chain.len() > HOPS_MAX => {
                return Err(unfetched(format!("more than {HOPS_MAX} redirects")));
            }
            (None, None) => match decide(&chain, head.text(&LOCATION), Purpose::Resource) {
                RedirectDecision::Follow(next) | RedirectDecision::OtherSite(next) => chain.push(next),
                RedirectDecision::Refuse(refusal) => {
                    return Err(unfetched(format!("its redirect is not followed: {refusal}")));
                }
            },
            (Some(_), _) => return Err(unfetched(denial_text(&reply.head))),
        }
    }
    Err(unfetched("there is nothing to ask".to_owned()))
}

/// Every entry that a registry finds for the query in `?q=` of the URL.
pub(crate) async fn search_registry(
    requests: &mut StandaloneRequests,
    base: &ManifestUrl,
    incomplete: Incomplete,
) -> Result<Vec<Seed>, SeedError> {
    let unfetched = |reason: String| SeedError::Unfetched { name: base.to_string(), reason };
    let (search, text) =
        search_of(base).ok_or_else(|| unfetched("it is not the base URL of a registry".to_owned()))?;
    let source = Arc::new(base.clone());
    let (mut seeds, mut token) = (Vec::new(), None::<String>);
    for page in 0..PAGES_MAX {
        let body = search_body(&text, token.as_deref());
        let reply = match requests.ask(&search, BodyKind::Manifest, Message::Post(&body)).await {
            Ok(reply) => reply,
            Err(error @ StandaloneError::Waits { .. })
                if incomplete == Incomplete::Used && !seeds.is_empty() =>
            {
                tracing::warn!(registry = %base, pages = page, %error, "the rest of a registry is not read");
                break;
            }
            Err(error) => return Err(unfetched(error.to_string())),
        };
        let answer = read_page(reply).map_err(unfetched)?;
        seeds.extend(entries(&answer, &source));
        let next = answer["pageToken"].as_str().filter(|next| (1..=TOKEN_BYTES_MAX).contains(&next.len()));
        // the same page again would be an endless loop
        if next.is_none() || next == token.as_deref() {
            break;
        }
        token = next.map(str::to_owned);
    }
    if seeds.is_empty() {
        return Err(SeedError::Empty { name: base.to_string() });
    }
    Ok(seeds)
}

pub(crate) fn denial_text(head: &Head) -> String {
    match bot_wall_header(&head.headers) {
        Some(wall) => format!("a bot wall answered {} ({wall})", head.status),
        None => format!("the server answered {}", head.status),
    }
}

/// Splits `https://host/base?q=words` into the URL for the POST and the words.
fn search_of(base: &ManifestUrl) -> Option<(ManifestUrl, String)> {
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

fn read_page(reply: Reply) -> Result<Value, String> {
    let (StatusCode::OK, None, Some(body)) =
        (reply.head.status, bot_wall_header(&reply.head.headers), reply.body)
    else {
        return Err(denial_text(&reply.head));
    };
    manifest::budget::parse_within_budget(&body.bytes, &manifest::budget::BODY)
        .map_err(|error| format!("its answer is not usable JSON: {error}"))
}

/// A result names the document's URL, and its publisher in its URN: `urn:air:PUBLISHER:…`.
/// They are links of the registry, not seeds of the operator.
fn entries(answer: &Value, registry: &Arc<ManifestUrl>) -> Vec<Seed> {
    let results = answer["results"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_url = |entry: &Value| {
        let url = ManifestUrl::parse(entry["url"].as_str()?).ok()?;
        SiteScope::Public.check_url(&url).is_ok().then_some(url)
    };
    let of_publisher = |entry: &Value| {
        let publisher = entry["identifier"].as_str()?.split(':').nth(2)?;
        let host = manifest::Host::parse(publisher).ok()?;
        SiteScope::Public.check_host(&host).is_ok().then_some(host)
    };
    let seeds = results.iter().take(PAGE_SIZE as usize).flat_map(|entry| {
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
        let seeds = entries(&answer, &registry);
        let shown: Vec<String> = seeds
            .iter()
            .map(|seed| seed.url.as_ref().map_or_else(|| seed.host.to_string(), ToString::to_string))
            .collect();
        assert_eq!(shown, ["https://a.example/card.json", "a.example"]);
        assert!(seeds.iter().all(|seed| seed.origin.source() == Some(&registry)), "{seeds:?}");
    }
}
