//! Determines the target of an address from the names of its members and from its path.

use crate::auth;
use crate::format::link_class::{self, LinkClass};
use crate::model::{Follow, Protocol};
use crate::text;

/// Maximum number of words that are compared, over all member names of one address.
const WORDS_MAX: usize = 16;
/// Maximum number of characters of a name that are split into words. A name is split again for each address below it.
const NAME_CHARS_MAX: usize = 100;

/// The target of the address in a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A document or a page.
    Document(LinkClass),
    /// A server or the base URL of an API.
    Server(Protocol),
}

impl Target {
    const fn follow(rel: &'static str) -> Self {
        Self::Document(LinkClass { rel, follow: Some(Follow::Manifest) })
    }

    const fn page(rel: &'static str) -> Self {
        Self::Document(LinkClass { rel, follow: None })
    }

    /// The page of a package in a registry.
    pub(crate) const fn of_package() -> Self {
        Self::page("package")
    }

    /// The page whose tools a browser calls.
    pub(super) const fn of_web_mcp() -> Self {
        Self::page("webmcp")
    }

    pub(crate) const fn is_server(self) -> bool {
        matches!(self, Self::Server(_))
    }

    /// The target of an address that belongs to another service. A server of another service is treated as a page.
    pub(super) fn of_another(self) -> Self {
        match self {
            Self::Server(_) | Self::Document(LinkClass { rel: "mcp", .. }) => Self::page("related"),
            document @ Self::Document(_) => document,
        }
    }

    /// The target of a member with a schema on another site: the schema of a card is not a card.
    pub(super) fn of_schema(self) -> Self {
        match self {
            Self::Document(LinkClass { rel: "service-desc", .. }) | Self::Server(_) => self,
            Self::Document(_) => Self::page("related"),
        }
    }

    /// Whether the address is one of a text for models.
    pub(super) const fn is_for_models(self) -> bool {
        matches!(self, Self::Document(LinkClass { rel, .. }) if matches!(rel.as_bytes(), b"llms" | b"skill"))
    }

    /// Whether the address is one of a document that is followed.
    pub(super) const fn is_followed(self) -> bool {
        matches!(self, Self::Document(LinkClass { follow: Some(_), .. }))
    }

    /// Whether the address is one of another declaration or of a server.
    pub(super) const fn is_declaration(self) -> bool {
        self.is_server() || self.is_followed()
    }
}

/// The target of an address, by the names of its members and by its path. `None` if neither shows it.
pub(crate) fn target(names: &[&str], published: &str) -> Option<Target> {
    Meanings::default().target(names, published)
}

/// Caches the meaning of member names, because the elements of a list have the same member names.
#[derive(Default)]
pub(super) struct Meanings<'v> {
    /// The member names of the last address.
    names: Vec<&'v str>,
    /// The meaning of [`Self::names`].
    last: Option<Meaning>,
}

#[derive(Clone, Copy)]
struct Meaning {
    target: Option<Target>,
    is_related: bool,
}

impl<'v> Meanings<'v> {
    pub(super) fn target(&mut self, names: &[&'v str], published: &str) -> Option<Target> {
        let by_path = link_class::classify(published);
        if by_path.follow.is_some() {
            return Some(Target::Document(by_path));
        }
        let meaning = self.of(names);
        let found = meaning.target.or_else(|| match by_path.rel {
            "page" if published.starts_with("wss://") || published.starts_with("ws://") => {
                Some(Target::Server(Protocol::WebSocket))
            }
            "page" => None,
            _ => Some(Target::Document(by_path)),
        });
        let found = found.map(|found| described(found, published));
        if meaning.is_related { found.map(Target::of_another) } else { found }
    }

    fn of(&mut self, names: &[&'v str]) -> Meaning {
        if let Some(last) = self.last.filter(|_| self.names == names) {
            return last;
        }
        let own = Words::of(names.iter().rev().take(1));
        let all = Words::of(names.iter());
        let is_related = all.any(RELATED_WORDS) || all.pair("see", "also");
        let meaning = Meaning { target: by_words(&own, &all), is_related };
        self.names.clear();
        self.names.extend_from_slice(names);
        self.last = Some(meaning);
        meaning
    }
}

/// The document at an address that a member calls a server: a JSON file is not an MCP or A2A server, but the card of one.
fn described(found: Target, published: &str) -> Target {
    let path = published.split(['?', '#']).next().unwrap_or_default();
    let is_json = || path.rsplit_once('.').is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("json"));
    match found {
        Target::Server(Protocol::Mcp) if is_json() => Target::follow("mcp-server-card"),
        Target::Server(Protocol::A2a) if is_json() => Target::follow("agent-card"),
        other => other,
    }
}

/// Words in the names of members for other services. Their servers become links, not servers of this service.
pub(crate) const RELATED_WORDS: &[&str] = &[
    "related",
    "similar",
    "sibling",
    "siblings",
    "sister",
    "partner",
    "partners",
    "peers",
    "alternatives",
    "recommended",
    "affiliated",
    "affiliates",
];

/// The target of a link relation (RFC 8631, RFC 9727, or a relation of this crate).
pub(super) fn of_relation(relation: &str) -> Option<Target> {
    [
        "service-desc",
        "api-catalog",
        "ai-catalog",
        "agent-card",
        "agent-manifest",
        "mcp-server-card",
        "ai-plugin",
    ]
    .into_iter()
    .find(|known| *known == relation)
    .map(Target::follow)
}

/// The protocol that a word names.
pub(super) fn protocol_of(word: &str) -> Option<&'static str> {
    ["mcp", "a2a", "graphql", "grpc", "websocket", "rest"]
        .into_iter()
        .find(|known| word.eq_ignore_ascii_case(known))
}

