//! Classes of addresses: what an address leads to, by its path or its title.

use std::borrow::Cow;

use crate::model::Follow;
use crate::text;

/// The relation of the target of an address to the document, and how the crawler follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkClass {
    pub(crate) rel: &'static str,
    pub(crate) follow: Option<Follow>,
}

/// Relation of the instructions of a skill.
pub(crate) const SKILL: &str = "skill";

/// Classifies an address by its path.
pub(crate) fn classify(address: &str) -> LinkClass {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let has_capitals = path.bytes().fold(false, |found, byte| found | byte.is_ascii_uppercase());
    let path = if has_capitals { Cow::Owned(path.to_ascii_lowercase()) } else { Cow::Borrowed(path) };
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
        "x402" | "x402.json" if path.contains("/.well-known/") => ("x402", true),
        "index.json" if path.contains("skills/") => ("agent-skills", true),
        "mcp" | "sse" if !is_documentation(&path) => ("mcp", false),
        "llms.txt" | "llms-full.txt" | "llms-ctx.txt" => ("llms", false),
        "skill.md" => (SKILL, false),
        "robots.txt" | "humans.txt" | "security.txt" | "ads.txt" | "sitemap.xml" | "sitemap_index.xml"
        | "favicon.ico" => ("related", false),
        _ if is_description(file) => ("service-desc", true),
        _ => ("page", false),
    };
    LinkClass { rel, follow: follow.then_some(Follow::Manifest) }
}

/// Maximum number of words of a title that classifies an address.
const TITLE_WORDS_MAX: usize = 6;
/// Maximum length in bytes of a title that classifies an address.
const TITLE_BYTES_MAX: usize = 100;

/// The class of an address by its title, if its path shows none: "A2A Agent Card", "Docs MCP (documentation search)".
pub(super) fn class_of_title(title: &str, url: &str) -> Option<LinkClass> {
    let title = title.split('(').next().unwrap_or_default();
    if title.len() > TITLE_BYTES_MAX {
        return None;
    }
    let words = text::words(title);
    let named = |word: &str| words.iter().any(|known| known == word);
    let follow = url.starts_with("https://").then_some(Follow::Manifest);
    let rel = match words.last().map(String::as_str).filter(|_| words.len() <= TITLE_WORDS_MAX)? {
        "card" if named("mcp") || named("server") => "mcp-server-card",
        "card" if named("agent") => "agent-card",
        "manifest" if named("agent") => "agent-manifest",
        // "MCP server" is also the title of pages about one.
        "mcp" if words.len() > 1 && url.ends_with("/mcp") => return Some(SERVER),
        "endpoint" if named("mcp") && !is_document(url) => return Some(SERVER),
        "server" | "url" if named("mcp") && has_segment(url, "mcp") && !is_documentation(url) => {
            return Some(SERVER);
        }
        _ => return None,
    };
    Some(LinkClass { rel, follow })
}

/// The class of the address of an MCP server.
const SERVER: LinkClass = LinkClass { rel: "mcp", follow: None };

/// Whether a segment of the path of a URL is `name`, and the URL is not a document.
fn has_segment(url: &str, name: &str) -> bool {
    !is_document(url)
        && url.split(['?', '#']).next().is_some_and(|path| path.split('/').skip(3).any(|part| part == name))
}

/// Whether a path belongs to documentation, where `mcp` is a topic and not a server.
fn is_documentation(path: &str) -> bool {
    let folders =
        ["/docs/", "/developers/", "/developer/", "/documentation/", "/guides/", "/blog/", "/learn/"];
    folders.iter().any(|folder| path.contains(folder))
}

fn is_description(file: &str) -> bool {
    let named = file.contains("openapi") || file.contains("swagger");
    named && [".json", ".yaml", ".yml"].iter().any(|ending| file.ends_with(ending))
}

/// Whether a path or the name of a file has the ending of a document that people and models read.
pub(crate) fn is_document(path: &str) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| FILE_ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending)))
}

/// Endings of documents that people and models read.
const FILE_ENDINGS: &[&str] = &["md", "mdx", "txt", "json", "yaml", "yml", "html", "pdf"];
