//! Seeds from a registry of MCP servers (`GET /v0.1/servers`): the hosts of remotes and home pages, and the domains that publish.
//!
//! A remote is an endpoint of MCP, which is never called: its host becomes known, and the usual paths are requested there.
//! `?updated_since=` limits the list to what has changed since a time, as the registry defines it.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use manifest::{Host, ManifestUrl, SiteScope};
use policy::BodyKind;
use policy::outcome::bot_wall_header;
use serde_json::Value;
use store::Seed;

use crate::remote_seeds::{Incomplete, PAGES_MAX, TOKEN_BYTES_MAX, denial_text};
use crate::seeds::SeedError;
use crate::visit::{Message, StandaloneError, StandaloneRequests};
use egress::Reply;

/// The path of the list, unless the URL has one.
const LIST_PATH: &str = "/v0.1/servers";
/// Servers per page; the maximum of the official registry.
const PAGE_SIZE: usize = 100;
/// Hosts that one server may name: published entries have one to three.
const HOSTS_PER_SERVER_MAX: usize = 10;
/// Publishers whose names are those of accounts, not of domains.
const ACCOUNTS: [&str; 3] = ["github.io", "github.com", "gitlab.io"];

/// Every host that the servers of a registry name.
pub(crate) async fn list_mcp_registry(
    requests: &mut StandaloneRequests,
    base: &ManifestUrl,
    incomplete: Incomplete,
) -> Result<Vec<Seed>, SeedError> {
    let unfetched = |reason: String| SeedError::Unfetched { name: base.to_string(), reason };
    let source = Arc::new(base.clone());
    let (mut hosts, mut cursor) = (BTreeSet::new(), None::<String>);
    for page in 0..PAGES_MAX {
        let url = page_url(base, cursor.as_deref())
            .ok_or_else(|| unfetched("it is not the base URL of a registry".to_owned()))?;
        // the largest cap
        let reply = match requests.ask(&url, BodyKind::OpenApi, Message::Get(&HeaderMap::new())).await {
            Ok(reply) => reply,
            Err(error @ StandaloneError::Waits { .. })
                if incomplete == Incomplete::Used && !hosts.is_empty() =>
            {
                tracing::warn!(registry = %base, pages = page, %error, "the rest of a registry is not read");
                break;
            }
            Err(error) => return Err(unfetched(error.to_string())),
        };
        let answer = read_page(reply).map_err(unfetched)?;
        hosts.extend(hosts_of(&answer));
        let next = answer["metadata"]["nextCursor"].as_str();
        let next = next.filter(|next| (1..=TOKEN_BYTES_MAX).contains(&next.len()));
        // the same page again would be an endless loop
        if next.is_none() || next == cursor.as_deref() {
            break;
        }
        cursor = next.map(str::to_owned);
    }
    if hosts.is_empty() {
        return Err(SeedError::Empty { name: base.to_string() });
    }
    Ok(hosts.into_iter().map(|host| Seed::linked_host(host, Arc::clone(&source))).collect())
}

/// The URL of a page. The query of the operator, such as `updated_since`, is kept.
fn page_url(base: &ManifestUrl, cursor: Option<&str>) -> Option<ManifestUrl> {
    let mut url = base.as_url().clone();
    if url.path() == "/" {
        url.set_path(LIST_PATH);
    }
    let has_limit = url.query_pairs().any(|(key, _)| key == "limit");
    let mut query = url.query_pairs_mut();
    if !has_limit {
        query.append_pair("limit", &PAGE_SIZE.to_string());
    }
    if let Some(cursor) = cursor {
        query.append_pair("cursor", cursor);
    }
    drop(query);
    ManifestUrl::parse(url.as_str()).ok()
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

/// The hosts of one page. An entry is a server.json, or wraps one as `server`.
fn hosts_of(answer: &Value) -> Vec<Host> {
    let servers = answer["servers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let servers = servers.iter().take(PAGE_SIZE).map(|entry| entry.get("server").unwrap_or(entry));
    servers.flat_map(|server| hosts_of_server(server).into_iter().take(HOSTS_PER_SERVER_MAX)).collect()
}

fn hosts_of_server(server: &Value) -> Vec<Host> {
    let remotes = server["remotes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let urls = remotes.iter().take(HOSTS_PER_SERVER_MAX).map(|remote| &remote["url"]);
    let urls = urls.chain([&server["websiteUrl"]]).filter_map(Value::as_str);
    let of_urls = urls.filter_map(|url| Some(ManifestUrl::parse(url).ok()?.host()));
    let is_public = |host: &Host| SiteScope::Public.check_host(host).is_ok();
    of_urls.chain(publisher(server)).filter(is_public).collect()
}

/// The domain in a name such as `org.example/weather`.
fn publisher(server: &Value) -> Option<Host> {
    let (reversed, _) = server["name"].as_str()?.split_once('/')?;
    let domain = reversed.split('.').rev().collect::<Vec<_>>().join(".");
    let is_account = ACCOUNTS.iter().any(|host| domain.ends_with(host));
    if is_account { None } else { Host::parse(&domain).ok() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keeps_the_query_of_the_operator() {
        for (base, cursor, expected) in [
            ("https://r.example/", None, "https://r.example/v0.1/servers?limit=100"),
            (
                "https://r.example/?updated_since=2026-11-01T00:00:00Z",
                Some("a:1"),
                "https://r.example/v0.1/servers?updated_since=2026-11-01T00:00:00Z&limit=100&cursor=a%3A1",
            ),
            ("https://r.example/v0/servers?limit=30", None, "https://r.example/v0/servers?limit=30"),
        ] {
            let url = page_url(&ManifestUrl::parse(base).unwrap(), cursor).unwrap();
            assert_eq!(url.as_str(), expected);
        }
    }

    #[test]
    fn names_hosts_of_remotes_home_pages_and_publishers() {
        let answer = json!({ "servers": [
            { "server": { "name": "example.weather/mcp", "websiteUrl": "https://www.weather.example/docs",
                          "remotes": [{ "type": "sse", "url": "https://mcp.weather.example/sse" }, { "url": 7 }] } },
            { "name": "io.github.someone/tool", "remotes": [{ "url": "https://{tenant}.example/mcp" }] },
            { "server": { "name": "nonsense", "remotes": [{ "url": "https://10.0.0.1/mcp" }] } }, 7,
        ]});
        let hosts: Vec<String> = hosts_of(&answer).iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["mcp.weather.example", "www.weather.example", "weather.example"]);
    }
}
