//! Calls in shapes that no format defines: a map of paths in another member, a list of texts such as "GET /path", and paths without their
//! first slash.

use serde_json::{Map, Value};

use super::element::published_address;
use super::lists::{self, ListKind};
use crate::format::outbound;

/// Maximum number of members of a map that are compared.
const MEMBERS_MAX: usize = 40;
/// Bytes of the longest path that is compared.
const PATH_BYTES_MAX: usize = 500;
/// First segments and endings of paths that are published without their slash.
const API_SEGMENTS: &[&str] = &["api", "apis", "v1", "v2", "v3", "rest", "rpc"];
const DOCUMENT_ENDINGS: &[&str] = &[".json", ".md", ".txt", ".yaml", ".yml", ".xml", ".html", ".jsonl"];

/// Whether a text is a method and an address: `"POST /rooms"`.
pub(super) fn is_call_text(text: &str) -> bool {
    published_address(text).is_some_and(|(method, _)| method.is_some())
}

/// Whether an address in a list of this kind is that of a page, a document or a server.
pub(super) fn is_page(kind: ListKind, name: Option<&str>, address: &str) -> bool {
    let names: Vec<&str> = std::iter::once(kind.key()).chain(name).collect();
    kind.is_of_calls()
        || outbound::target(&names, address).is_some()
        || name.is_some_and(|name| is_document_by_name(name, address))
        || (kind.is_resources() && name.is_some() && is_web_page(address))
}

/// Whether an address in a map is that of a document, by its ending or by its name: `"init": "/init.md"`, `"spec": "/spec"`.
pub(super) fn is_document_by_name(name: &str, address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let ending = path.rsplit_once('.').map(|(_, ending)| ending).unwrap_or_default();
    let is_text = ["md", "mdx", "txt", "pdf", "html"].iter().any(|known| ending.eq_ignore_ascii_case(known));
    let is_well_known = path.contains("/.well-known/") && ending.eq_ignore_ascii_case("json");
    let is_named = matches!(name, "spec" | "specification" | "trust")
        && !address.contains(['{', '?'])
        && !path.split('/').any(|segment| API_SEGMENTS.contains(&segment));
    is_text || is_well_known || is_named
}

/// Whether an address is one of the web, and not one of an API: it has no variable, query or segment such as `api` and `v1`.
fn is_web_page(address: &str) -> bool {
    address.starts_with("http")
        && !address.contains(['{', '?'])
        && !address.contains("://api.")
        && !address.split('/').any(|segment| API_SEGMENTS.contains(&segment))
}

/// Whether a map with the name of a list contains addresses that are neither documents nor servers: `"endpoints": {"rooms": "/rooms"}`, or
/// descriptions by call: `"routes": {"GET /rooms": "free rooms"}`.
pub(super) fn holds_calls(list: &str, map: &Map<String, Value>) -> bool {
    let Some(kind) = ListKind::of(list) else { return false };
    let is_call = |(name, value): (&String, &Value)| {
        let Some(text) = value.as_str() else { return false };
        is_call_text(name)
            || published_address(text).is_some_and(|(method, address)| {
                outbound::target(&[kind.key(), name], address).is_none()
                    && (method.is_some() || !is_document_by_name(name, address))
            })
    };
    is_of_calls(kind) && map.iter().take(MEMBERS_MAX).any(is_call)
}

/// Whether the addresses in a list of this kind are addresses of calls.
pub(super) fn is_of_calls(kind: ListKind) -> bool {
    matches!(kind.key(), "endpoints" | "apis" | "operations" | "routes" | "actions")
}

/// The path that a member of a map of endpoints publishes without its first slash: `"rooms": "api/rooms.json"`.
pub(super) fn relative_path(kind: ListKind, name: Option<&str>, text: &str) -> Option<String> {
    name.filter(|_| is_of_calls(kind) && text.len() <= PATH_BYTES_MAX)?;
    let path = text.strip_prefix("./").unwrap_or(text);
    let is_plain = path.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && !path.contains(|letter: char| letter.is_whitespace() || ":\\\"<>".contains(letter));
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let is_marked = path.len() < text.len() && path.contains('/');
    let bare = path.split(['?', '#']).next().unwrap_or_default();
    let is_document = DOCUMENT_ENDINGS.iter().any(|ending| bare.ends_with(ending));
    let is_api = !rest.is_empty() && API_SEGMENTS.contains(&first);
    (is_plain && (is_marked || is_document || is_api)).then(|| ["/", path].concat())
}

/// Whether a list contains only texts that are calls.
pub(super) fn is_list_of_texts(list: &[Value]) -> bool {
    !list.is_empty() && list.iter().all(|item| item.as_str().is_some_and(is_call_text))
}

/// Whether a list whose name refers to other services contains calls of this service: `"recommended_chain": ["GET /rooms"]`.
pub(super) fn is_list_of_own_calls(name: &str, value: &Value) -> bool {
    let is_own = |item: &Value| item.as_str().is_some_and(|text| is_call_text(text) && !text.contains("://"));
    let is_filled = |list: &Vec<Value>| !list.is_empty() && list.iter().all(is_own);
    lists::is_of_others(name) && value.as_array().is_some_and(is_filled)
}