/// The words of some names in lower case.
pub(super) struct Words {
    /// The words one after another.
    text: String,
    /// Where each word ends.
    ends: [usize; WORDS_MAX],
    count: usize,
}

impl Words {
    pub(super) fn of<'n>(names: impl Iterator<Item = &'n &'n str>) -> Self {
        let mut words = Self { text: String::with_capacity(NAME_CHARS_MAX), ends: [0; WORDS_MAX], count: 0 };
        for name in names {
            if words.count == WORDS_MAX {
                break;
            }
            text::each_word(text::capped(name, NAME_CHARS_MAX), |word| words.add(word));
        }
        words
    }

    fn add(&mut self, word: &str) {
        if let Some(end) = self.ends.get_mut(self.count) {
            self.text.push_str(word);
            *end = self.text.len();
            self.count += 1;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let mut begin = 0;
        self.ends.iter().take(self.count).map(move |end| {
            let word = self.text.get(begin..*end).unwrap_or_default();
            begin = *end;
            word
        })
    }

    /// Whether the words are exactly these.
    fn are(&self, words: &[&str]) -> bool {
        self.iter().eq(words.iter().copied())
    }

    fn any(&self, known: &[&str]) -> bool {
        self.iter().any(|word| known.contains(&word))
    }

    /// Whether the last word, except for words for an address or a format, is one of these.
    fn ends_with(&self, known: &[&str]) -> bool {
        const ENDS: &[&str] = &["url", "uri", "link", "href", "page", "html", "md", "json"];
        self.iter().filter(|word| !ENDS.contains(word)).last().is_some_and(|last| known.contains(&last))
    }

    fn pair(&self, first: &str, second: &str) -> bool {
        self.iter().zip(self.iter().skip(1)).any(|pair| pair == (first, second))
    }
}

