//! Addresses in documents without a specification, wherever they are: documents to follow, servers, pages.
//!
//! The names of the members that hold an address say what it is (`mcp.endpoint`, `api.openapi`, `agentCardUrl`), before its
//! path does. Addresses in schemas, examples and parameters belong to calls and are skipped.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::auth;
use crate::draft::Draft;
use crate::format::addresses::{self, LinkClass};
use crate::model::{Follow, Interface, Link, Protocol};
use crate::text;

/// Links of one document that are added; the longest published list has 74.
const LINKS_MAX: usize = 200;
/// Servers of one document that are added.
const INTERFACES_MAX: usize = 50;
/// Deepest nesting of members that is searched.
const NESTING_MAX: usize = 6;
/// Words of the names of one address that count.
const WORDS_MAX: usize = 16;

/// What the address of a member leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A document or a page.
    Document(LinkClass),
    /// A server or the base of an API.
    Server(Protocol),
}

impl Target {
    const fn follow(rel: &'static str) -> Self {
        Self::Document(LinkClass { rel, follow: Some(Follow::Manifest) })
    }

    const fn page(rel: &'static str) -> Self {
        Self::Document(LinkClass { rel, follow: None })
    }

    /// Whether the address is one of another declaration or of a server.
    const fn is_declaration(self) -> bool {
        matches!(self, Self::Server(_) | Self::Document(LinkClass { follow: Some(_), .. }))
    }
}

/// Members that describe calls and the document itself: their addresses lead nowhere.
pub(crate) fn is_about_calls(name: &str) -> bool {
    matches!(
        name,
        "$schema"
            | "@context"
            | "$id"
            | "$defs"
            | "schema"
            | "schemas"
            | "properties"
            | "definitions"
            | "components"
            | "inputSchema"
            | "input_schema"
            | "outputSchema"
            | "output_schema"
            | "input"
            | "inputs"
            | "output"
            | "outputs"
            | "parameters"
            | "params"
            | "arguments"
            | "example"
            | "examples"
            | "request"
            | "response"
            | "responses"
            | "query"
            | "body"
            | "headers"
            | "default"
            | "enum"
            | "x402"
            | "mcpServers"
            | "rpc"
    )
}

/// Adds every address of a document that is not in the draft yet.
pub(crate) fn read(root: &Map<String, Value>, draft: &mut Draft<'_>) {
    let mut known = Known::of(draft);
    let mut links_left = LINKS_MAX;
    each(root, &mut |names, published| {
        if links_left == 0 {
            return;
        }
        let target = target(names, published);
        if target.is_none() && !published.starts_with("https://") {
            return;
        }
        let Some(url) = draft.origin_url(published).filter(|url| known.is_new(url, target)) else { return };
        links_left -= 1;
        add(names, url, target, draft);
    });
}

/// The addresses that a draft has already.
struct Known {
    servers: HashSet<String>,
    documents: HashSet<String>,
    called: HashSet<String>,
}

impl Known {
    fn of(draft: &Draft<'_>) -> Self {
        let manifest = &draft.manifest;
        let set = |urls: &mut dyn Iterator<Item = &str>| urls.map(str::to_owned).collect::<HashSet<_>>();
        let mut documents = set(&mut manifest.links.iter().map(|link| link.url.as_str()));
        documents.insert(draft.base().as_str().to_owned());
        Self {
            servers: set(&mut manifest.interfaces.iter().filter_map(|interface| interface.url.as_deref())),
            documents,
            called: set(&mut manifest.capabilities.iter().filter_map(|c| c.invocation.endpoint())),
        }
    }

    /// Whether an address is not known as what it is; remembers it.
    fn is_new(&mut self, url: &str, target: Option<Target>) -> bool {
        let is_known = |set: &HashSet<String>| set.contains(url);
        let known = match target {
            Some(Target::Server(_)) => is_known(&self.servers),
            Some(Target::Document(_)) => is_known(&self.documents) || is_known(&self.servers),
            None => is_known(&self.documents) || is_known(&self.servers) || is_known(&self.called),
        };
        if !known {
            let set = if matches!(target, Some(Target::Server(_))) {
                &mut self.servers
            } else {
                &mut self.documents
            };
            set.insert(url.to_owned());
        }
        !known
    }
}

fn add(names: &[&str], url: String, target: Option<Target>, draft: &mut Draft<'_>) {
    match target {
        Some(Target::Server(protocol)) => add_server(protocol, url, draft),
        Some(Target::Document(class)) => {
            if class.rel == "mcp" {
                add_server(Protocol::Mcp, url.clone(), draft);
            }
            draft.keep(Link::new(class.rel, url, class.follow));
        }
        None => {
            let generic = ["url", "href", "link", "uri", "endpoint"];
            let name = names.iter().rev().find(|name| !generic.contains(*name)).unwrap_or(&"related");
            draft.keep(Link::new(text::capped(name, 100), url, None));
        }
    }
}

