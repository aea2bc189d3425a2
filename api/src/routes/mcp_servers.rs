//! `GET /v0.1/servers`: descriptions of MCP servers that sites name, in the shape of the official MCP registry's list (its OpenAPI document of
//! 2025-12-01).
//!
//! A valid registry name is kept at the hosts of its namespace; otherwise one is generated from the host and the id of the manifest and
//! marked, as are versions that the registry would refuse. Several manifests of a site may declare one name: each version is listed once,
//! and one of them is marked as the latest. Members that the schema of the registry does not allow are left out. A request reads a limited
//! number of manifests and bytes, and a page has a limited number of bytes, so a page may be shorter than its limit. `metadata.nextCursor`
//! leads to the next page; it is absent on the last one.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use manifest::model::{Format, Interface, Protocol};
use manifest::{Host, Manifest, ManifestId, SiteName};
use policy::naming::may_speak;
use runtime::Share;
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::{FeedEntry, FeedPosition, ManifestSize, Store, StoredManifest};

use super::mcp_server_filter::{Place, ServerFilter};
use super::mcp_server_names::{
    NamedServers, Origin, declared_name, may_declare, name, namespace_of, version,
};
use super::mcp_server_tombstones::tombstones;
use crate::answers::listed_by::{listings_by_site, registries_with};
use crate::answers::search::PAGE_BYTES_MAX;
use crate::buffers::Reserved;
use crate::client::Client;
use crate::json_text::ObjectText;
use crate::manifests::{Counted, Kept};
use crate::permitted::off_runtime;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::state::App;
use crate::text::one_line;

/// The default of the official MCP registry.
const LIMIT_DEFAULT: u32 = 30;
const LIMIT_MAX: u32 = 100;
/// Formats that describe one server. Only manifests in these formats are read.
const FORMATS: [Format; 3] = [Format::McpCard, Format::McpRegistry, Format::McpFreeform];
/// Number of manifests read with one statement, and maximum number of statements of one request.
const PAGE: u32 = 100;
const PAGES_MAX: u32 = 10;
/// Maximum number of bytes of manifests read in one request, as JSON, and of the other manifests that may declare the same names; the last
/// manifest and the first namespace may exceed it.
const READ_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Maximum number of remotes of one server; publishers declare a few.
const REMOTES_MAX: usize = 100;
/// Maximum length of a description in the schema of the registry.
const DESCRIPTION_CHARS_MAX: usize = 100;
const TITLE_CHARS_MAX: usize = 100;
/// Assumed bytes of the metadata of a server: a small tree with two URLs.
const META_BYTES: usize = 8 * 1024;
const OFFICIAL: &str = "io.modelcontextprotocol.registry/official";
/// Member of `_meta` with what this index adds to a server.
const RECORD: &str = "agentdex/record";
/// Description of a server whose manifest was removed.
const REMOVED: &str = "This server is no longer declared.";
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

/// MCP servers in the format of the official registry.
#[utoipa::path(
    get,
    path = "/v0.1/servers",
    tag = "feed",
    params(
        ("cursor" = Option<String>, Query, description = "metadata.nextCursor of the previous page, whose other parameters it repeats if they are not given", max_length = 4096),
        ("limit" = Option<u32>, Query, description = "Maximum number of results; the default is 30", minimum = 1, maximum = 100),
        ("search" = Option<String>, Query, description = "Only servers whose name contains this", max_length = 200),
        ("updated_since" = Option<String>, Query, description = "Only what changed at or after this time", max_length = 64),
        ("version" = Option<String>, Query, description = "`latest`, or one exact version", max_length = 255),
        ("include_deleted" = Option<bool>, Query, description = "Whether servers are listed whose manifests were removed; true if updated_since is given"),
    ),
    responses((status = 200, description = "A page of servers", body = crate::openapi::mcp_registry::McpServers)),
)]
pub(crate) async fn list(Request { app, client, context, query }: Request) -> HttpResult {
    let limit = usize::try_from(query.limit(LIMIT_DEFAULT, LIMIT_MAX)?).unwrap_or(usize::MAX);
    let (filter, place) = ServerFilter::read(&query)?;
    let (mut servers, share, mut next) = match &place {
        Place::Declared(after) => declared(&app, client, &filter, after.clone(), limit).await?,
        Place::Removed(_) => (Vec::new(), None, None),
    };
    name_registries(&app.store, &mut servers).await?;
    if next.is_none() && filter.includes_deleted() {
        let from = match place {
            Place::Removed(position) => position,
            Place::Declared(_) => match filter.since {
                Some(since) => app.store.feed_position_at(since).await?,
                None => FeedPosition::default(),
            },
        };
        let room = limit.saturating_sub(servers.len());
        let (removed, rest) = tombstones(&app, client, &filter, from, room).await?;
        servers.extend(removed);
        next = rest.map(Place::Removed);
    }
    let next = next.map(|place| filter.cursor(&place)).transpose()?;
    let answer = Servers::of(servers, next);
    let response = off_runtime(move || context.json(&answer, Caching::Search));
    let mut response = response.await??;
    Reserved::attach(&mut response, share);
    Ok(response)
}

