//! Addresses in prose: Markdown links and bare URLs, classified by their target.
//!
//! Distinguishes manifests, which are followed, from pages.

use crate::draft::{self, Draft};
use crate::model::{Follow, Interface, Link, Protocol};

/// Links of one text that are kept; the longest list seen has 74.
const LINKS_MAX: usize = 500;

/// An address found in a line.
pub(crate) struct LinkInText<'t> {
    pub(crate) title: Option<&'t str>,
    pub(crate) address: &'t str,
}

/// Every address of a line, Markdown links first.
fn in_line(line: &str) -> Vec<LinkInText<'_>> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        let title = before.rsplit_once('[').map(|(_, title)| title);
        let Some((address, tail)) = after.split_once(')') else { break };
        found.push(LinkInText { title, address: address.split_whitespace().next().unwrap_or_default() });
        rest = tail;
    }
    if found.is_empty() {
        found.extend(
            line.split_whitespace().filter_map(bare).map(|address| LinkInText { title: None, address }),
        );
    }
    found
}

/// A URL without the punctuation around it.
fn bare(word: &str) -> Option<&str> {
    let start = word.find("https://")?;
    let url = word.get(start..)?;
    let end = url.find(['"', '\'', '<', '>', '`', '(', ')', '[', ']', '|', '*']).unwrap_or(url.len());
    Some(url.get(..end)?.trim_end_matches(['.', ',', ';', ':', '!', '?']))
}

/// The target of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkClass {
    pub(crate) rel: &'static str,
    pub(crate) follow: Option<Follow>,
}

/// Classifies an address by its path.
pub(crate) fn classify(address: &str) -> LinkClass {
    let path = address.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let file = path.rsplit('/').next().unwrap_or_default();
    let (rel, follow) = match file {
        "agent-card.json" => ("agent-card", true),
        "agent.json" | "agents.json" | "agents.txt" | "woa.json" | "agent-manifest.json" => {
            ("agent-manifest", true)
        }
        "ai-catalog.json" | "ard.json" => ("ai-catalog", true),
        "ai-plugin.json" => ("ai-plugin", true),
        "api-catalog" => ("api-catalog", true),
        "mcp.json" | "server-card.json" => ("mcp-server-card", true),
        "index.json" if path.contains("skills/") => ("agent-skills", true),
        "mcp" | "sse" => ("mcp", false),
        "llms.txt" | "llms-full.txt" | "llms-ctx.txt" => ("llms", false),
        "skill.md" => ("skill", false),
        _ if is_description(file) => ("service-desc", true),
        _ => ("page", false),
    };
    LinkClass { rel, follow: follow.then_some(Follow::Manifest) }
}

fn is_description(file: &str) -> bool {
    let named = file.contains("openapi") || file.contains("swagger");
    named && [".json", ".yaml", ".yml"].iter().any(|ending| file.ends_with(ending))
}

/// Whether a text is the address of a document that could be a manifest.
pub(crate) fn leads_to_manifest(text: &str) -> bool {
    let is_address = text.starts_with('/') || text.starts_with("https://");
    let is_document = [".json", ".txt", ".md", ".yaml"].iter().any(|ending| text.ends_with(ending))
        || text.contains("/.well-known/");
    is_address
        && is_document
        && !text.contains(char::is_whitespace)
        && crate::address::split_method(text).0.is_none()
}

/// Keeps every address of a line.
pub(crate) fn keep_line(line: &str, draft: &mut Draft<'_>) {
    for found in in_line(line) {
        keep(&found, draft);
    }
}

/// Keeps an address as a link, and as an interface if it is an MCP server.
pub(crate) fn keep(found: &LinkInText<'_>, draft: &mut Draft<'_>) {
    let plain = found.address.starts_with("https://") || found.address.starts_with('/');
    if !plain || draft.manifest.links.len() >= LINKS_MAX {
        return;
    }
    let Some(address) = crate::address::on_document(draft.base(), found.address) else { return };
    let url = address.into_string();
    if url == draft.base().as_str() || draft.manifest.links.iter().any(|link| link.url == url) {
        return;
    }
    let class = classify(&url);
    if class.rel == "mcp" && !draft.has_interface(&url) {
        draft.keep(Interface::new(Protocol::Mcp, Some(url.clone())));
    }
    let mut link = Link::new(class.rel, url, class.follow);
    link.title = draft::name(found.title);
    draft.keep(link);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_addresses_in_markdown_and_prose() {
        let of = |line| in_line(line).iter().map(|found| found.address).collect::<Vec<_>>();
        assert_eq!(
            of("- [API](https://a.example/openapi.json): the API"),
            ["https://a.example/openapi.json"]
        );
        assert_eq!(
            of("See https://a.example/docs, or `https://b.example/mcp`."),
            ["https://a.example/docs", "https://b.example/mcp"]
        );
        assert_eq!(of("no [link] (here)"), Vec::<&str>::new());
        assert_eq!(of("[broken](https://a.example"), ["https://a.example"]);
    }

    #[test]
    fn classifies_addresses_by_path() {
        for (address, rel, followed) in [
            ("https://a.example/.well-known/agent-card.json", "agent-card", true),
            ("https://a.example/api/openapi.yaml?v=1", "service-desc", true),
            ("https://a.example/mcp", "mcp", false),
            ("https://a.example/llms-full.txt", "llms", false),
            ("https://a.example/about", "page", false),
        ] {
            let class = classify(address);
            assert_eq!((class.rel, class.follow.is_some()), (rel, followed), "{address}");
        }
    }
}
