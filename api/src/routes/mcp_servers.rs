//! `GET /v0.1/servers`: manifests that sites name and that declare an MCP endpoint, in the shape of the official MCP registry's list (its OpenAPI
//! document of 2025-12-01).
//!
//! A valid registry name is kept at the hosts of its namespace; otherwise one is generated from the host and the id of the
//! manifest and marked, as are versions that the registry would refuse. Members that the schema of the registry does not allow are left
//! out. A request reads a bounded number of manifests and of their bytes, and a page has a bounded number of bytes, so it may
//! be shorter than its limit; `metadata.nextCursor` leads to the next page until it is absent.

use std::collections::HashSet;
use std::ops::ControlFlow;

use chrono::{DateTime, Utc};
use manifest::model::{Interface, Protocol};
use manifest::{Host, Manifest, ManifestId, ManifestUrl};
use policy::naming;
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::{ManifestSize, StoredManifest};

use crate::answers::search::PAGE_BYTES_MAX;
use crate::answers::search_parameters::instant;
use crate::buffers::Reserved;
use crate::cursor;
use crate::manifests::Kept;
use crate::permitted::off_runtime;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::text::one_line;

const KNOWN: &[&str] = &["cursor", "include_deleted", "limit", "search", "updated_since", "version"];
/// The default of the official MCP registry.
const LIMIT_DEFAULT: u32 = 30;
const LIMIT_MAX: u32 = 100;
/// Manifests read at once, and in one request.
pub(super) const PAGE: u32 = 100;
pub(super) const PAGES_MAX: u32 = 10;
/// Maximum number of bytes of manifests read in one request, as JSON; the last manifest may exceed it.
pub(super) const READ_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Maximum number of remotes of one server; publishers declare a few.
const REMOTES_MAX: usize = 100;
/// Longest description of the registry's schema.
const DESCRIPTION_CHARS_MAX: usize = 100;
const TITLE_CHARS_MAX: usize = 100;
const VERSION_CHARS_MAX: usize = 255;
const NAME_CHARS_MAX: usize = 200;
/// Version of servers that declare none.
const VERSION_MINTED: &str = "0.0.0";
/// Namespaces of accounts, whose owners publish their servers anywhere. No site proves such a name.
const ACCOUNTS: [&str; 3] = ["io.github", "com.github", "io.gitlab"];
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

/// Servers that speak MCP, as the official registry lists them.
#[utoipa::path(
    get,
    path = "/v0.1/servers",
    tag = "feed",
    params(
        ("cursor" = Option<String>, Query, description = "metadata.nextCursor of the page before", max_length = 512),
        ("limit" = Option<u32>, Query, description = "Maximum number of results; the default is 30", minimum = 1, maximum = 100),
        ("search" = Option<String>, Query, description = "Only servers whose name contains this", max_length = 200),
        ("updated_since" = Option<String>, Query, description = "Only what changed at or after this time", max_length = 64),
        ("version" = Option<String>, Query, description = "`latest`, or one exact version", max_length = 255),
        ("include_deleted" = Option<bool>, Query, description = "Changes nothing: servers that are gone are in /changes"),
    ),
    responses((status = 200, description = "A page of servers", body = crate::openapi::mcp_registry::McpServers)),
)]
pub(crate) async fn list(Request { app, client, context, query }: Request) -> HttpResult {
    query.only(KNOWN)?;
    query.one_parsed::<bool>("include_deleted")?;
    let limit = usize::try_from(query.limit(LIMIT_DEFAULT, LIMIT_MAX)?).unwrap_or(usize::MAX);
    let since = query.one("updated_since")?.map(instant).transpose()?;
    let search = query.one("search")?.map(str::to_lowercase);
    let version = query.one("version")?.filter(|version| *version != "latest").map(ToOwned::to_owned);
    let listing = format!("servers {search:?} {since:?} {version:?}");
    let after = query.one("cursor")?.map(|text| position(&listing, text)).transpose()?;
    let filter = ServerFilter { since, search, version };
    let page = Page { filter, limit, body: Vec::new(), servers: 0, after, is_complete: false };
    let mut page = app.manifests(client).counted(page)?;
    let mut bytes_left = READ_BYTES_MAX;
    let mut has_more = true;
    for _ in 0..PAGES_MAX {
        let sizes = app.manifests(client).sizes_after(page.after.as_ref(), PAGE).await?;
        let (ids, is_last) = take_within_budget(sizes, &mut bytes_left);
        page = app.manifests(client).each_of(&ids, page, Page::add).await?;
        if page.is_complete {
            break;
        }
        // Manifests that left the index meanwhile count as read.
        page.after = ids.last().cloned().or_else(|| page.after.take());
        has_more = !is_last;
        if is_last || bytes_left == 0 {
            break;
        }
    }
    let (mut page, share) = page.into_parts();
    let next = page.after.take().filter(|_| has_more);
    let bytes = page.finish(next.map(|next| cursor::encode(&listing, next.as_str())));
    let response = off_runtime(move || context.bytes(bytes, "application/json", Caching::Search));
    let mut response = response.await?;
    Reserved::attach(&mut response, share);
    Ok(response)
}

