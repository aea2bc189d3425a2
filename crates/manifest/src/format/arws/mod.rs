//! ARWS, the Agent-Readable Web Standard: a small manifest that links to the tool definitions, and those definitions.
//!
//! Layer 1 is this document (`agent-manifest.json`, or JSON at `llms.txt`). Layer 2 is the document that `tools` names:
//! if it is linked, its operations become the capabilities of this manifest. Layer 3, an MCP server, is an
//! interface that is never called. Layer 4 is checked against the declarations of the operations.

mod rules;
mod tools;

pub(crate) use rules::FINDINGS;

use serde_json::Value;

use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Candidate, Marker, at_path, medium};
use crate::format::lenient;
use crate::model::{Auth, AuthScheme, Follow, Interface, Link, Protocol};
use crate::object::Object;
use crate::text::capped;
use crate::{address, auth, name::ManifestUrl};

pub(crate) const MARKERS: &[Marker] = &[
    medium(|c| {
        let tools =
            c.text("tools").filter(|tools| tools.starts_with("https://") || tools.starts_with('/'))?;
        let described = c.has("name") || c.has("description");
        described.then(|| format!("`tools` is the address {tools}"))
    }),
    at_path(damaged),
];

/// Maximum number of scopes of one manifest that are kept with their descriptions.
const SCOPES_MAX: usize = 1_000;
/// Maximum number of members of a manifest that contains little more than a name and a description.
const BARE_MEMBERS_MAX: usize = 3;

/// A manifest without usable `tools`, recognised by its path and its other members.
fn damaged(candidate: &Candidate<'_>) -> Option<String> {
    let path = ["/.well-known/agent-manifest.json", "/.well-known/llms.txt"]
        .into_iter()
        .find(|path| candidate.path == *path)?;
    let (is_named, is_described) = (candidate.has("name"), candidate.has("description"));
    let is_secured = candidate.object("auth").is_some_and(|auth| auth.contains_key("type"));
    let remains = if candidate.value("tools").is_some() {
        is_named || is_described || is_secured
    } else if is_secured {
        is_named || is_described
    } else {
        let bare = candidate.size() <= BARE_MEMBERS_MAX;
        is_named && is_described && bare || candidate.has_only(&["name", "description", "version"])
    };
    remains.then(|| format!("the path is {path}, and `name`, `description`, `auth` or `tools` are there"))
}

/// Reads an ARWS manifest, with its tool definitions if they are linked.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.assess("ARWS", |code| code.starts_with("arws."));
    draft.check(root, &rules::ROOT);
    let version = root.text("arws_version").or_else(|| root.text("version").filter(|_| root.has("arws")));
    draft.dialect(version, None);
    draft.manifest.name = draft::name(root.text("name"));
    draft.manifest.description = draft::description(root.text("description"));
    draft.manifest.document_version = draft::name(root.text("version"));
    if let Some(contract) = root.object("auth") {
        let entry = authentication(&contract, draft);
        draft.keep_all(entry);
    }
    if let Some(server) = draft.url(root, "mcp") {
        draft.keep(mcp(server));
    }
    if let Some(published) = root.text("tools") {
        addressed(published, &root.at("tools"), draft);
    } else if root.list("tools").is_some() {
        tools::read_inline(root, draft);
    }
}

/// Reads the tools at the address that the manifest names.
fn addressed(published: &str, pointer: &str, draft: &mut Draft<'_>) {
    let unusable = |reason: String, draft: &mut Draft<'_>| {
        draft.report(
            &rules::TOOLS_UNUSABLE,
            pointer.to_owned(),
            format!("`tools` cannot be fetched: {reason}"),
        );
    };
    let Some(address) = address::on_document(draft.base(), published) else {
        return unusable(format!("\"{}\" is not an address", capped(published, 80)), draft);
    };
    match ManifestUrl::parse(address.as_str()) {
        Ok(url) if url == *draft.base() || url == *draft.document.url => {
            draft.report_rule(&rules::TOOLS_SELF, pointer.to_owned());
        }
        Ok(url) => definitions(&url, pointer, draft),
        Err(error) => unusable(error.to_string(), draft),
    }
}