/// The servers that manifests after one declare, with the place of the next page.
async fn declared(
    app: &App,
    client: Client,
    filter: &ServerFilter,
    after: Option<ManifestId>,
    limit: usize,
) -> Result<(Vec<ServerEntry>, Option<Share>, Option<Place>), Problem> {
    let page = Page { filter: filter.clone(), limit, rows: Vec::new(), after, is_complete: false };
    let mut page = app.manifests(client).counted(page)?;
    let mut bytes_left = READ_BYTES_MAX;
    let mut has_more = true;
    for _ in 0..PAGES_MAX {
        let sizes = app.manifests(client).sizes_of_formats_after(&FORMATS, page.after.as_ref(), PAGE).await?;
        let (ids, is_last) = take_within_budget(sizes, &mut bytes_left);
        page = app.manifests(client).each_of(&ids, page, Page::add).await?;
        if page.is_complete {
            break;
        }
        // manifests that left the index during the request count as read
        page.after = ids.last().cloned().or_else(|| page.after.take());
        has_more = !is_last;
        if is_last || bytes_left == 0 {
            break;
        }
    }
    let mut page = page.without_permit();
    let (found, is_whole) = listed_rows(app, client, &mut page).await?;
    let (page, share) = page.into_parts();
    let next = page.after.filter(|_| has_more || !is_whole).map(|after| Place::Declared(Some(after)));
    Ok((only_listed(filter, page.rows, &found), share, next))
}

/// For each manifest that is listed, whether it has the latest version of its name. Considers the manifests of the page that declare a
/// name, and the others that may use its namespace; manifests that another one replaces are not listed. Shortens the page to the rows whose
/// namespaces fit the read budget, at least one, and returns whether the page was left complete.
async fn listed_rows(
    app: &App,
    client: Client,
    page: &mut Counted<Page>,
) -> Result<(HashMap<ManifestId, bool>, bool), Problem> {
    let manifests = app.manifests(client);
    let reader = page.beside(manifests);
    let mut found = HashMap::new();
    let mut namespaces: HashSet<Host> = HashSet::new();
    let mut bytes_left = READ_BYTES_MAX;
    let rows: Vec<Option<Host>> = page.rows.iter().map(|row| row.namespace.clone()).collect();
    for (place, namespace) in rows.into_iter().enumerate() {
        let Some(namespace) = namespace.filter(|namespace| !namespaces.contains(namespace)) else { continue };
        let batches = reader.batches_of_site(&namespace.site(), |of| may_declare(of, &namespace)).await?;
        let bytes = batches.iter().map(|batch| batch.bytes).sum::<u64>();
        if bytes > bytes_left && !namespaces.is_empty() {
            page.rows.truncate(place);
            page.after = page.rows.last().map(|row| row.id.clone());
            return Ok((found, false));
        }
        bytes_left = bytes_left.saturating_sub(bytes);
        if let [batch] = batches.as_slice()
            && let [id] = batch.ids.as_slice()
        {
            found.insert(id.clone(), true);
            namespaces.insert(namespace);
            continue;
        }
        let add = |servers: &mut NamedServers, stored: StoredManifest| servers.add(&stored);
        let servers = reader.counted(NamedServers::of(namespace.clone()))?;
        let servers = reader.each_in(batches, servers, add).await?;
        let (servers, _share) = servers.into_parts();
        found.extend(servers.into_listed().into_iter().map(|listed| (listed.id, listed.is_latest)));
        namespaces.insert(namespace);
    }
    Ok((found, true))
}

