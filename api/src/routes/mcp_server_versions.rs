//! `GET /v0.1/servers/{name}/versions` and one version of them, as the official MCP registry answers (its OpenAPI document of 2025-12-01).
//!
//! The versions of a name are those that manifests in the index declare now, the latest change first. A generated name contains the id of
//! its manifest; any other name is declared by manifests of the site of its namespace (see `mcp_server_names`).

use std::ops::ControlFlow;

use axum::extract::Path;
use manifest::{Host, ManifestId};
use store::StoredManifest;

use super::mcp_server_names::{NamedServers, is_registry_name, may_declare, name, namespace_of, version};
use super::mcp_servers::{ServerEntry, Servers, name_registries};
use crate::answers::search::PAGE_BYTES_MAX;
use crate::buffers::Reserved;
use crate::client::Client;
use crate::manifests::{Counted, Kept};
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::state::App;

const KNOWN: &[&str] = &["include_deleted"];
/// Maximum number of versions of one name: a name belongs to one publisher, who describes the server in one or two places.
const VERSIONS_MAX: usize = 50;

/// All versions of a server, the latest first.
#[utoipa::path(
    get,
    path = "/v0.1/servers/{name}/versions",
    tag = "feed",
    params(
        ("name" = String, Path, description = "Name of a server, encoded as one segment", max_length = 200),
        ("include_deleted" = Option<bool>, Query, description = "Changes nothing: only /v0.1/servers lists servers whose manifests were removed"),
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
    let mut entries: Vec<ServerEntry> = versions.found.into_iter().map(|(_, entry)| entry).collect();
    name_registries(&app.store, &mut entries).await?;
    let mut response = context.json(&Servers::of(entries, None), Caching::Record)?;
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
        ("include_deleted" = Option<bool>, Query, description = "Changes nothing: only /v0.1/servers lists servers whose manifests were removed"),
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
    let is_wanted = |version: &str| wanted == "latest" || version == wanted;
    let mut found = versions.found.into_iter();
    let mut row = found.find(|(version, _)| is_wanted(version)).map(|(_, entry)| entry);
    name_registries(&app.store, row.as_mut_slice()).await?;
    let unknown = || {
        Problem::not_found(format!(
            "the server {name} has no such version; /v0.1/servers/{{name}}/versions lists its versions"
        ))
    };
    let mut response = context.json(&row.ok_or_else(unknown)?, Caching::Record)?;
    Reserved::attach(&mut response, share);
    Ok(response)
}

/// The versions of one name, the latest first.
struct Versions {
    name: String,
    found: Vec<(String, ServerEntry)>,
}

impl Kept for Versions {
    fn bytes(&self) -> usize {
        self.found.iter().map(|(_, entry)| entry.bytes()).sum()
    }
}

impl Versions {
    fn add(&mut self, stored: &StoredManifest) -> ControlFlow<()> {
        let manifest = &stored.manifest;
        if name(stored).0 == self.name
            && let Some(entry) = ServerEntry::of(stored)
        {
            let entry = entry.with_latest(self.found.is_empty());
            self.found.push((version(manifest).0, entry));
        }
        if self.bytes() < PAGE_BYTES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// The versions of a name that manifests declare now. 404 if there are none.
pub(super) async fn versions_declared(app: &App, client: Client, name: &str) -> Result<Vec<String>, Problem> {
    let (versions, _share) = found(app, client, name).await?.into_parts();
    Ok(versions.found.into_iter().map(|(version, _)| version).collect())
}

/// The versions of a name. 404 if there are none, even for a name that is not valid in the registry, because clients use this route to
/// check whether a name exists.
async fn found(app: &App, client: Client, name: &str) -> Result<Counted<Versions>, Problem> {
    if !is_registry_name(name) {
        let detail = "unknown server: the name of a server is a reverse domain name, one slash and a name, of 3 to 200 characters; \
                      encode it as one segment of the path, as in /v0.1/servers/com.example%2Ftools/versions";
        return Err(Problem::not_found(detail).with_parameter("name"));
    }
    let (_, own) = name.split_once('/').unwrap_or_default();
    let manifests = app.manifests(client);
    let ids = match (ManifestId::parse(own), namespace_of(name)) {
        (Ok(id), _) => vec![id],
        (Err(_), Some(namespace)) => declaring(app, client, name, &namespace).await?,
        (Err(_), None) => Vec::new(),
    };
    let versions = manifests.counted(Versions { name: name.to_owned(), found: Vec::new() })?;
    let add = |versions: &mut Versions, stored: StoredManifest| versions.add(&stored);
    let versions = manifests.each_of(&ids, versions, add).await?;
    if versions.found.is_empty() {
        return Err(Problem::not_found(format!("the server {name} is unknown")));
    }
    Ok(versions)
}

/// The manifests that the versions of a name are read from, at most [`VERSIONS_MAX`], the latest first.
async fn declaring(
    app: &App,
    client: Client,
    name: &str,
    namespace: &Host,
) -> Result<Vec<ManifestId>, Problem> {
    let manifests = app.manifests(client);
    let batches = manifests.batches_of_site(&namespace.site(), |of| may_declare(of, namespace)).await?;
    let servers = manifests.counted(NamedServers::of(namespace.clone()))?;
    let add = |servers: &mut NamedServers, stored: StoredManifest| servers.add(&stored);
    let (servers, _share) = manifests.each_in(batches, servers, add).await?.into_parts();
    let of_name = servers.into_listed().into_iter().filter(|listed| listed.name == name);
    Ok(of_name.map(|listed| listed.id).take(VERSIONS_MAX).collect())
}