/// Reads the tools: an MCP server, or a document that completes this one.
fn definitions(url: &ManifestUrl, pointer: &str, draft: &mut Draft<'_>) {
    if is_mcp(url) {
        draft.keep(mcp(url.to_string()));
        return;
    }
    let follow = Some(Follow::Merge);
    draft.keep(Link::new("tools", url.to_string(), follow));
    let linked = draft.document.linked.iter().find(|linked| linked.url == url).copied();
    match linked {
        Some(linked) if linked.bytes.is_empty() => {
            draft.report_rule(&rules::TOOLS_ABSENT, pointer.to_owned());
        }
        Some(linked) => tools::read(&linked, draft),
        None if url.site() != draft.document.url.site() => {
            let text = format!("the tools are on another site, {}", url.site());
            draft.report(&rules::TOOLS_ELSEWHERE, pointer.to_owned(), text);
        }
        None => {}
    }
}

/// Whether the address is an MCP server: `/mcp`, `/sse`.
fn is_mcp(url: &ManifestUrl) -> bool {
    let last = url.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    matches!(last, "mcp" | "sse")
}

fn mcp(url: String) -> Interface {
    Interface::new(Protocol::Mcp, Some(url))
}

fn authentication(contract: &Object<'_>, draft: &mut Draft<'_>) -> Option<Auth> {
    draft.check(contract, &rules::AUTH);
    let is_described = ["type", "token_url", "scopes"].iter().any(|key| contract.has(key));
    let scheme = contract.text("type").map_or_else(|| Auth::new(AuthScheme::Other), auth::of_word);
    let mut entry = is_described.then_some(scheme)?;
    check_scheme(contract, entry.scheme, draft);
    entry.token_url = draft.url(contract, "token_url");
    entry.authorize_url = draft.url(contract, "authorization_url");
    entry.scopes =
        contract.texts("scopes").into_iter().map(|scope| (scope.to_owned(), String::new())).collect();
    complete(&mut entry, contract);
    Some(entry)
}

/// Adds members that ARWS does not define: where a key is sent, where it is obtained, and the descriptions of scopes.
fn complete(entry: &mut Auth, contract: &Object<'_>) {
    let stated = lenient::auth(&Value::Object(contract.map.clone()));
    let Some(stated) = stated.into_iter().find(|stated| stated.scheme == entry.scheme) else { return };
    entry.location = entry.location.take().or(stated.location);
    entry.name = entry.name.take().or(stated.name);
    entry.registration_url = entry.registration_url.take().or(stated.registration_url);
    entry.docs_url = entry.docs_url.take().or(stated.docs_url);
    let described = contract.object("scopes");
    let described = described.iter().flat_map(|scopes| scopes.map).take(SCOPES_MAX);
    entry.scopes.extend(described.filter_map(|(scope, description)| {
        Some((draft::name(Some(scope))?, draft::description(description.as_str()).unwrap_or_default()))
    }));
}

/// Checks that OAuth has a token endpoint and scopes for agents. A manifest without authentication needs neither.
fn check_scheme(contract: &Object<'_>, scheme: AuthScheme, draft: &mut Draft<'_>) {
    let parts = ["token_url", "scopes"].into_iter().find(|key| contract.has(key));
    match scheme {
        AuthScheme::OAuth2 => {
            if !contract.has("token_url") {
                draft.report_rule(&rules::TOKEN_URL_MISSING, contract.pointer.clone());
            }
            if !contract.has("scopes") {
                draft.report_rule(&rules::SCOPES_MISSING, contract.pointer.clone());
            } else if contract.list("scopes").is_some_and(<[_]>::is_empty) {
                draft.report_rule(&rules::SCOPES_MISSING, contract.at("scopes"));
            }
        }
        AuthScheme::Other if contract.text("type").is_some_and(|word| !auth::is_scheme_of_http(word)) => {
            draft.report_rule(&rules::SCHEME_UNKNOWN, contract.at("type"));
        }
        AuthScheme::None if parts.is_some() => {
            draft.report_rule(&rules::AUTH_CONTRADICTED, contract.at("type"));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