/// The manifests that may be read within the budget of bytes, at least one, and whether they are the last.
pub(super) fn take_within_budget(sizes: Vec<ManifestSize>, bytes_left: &mut u64) -> (Vec<ManifestId>, bool) {
    let found = sizes.len();
    let mut ids = Vec::with_capacity(found);
    for size in sizes {
        if *bytes_left == 0 {
            break;
        }
        *bytes_left = bytes_left.saturating_sub(size.bytes);
        ids.push(size.id);
    }
    let is_last = ids.len() == found && u32::try_from(found).is_ok_and(|found| found < PAGE);
    (ids, is_last)
}

/// The filters of a request for servers.
struct ServerFilter {
    since: Option<DateTime<Utc>>,
    search: Option<String>,
    version: Option<String>,
}

impl ServerFilter {
    /// Whether the server of a manifest is wanted, if it declares one.
    fn matches(&self, stored: &StoredManifest) -> bool {
        let manifest = &stored.manifest;
        self.since.is_none_or(|since| stored.changed_at >= since)
            && self.search.as_deref().is_none_or(|search| name(manifest).0.to_lowercase().contains(search))
            && self.version.as_deref().is_none_or(|wanted| version(manifest).0 == wanted)
    }
}

/// A page under construction.
struct Page {
    filter: ServerFilter,
    limit: usize,
    /// The JSON so far.
    body: Vec<u8>,
    servers: usize,
    /// The last manifest that this page covers.
    after: Option<ManifestId>,
    is_complete: bool,
}

impl Kept for Page {
    fn bytes(&self) -> usize {
        self.body.capacity()
    }
}

