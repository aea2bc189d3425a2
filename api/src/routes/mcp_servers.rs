//! `GET /v0.1/servers`: manifests that declare an MCP endpoint, in the shape of the official MCP registry's list.
//!
//! A valid registry name of the publisher is kept; otherwise one is generated from the host and the id of the manifest and
//! marked, as are versions that the registry would refuse. Members that the schema of the registry does not allow are left
//! out. A request reads a bounded number of manifests, so a page may be shorter than its limit; `metadata.nextCursor` leads
//! to the next page until it is absent.

use manifest::model::{Interface, Protocol};
use manifest::{Host, Manifest, ManifestId};
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::StoredManifest;

use crate::answers::search_parameters::instant;
use crate::cursor;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::text::one_line;

const KNOWN: &[&str] = &["cursor", "limit", "search", "updated_since", "version"];
/// As in the registry.
const LIMIT_DEFAULT: u32 = 30;
const LIMIT_MAX: u32 = 100;
/// Manifests read at once, and in one request.
const PAGE: u32 = 100;
const PAGES_MAX: u32 = 10;
/// Longest description of the registry's schema.
const DESCRIPTION_CHARS_MAX: usize = 100;
const TITLE_CHARS_MAX: usize = 100;
const VERSION_CHARS_MAX: usize = 255;
const NAME_CHARS_MAX: usize = 200;
/// Version of servers that declare none.
const VERSION_MINTED: &str = "0.0.0";
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

/// Servers that speak MCP, as the official registry lists them.
#[utoipa::path(
    get,
    path = "/v0.1/servers",
    tag = "feed",
    params(
        ("cursor" = Option<String>, Query, description = "metadata.nextCursor of the page before", max_length = 512),
        ("limit" = Option<u32>, Query, description = "At most so many; 30 unless given", minimum = 1, maximum = 100),
        ("search" = Option<String>, Query, description = "Only servers whose name contains this", max_length = 200),
        ("updated_since" = Option<String>, Query, description = "Only what changed at or after this time", max_length = 64),
        ("version" = Option<String>, Query, description = "`latest`, or one exact version", max_length = 255),
    ),
    responses((status = 200, description = "A page of servers", body = crate::openapi::schemas::McpServers)),
)]
pub(crate) async fn list(Request { app, client, context, query }: Request) -> HttpResult {
    query.only(KNOWN)?;
    let limit = usize::try_from(query.limit(LIMIT_DEFAULT, LIMIT_MAX)?).unwrap_or(usize::MAX);
    let since = query.one("updated_since")?.map(instant).transpose()?;
    let search = query.one("search")?.map(str::to_lowercase);
    let version = query.one("version")?.filter(|version| *version != "latest");
    let listing = format!("servers {search:?} {since:?} {version:?}");
    let mut after = query.one("cursor")?.map(|text| behind(&listing, text)).transpose()?;
    let mut servers = Vec::new();
    let mut next = None;
    for page in 0..PAGES_MAX {
        let ids = app.manifests(client).ids_after(after.as_ref(), PAGE).await?;
        let add = |one: StoredManifest| {
            if servers.len() == limit {
                return;
            }
            after = Some(one.manifest.id.clone());
            let server = server(&one.manifest).filter(|server| {
                since.is_none_or(|since| one.changed_at >= since)
                    && search
                        .as_deref()
                        .is_none_or(|search| text(server, "name").to_lowercase().contains(search))
                    && version.is_none_or(|version| text(server, "version") == version)
            });
            servers.extend(server.map(|server| listed(&server, &one)));
        };
        app.manifests(client).each_of(&ids, add).await?;
        if servers.len() == limit {
            next.clone_from(&after);
            break;
        }
        let is_full = u32::try_from(ids.len()).is_ok_and(|found| found == PAGE);
        if !is_full {
            break;
        }
        after = ids.last().cloned();
        if page + 1 == PAGES_MAX {
            next.clone_from(&after);
        }
    }
    let mut metadata = json!({"count": servers.len()});
    if let Some(next) = next {
        metadata["nextCursor"] = Value::from(cursor::encode(&listing, next.as_str()));
    }
    context.json(&json!({"servers": servers, "metadata": metadata}), Caching::Search)
}

fn behind(listing: &str, text: &str) -> Result<ManifestId, Problem> {
    ManifestId::parse(&cursor::decode(listing, text)?)
        .map_err(|_| Problem::bad_request("\"cursor\" is not one of ours").with_parameter("cursor"))
}

fn text<'a>(server: &'a Map<String, Value>, name: &str) -> &'a str {
    server.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The `server.json` of a manifest that declares an MCP endpoint.
fn server(manifest: &Manifest) -> Option<Map<String, Value>> {
    let mut remotes: Vec<Value> = Vec::new();
    let declared = manifest.interfaces.iter().filter(|interface| interface.protocol == Protocol::Mcp);
    let of_tools = manifest.capabilities.iter().filter_map(|capability| {
        let invocation = &capability.invocation;
        (invocation.protocol == Some(Protocol::Mcp)).then_some(invocation.url.as_deref()?)
    });
    let all = declared.filter_map(|one| Some((one.url.as_deref()?, transport(one))));
    for (url, kind) in all.chain(of_tools.map(|url| (url, "streamable-http"))) {
        let is_web =
            (url.starts_with("https://") || url.starts_with("http://")) && !url.contains(char::is_whitespace);
        if is_web && !remotes.iter().any(|known| known["url"] == url) {
            remotes.push(json!({"type": kind, "url": url}));
        }
    }
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

fn transport(interface: &Interface) -> &'static str {
    let words = [interface.transport.as_deref(), interface.declared.as_deref()];
    let is_sse = words.into_iter().flatten().any(|word| word.eq_ignore_ascii_case("sse"));
    if is_sse { "sse" } else { "streamable-http" }
}

/// Where a name or a version comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Origin {
    Declared,
    Minted,
}

/// `reverse.domain/name`. A host that is too long for one loses its innermost labels; the id keeps its names apart.
fn name(manifest: &Manifest) -> (String, Origin) {
    if let Some(name) = manifest.name.as_deref().filter(|name| is_registry_name(name)) {
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
fn version(manifest: &Manifest) -> (String, Origin) {
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

fn is_registry_name(name: &str) -> bool {
    let fits = |part: &str, more: &[u8]| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
    };
    let parts = name.split_once('/').filter(|_| (3..=NAME_CHARS_MAX).contains(&name.len()));
    parts.is_some_and(|(space, name)| space.contains('.') && fits(space, b".-") && fits(name, b"._-"))
}

fn listed(server: &Map<String, Value>, stored: &StoredManifest) -> Value {
    let manifest = &stored.manifest;
    let ((_, name_is), (_, version_is)) = (name(manifest), version(manifest));
    json!({
        "server": server,
        "_meta": {
            "io.modelcontextprotocol.registry/official": {
                "status": "active", "publishedAt": stored.first_seen_at, "updatedAt": stored.changed_at, "isLatest": true,
            },
            "agentdex/record": {
                "manifest_id": manifest.id, "manifest_url": manifest.url, "name_is": name_is, "version_is": version_is,
                "text_is": crate::answers::TEXT_IS,
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_ranges_are_replaced_by_exact_versions() {
        for version in ["1.2.3", "2025-06-18", "v2", "1.0.0+build.x86"] {
            assert!(is_exact(version), "{version}");
        }
        for version in ["", "latest", "^1.2.3", "~1", ">=1.0", "1.x", "1.*", "1.2 - 1.4", "1 || 2"] {
            assert!(!is_exact(version), "{version}");
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
