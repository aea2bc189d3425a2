//! Calls under member names that no format defines: an element with a method and a path under any names, a map of paths below another
//! member, a list of "GET /path", and paths without their first slash.

use serde_json::{Map, Value};

use super::element::{ADDRESS_KEYS, published_address};
use super::lists::{self, ListKind};
use crate::address;
use crate::format::outbound;
use crate::object::{Members, Object};

/// Members of an element that may hold a method or a path; published ones have up to 12.
const MEMBERS_MAX: usize = 40;
/// Bytes of the longest path that is compared.
const PATH_BYTES_MAX: usize = 500;
/// Words of the shortest text that is a description.
const SENTENCE_WORDS_MIN: usize = 3;
/// First segments and endings of paths that are published without their slash.
const API_SEGMENTS: &[&str] = &["api", "apis", "v1", "v2", "v3", "rest", "rpc"];
const DOCUMENT_ENDINGS: &[&str] = &[".json", ".md", ".txt", ".yaml", ".yml", ".xml", ".html", ".jsonl"];

/// The members of an element that is a call, with the usual names for its method, path, name and description: `{"metodo": "GET",
/// "ruta": "/rooms", "nombre": "Rooms"}`. `None` if the names are known, or if there is no call.
pub(super) fn with_usual_names(map: &Map<String, Value>) -> Option<Map<String, Value>> {
    let ((method_key, method), (path_key, path)) = call_of(map)?;
    let mut renamed = map.clone();
    renamed.retain(|name, _| name != method_key && name != path_key);
    renamed.insert("method".to_owned(), Value::from(method));
    renamed.insert("path".to_owned(), Value::from(path));
    let members = Members::of(map);
    let texts = || map.values().filter_map(Value::as_str);
    let has = |keys: &[&str]| keys.iter().any(|key| members.get(key).is_some_and(Value::is_string));
    let words = |text: &str| text.split_whitespace().count();
    if !has(&["description", "summary", "purpose"]) {
        let longest = texts().filter(|text| words(text) >= SENTENCE_WORDS_MIN).max_by_key(|text| text.len());
        renamed.extend(longest.map(|text| ("description".to_owned(), Value::from(text))));
    }
    for (name, known) in NAMES {
        if !renamed.contains_key(*known)
            && let Some(text) = map.get(*name).and_then(Value::as_str)
        {
            renamed.insert((*known).to_owned(), Value::from(text));
        }
    }
    Some(renamed)
}

/// The members that hold the only method and the only path of an element, if their names are not the usual ones.
fn call_of(map: &Map<String, Value>) -> Option<((&str, &str), (&str, &str))> {
    let object = Object::root(map);
    let is_known = lists::is_call_object(map) || object.text_of(ADDRESS_KEYS.within(&object)).is_some();
    if is_known || map.len() > MEMBERS_MAX {
        return None;
    }
    let only = |is_wanted: fn(&str) -> bool| {
        let mut found = map.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
        let mut found = found.by_ref().filter(|(_, text)| is_wanted(text));
        found.next().filter(|_| found.next().is_none())
    };
    let method = only(address::is_method)?;
    let (name, path) = only(is_path)?;
    let is_other = outbound::is_about_calls(name) || lists::is_of_others(name);
    (!is_other && outbound::target(&[name], path).is_none()).then_some((method, (name, path)))
}

/// Names of names in other languages.
const NAMES: &[(&str, &str)] = &[("nombre", "name"), ("nom", "name"), ("nome", "name"), ("titulo", "title")];

fn is_path(text: &str) -> bool {
    let is_address = text.starts_with('/') || text.starts_with("https://");
    is_address && text.len() <= PATH_BYTES_MAX && !text.contains(char::is_whitespace) && !address::is_pattern(text)
}

/// Whether a text is a method and an address: `"POST /rooms"`.
pub(super) fn is_call_text(text: &str) -> bool {
    published_address(text).is_some_and(|(method, _)| method.is_some())
}

/// Whether a map with the name of a list holds addresses that are neither documents nor servers: `"endpoints": {"rooms": "/rooms"}`,
/// or descriptions by call: `"routes": {"GET /rooms": "free rooms"}`.
pub(super) fn holds_calls(list: &str, map: &Map<String, Value>) -> bool {
    let Some(kind) = ListKind::of(list) else { return false };
    let is_call = |(name, value): (&String, &Value)| {
        let Some(text) = value.as_str() else { return false };
        is_call_text(name)
            || published_address(text)
                .is_some_and(|(_, address)| outbound::target(&[kind.key(), name], address).is_none())
    };
    is_of_calls(kind) && map.iter().take(MEMBERS_MAX).any(is_call)
}

/// Whether the addresses in a list of this kind are those of calls.
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

/// Whether a list of any name holds texts that are calls, and nothing else.
pub(super) fn is_list_of_texts(list: &[Value]) -> bool {
    !list.is_empty() && list.iter().all(|item| item.as_str().is_some_and(is_call_text))
}

/// Whether a list about other services holds calls of this one: `"recommended_chain": ["GET /rooms"]`.
pub(super) fn is_list_of_own_calls(name: &str, value: &Value) -> bool {
    let is_own = |item: &Value| item.as_str().is_some_and(|text| is_call_text(text) && !text.contains("://"));
    let is_filled = |list: &Vec<Value>| !list.is_empty() && list.iter().all(is_own);
    lists::is_of_others(name) && value.as_array().is_some_and(is_filled)
}

/// Whether an element is a call under other names than the usual ones.
pub(super) fn is_call(map: &Map<String, Value>) -> bool {
    call_of(map).is_some()
}