fn add_server(protocol: Protocol, url: String, draft: &mut Draft<'_>) {
    if draft.manifest.interfaces.len() < INTERFACES_MAX {
        draft.keep(Interface::new(protocol, Some(url)));
    }
}

/// The first address of another declaration or of a server, with the names of its members.
pub(crate) fn first_declaration(root: &Map<String, Value>) -> Option<String> {
    let mut first = None;
    each(root, &mut |names, published| {
        if first.is_none() && target(names, published).is_some_and(Target::is_declaration) {
            first = Some(names.join("."));
        }
    });
    first
}

/// Calls `show` with each address of a document and the names of the members that hold it.
fn each<'v>(root: &'v Map<String, Value>, show: &mut impl FnMut(&[&'v str], &'v str)) {
    let mut names = Vec::new();
    each_of_map(root, &mut names, show);
}

fn each_of_map<'v>(
    map: &'v Map<String, Value>,
    names: &mut Vec<&'v str>,
    show: &mut impl FnMut(&[&'v str], &'v str),
) {
    for (name, value) in map {
        if !is_about_calls(name) {
            names.push(name);
            each_of_value(value, names, 0, show);
            names.pop();
        }
    }
}

fn each_of_value<'v>(
    value: &'v Value,
    names: &mut Vec<&'v str>,
    lists: usize,
    show: &mut impl FnMut(&[&'v str], &'v str),
) {
    match value {
        Value::String(text) if is_address(text) => show(names, text),
        Value::Object(map) if names.len() < NESTING_MAX => each_of_map(map, names, show),
        Value::Array(list) if lists < NESTING_MAX => {
            for item in list {
                each_of_value(item, names, lists + 1, show);
            }
        }
        _ => {}
    }
}

fn is_address(text: &str) -> bool {
    let absolute = ["https://", "wss://"].iter().any(|scheme| text.starts_with(scheme));
    (absolute || text.starts_with('/')) && !text.contains(char::is_whitespace)
}

/// What an address leads to, by the names of its members and by its path. `None` if neither says.
pub(crate) fn target(names: &[&str], published: &str) -> Option<Target> {
    let by_path = addresses::classify(published);
    if by_path.follow.is_some() {
        return Some(Target::Document(by_path));
    }
    let own = Words::of(names.iter().rev().take(1));
    let all = Words::of(names.iter());
    by_words(&own, &all).or_else(|| match by_path.rel {
        "page" if published.starts_with("wss://") => Some(Target::Server(Protocol::WebSocket)),
        "page" => None,
        _ => Some(Target::Document(by_path)),
    })
}

/// The words of some names in lower case.
struct Words(Vec<String>);

impl Words {
    fn of<'n>(names: impl Iterator<Item = &'n &'n str>) -> Self {
        let mut words = Vec::new();
        for name in names {
            text::each_word(name, |word| {
                if words.len() < WORDS_MAX {
                    words.push(word.to_owned());
                }
            });
        }
        Self(words)
    }

    fn any(&self, known: &[&str]) -> bool {
        self.0.iter().any(|word| known.contains(&word.as_str()))
    }

    fn pair(&self, first: &str, second: &str) -> bool {
        self.0.windows(2).any(|pair| matches!(pair, [a, b] if a == first && b == second))
    }
}

/// Words of pages for people and of files that declare nothing.
const PAGE_WORDS: &[(&[&str], &str)] = &[
    (&["docs", "documentation", "guide", "doc", "quickstart", "playground", "reference"], "docs"),
    (&["repository", "repo", "github", "source", "npm", "pypi"], "repository"),
    (&["terms", "tos"], "terms-of-service"),
    (&["homepage", "website", "human", "humans", "sitemap", "dashboard", "signup"], "related"),
    (&["privacy"], "privacy-policy"),
    (
        &["schema", "icon", "logo", "image", "images", "favicon", "avatar", "example", "listing", "registry"],
        "related",
    ),
];
/// Words that name the address of a server inside the block of its protocol.
const SERVER_WORDS: &[&str] = &[
    "endpoint",
    "url",
    "server",
    "http",
    "sse",
    "remote",
    "connection",
    "streamable",
    "mcp",
    "a2a",
    "uri",
    "base",
    "href",
    "task",
    "tasks",
    "rpc",
    "jsonrpc",
    "address",
    "production",
    "prod",
];