impl Page {
    fn add(&mut self, stored: StoredManifest) -> ControlFlow<()> {
        let server = self.filter.matches(&stored).then(|| server(&stored)).flatten();
        if let Some(server) = server {
            let row = listed(&server, &stored, true).to_string();
            if self.servers > 0 && self.body.len() + row.len() > PAGE_BYTES_MAX {
                self.is_complete = true;
                return ControlFlow::Break(());
            }
            self.push(&row);
        }
        self.after = Some(stored.manifest.id);
        self.is_complete = self.servers >= self.limit;
        if self.is_complete { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn push(&mut self, row: &str) {
        let length = self.body.len() + row.len() + 1;
        if length > self.body.capacity() {
            let capacity = length.max((self.body.capacity() * 2).min(PAGE_BYTES_MAX));
            self.body.reserve_exact(capacity - self.body.len());
        }
        self.body.extend_from_slice(if self.servers == 0 { b"{\"servers\":[" } else { b"," });
        self.body.extend_from_slice(row.as_bytes());
        self.servers += 1;
    }

    fn finish(mut self, next: Option<String>) -> Vec<u8> {
        let mut metadata = json!({"count": self.servers});
        if let Some(next) = next {
            metadata["nextCursor"] = Value::from(next);
        }
        if self.servers == 0 {
            self.body.extend_from_slice(b"{\"servers\":[");
        }
        self.body.extend_from_slice(format!("],\"metadata\":{metadata}}}").as_bytes());
        self.body
    }
}

fn position(listing: &str, text: &str) -> Result<ManifestId, Problem> {
    ManifestId::parse(&cursor::decode(listing, text)?).map_err(|_| cursor::invalid())
}

/// The `server.json` of a manifest that declares an MCP endpoint. Names of servers begin with a domain, so what only others name at it
/// has none.
pub(super) fn server(stored: &StoredManifest) -> Option<Map<String, Value>> {
    let manifest = Some(&stored.manifest).filter(|_| stored.is_of_site())?;
    let remotes = remotes(manifest);
    if remotes.is_empty() {
        return None;
    }
    let (name, _) = name(manifest);
    let (version, _) = version(manifest);
    let titles = [manifest.title.as_deref(), manifest.name.as_deref()];
    let title = titles.into_iter().flatten().map(|title| one_line(title, TITLE_CHARS_MAX));
    let said = manifest.description.as_deref().or(manifest.title.as_deref()).unwrap_or(manifest.url.as_str());
    let said = one_line(said, DESCRIPTION_CHARS_MAX);
    let server = json!({
        "$schema": SCHEMA,
        "name": name,
        "description": if said.is_empty() { manifest.url.host().as_str().to_owned() } else { said },
        "title": title.into_iter().find(|title| !title.is_empty()),
        "version": version,
        "remotes": remotes,
    });
    let Value::Object(mut server) = server else { return None };
    server.retain(|_, value| !value.is_null());
    Some(server)
}

/// The remotes of a server that agents may connect to, each URL once.
fn remotes(manifest: &Manifest) -> Vec<Value> {
    let declared = manifest.interfaces.iter().filter(|interface| interface.protocol == Protocol::Mcp);
    let of_tools = manifest.capabilities.iter().filter_map(|capability| {
        let invocation = &capability.invocation;
        (invocation.protocol == Some(Protocol::Mcp)).then_some(invocation.url.as_deref()?)
    });
    let all = declared.filter_map(|one| Some((one.url.as_deref()?, transport(one))));
    let is_web = |url: &str| {
        (url.starts_with("https://") || url.starts_with("http://")) && !url.contains(char::is_whitespace)
    };
    let is_usable = |url: &str| is_web(url) && manifest.address_for_agents(url).is_some();
    let mut seen = HashSet::new();
    all.chain(of_tools.map(|url| (url, "streamable-http")))
        .filter(|(url, _)| seen.insert(*url) && is_usable(url))
        .take(REMOTES_MAX)
        .map(|(url, kind)| json!({"type": kind, "url": url}))
        .collect()
}

fn transport(interface: &Interface) -> &'static str {
    let words = [interface.transport.as_deref(), interface.declared.as_deref()];
    let is_sse = words.into_iter().flatten().any(|word| word.eq_ignore_ascii_case("sse"));
    if is_sse { "sse" } else { "streamable-http" }
}

/// The source of a name or a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Origin {
    Declared,
    Minted,
}

/// `reverse.domain/name`. Clients keep one server for each name, so a name of another domain is replaced. A host that is too
/// long for one loses its innermost labels; the id keeps its names apart.
pub(super) fn name(manifest: &Manifest) -> (String, Origin) {
    let is_kept = |name: &&str| is_registry_name(name) && may_name(&manifest.url, name);
    if let Some(name) = manifest.name.as_deref().filter(is_kept) {
        return (name.to_owned(), Origin::Declared);
    }
    let id = manifest.id.as_str();
    let mut space = reversed(&manifest.url.host());
    while space.len() + 1 + id.len() > NAME_CHARS_MAX {
        let Some((outer, _)) = space.rsplit_once('.') else { break };
        space.truncate(outer.len());
    }
    (format!("{space}/{id}"), Origin::Minted)
}

