//! Finds addresses in all members that no parser has read: documents to follow, servers, pages.
//!
//! The names of the members that contain an address determine its target (`mcp.endpoint`, `api.openapi`, `agentCardUrl`), and take
//! precedence over its path. Addresses in schemas, examples and parameters belong to calls and are skipped, and so are identifiers of types
//! and extensions. Addresses inside sentences come last and are never followed.

mod calling;
mod follow;
mod known;
mod listed_paths;
mod pages;
mod servers;
mod target;
mod texts;

use serde_json::{Map, Value};
use url::Url;

use crate::address;
use crate::draft::{self, Draft};
use crate::format::link_class;
use crate::format::{addresses, package};
use crate::identity::host_of;
use crate::model::{Format, Interface, Link, Protocol};
use crate::name::{URL_BYTES_MAX, parse_url};
use crate::object::member;
use crate::text;
use follow::{follow_known, join_titles, may_be_followed};
use known::Known;
use pages::relative_pages;
use servers::{add_server, complete_server, server_at};
use target::Meanings;
pub(crate) use target::{RELATED_WORDS, Target, target};
use texts::each;
pub(crate) use texts::{Texts, each_text};

/// Maximum number of links of one document that are added; the longest published list has 74.
const LINKS_MAX: usize = 200;
/// Maximum number of paths of one document that are compared with the paths of calls, and of addresses in its sentences.
const TRIES_MAX: usize = 2_000;
/// Deepest nesting of members that is searched.
const NESTING_MAX: usize = 6;

/// Members that describe calls and the document itself. Their addresses are ignored.
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
            | "mcpServers"
    ) || is_example(name)
}

/// Whether a member contains an example of a request or a response: `response_example`, `sampleResponse`.
fn is_example(name: &str) -> bool {
    // "example", "Sample"
    text::has_four(name, *b"ampl") && {
        let words = text::words(name);
        let ends = [words.first(), words.last()];
        ends.into_iter().flatten().any(|word| matches!(word.as_str(), "example" | "examples" | "sample"))
    }
}

/// Whether a member contains contacts of a service. Their addresses are links, even if they belong to an API.
pub(crate) fn is_contact(name: &str) -> bool {
    matches!(name, "contact" | "contacts" | "contact_info" | "contactInfo" | "contact_point" | "contactPoint")
}

/// Members whose addresses are identifiers, secrets, the settings of a command, or the sites that may call a service.
fn is_identifier(name: &str, value: &Value) -> bool {
    matches!(name, "type" | "@type" | "@id" | "env" | "args" | "command" | "cors" | "CORS")
        || (name == "extensions" && value.is_array())
        || ["_origins", "Origins", "-origins"].iter().any(|end| name.ends_with(end))
}

/// Members with a schema that may instead hold its address.
fn is_schema_name(name: &str) -> bool {
    matches!(name, "schema" | "inputSchema" | "input_schema" | "outputSchema" | "output_schema")
}

/// Whether the last of these names is about a schema.
fn is_schema(names: &[&str]) -> bool {
    names.last().is_some_and(|name| text::words(text::capped(name, 100)).iter().any(|word| word == "schema"))
}

/// Maximum number of texts of one document that may name calls.
const CALLING_TEXTS_MAX: usize = 500;

/// The target of an address at another service, or of a schema at another site.
fn narrowed(target: Target, names: &[&str], url: &str, draft: &Draft<'_>) -> Target {
    let target = if is_elsewhere(names, url, draft) { target.of_another() } else { target };
    if target.is_followed() && is_schema(names) && is_on_other_site(url, draft) {
        target.of_schema()
    } else {
        target
    }
}