/// Words of pages for people and of files that declare nothing.
const PAGE_WORDS: &[(&[&str], &str)] = &[
    (&["docs", "documentation", "guide", "doc", "quickstart", "playground", "reference"], "docs"),
    (&["repository", "repo", "github", "npm", "pypi"], "repository"),
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

/// Words for providers of a service. The address in a block with such a name is the address of the site of the provider.
const PARTY_WORDS: &[&str] =
    &["provider", "publisher", "organization", "author", "owner", "vendor", "contact", "support"];
/// Words for products: a kit for MCP servers is not a server.
const GOODS_WORDS: &[&str] =
    &["kit", "pack", "product", "template", "templates", "bundle", "playbook", "checkout"];

/// Words for calls and lists about servers: none of them is a server or its card.
const PART_WORDS: &[&str] = &[
    "search",
    "catalog",
    "catalogue",
    "stats",
    "statistics",
    "status",
    "health",
    "metrics",
    "directory",
    "categories",
    "query",
    "feed",
];

/// Maximum number of words of a name that any word for a page makes the name of a page, and of any name of a page. Longer names are those
/// of goods and articles: `website-audit-report`, `setup-guide-for-sellers-of-rooms`.
const PAGE_NAME_WORDS_MAX: usize = 3;
const TARGET_NAME_WORDS_MAX: usize = 5;
/// Words that may stand in the name of a member with the manifest of an agent. With another word, it is the manifest of something else:
/// `arena_manifest`.
const MANIFEST_WORDS: &[&str] = &[
    "manifest",
    "manifests",
    "agent",
    "agents",
    "ai",
    "service",
    "capability",
    "capabilities",
    "site",
    "server",
    "api",
    "tool",
    "tools",
    "webmcp",
    "machine",
    "discovery",
    "well",
    "known",
    "url",
    "uri",
    "href",
    "link",
    "json",
    "full",
    "self",
    "canonical",
    "v1",
    "v2",
];

fn by_words(own: &Words, all: &Words) -> Option<Target> {
    if own.count == 1 && own.any(&["url", "href", "link"]) && all.any(PARTY_WORDS) {
        return None;
    }
    if all.any(&["schemas"]) {
        return Some(Target::page("related"));
    }
    // Names of calls or lists about servers: `mcp_search`, `mcp_catalog_stats`.
    let is_part = own.count > 1 && own.any(PART_WORDS) && !own.any(&["endpoint", "url", "server"]);
    let is_server = own.any(SERVER_WORDS) && !own.any(GOODS_WORDS) && !is_part;
    let names_page =
        |words: &[&str]| own.any(words) && (own.count <= PAGE_NAME_WORDS_MAX || own.ends_with(words));
    if let Some((_, rel)) = PAGE_WORDS.iter().find(|(words, _)| names_page(words)) {
        return (own.count <= TARGET_NAME_WORDS_MAX).then(|| Target::page(rel));
    }
    if own.are(&["source"]) || own.pair("source", "code") || own.pair("source", "url") {
        return Some(Target::page("repository"));
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
            .or_else(|| is_server.then_some(Target::Server(Protocol::Mcp)));
    }
    if own.are(&["task", "endpoint"]) {
        return Some(Target::Server(Protocol::A2a));
    }
    if all.any(&["a2a"]) {
        return is_server.then_some(Target::Server(Protocol::A2a));
    }
    let is_web_app = own.any(&["web", "webmanifest", "app", "pwa", "site"]);
    let is_part_of_agent = |word: &str| MANIFEST_WORDS.contains(&word);
    let names_manifest = own.any(&["manifest", "manifests"]) && own.iter().all(is_part_of_agent)
        || all.any(&["manifest", "manifests"]) && !own.any(&["manifest", "manifests"]);
    if names_manifest && !is_web_app && !all.any(&["trust"])
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
    fn member_names_determine_the_target_of_an_address() {
        for (names, published, expected) in [
            (&["mcp", "endpoint"][..], "https://a.example/x", Some(Target::Server(Protocol::Mcp))),
            (&["protocols", "mcp"], "/x", Some(Target::Server(Protocol::Mcp))),
            (&["protocols", "a2a", "url"], "/x", Some(Target::Server(Protocol::A2a))),
            (&["protocols", "a2a", "url"], "/x.json", Some(Target::follow("agent-card"))),
            (&["api", "openapi"], "/spec", Some(Target::follow("service-desc"))),
            (&["openapi", "url"], "/spec", Some(Target::follow("service-desc"))),
            (&["agentCardUrl"], "/card", Some(Target::follow("agent-card"))),
            (&["a2a", "card"], "/card", Some(Target::follow("agent-card"))),
            (&["transport", "jsonrpc", "endpoint"], "/rpc", Some(Target::Server(Protocol::A2a))),
            (&["manifests", "awp"], "/m", Some(Target::follow("agent-manifest"))),
            (&["apiUrl"], "https://api.example", Some(Target::Server(Protocol::Http))),
            (&["mcp", "discovery"], "/x", Some(Target::follow("mcp-server-card"))),
            (&["mcp_search"], "https://a.example/api/mcp/search?q=", None),
            (&["interfaces", "mcp_catalog"], "https://a.example/catalog.json", None),
            (&["interfaces", "mcp_catalog_stats"], "https://a.example/stats.json", None),
            (&["mcp_server"], "https://a.example/x", Some(Target::Server(Protocol::Mcp))),
            (&["mcp", "source"], "https://a.example/x", Some(Target::page("repository"))),
            (&["taskEndpoint"], "https://a.example/x", Some(Target::Server(Protocol::A2a))),
            (&["source_code"], "https://a.example/x", Some(Target::page("repository"))),
            (&["source_material"], "/specs/x", None),
            (&["openapi_docs"], "/docs", Some(Target::page("docs"))),
            (&["webManifest"], "/m", None),
            (&["homepage"], "https://a.example/", Some(Target::page("related"))),
            (&["rpcUrl"], "https://a.example/", None),
            (&["files"], "/.well-known/mcp.json", Some(Target::follow("mcp-server-card"))),
            (&["related_mcp"], "https://b.example/mcp", Some(Target::page("related"))),
            (&["see_also", "mcp", "url"], "https://b.example/x", Some(Target::page("related"))),
            (&["partners", "card"], "/.well-known/agent-card.json", Some(Target::follow("agent-card"))),
        ] {
            assert_eq!(target(names, published), expected, "{names:?}");
        }
    }
}