/// One exact version; the registry refuses ranges, and `latest` is a question there.
pub(super) fn version(manifest: &Manifest) -> (String, Origin) {
    match manifest.document_version.as_deref().map(str::trim).filter(|version| is_exact(version)) {
        Some(version) => (version.to_owned(), Origin::Declared),
        None => (VERSION_MINTED.to_owned(), Origin::Minted),
    }
}

fn is_exact(version: &str) -> bool {
    let is_range = version.starts_with(['^', '~', '>', '<', '=']) || version.contains([' ', '|', '*', ',']);
    let has_open_part = version.split('.').any(|part| part.eq_ignore_ascii_case("x"));
    let is_text = version.chars().count() <= VERSION_CHARS_MAX && !version.contains(char::is_control);
    is_text && !version.is_empty() && version != "latest" && !is_range && !has_open_part
}

fn reversed(host: &Host) -> String {
    host.as_str().rsplit('.').collect::<Vec<_>>().join(".")
}

/// Whether a manifest at a URL may declare a server under a registry name: in a namespace of its host, at a path where only the host itself
/// publishes, or in a namespace of an account.
fn may_name(url: &ManifestUrl, name: &str) -> bool {
    let (space, _) = name.split_once('/').unwrap_or_default();
    let is_account =
        |accounts: &&str| space.strip_prefix(*accounts).is_some_and(|rest| rest.starts_with('.'));
    let is_own = || host_of(space).is_some_and(|named| url.host().may_use_name_of(&named));
    ACCOUNTS.iter().any(is_account) || (naming::is_usual(url) && is_own())
}

/// The host of a namespace: that of `com.example.mcp` is `mcp.example.com`.
pub(super) fn host_of(space: &str) -> Option<Host> {
    let host = space.rsplit('.').collect::<Vec<_>>().join(".");
    Host::parse(&host).ok()
}

pub(super) fn is_registry_name(name: &str) -> bool {
    let fits = |part: &str, more: &[u8]| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
    };
    let parts = name.split_once('/').filter(|_| (3..=NAME_CHARS_MAX).contains(&name.len()));
    parts.is_some_and(|(space, name)| space.contains('.') && fits(space, b".-") && fits(name, b"._-"))
}

/// An entry of the list. [`super::mcp_server_versions`] determines the latest version of a name.
fn listed(server: &Map<String, Value>, stored: &StoredManifest, is_latest: bool) -> Value {
    json!({"server": server, "_meta": meta(stored, is_latest)})
}