/// Adds every address of a document that is not in the draft yet, and returns the texts that may name calls. Paths of an API in sentences
/// are resolved below `base`.
pub(crate) fn read<'v>(
    root: &'v Map<String, Value>,
    base: Option<&Url>,
    draft: &mut Draft<'_>,
) -> Vec<Sentence<'v>> {
    let is_core = draft.format().is_core();
    let (mut known, format, origin) = (Known::of(draft), draft.format(), draft.base().origin());
    let (mut links_left, mut paths_left) = (LINKS_MAX, TRIES_MAX);
    let (mut sentences, mut calling): (Vec<Sentence<'v>>, Vec<Sentence<'v>>) = (Vec::new(), Vec::new());
    let (mut meanings, first) = (Meanings::default(), draft.manifest.links.len());
    let relative_page = relative_pages(root, is_core);
    let page_of_tools =
        draft.manifest.links.iter().find(|link| link.rel == "webmcp").map(|link| link.url.clone());
    each(root, &mut |names, published, owner| {
        let rooted = relative_page(names, published);
        let address = rooted.as_deref().or_else(|| is_address(published).then_some(published));
        if address.is_none() && addresses::may_hold_address(published) {
            sentences.push((published, owner));
            if calling.len() < CALLING_TEXTS_MAX && calling::may_name_call(names, published) {
                calling.push((published, owner));
            }
        }
        let Some(published) = address.or_else(|| address_before_remark(published)) else { return };
        if links_left == 0 || is_local(names) {
            return;
        }
        let target = target_beside(names, published, owner, &mut meanings)
            .filter(|target| !is_core || !target.is_server());
        let is_page =
            || Known::is_page(names, published, format) || is_priced_pattern(names, published, owner);
        if target.is_none() && published.starts_with('/') && !is_page() {
            return;
        }
        // The page whose tools a browser calls is not a server.
        let is_server_of_page =
            |url: &String| target.is_some_and(Target::is_server) && page_of_tools.as_ref() == Some(url);
        let url = draft.origin_url(published).filter(|url| !is_server_of_page(url));
        let Some(mut url) = url else { return };
        // The web page of a package is not a server.
        let is_package = target.is_none_or(Target::is_server) && package::of_page(&url).is_some();
        let target = if is_package { Some(Target::of_package()) } else { target };
        let target = target.map(|target| narrowed(target, names, &url, draft));
        // The address of a part of a document leads to the whole document.
        if target.is_some_and(Target::is_followed)
            && let Some(fragment) = url.find('#')
        {
            url.truncate(fragment);
        }
        if published.starts_with('/') && paths_left > 0 {
            paths_left -= 1;
            let path = url.strip_prefix(origin.as_str());
            let called = path.and_then(|path| known.called_at(&url, path)).map(str::to_owned);
            match (called, target) {
                (Some(_), None) => return,
                // The document is at the address of the call.
                (Some(called), Some(Target::Document(_))) => url = called,
                _ => {}
            }
        } else if published.starts_with('/') && target.is_none() {
            return;
        }
        if !known.is_new(&url, target) {
            if let Some(Target::Server(protocol)) = target {
                complete_server(server_at(names, (protocol, url), owner), draft);
                return;
            }
            join_titles(names, &url, owner, first, draft);
            return follow_known(&url, target, first, draft);
        }
        links_left -= 1;
        add(names, url, target, owner, draft);
    });
    // Paths in the description of a skill are examples.
    if format == Format::SkillsIndex {
        return Vec::new();
    }
    read_sentences(&sentences, base, links_left, &mut known, draft);
    calling
}

/// A text that may contain addresses, and the object below the root that contains the text.
pub(crate) type Sentence<'v> = (&'v str, Option<&'v Map<String, Value>>);