/// The manifests that fit the byte budget, at least one, and whether there are no others.
fn take_within_budget(sizes: Vec<ManifestSize>, bytes_left: &mut u64) -> (Vec<ManifestId>, bool) {
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

/// Keeps the rows that no other manifest of their site replaces, in order.
fn only_listed(filter: &ServerFilter, rows: Vec<Row>, found: &HashMap<ManifestId, bool>) -> Vec<ServerEntry> {
    let wants_latest = filter.wants_latest();
    let rows = rows.into_iter().filter_map(|row| {
        let is_latest = if row.namespace.is_some() { *found.get(&row.id)? } else { true };
        (is_latest || !wants_latest).then(|| row.entry.with_latest(is_latest))
    });
    rows.collect()
}

/// A page under construction.
struct Page {
    filter: ServerFilter,
    limit: usize,
    rows: Vec<Row>,
    /// The last manifest that this page covers.
    after: Option<ManifestId>,
    is_complete: bool,
}

struct Row {
    id: ManifestId,
    /// The namespace of a declared name. Other manifests of the site may declare the name too.
    namespace: Option<Host>,
    entry: ServerEntry,
}

impl Kept for Page {
    fn bytes(&self) -> usize {
        self.rows.iter().map(|row| row.entry.bytes()).sum()
    }
}

impl Page {
    fn add(&mut self, stored: StoredManifest) -> ControlFlow<()> {
        let entry = self.filter.matches(&stored).then(|| ServerEntry::of(&stored)).flatten();
        let (name, name_is) = name(&stored);
        let id = stored.manifest.id;
        if let Some(entry) = entry {
            if !self.rows.is_empty() && self.bytes() + entry.bytes() > PAGE_BYTES_MAX {
                self.is_complete = true;
                return ControlFlow::Break(());
            }
            let namespace = namespace_of(&name).filter(|_| name_is == Origin::Declared);
            self.rows.push(Row { id: id.clone(), namespace, entry });
        }
        self.after = Some(id);
        self.is_complete = self.rows.len() >= self.limit;
        if self.is_complete { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// An answer with servers.
#[derive(Serialize)]
pub(super) struct Servers {
    servers: Vec<ServerEntry>,
    metadata: Value,
}

impl Servers {
    pub(super) fn of(servers: Vec<ServerEntry>, next: Option<String>) -> Self {
        let mut metadata = json!({"count": servers.len()});
        if let Some(next) = next {
            metadata["nextCursor"] = Value::from(next);
        }
        Self { servers, metadata }
    }
}

/// A server of a list.
#[derive(Serialize)]
pub(super) struct ServerEntry {
    #[serde(skip)]
    site: SiteName,
    /// The name under which other registries list it: the declared one, even if the manifest may not use it.
    #[serde(skip)]
    listed_as: String,
    server: ObjectText,
    #[serde(rename = "_meta")]
    meta: Value,
}

impl ServerEntry {
    /// The server that a manifest declares.
    pub(super) fn of(stored: &StoredManifest) -> Option<Self> {
        let server = server(&stored.manifest, &name(stored).0).filter(|_| has_server(stored))?;
        let server = ObjectText::of(&server).ok()?;
        let manifest = &stored.manifest;
        let (listed_as, _) = name(stored);
        Some(Self { site: manifest.url.site(), listed_as, server, meta: meta(stored) })
    }

    /// A server whose manifest was removed: its name and version, without other texts of its publisher.
    pub(super) fn removed(stored: &StoredManifest, entry: &FeedEntry) -> Option<Self> {
        let manifest = &stored.manifest;
        let ((listed_as, _), (version, _)) = (name(stored), version(manifest));
        let server = json!({
            "$schema": SCHEMA, "name": listed_as, "description": REMOVED, "version": version,
        });
        let Value::Object(server) = server else { return None };
        let mut meta = meta(stored);
        meta[OFFICIAL]["status"] = "deleted".into();
        if let Some(record) = meta[RECORD].as_object_mut() {
            record.remove("declared_name");
        }
        meta[OFFICIAL]["updatedAt"] = json!(entry.at);
        if let Some(reason) = &entry.reason {
            meta[RECORD]["reason"] = reason.as_str().into();
        }
        let server = ObjectText::of(&server).ok()?;
        Some(Self { site: manifest.url.site(), listed_as, server, meta })
    }

    pub(super) fn with_latest(mut self, is_latest: bool) -> Self {
        self.meta[OFFICIAL]["isLatest"] = is_latest.into();
        self
    }

    /// Estimated bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.server.len() + META_BYTES
    }
}

/// Adds the registries that list the name of each server.
pub(super) async fn name_registries(store: &Store, entries: &mut [ServerEntry]) -> Result<(), Problem> {
    let listings = listings_by_site(store, entries.iter().map(|entry| entry.site.clone())).await?;
    for entry in entries {
        let of_site = listings.get(&entry.site).map(Vec::as_slice).unwrap_or_default();
        let registries = registries_with(of_site, &entry.listed_as);
        if !registries.is_empty() {
            entry.meta[RECORD]["listed_by"] = registries.into();
        }
    }
    Ok(())
}

/// Whether a manifest describes an MCP server that is listed. Server names begin with the domain of the publisher, so manifests that only
/// other sites name and files of unknown authors are excluded.
pub(super) fn has_server(stored: &StoredManifest) -> bool {
    may_speak(stored.named_by, stored.publisher) && describes_server(&stored.manifest)
}

/// Whether a manifest describes an MCP server: a server card, an entry of the registry, or another file of a server at a usual path. Manifests
/// of other dialects, and configurations of clients, may mention servers of anybody.
pub(super) fn describes_server(manifest: &Manifest) -> bool {
    FORMATS.contains(&manifest.format()) && remotes(manifest).next().is_some()
}

/// The `server.json` of a manifest, under a name.
fn server(manifest: &Manifest, name: &str) -> Option<Map<String, Value>> {
    let remotes: Vec<Value> = remotes(manifest).take(REMOTES_MAX).collect();
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

/// The remotes of a server that agents may connect to, each URL once. A URL with a variable (`{tenant}`) is left out: clients could not fill
/// it in.
fn remotes(manifest: &Manifest) -> impl Iterator<Item = Value> {
    let declared = manifest.interfaces.iter().filter(|interface| interface.protocol == Protocol::Mcp);
    let of_tools = manifest.capabilities.iter().filter_map(|capability| {
        let invocation = &capability.invocation;
        (invocation.protocol == Some(Protocol::Mcp)).then_some(invocation.url.as_deref()?)
    });
    let all = declared.filter_map(|one| Some((one.url.as_deref()?, transport(one))));
    let is_web = |url: &str| {
        let is_http = url.starts_with("https://") || url.starts_with("http://");
        is_http && !url.contains(|letter: char| letter.is_whitespace() || matches!(letter, '{' | '}'))
    };
    let is_usable = move |url: &str| is_web(url) && manifest.address_for_agents(url).is_some();
    let mut seen = HashSet::new();
    all.chain(of_tools.map(|url| (url, "streamable-http")))
        .filter(move |(url, _)| seen.insert(*url) && is_usable(url))
        .map(|(url, kind)| json!({"type": kind, "url": url}))
}

fn transport(interface: &Interface) -> &'static str {
    let words = [interface.transport.as_deref(), interface.declared.as_deref()];
    let is_sse = words.into_iter().flatten().any(|word| word.eq_ignore_ascii_case("sse"));
    if is_sse { "sse" } else { "streamable-http" }
}

/// The registry metadata of a server. Marks its version as the latest of its name; [`NamedServers`] may correct that.
fn meta(stored: &StoredManifest) -> Value {
    let manifest = &stored.manifest;
    let ((_, name_is), (_, version_is)) = (name(stored), version(manifest));
    let mut record = json!({
        "manifest_id": manifest.id, "manifest_url": manifest.url, "name_is": name_is, "version_is": version_is,
        "text_is": crate::answers::TEXT_IS,
    });
    if name_is == Origin::Minted
        && let Some(declared) = declared_name(manifest)
    {
        record["declared_name"] = declared.into();
    }
    if manifest.addresses_reader() {
        record["addresses_reader"] = true.into();
    }
    json!({
        OFFICIAL: {
            "status": "active", "publishedAt": stored.first_seen_at, "updatedAt": stored.changed_at, "isLatest": true,
        },
        RECORD: record,
    })
}

#[cfg(test)]
mod tests {
    use manifest::ManifestUrl;

    use super::*;

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
        let listed: Vec<Value> = remotes(&repeated).map(|remote| remote["url"].clone()).collect();
        assert_eq!(listed, (0..5).map(address).collect::<Vec<_>>());
        let many = with_remotes((0..1_000).map(address));
        assert_eq!(
            server(&many, "example.tools/many").unwrap()["remotes"].as_array().unwrap().len(),
            REMOTES_MAX
        );
    }

    #[test]
    fn remotes_with_variables_are_left_out() {
        let remote = with_remotes(std::iter::once("https://tools.example/{tenant}/mcp".to_owned()));
        assert_eq!(remotes(&remote).count(), 0, "nothing says what the variable is");
    }

    /// Comparing all pairs of addresses would take minutes.
    #[test]
    fn deduplicates_remotes_in_linear_time() {
        let no_web = with_remotes((0..100_000).map(|number| format!("ftp://tools.example/{number}")));
        let repeated =
            with_remotes((0..200_000).map(|number| format!("https://tools.example/{}", number % 99)));
        let started = tokio::time::Instant::now();
        assert_eq!((remotes(&no_web).count(), remotes(&repeated).count()), (0, 99));
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
}
