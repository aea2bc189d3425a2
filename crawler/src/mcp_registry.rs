//! Seeds from a registry of MCP servers (`GET /v0.1/servers`): the hosts of remotes and home pages, and the domains that publish.
//!
//! A remote is an MCP endpoint. It is never called; only its host is added, and the usual paths are requested there. With
//! `?updated_since=`, the registry lists only servers that have changed since a time, including deleted ones.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use manifest::{Host, ManifestUrl, RegistryEntry, SiteScope, registry_publisher};
use policy::BodyKind;
use serde_json::Value;
use store::Seed;

use crate::harvest::{Harvest, Incomplete};
use crate::page_size::PageSize;
use crate::registry_pages::{ENTRIES_MAX, Page, PageRequest, PagedRegistry, read_pages};
use crate::seeds::SeedError;
use crate::visit::StandaloneRequests;

/// The path of the list, unless the URL has one.
const LIST_PATH: &str = "/v0.1/servers";
/// Maximum number of hosts that one server may name: published entries have one to three.
const HOSTS_PER_SERVER_MAX: usize = 10;

/// Every host that the requested servers of a registry name.
pub(crate) async fn list_mcp_registry(
    requests: &mut StandaloneRequests,
    base: &ManifestUrl,
    incomplete: Incomplete,
    harvest: Harvest,
) -> Result<Vec<Seed>, SeedError> {
    let registry = McpRegistry { base: Arc::new(base.clone()) };
    let mut seeds = read_pages(requests, base, incomplete, &registry, harvest).await?;
    let mut seen = HashSet::new();
    seeds.retain(|seed| seen.insert(seed.host.clone()));
    Ok(seeds)
}

struct McpRegistry {
    base: Arc<ManifestUrl>,
}

impl PagedRegistry for McpRegistry {
    fn request(
        &self,
        since: Option<DateTime<Utc>>,
        token: Option<&str>,
        size: PageSize,
    ) -> Option<PageRequest> {
        let url = page_url(&self.base, since, token, size)?;
        // the kind of body with the largest limit
        Some(PageRequest { url, limit: BodyKind::OpenApi, body: None })
    }

    fn list(&self) -> &'static str {
        "servers"
    }

    fn read(&self, page: &Value) -> Option<Page> {
        let servers = page["servers"].as_array()?.as_slice();
        let next = &page["metadata"]["nextCursor"];
        if !next.is_null() && !next.is_string() {
            return None;
        }
        let servers = servers.get(..ENTRIES_MAX).unwrap_or(servers);
        let mut page = Page { is_empty: servers.is_empty(), seeds: Vec::new(), entries: Vec::new() };
        for server in servers {
            let entry = RegistryEntry::of_server(server);
            if !entry.as_ref().is_some_and(|entry| entry.is_deleted) {
                let hosts = hosts_of(server).into_iter();
                page.seeds.extend(hosts.map(|host| Seed::linked_host(host, Arc::clone(&self.base))));
            }
            page.entries.extend(entry);
        }
        Some(page)
    }

    fn next_token<'p>(&self, page: &'p Value) -> Option<&'p str> {
        page["metadata"]["nextCursor"].as_str()
    }

    fn advice(&self) -> &'static str {
        "check that the URL is the base of an MCP registry, which answers GET /v0.1/servers"
    }
}

/// The URL of a page. The query of the operator, such as `updated_since`, is kept. Without one, only the latest versions are requested.
fn page_url(
    base: &ManifestUrl,
    since: Option<DateTime<Utc>>,
    cursor: Option<&str>,
    size: PageSize,
) -> Option<ManifestUrl> {
    let mut url = base.as_url().clone();
    if url.path() == "/" {
        url.set_path(LIST_PATH);
    }
    if url.query().is_none() {
        url.query_pairs_mut().append_pair("version", "latest");
    }
    if let Some(since) = since {
        let since = since.to_rfc3339_opts(SecondsFormat::Millis, true);
        url.query_pairs_mut().append_pair("updated_since", &since);
    }
    size.add_to(&mut url, "limit");
    if let Some(cursor) = cursor {
        url.query_pairs_mut().append_pair("cursor", cursor);
    }
    ManifestUrl::parse(url.as_str()).ok()
}

/// The hosts of an entry, which is a server.json or wraps one as `server`.
fn hosts_of(entry: &Value) -> Vec<Host> {
    let server = entry.get("server").unwrap_or(entry);
    let remotes = server["remotes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let urls = remotes.iter().take(HOSTS_PER_SERVER_MAX).map(|remote| &remote["url"]);
    let urls = urls.chain([&server["websiteUrl"]]).filter_map(Value::as_str);
    let of_urls = urls.filter_map(|url| Some(ManifestUrl::parse(url).ok()?.host()));
    let is_public = |host: &Host| SiteScope::Public.check_host(host).is_ok();
    let publisher = server["name"].as_str().and_then(registry_publisher);
    of_urls.chain(publisher).filter(is_public).take(HOSTS_PER_SERVER_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keeps_the_query_of_the_operator() {
        for (base, cursor, expected) in [
            ("https://r.example/", None, "https://r.example/v0.1/servers?version=latest&limit=100"),
            (
                "https://r.example/?updated_since=2026-11-01T00:00:00Z",
                Some("a:1"),
                "https://r.example/v0.1/servers?updated_since=2026-11-01T00:00:00Z&limit=100&cursor=a%3A1",
            ),
            ("https://r.example/v0/servers?limit=30", None, "https://r.example/v0/servers?limit=30"),
        ] {
            let url = page_url(&ManifestUrl::parse(base).unwrap(), None, cursor, PageSize::MAX).unwrap();
            assert_eq!(url.as_str(), expected);
        }
        let base = ManifestUrl::parse("https://r.example/").unwrap();
        let url = page_url(&base, Some(DateTime::UNIX_EPOCH), None, PageSize::MAX).unwrap();
        assert_eq!(
            url.as_str(),
            "https://r.example/v0.1/servers?version=latest&updated_since=1970-01-01T00%3A00%3A00.000Z&limit=100"
        );
    }

    #[test]
    fn names_hosts_of_remotes_home_pages_and_publishers() {
        let answer = json!({ "servers": [
            { "server": { "name": "example.weather/mcp", "websiteUrl": "https://www.weather.example/docs",
                          "remotes": [{ "type": "sse", "url": "https://mcp.weather.example/sse" }, { "url": 7 }] } },
            { "name": "io.github.someone/tool", "remotes": [{ "url": "https://{tenant}.example/mcp" }] },
            { "server": { "name": "nonsense", "remotes": [{ "url": "https://10.0.0.1/mcp" }] } }, 7,
        ]});
        let hosts: Vec<String> = answer["servers"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(hosts_of)
            .map(|host| host.to_string())
            .collect();
        assert_eq!(hosts, ["mcp.weather.example", "www.weather.example", "weather.example"]);
    }
}
