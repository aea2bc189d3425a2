//! `GET /v0.1/servers/{name}/versions` and one version of them, as the official MCP registry answers (its OpenAPI document of 2025-12-01).
//!
//! The versions of a name are those that manifests in the index declare now: one for each manifest, the latest change first. A name is
//! searched in this order: in the manifest that its generated form names, at the site of its namespace, among the names in the index, and
//! among the manifests of one page of the list. Other hosts of the site, which may belong to its users, count only where the host of the
//! namespace itself declares no version.

use std::ops::ControlFlow;

use axum::extract::Path;
use indexer::{Filters, SearchRequest};
use manifest::{Host, ManifestId};
use serde::Serialize;
use serde_json::{Value, json};
use store::StoredManifest;

use super::mcp_servers::{
    PAGE, PAGES_MAX, READ_BYTES_MAX, host_of, is_registry_name, meta, name, server, take_within_budget,
    version,
};
use crate::answers::search::{PAGE_BYTES_MAX, search_readable};
use crate::buffers::Reserved;
use crate::client::Client;
use crate::json_text::ObjectText;
use crate::manifests::{Counted, Kept};
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::state::App;

const KNOWN: &[&str] = &["include_deleted"];
/// Maximum number of versions of one name: a name belongs to one publisher, who describes the server in one or two places.
const VERSIONS_MAX: usize = 50;
/// Bytes that are counted for the other members of a version: its metadata is a small tree with two URLs.
const META_BYTES: usize = 8 * 1024;
/// Maximum number of results of a search for a name, each of which may be a tool of the server.
const CANDIDATES_MAX: usize = 100;

/// All versions of a server, the latest first.
#[utoipa::path(
    get,
    path = "/v0.1/servers/{name}/versions",
    tag = "feed",
    params(
        ("name" = String, Path, description = "Name of a server, encoded as one segment", max_length = 200),
        ("include_deleted" = Option<bool>, Query, description = "Changes nothing: servers that are gone are in /changes"),
    ),
    responses((status = 200, description = "The versions", body = crate::openapi::mcp_registry::McpServers)),
)]
pub(crate) async fn list(
    Request { app, client, context, query }: Request,
    Path(name): Path<String>,
) -> HttpResult {
    query.only(KNOWN)?;
    query.one_parsed::<bool>("include_deleted")?;
    let (versions, share) = found(&app, client, &name).await?.into_parts();
    let rows = versions.into_rows();
    let answer = ServerVersions { metadata: json!({"count": rows.len()}), servers: rows };
    let mut response = context.json(&answer, Caching::Record)?;
    Reserved::attach(&mut response, share);
    Ok(response)
}

/// One version of a server.
#[utoipa::path(
    get,
    path = "/v0.1/servers/{name}/versions/{version}",
    tag = "feed",
    params(
        ("name" = String, Path, description = "Name of a server, encoded as one segment", max_length = 200),
        ("version" = String, Path, description = "`latest`, or one exact version", max_length = 255),
        ("include_deleted" = Option<bool>, Query, description = "Changes nothing: servers that are gone are in /changes"),
    ),
    responses((status = 200, description = "The version", body = crate::openapi::mcp_registry::McpServer)),
)]
pub(crate) async fn show(
    Request { app, client, context, query }: Request,
    Path((name, wanted)): Path<(String, String)>,
) -> HttpResult {
    query.only(KNOWN)?;
    query.one_parsed::<bool>("include_deleted")?;
    let (versions, share) = found(&app, client, &name).await?.into_parts();
    let row = versions.into_rows().into_iter().find(|row| wanted == "latest" || row.version == wanted);
    let unknown = || {
        Problem::not_found(format!(
            "the server {name} has no such version; /v0.1/servers/{{name}}/versions lists its versions"
        ))
    };
    let mut response = context.json(&row.ok_or_else(unknown)?, Caching::Record)?;
    Reserved::attach(&mut response, share);
    Ok(response)
}

/// The servers that manifests declare under one name.
struct Versions {
    name: String,
    /// The host of the name's namespace.
    host: Option<Host>,
    /// Whether this host itself declares the versions in `found`.
    is_of_host: bool,
    found: Vec<Declared>,
}

/// A version of a server, as it is listed.
#[derive(Serialize)]
struct Declared {
    #[serde(skip)]
    version: String,
    #[serde(skip)]
    changed_at: chrono::DateTime<chrono::Utc>,
    server: ObjectText,
    #[serde(rename = "_meta")]
    meta: Value,
}

/// The answer with all versions.
#[derive(Serialize)]
struct ServerVersions {
    servers: Vec<Declared>,
    metadata: Value,
}

