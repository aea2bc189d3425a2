//! Seeds from a registry of MCP servers (`GET /v0.1/servers`): the hosts of remotes and home pages, and the domains that publish.
//!
//! A remote is an MCP endpoint. It is never called; only its host is added, and the usual paths are requested there. With
//! `?updated_since=`, the registry lists only servers that have changed since a time.

use std::collections::BTreeSet;
use std::sync::Arc;

use manifest::{Host, ManifestUrl, SiteScope};
use policy::BodyKind;
use serde_json::Value;
use store::Seed;

use crate::registry_pages::{Incomplete, PageRequest, PagedRegistry, read_pages};
use crate::seeds::SeedError;
use crate::visit::StandaloneRequests;

/// The path of the list, unless the URL has one.
const LIST_PATH: &str = "/v0.1/servers";
/// Servers per page; the maximum of the official registry.
const PAGE_SIZE: usize = 100;
/// Maximum number of hosts that one server may name: published entries have one to three.
const HOSTS_PER_SERVER_MAX: usize = 10;
/// Publishers whose names contain an account, not a domain.
const ACCOUNTS: [&str; 3] = ["github.io", "github.com", "gitlab.io"];

/// Every host that the servers of a registry name.
pub(crate) async fn list_mcp_registry(
    requests: &mut StandaloneRequests,
    base: &ManifestUrl,
    incomplete: Incomplete,
) -> Result<Vec<Seed>, SeedError> {
    let source = Arc::new(base.clone());
    let hosts = read_pages(requests, base, incomplete, &McpRegistry { base }).await?;
    let hosts: BTreeSet<Host> = hosts.into_iter().collect();
    Ok(hosts.into_iter().map(|host| Seed::linked_host(host, Arc::clone(&source))).collect())
}

struct McpRegistry<'a> {
    base: &'a ManifestUrl,
}

impl PagedRegistry for McpRegistry<'_> {
    type Item = Host;

    fn request(&self, token: Option<&str>) -> Option<PageRequest> {
        // the kind of body with the largest limit
        Some(PageRequest { url: page_url(self.base, token)?, limit: BodyKind::OpenApi, body: None })
    }

    fn items(&self, page: &Value) -> Vec<Host> {
        hosts_of(page)
    }

    fn next_token<'p>(&self, page: &'p Value) -> Option<&'p str> {
        page["metadata"]["nextCursor"].as_str()
    }
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