/// Adds the addresses in sentences, which are not followed.
fn read_sentences(
    sentences: &[Sentence<'_>],
    base: Option<&Url>,
    mut links_left: usize,
    known: &mut Known,
    draft: &mut Draft<'_>,
) {
    let is_core = draft.format().is_core();
    // The file of a server describes this server, so its sentences mention other servers.
    let is_of_server = matches!(draft.format(), Format::McpCard | Format::McpFreeform | Format::McpRegistry)
        && draft.manifest.interfaces.iter().any(|known| known.url.is_some());
    let mut sentences_left = TRIES_MAX;
    for (sentence, owner) in sentences {
        // `/api/{security,yield}` lists addresses of calls.
        let lists_words = |text: &&str| text.contains('{') && text.contains(',');
        for published in addresses::in_sentence(sentence).filter(|text| !lists_words(text)) {
            if links_left == 0 || sentences_left == 0 {
                return;
            }
            sentences_left -= 1;
            // The core formats define members for their pages.
            let is_kept = !is_core || !addresses::is_path_of_page(published);
            let address = address::with_scheme(published);
            let of_element = || address.starts_with('/').then(|| origin_of((*owner)?)).flatten();
            let of_api = || base.cloned().filter(|_| address.starts_with("/api/"));
            let url = match of_element().or_else(of_api) {
                Some(base) => address::resolve(&base, &address).map(address::Address::into_string),
                None => draft.origin_url(&address),
            };
            let new = url.filter(|url| is_kept && known.is_new(url, None));
            let Some(url) = new else { continue };
            let class = link_class::classify(&url);
            let is_path = published.starts_with('/');
            links_left -= 1;
            if is_path && class.rel == "mcp" && !is_of_server && !draft.has_interface(&url) {
                add_server(Interface::new(Protocol::Mcp, Some(url.clone())), draft);
            }
            draft.keep(Link::new(class.rel, url, None));
        }
        for path in listed_paths::in_text(sentence).filter(|_| !is_core) {
            if links_left == 0 || sentences_left == 0 {
                return;
            }
            sentences_left -= 1;
            let inside = owner.and_then(|element| listed_paths::below(element, path));
            let url = draft.origin_url(inside.as_deref().unwrap_or(path));
            if let Some(url) = url.filter(|url| known.is_new(url, None)) {
                links_left -= 1;
                draft.keep(Link::new(link_class::classify(&url).rel, url, None));
            }
        }
    }
}

/// The origin of the address of an element, to which the paths in its texts belong.
fn origin_of(element: &Map<String, Value>) -> Option<Url> {
    let text = ["endpoint", "url", "href", "api"].iter().find_map(|key| member(element, key)?.as_str())?;
    let (_, address) = address::split_method(text);
    let is_address = |text: &&str| text.len() <= URL_BYTES_MAX && text.contains("://");
    let url = Some(address).filter(is_address).and_then(|text| parse_url(text).ok())?;
    url.has_host().then(|| url.join("/").ok()).flatten()
}

/// The target of an address, by the relation next to it, or by the names of its members and the protocol next to it.
fn target_beside<'v>(
    names: &[&'v str],
    published: &str,
    owner: Option<&Map<String, Value>>,
    meanings: &mut Meanings<'v>,
) -> Option<Target> {
    let text_of = |key: &str| member(owner?, key)?.as_str();
    // The address of a tool is not the address of its server.
    let tool = names.iter().rposition(|name| *name == "tools").filter(|_| text_of("name").is_some());
    let names = tool.and_then(|at| names.get(at + 1..)).filter(|own| !own.is_empty()).unwrap_or(names);
    let is_plain = names.last().is_some_and(|name| is_plain(name));
    if let Some(followed) = text_of("rel").filter(|_| is_plain).and_then(target::of_relation) {
        return Some(followed);
    }
    // WebMCP tools belong to the page.
    if is_plain && text_of("type").is_some_and(|kind| kind.eq_ignore_ascii_case("webmcp")) {
        return Some(Target::of_web_mcp());
    }
    let stated = ["protocol", "type", "name"].into_iter().filter_map(text_of);
    let protocol = stated.filter(|_| is_plain).find_map(target::protocol_of);
    match (protocol, names.split_last()) {
        (Some(protocol), Some((own, holders))) => target(&[holders, &[protocol, *own]].concat(), published),
        _ => meanings.target(names, published),
    }
}

/// Whether a member contains the address of a server that a package starts on the client's machine (MCP registry).
fn is_local(names: &[&str]) -> bool {
    names.contains(&"packages") && names.contains(&"transport")
}

/// Members that list this service together with related ones. If one of their addresses is on another site, it belongs to another service.
pub(crate) const SHARED_BLOCKS: &[&str] = &["ecosystem", "network", "stack", "family", "integrations"];

/// Whether an address among those of other services is on another site.
fn is_elsewhere(names: &[&str], url: &str, draft: &Draft<'_>) -> bool {
    names.iter().any(|name| SHARED_BLOCKS.contains(name)) && is_on_other_site(url, draft)
}

fn is_on_other_site(url: &str, draft: &Draft<'_>) -> bool {
    host_of(url).is_some_and(|host| host.site() != draft.base().site())
}

/// Maximum number of members of an object in which a price of its paths is looked for: each of thousands of paths looks once.
const PRICE_MEMBERS_MAX: usize = 32;

/// Whether a path is a pattern for several calls with the same price: `{"path": "/api/v1/*", "price": "0.005 USDC"}`.
fn is_priced_pattern(names: &[&str], path: &str, owner: Option<&Map<String, Value>>) -> bool {
    let is_of_calls = names.last().is_some_and(|name| {
        matches!(*name, "path" | "paths" | "endpoint" | "endpoints" | "route" | "routes")
    });
    if !is_of_calls || !path.contains('*') {
        return false;
    }
    let mut priced = false;
    for name in owner.into_iter().flat_map(Map::keys).take(PRICE_MEMBERS_MAX) {
        text::each_word(name, |word| {
            priced |= matches!(word, "price" | "prices" | "pricing" | "cost" | "fee");
        });
    }
    priced
}

/// Whether a member name only means that its value is an address, without saying of what.
fn is_plain(name: &str) -> bool {
    matches!(name, "url" | "href" | "link" | "uri" | "endpoint" | "path")
}

fn add(
    names: &[&str],
    url: String,
    target: Option<Target>,
    owner: Option<&Map<String, Value>>,
    draft: &mut Draft<'_>,
) {
    let text_of = |keys: &[&str]| keys.iter().find_map(|key| member(owner?, key)?.as_str());
    // The description of an object is about its only address.
    let is_own = names.last().is_some_and(|name| is_plain(name));
    let described = || text_of(&["description", "summary"]).filter(|_| is_own);
    let media_type = text_of(MEDIA_TYPE_KEYS).filter(|text| is_own && is_media_type(text));
    let titled = |link: Link| Link {
        media_type: media_type.map(str::to_owned),
        title: match (text_of(&["name", "title", "label"]), described()) {
            // The description follows the title, like the note of a link in Markdown.
            (Some(title), Some(described)) if !title.contains(described) => {
                draft::title(Some(&[title, described].join(": ")))
            }
            (title, described) => draft::name(title.or(described)),
        },
        ..link
    };
    match target {
        Some(Target::Server(protocol)) => {
            let server = server_at(names, (protocol, url), owner);
            if let Some(new) = complete_server(server, draft) {
                add_server(new, draft);
            }
        }
        Some(Target::Document(class)) => {
            if class.rel == "mcp" && !draft.has_interface(&url) {
                add_server(Interface::new(Protocol::Mcp, Some(url.clone())), draft);
            }
            let follow = class.follow.filter(|_| may_be_followed(&url, draft));
            draft.keep(titled(Link::new(class.rel, url, follow)));
        }
        None => {
            let telling = || names.iter().rev().find(|name| !is_plain(name)).copied();
            let name = text_of(&["rel"]).or_else(telling).unwrap_or("related");
            draft.keep(titled(Link::new(text::capped(name, 100), url, None)));
        }
    }
}

/// Members with the media type of the document at the address beside them.
const MEDIA_TYPE_KEYS: &[&str] =
    &["contentType", "content_type", "mediaType", "media_type", "mimeType", "mime_type"];

/// Whether a text has the form of a media type (RFC 9110 section 8.3.1).
fn is_media_type(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
    let is_token = |part: &str| !part.is_empty() && part.bytes().all(is_plain);
    let (essence, _) = text.split_once(';').unwrap_or((text, ""));
    let parts = essence.trim_end().split_once('/');
    text.len() <= draft::NAME_BYTES_MAX && parts.is_some_and(|(kind, rest)| is_token(kind) && is_token(rest))
}

/// The first address of another declaration, of a server or of a text for models, with the names of its members.
pub(crate) fn first_declaration(root: &Map<String, Value>) -> Option<String> {
    let mut first = None;
    each(root, &mut |names, published, _| {
        let is_https = !["http:", "ws:"].iter().any(|scheme| published.starts_with(scheme));
        let leads = || {
            let leads = |target: Target| target.is_declaration() || target.is_for_models();
            is_https && is_address(published) && target(names, published).is_some_and(leads)
        };
        if first.is_none() && leads() {
            first = Some(names.join("."));
        }
    });
    first
}

/// The address before a remark in brackets: `https://shop.example/mcp (tools: quote, book)`.
pub(crate) fn address_before_remark(text: &str) -> Option<&str> {
    // Few texts end with a bracket.
    let (address, _) = text.strip_suffix(')')?.split_once(" (")?;
    is_address(address).then_some(address)
}

fn is_address(text: &str) -> bool {
    let has_scheme =
        || ["https://", "wss://", "http://", "ws://"].iter().any(|scheme| text.starts_with(scheme));
    let may_begin = match text.as_bytes().first() {
        Some(b'/') => true,
        Some(b'h' | b'w') => has_scheme(),
        _ => false,
    };
    may_begin && !text.contains(char::is_whitespace)
}