impl Kept for Versions {
    fn bytes(&self) -> usize {
        self.found.iter().map(|found| found.server.len() + META_BYTES).sum()
    }
}

impl Versions {
    fn add(&mut self, stored: &StoredManifest) -> ControlFlow<()> {
        let manifest = &stored.manifest;
        if let Some(server) = server(stored).filter(|_| name(manifest).0 == self.name) {
            let is_of_host = self.host.as_ref().is_some_and(|host| manifest.url.host().is_main_host_of(host));
            if is_of_host && !self.is_of_host {
                self.found.clear();
                self.is_of_host = true;
            }
            if is_of_host == self.is_of_host
                && self.has_room()
                && let Ok(server) = ObjectText::of(&server)
            {
                self.found.push(Declared {
                    version: version(manifest).0,
                    changed_at: stored.changed_at,
                    server,
                    meta: meta(stored, false),
                });
            }
        }
        let is_complete = self.is_of_host && !self.has_room();
        if is_complete { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn has_room(&self) -> bool {
        self.found.len() < VERSIONS_MAX && self.bytes() < PAGE_BYTES_MAX
    }

    /// Each version once, the latest change first.
    fn into_rows(mut self) -> Vec<Declared> {
        self.found.sort_by_key(|found| std::cmp::Reverse(found.changed_at));
        let mut rows: Vec<Declared> = Vec::new();
        for found in self.found {
            if rows.iter().all(|row| row.version != found.version) {
                rows.push(found);
            }
        }
        if let Some(latest) = rows.first_mut() {
            latest.meta["io.modelcontextprotocol.registry/official"]["isLatest"] = true.into();
        }
        rows
    }
}

/// The versions of a name; 404 without one.
async fn found(app: &App, client: Client, name: &str) -> Result<Counted<Versions>, Problem> {
    if !is_registry_name(name) {
        let detail = "the name of a server is a reverse domain name, one slash and a name, of 3 to 200 characters; encode it as \
                      one segment of the path, as in /v0.1/servers/com.example%2Ftools/versions";
        return Err(Problem::bad_request(detail).with_parameter("name"));
    }
    let (space, own) = name.split_once('/').unwrap_or_default();
    let host = host_of(space);
    let site = host.as_ref().map(Host::site);
    let manifests = app.manifests(client);
    let versions = Versions { name: name.to_owned(), host, is_of_host: false, found: Vec::new() };
    let mut versions = manifests.counted(versions)?;
    let add = |versions: &mut Versions, stored: StoredManifest| versions.add(&stored);
    if let Ok(id) = ManifestId::parse(own) {
        versions = manifests.each_of(&[id], versions, add).await?;
    }
    if versions.found.is_empty()
        && let Some(site) = site
    {
        versions = manifests.each_of_site(&site, versions, add).await?;
    }
    if versions.found.is_empty() {
        versions = versions.without_permit();
        let ids = named(app, client, name).await?;
        versions = manifests.each_of(&ids, versions, add).await?;
    }
    if versions.found.is_empty() {
        versions = searched(app, client, versions).await?;
    }
    if versions.found.is_empty() {
        return Err(Problem::not_found(format!("no server {name} is known here")));
    }
    Ok(versions)
}

/// The manifests of capabilities that the index knows by this name of their manifest.
async fn named(app: &App, client: Client, name: &str) -> Result<Vec<ManifestId>, Problem> {
    let filters = Filters { names: vec![name.to_owned()], ..Filters::default() };
    let request = SearchRequest { filters, limit: CANDIDATES_MAX, ..SearchRequest::default() };
    let hits = search_readable(&app.index, app.manifests(client), request).await?.answer.hits;
    let mut ids: Vec<ManifestId> = hits.into_iter().map(|hit| hit.manifest_id).collect();
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Searches as many manifests as one page of the list reads, because servers without tools are not in the index.
async fn searched(
    app: &App,
    client: Client,
    mut versions: Counted<Versions>,
) -> Result<Counted<Versions>, Problem> {
    let mut after: Option<ManifestId> = None;
    let mut bytes_left = READ_BYTES_MAX;
    for _ in 0..PAGES_MAX {
        let sizes = app.manifests(client).sizes_after(after.as_ref(), PAGE).await?;
        let (ids, is_last) = take_within_budget(sizes, &mut bytes_left);
        let add = |versions: &mut Versions, stored: StoredManifest| versions.add(&stored);
        versions = app.manifests(client).each_of(&ids, versions, add).await?;
        after = ids.last().cloned().or(after);
        if is_last || bytes_left == 0 || !versions.found.is_empty() {
            break;
        }
    }
    Ok(versions)
}
