//! Headers that callers have to send, in members of any name: `csrfTokenHeader`, `mandate_header`, `requiredHeaders`.
//!
//! Headers of credentials belong to the credentials, and those of single calls to their parameters.

use serde_json::{Map, Value};

use crate::draft::{self, Draft};
use crate::format::{lenient, outbound};
use crate::object::{Object, texts};
use crate::text;

/// Headers of one document that are kept, and the nesting of the members that state them.
const HEADERS_MAX: usize = 20;
const HEADERS_NESTING_MAX: usize = 3;
/// Characters of the name of a header.
const HEADER_CHARS_MAX: usize = 100;

/// Keeps the headers that a document states, by the names of the members.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let mut found = Map::new();
    collect(root, "", 0, &mut found);
    if !found.is_empty() {
        draft.manifest.features.other.insert("headers".to_owned(), Value::Object(found));
    }
}

fn collect(object: &Object<'_>, path: &str, depth: usize, found: &mut Map<String, Value>) {
    for (name, value) in object.map {
        let is_part = || outbound::is_about_calls(name) || lenient::AUTH_KEYS.contains(&name.as_str());
        if found.len() >= HEADERS_MAX {
            return;
        }
        match value {
            Value::Object(map) if depth < HEADERS_NESTING_MAX && name != "securitySchemes" && !is_part() => {
                let inner = Object::new(map, String::new());
                collect(&inner, &[path, name, "."].concat(), depth + 1, found);
            }
            Value::String(_) | Value::Array(_) if is_header_member(name) => {
                let names: Vec<Value> = texts(value)
                    .into_iter()
                    .filter(|text| is_header(text))
                    .map(|text| Value::from(text::capped(text, HEADER_CHARS_MAX)))
                    .collect();
                if !names.is_empty() {
                    let path = [path, name].concat();
                    found.insert(text::capped(&path, draft::NAME_CHARS_MAX).to_owned(), Value::Array(names));
                }
            }
            _ => {}
        }
    }
}

/// Whether a member names headers of requests.
fn is_header_member(name: &str) -> bool {
    let ends = ["eader", "eaders", "eader_name", "eaderName"].iter().any(|end| name.ends_with(end));
    let mut is_named = false;
    let mut is_of_response = false;
    if ends {
        text::each_word(name, |word| {
            is_named |= matches!(word, "header" | "headers");
            is_of_response |= matches!(word, "response" | "returned" | "cache");
        });
    }
    is_named && !is_of_response
}

/// Whether a text is the name of a header (RFC 9110 section 5.1).
fn is_header(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.len() <= HEADER_CHARS_MAX && text.bytes().all(is_plain)
}