fn by_words(own: &Words, all: &Words) -> Option<Target> {
    if let Some((_, rel)) = PAGE_WORDS.iter().find(|(words, _)| own.any(words)) {
        return Some(Target::page(rel));
    }
    let is_card = own.any(&["card", "agentcard"]);
    if is_card
        && !own.any(&["mcp", "server"])
        && (own.any(&["agent", "agentcard"]) || all.any(&["a2a", "agent"]))
    {
        return Some(Target::follow("agent-card"));
    }
    if all.any(&["openapi", "swagger"]) && !own.any(&["ui", "version", "index", "playground"]) {
        return Some(Target::follow("service-desc"));
    }
    if own.pair("ai", "catalog") || own.pair("api", "catalog") {
        return Some(Target::follow(if own.any(&["ai"]) { "ai-catalog" } else { "api-catalog" }));
    }
    let described = own.any(&["card", "discovery", "manifest", "descriptor"]);
    if all.any(&["mcp"]) {
        return (described.then(|| Target::follow("mcp-server-card")))
            .or_else(|| own.any(SERVER_WORDS).then_some(Target::Server(Protocol::Mcp)));
    }
    if all.any(&["a2a"]) {
        return own.any(SERVER_WORDS).then_some(Target::Server(Protocol::A2a));
    }
    let is_web_app = own.any(&["web", "webmanifest", "app", "pwa", "site"]);
    if all.any(&["manifest", "manifests"]) && !is_web_app
        || own.pair("agents", "json")
        || own.pair("agent", "json")
        || own.pair("agents", "txt")
    {
        return Some(Target::follow("agent-manifest"));
    }
    if own.any(&["plugin"]) && own.any(&["ai", "openai"]) {
        return Some(Target::follow("ai-plugin"));
    }
    if own.any(&["llms"]) {
        return Some(Target::page("llms"));
    }
    by_protocol(own, all).map(Target::Server)
}

/// The protocol of a server that is neither MCP nor A2A.
fn by_protocol(own: &Words, all: &Words) -> Option<Protocol> {
    let is_server = own.any(SERVER_WORDS) || own.any(&["graphql", "grpc", "websocket", "ws"]);
    if is_server && all.any(&["jsonrpc"]) {
        return Some(auth::protocol("jsonrpc"));
    }
    if is_server && all.any(&["graphql"]) {
        return Some(Protocol::GraphQl);
    }
    if is_server && all.any(&["grpc"]) {
        return Some(Protocol::Grpc);
    }
    if is_server && all.any(&["websocket", "websockets", "ws"]) {
        return Some(Protocol::WebSocket);
    }
    let is_base = own.pair("api", "url")
        || own.pair("api", "base")
        || own.pair("base", "url")
        || own.pair("api", "endpoint")
        || own.any(&["baseurl", "apiurl"]);
    let is_rest =
        own.any(&["endpoint", "url", "base"]) && all.any(&["rest", "transport", "transports", "protocols"]);
    (is_base || is_rest).then_some(Protocol::Http)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_members_say_what_an_address_is() {
        for (names, published, expected) in [
            (&["mcp", "endpoint"][..], "https://a.example/x", Some(Target::Server(Protocol::Mcp))),
            (&["protocols", "mcp"], "/x", Some(Target::Server(Protocol::Mcp))),
            (&["protocols", "a2a", "url"], "/x", Some(Target::Server(Protocol::A2a))),
            (&["api", "openapi"], "/spec", Some(Target::follow("service-desc"))),
            (&["openapi", "url"], "/spec", Some(Target::follow("service-desc"))),
            (&["agentCardUrl"], "/card", Some(Target::follow("agent-card"))),
            (&["a2a", "card"], "/card", Some(Target::follow("agent-card"))),
            (&["transport", "jsonrpc", "endpoint"], "/rpc", Some(Target::Server(Protocol::A2a))),
            (&["manifests", "awp"], "/m", Some(Target::follow("agent-manifest"))),
            (&["apiUrl"], "https://api.example", Some(Target::Server(Protocol::Http))),
            (&["mcp", "discovery"], "/x", Some(Target::follow("mcp-server-card"))),
            (&["mcp", "source"], "https://a.example/x", Some(Target::page("repository"))),
            (&["openapi_docs"], "/docs", Some(Target::page("docs"))),
            (&["webManifest"], "/m", None),
            (&["homepage"], "https://a.example/", Some(Target::page("related"))),
            (&["rpcUrl"], "https://a.example/", None),
            (&["files"], "/.well-known/mcp.json", Some(Target::follow("mcp-server-card"))),
        ] {
            assert_eq!(target(names, published), expected, "{names:?}");
        }
    }
}
