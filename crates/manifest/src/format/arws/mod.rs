//! ARWS, the Agent-Readable Web Standard: a small manifest that names the tool definitions, and those definitions.
//!
//! Layer 1 is this document (`agent-manifest.json`, or JSON at `llms.txt`). Layer 2 is the document that `tools` names:
//! if it is linked, its operations become the capabilities of this manifest. Layer 3, an MCP server, is an
//! interface that is never called. Layer 4 is checked against the declarations of the operations.

mod rules;
mod tools;

pub(crate) use rules::FINDINGS;

use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, medium};
use crate::model::{Auth, Follow, Interface, Link, Protocol};
use crate::object::Object;
use crate::{auth, name::ManifestUrl};

pub(crate) const MARKERS: &[Marker] = &[medium(|c| {
    let tools = c.text("tools").filter(|tools| tools.starts_with("https://") || tools.starts_with('/'))?;
    let described = c.has("name") || c.has("description");
    described.then(|| format!("`tools` is the address {tools}"))
})];

/// Reads an ARWS manifest, with its tool definitions if they are linked.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.assess("ARWS", |code| code.starts_with("arws."));
    draft.check(root, &rules::ROOT);
    draft.dialect(root.text("version").filter(|_| root.has("arws")), None);
    draft.manifest.name = draft::name(root.text("name"));
    draft.manifest.description = draft::description(root.text("description"));
    draft.manifest.document_version = draft::name(root.text("version"));
    if let Some(contract) = root.object("auth") {
        let entry = authentication(&contract, draft);
        draft.manifest.auth.extend(entry);
    }
    if let Some(server) = draft.url(root, "mcp") {
        draft.manifest.interfaces.push(mcp(server));
    }
    let Some(published) = root.text("tools") else {
        return draft.report_rule(&rules::TOOLS_MISSING, root.at("tools"));
    };
    match draft
        .on_document(published, &root.at("tools"))
        .and_then(|found| ManifestUrl::parse(found.as_str()).ok())
    {
        Some(url) => definitions(&url, draft),
        None => draft.report_rule(&rules::TOOLS_UNUSABLE, root.at("tools")),
    }
}

/// Reads the tools: an MCP server, or a document that completes this one.
fn definitions(url: &ManifestUrl, draft: &mut Draft<'_>) {
    if is_mcp(url) {
        draft.manifest.declared_origin = Some(url.origin());
        draft.manifest.interfaces.push(mcp(url.to_string()));
        return;
    }
    let follow = Some(Follow::Merge);
    draft.manifest.links.push(Link::new("tools", url.to_string(), follow));
    let linked = draft.document.linked.iter().find(|linked| linked.url == url).copied();
    if let Some(linked) = linked {
        tools::read(&linked, draft);
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
    let mut entry = auth::of_word(contract.text("type")?);
    entry.token_url = draft.url(contract, "token_url");
    entry.authorize_url = draft.url(contract, "authorization_url");
    entry.scopes =
        contract.texts("scopes").into_iter().map(|scope| (scope.to_owned(), String::new())).collect();
    Some(entry)
}

#[cfg(test)]
mod tests;
