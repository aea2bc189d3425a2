//! Seeds from the web: a list at a URL, and what another registry of agents knows (ARD, `POST /search`).
//!
//! Both are named by the operator and asked as a reader of feeds would: through `egress`, one request at a time, with the
//! configured delay between two of them.

use std::time::Duration;

use http::StatusCode;
use http::header::LOCATION;
use manifest::{ManifestUrl, SiteScope};
use policy::BodyKind;
use serde_json::{Value, json};
use store::{Seed, SeedOrigin};

use super::SeedError;
use crate::egress::{Egress, Reply, Session};

/// Redirects of a list; Tranco's has one.
const HOPS_MAX: usize = 3;
/// Results a page; ARD allows no more.
const PAGE_SIZE: u32 = 100;
/// Pages of one registry: a hundred thousand entries.
const PAGES_MAX: usize = 1_000;
/// What is searched for where the operator named nothing.
const QUERY_DEFAULT: &str = "*";

/// The bytes of a list at a URL.
pub(crate) async fn fetch_list(egress: &Egress, url: &ManifestUrl) -> Result<Vec<u8>, SeedError> {
    let unfetched = |reason: String| SeedError::Unfetched { name: url.to_string(), reason };
    let session = egress.session().map_err(|failure| unfetched(failure.reason))?;
    let mut current = url.clone();
    for _ in 0..=HOPS_MAX {
        session.resolve(&current.host()).await.map_err(|failure| unfetched(failure.reason))?;
        // the largest cap there is
        let answer = session.fetch(&current, BodyKind::OpenApi, &http::HeaderMap::new()).await;
        let reply = answer.map_err(|failure| unfetched(failure.reason))?;
        match reply.head.status {
            StatusCode::OK => return Ok(reply.body.bytes),
            status if status.is_redirection() => {
                let next = reply.head.text(&LOCATION).and_then(|to| current.join(to).ok());
                current = next.ok_or_else(|| unfetched("it redirects to nowhere".to_owned()))?;
            }
            status => return Err(unfetched(format!("the server answered {status}"))),
        }
    }
    Err(unfetched(format!("more than {HOPS_MAX} redirects")))
}

/// Every entry that a registry finds: `?q=` of the URL says what is searched for.
pub(crate) async fn harvest_registry(
    egress: &Egress,
    base: &ManifestUrl,
    delay: Duration,
) -> Result<Vec<Seed>, SeedError> {
    let unfetched = |reason: String| SeedError::Unfetched { name: base.to_string(), reason };
    let (search, text) =
        search_of(base).ok_or_else(|| unfetched("it is no base of a registry".to_owned()))?;
    let session = egress.session().map_err(|failure| unfetched(failure.reason))?;
    session.resolve(&search.host()).await.map_err(|failure| unfetched(failure.reason))?;
    let (mut seeds, mut token) = (Vec::new(), None::<String>);
    for page in 0..PAGES_MAX {
        if page > 0 {
            tokio::time::sleep(delay).await;
        }
        let answer = ask(&session, &search, &text, token.as_deref()).await.map_err(unfetched)?;
        seeds.extend(entries(&answer));
        token = answer["pageToken"].as_str().filter(|token| !token.is_empty()).map(str::to_owned);
        if token.is_none() {
            break;
        }
    }
    if seeds.is_empty() {
        return Err(SeedError::Empty { name: base.to_string() });
    }
    Ok(seeds)
}

/// `https://host/base?q=words` as the URL that is posted to, and the words.
fn search_of(base: &ManifestUrl) -> Option<(ManifestUrl, String)> {
    let mut url = base.as_url().clone();
    let words = url.query_pairs().find(|(key, _)| key == "q").map(|(_, words)| words.into_owned());
    url.set_query(None);
    let path = url.path().trim_end_matches('/');
    let path = if path.ends_with("/search") { path.to_owned() } else { format!("{path}/search") };
    url.set_path(&path);
    Some((ManifestUrl::parse(url.as_str()).ok()?, words.unwrap_or_else(|| QUERY_DEFAULT.to_owned())))
}

async fn ask(session: &Session, url: &ManifestUrl, text: &str, token: Option<&str>) -> Result<Value, String> {
    let mut body = json!({ "query": { "text": text }, "pageSize": PAGE_SIZE });
    if let (Some(token), Some(object)) = (token, body.as_object_mut()) {
        object.insert("pageToken".to_owned(), token.into());
    }
    let reply: Reply = session.post_json(url, &body).await.map_err(|failure| failure.reason)?;
    if reply.head.status != StatusCode::OK {
        return Err(format!("the registry answered {}", reply.head.status));
    }
    serde_json::from_slice(&reply.body.bytes).map_err(|error| format!("its answer is not JSON: {error}"))
}

/// A result names the document's URL, and its publisher in its URN: `urn:air:PUBLISHER:…`.
fn entries(answer: &Value) -> Vec<Seed> {
    let results = answer["results"].as_array().map(Vec::as_slice).unwrap_or_default();
    // what a registry names is a link, not a seed of the operator
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
        let url = of_url(entry).map(|url| Seed {
            host: url.host(),
            url: Some(url),
            rank: None,
            origin: SeedOrigin::File,
            revisit_now: false,
        });
        url.into_iter().chain(of_publisher(entry).map(Seed::of_host))
    });
    seeds.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_to_search_is_made_from_the_base() {
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
    fn entries_become_seeds_of_their_documents_and_publishers() {
        let answer = json!({ "results": [
            { "identifier": "urn:air:a.example:agents:one", "url": "https://a.example/card.json", "score": 90 },
            { "identifier": "nonsense", "url": "ftp://b.example" }, 7,
            { "identifier": "urn:air:co.uk:agents:one", "url": "https://a.internal/card.json" },
            { "identifier": "urn:air:x.onion:agents:one", "url": "https://a.example:22/card.json" },
        ]});
        let seeds = entries(&answer);
        let shown: Vec<String> = seeds
            .iter()
            .map(|seed| seed.url.as_ref().map_or_else(|| seed.host.to_string(), ToString::to_string))
            .collect();
        assert_eq!(shown, ["https://a.example/card.json", "a.example"]);
    }
}