/// What the registry says about a server.
pub(super) fn meta(stored: &StoredManifest, is_latest: bool) -> Value {
    let manifest = &stored.manifest;
    let ((_, name_is), (_, version_is)) = (name(manifest), version(manifest));
    let mut record = json!({
        "manifest_id": manifest.id, "manifest_url": manifest.url, "name_is": name_is, "version_is": version_is,
        "text_is": crate::answers::TEXT_IS,
    });
    if manifest.addresses_reader() {
        record["addresses_reader"] = true.into();
    }
    json!({
        "io.modelcontextprotocol.registry/official": {
            "status": "active", "publishedAt": stored.first_seen_at, "updatedAt": stored.changed_at, "isLatest": is_latest,
        },
        "agentdex/record": record,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_names_servers_in_its_own_namespace_and_in_those_of_accounts() {
        let may = |url: &str, name: &str| may_name(&ManifestUrl::parse(url).unwrap(), name);
        let card = "https://example.com/.well-known/mcp/server-card.json";
        for name in ["com.example/tools", "com.example.mcp/tools", "io.github.someone/tools"] {
            assert!(may(card, name), "{name}");
        }
        for name in
            ["com.other/tools", "com.example-other/tools", "com/tools", "io.githubs/tools", "io.github/x"]
        {
            assert!(!may(card, name), "{name}");
        }
        for url in ["https://www.example.com/.well-known/mcp.json", "https://mcp.example.com/agents.json"] {
            assert!(may(url, "com.example/tools"), "{url}");
        }
        assert!(
            !may("https://user.example.com/.well-known/mcp.json", "com.example.mcp/tools"),
            "another host"
        );
        for url in [
            "https://example.com/u/someone/server.json",
            "https://example.com/.well-known/..%2Fu/server.json",
            "https://example.com/.well-known/x?file=u/server.json",
        ] {
            assert!(!may(url, "com.example/tools"), "a user of the host may have written {url}");
        }
    }

    #[test]
    fn version_ranges_are_replaced_by_exact_versions() {
        for version in ["1.2.3", "2025-06-18", "v2", "1.0.0+build.x86"] {
            assert!(is_exact(version), "{version}");
        }
        for version in ["", "latest", "^1.2.3", "~1", ">=1.0", "1.x", "1.*", "1.2 - 1.4", "1 || 2"] {
            assert!(!is_exact(version), "{version}");
        }
    }

    fn with_remotes(urls: impl Iterator<Item = String>) -> Manifest {
        let url = ManifestUrl::parse("https://tools.example/.well-known/mcp/server-card.json").unwrap();
        let interfaces: Vec<Value> = urls.map(|url| json!({"protocol": "mcp", "url": url})).collect();
        serde_json::from_value(json!({
            "id": ManifestId::of(&url), "url": url, "origin": url.origin(), "discovery": "well_known",
            "content_hash": manifest::ContentHash::of(b"x"), "interfaces": interfaces,
            "detection": {"format": "mcp_card", "strength": "strong", "evidence": []},
        }))
        .unwrap()
    }

    #[test]
    fn lists_each_remote_once_up_to_the_limit() {
        let address = |number: usize| format!("https://tools.example/{number}");
        let repeated = with_remotes((0..3).chain(0..5).map(address));
        let listed: Vec<Value> = remotes(&repeated).into_iter().map(|remote| remote["url"].clone()).collect();
        assert_eq!(listed, (0..5).map(address).collect::<Vec<_>>());
        let many = with_remotes((0..1_000).map(address));
        assert_eq!(remotes(&many).len(), REMOTES_MAX);
    }

    /// Comparing all pairs of addresses would take minutes.
    #[test]
    fn deduplicates_remotes_in_linear_time() {
        let no_web = with_remotes((0..100_000).map(|number| format!("ftp://tools.example/{number}")));
        let repeated =
            with_remotes((0..200_000).map(|number| format!("https://tools.example/{}", number % 99)));
        let started = tokio::time::Instant::now();
        assert_eq!((remotes(&no_web).len(), remotes(&repeated).len()), (0, 99));
        assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
    }

    #[test]
    fn request_reads_at_least_one_manifest_within_a_budget_of_bytes() {
        let url = |number: u64| ManifestUrl::parse(&format!("https://a{number}.example/")).unwrap();
        let sizes =
            |bytes: u64| (0..3).map(|n| ManifestSize { id: ManifestId::of(&url(n)), bytes }).collect();
        for (bytes, read, left) in [(10, 3, 70), (60, 2, 0), (1_000, 1, 0)] {
            let mut bytes_left = 100;
            let (ids, is_last) = take_within_budget(sizes(bytes), &mut bytes_left);
            assert_eq!((ids.len(), is_last, bytes_left), (read, read == 3, left), "{bytes}");
        }
    }

    #[test]
    fn valid_registry_names_are_kept() {
        for name in ["io.github.someone/weather", "example.skyhop/flights.v2"] {
            assert!(is_registry_name(name), "{name}");
        }
        for name in
            ["weather", "skyhop/flights", "a.b/", "a.b/c/d", "a.b/c d", &format!("a.b/{}", "c".repeat(200))]
        {
            assert!(!is_registry_name(name), "{name}");
        }
        assert_eq!(reversed(&Host::parse("mcp.skyhop.example").unwrap()), "example.skyhop.mcp");
    }
}
