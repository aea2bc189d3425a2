//! Headers that callers must send, in members of any name: `csrfTokenHeader`, `mandate_header`, `requiredHeaders`.
//!
//! Headers with credentials are kept with the credentials, and headers of single calls with the parameters of the call. Sentences about the
//! steps of a caller may also name headers: `Retry with X-Payment-Token: <token> header`.

use serde_json::{Map, Value};

use crate::draft::{self, Draft};
use crate::format::{lenient, needed_credentials, outbound, payment_header};
use crate::model::{CapabilityAuth, Tristate};
use crate::object::{Object, texts};
use crate::text;

/// Maximum number of headers of one document that are kept, and maximum nesting of the members that state them.
const HEADERS_MAX: usize = 20;
const HEADERS_NESTING_MAX: usize = 3;
/// Maximum number of sentences of one member that are searched for a header.
const SENTENCES_MAX: usize = 50;
/// Maximum number of elements of one list whose descriptions are searched.
const ELEMENTS_MAX: usize = 1_000;
/// Maximum number of characters of the name of a header.
const HEADER_CHARS_MAX: usize = 100;

/// Keeps the headers that a document states, by the names of their members.
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
                keep(path, name, texts(value).into_iter().filter(|text| is_header(text)), found);
            }
            Value::String(_) | Value::Array(_) => {
                if let Some(is_wanted) = wanted_in_sentences(name) {
                    let sentences = texts(value).into_iter().take(SENTENCES_MAX);
                    let named = sentences.filter(|sentence| sentence.contains("eader"));
                    let headers = named.flat_map(lenient::headers_in).filter(|name| is_wanted(name));
                    keep(path, name, headers, found);
                } else if let Some(list) = value.as_array().filter(|_| !is_part()) {
                    collect_of_elements(path, name, list, found);
                }
            }
            _ => {}
        }
    }
}

/// Collects the credentials that the descriptions of a list's elements require: "Requires X-Shop-Token".
fn collect_of_elements(path: &str, list: &str, elements: &[Value], found: &mut Map<String, Value>) {
    let asks = |text: &&str| text.contains("X-") && (text.contains("equire") || text.contains("eader"));
    let described = elements.iter().filter_map(|element| element.get("description")?.as_str());
    let asking = described.take(ELEMENTS_MAX).filter(asks).flat_map(lenient::headers_in);
    let mut headers = asking.filter(|name| is_credential(name)).peekable();
    if headers.peek().is_some() {
        keep(&[path, list, "."].concat(), "description", headers, found);
    }
}

/// Keeps the names of headers under the name of their member.
fn keep<'t>(path: &str, member: &str, names: impl Iterator<Item = &'t str>, found: &mut Map<String, Value>) {
    let mut kept: Vec<Value> = Vec::new();
    for name in names.take(HEADERS_MAX).map(|name| Value::from(text::capped(name, HEADER_CHARS_MAX))) {
        if !kept.contains(&name) {
            kept.push(name);
        }
    }
    if !kept.is_empty() {
        let path = [path, member].concat();
        found.insert(text::capped(&path, draft::NAME_CHARS_MAX).to_owned(), Value::Array(kept));
    }
}

/// The headers that are read from the sentences of a member: any header in the steps of a caller, only credentials in a description.
fn wanted_in_sentences(member: &str) -> Option<fn(&str) -> bool> {
    if is_about_steps(member) {
        return Some(|_| true);
    }
    let is_sent = |name: &str| is_credential(name) || payment_header::is_setting(name);
    member.starts_with("description").then_some(is_sent as fn(&str) -> bool)
}

/// Whether the name of a header refers to a credential or a payment: `X-Payment-Token`, not `X-Frame-Options`.
pub(crate) fn is_credential(header: &str) -> bool {
    let folded = header.to_ascii_lowercase();
    let ends = ["-token", "-key", "-auth", "-authorization", "-signature", "-payment"];
    ends.iter().any(|end| folded.ends_with(end))
        || (folded.starts_with("x-payment-") && !payment_header::is_setting(header))
}

/// Whether a member describes the steps of a caller in sentences.
fn is_about_steps(name: &str) -> bool {
    let mut found = false;
    text::each_word(name, |word| {
        found |= matches!(word, "flow" | "steps" | "usage" | "instructions" | "workflow" | "howto");
    });
    found
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
    !text.is_empty() && text.chars().count() <= HEADER_CHARS_MAX && text.bytes().all(is_plain)
}
/// Maximum number of steps of one flow, and of credentials of one step, that are read.
const STEPS_MAX: usize = 100;
const STEP_CREDENTIALS_MAX: usize = 16;

/// Sets the credentials in the headers of a call's request, or of the steps of a flow: `"headers": {"X-API-Key": "{{key}}"}`.
pub(crate) fn set_by_headers(element: &Object<'_>, needed: &mut CapabilityAuth) {
    if element.list("steps").is_none() || *needed != CapabilityAuth::default() {
        return;
    }
    let mut has_output = false;
    let steps = element.objects("steps").take(STEPS_MAX).flat_map(|step| {
        let parameters = step.object("parameters");
        [step.object("headers"), parameters.and_then(|parameters| parameters.object("headers"))]
    });
    for headers in steps.flatten() {
        let credentials = headers.map.iter().filter(|(name, value)| {
            is_credential(name) && value.get("required").and_then(Value::as_bool) != Some(false)
        });
        for (name, value) in credentials.take(STEP_CREDENTIALS_MAX) {
            // The caller needs no key that an earlier step returns.
            if value.as_str().is_some_and(|value| value.starts_with("$steps.")) {
                has_output = true;
            } else {
                needed_credentials::require(&lenient::auth(&Value::from(name.as_str())), needed);
            }
        }
    }
    if has_output && *needed == CapabilityAuth::default() {
        needed.required = Tristate::No;
    }
}
