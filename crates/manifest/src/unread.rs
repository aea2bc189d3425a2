//! Members of a document that no parser uses: they are kept as published, so that nothing which a publisher states is lost.
//!
//! A text, a number or a flag counts as read if the manifest contains it. What is left is kept in `hints.unread`, by its JSON pointer, from
//! the root downwards. It is the publisher's text, untrusted, and decides nothing.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, Write};

use serde_json::{Map, Value};

use crate::address;
use crate::auth;
use crate::draft::Draft;
use crate::json::{at_index, at_name};
use crate::model::{AuthScheme, Format};
use crate::text::{self, capped};

/// Maximum number of values of one document that are kept, and maximum number of bytes of their pointers and texts together.
const VALUES_MAX: usize = 100;
const BYTES_MAX: usize = 8 * 1_024;
/// Maximum number of characters of one kept text.
const TEXT_CHARS_MAX: usize = 1_024;
/// Maximum number of bytes of the manifest that are searched for parts of its texts.
const SEARCHED_BYTES_MAX: usize = 2 * 1_024 * 1_024;
/// Maximum number of bytes of a manifest as JSON with which a document is compared. The values of a document with a larger one are not
/// kept.
const RECORD_BYTES_MAX: usize = 1_024 * 1_024;
/// Maximum number of bytes of a text that are compared. Parsers truncate long texts.
const COMPARED_BYTES_MAX: usize = 96;
/// Minimum number of bytes of a text that is searched inside other texts, and of a number that is compared by its digits alone.
const PART_BYTES_MIN: usize = 4;
const DIGITS_MIN: usize = 2;
/// Beginnings of texts that parsers leave out.
const HEADS: &[&str] = &["mailto:", "Authorization: Bearer "];
/// Maximum number of values of one document that are compared.
const PLACES_MAX: usize = 50_000;
/// Maximum number of bytes of names and texts of one document that are compared. A value in a list counts with the name of its member.
const COMPARED_TOTAL_MAX: usize = 4 * 1_024 * 1_024;
/// The hint with the values that are kept.
const HINT: &str = "unread";

/// Words in the names of members whose values may be secret or are only signatures.
const SECRET_WORDS: &[&str] = &[
    "secret",
    "secrets",
    "password",
    "passphrase",
    "mnemonic",
    "private",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "env",
    "environment",
    "headers",
    "signature",
    "signatures",
];
/// Flags that parsers turn into the effect, the confirmation or the payment of a call, and whose names are not in the manifest.
const MAPPED_FLAGS: &[&str] = &[
    "readOnlyHint",
    "destructiveHint",
    "idempotentHint",
    "openWorldHint",
    "read_only",
    "readOnly",
    "readonly",
    "destructive",
    "requires_approval",
    "requiresApproval",
    "requires_confirmation",
    "requiresConfirmation",
    "confirmation_required",
    "payment_required",
    "paymentRequired",
    "requires_auth",
    "requiresAuth",
    "auto_registration",
    "autoRegistration",
    "free",
];
/// Members of the root that parsers turn into the requirements of all calls, or into the version of the format.
const ROOT_FLAGS: &[&str] =
    &["auth_required", "authRequired", "requires_auth", "requiresAuth", "x402Version"];
/// Maximum number of bytes of a word that may be read under another spelling.
const WORD_BYTES_MAX: usize = 32;
/// Last words of the names of members that may contain a credential.
const CREDENTIAL_WORDS: &[&str] = &["key", "token", "apikey", "bearer", "jwt"];
/// Minimum number of bytes of a word that may be a credential.
const CREDENTIAL_BYTES_MIN: usize = 16;

/// Keeps the values of a document that are not in its manifest. Of a document that declares nothing, [`forget`] drops them.
pub(crate) fn keep(document: &Value, draft: &mut Draft<'_>) {
    if !is_kept(draft.format()) {
        return;
    }
    // Findings quote the document.
    let findings = std::mem::take(&mut draft.manifest.findings);
    let mut record = Record::default();
    let is_whole = serde_json::to_writer(&mut record, &draft.manifest).is_ok();
    draft.manifest.findings = findings;
    let Some(record) = String::from_utf8(record.0).ok().filter(|_| is_whole) else { return };
    let places = places_of(document);
    let compared = compared_in(&places, draft.format());
    let mut wanted = Wanted::default();
    for (at, form) in &compared {
        let place = &places[*at];
        match place.value {
            Value::String(_) => wanted.add(form),
            Value::Number(_) => {
                wanted.add(form);
                wanted.add(place.name);
            }
            _ => wanted.add(place.name),
        }
    }
    let mut known = Known::of(&record, &wanted);
    let (mut unread, mut bytes) = (Map::new(), 0);
    for (at, form) in compared {
        let place = places[at];
        if known.is_read(place.name, place.value, &form) {
            continue;
        }
        let kept = match place.value {
            Value::String(text) => Value::from(capped(text.trim(), TEXT_CHARS_MAX)),
            other => other.clone(),
        };
        let pointer = pointer_of(&places, at);
        bytes += pointer.len() + kept.as_str().map_or(DIGITS_MIN, str::len);
        if unread.len() == VALUES_MAX || bytes > BYTES_MAX {
            break;
        }
        unread.insert(pointer, kept);
    }
    if !unread.is_empty() {
        draft.manifest.hints.insert(HINT.to_owned(), Value::Object(unread));
    }
}

/// The values of a document outside the members that may contain a secret, up to the limits, in the order of their depth.
fn places_of(document: &Value) -> Vec<Place<'_>> {
    let mut places = vec![Place { parent: 0, step: Step::Root, name: "", value: document }];
    let (mut at, mut compared) = (0, 0);
    while let Some(place) = places.get(at).copied().filter(|_| compared <= COMPARED_TOTAL_MAX) {
        let room = PLACES_MAX.saturating_sub(places.len());
        match place.value {
            Value::Object(map) => {
                for (name, value) in map.iter().take(room) {
                    compared += name.len();
                    if !may_be_secret(name, value) {
                        places.push(Place { parent: at, step: Step::Name, name, value });
                    }
                }
            }
            Value::Array(list) => {
                let listed = list.iter().enumerate().take(room);
                places.extend(listed.map(|(index, value)| Place {
                    parent: at,
                    step: Step::Index(index),
                    name: place.name,
                    value,
                }));
            }
            scalar => compared += place.name.len() + scalar.as_str().map_or(DIGITS_MIN, str::len),
        }
        at += 1;
    }
    // The values behind the limit are not compared.
    places.truncate(at);
    places
}

/// The positions of the texts, numbers and flags that no parser turns into something else, and the forms in which they are compared.
fn compared_in<'v>(places: &[Place<'v>], format: Format) -> Vec<(usize, Cow<'v, str>)> {
    let mut compared = Vec::new();
    for (at, place) in places.iter().enumerate() {
        let form = match place.value {
            Value::Object(_) | Value::Array(_) | Value::Null => continue,
            Value::String(text) => form_of(text.trim()),
            Value::Number(number) => Cow::Owned(number.to_string()),
            Value::Bool(_) => Cow::Borrowed(""),
        };
        // Other flags of the root are about the whole document, which has no effect of its own.
        let is_mapped = if place.parent == 0 {
            ROOT_FLAGS.contains(&place.name) && !place.value.is_string()
        } else {
            is_mapped(format, place.name, place.value) || is_amount_of_terms(places, *place, place.value)
        };
        if !is_mapped {
            compared.push((at, form));
        }
    }
    compared
}

/// The form in which a text is looked for: without the method of a call, and with the escapes of JSON.
fn form_of(text: &str) -> Cow<'_, str> {
    let (_, text) = address::split_method(text);
    let text = HEADS.iter().find_map(|head| text.strip_prefix(head)).unwrap_or(text);
    // Parsers write variables in braces, and turn the words of types into schemas.
    let text = text.split("/:").next().unwrap_or(text).trim_end_matches(['?', '[', ']']);
    if !text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        return Cow::Borrowed(text);
    }
    let quoted = serde_json::to_string(text).unwrap_or_default();
    Cow::Owned(quoted.trim_matches('"').to_owned())
}

/// A filter for the names and values that are looked for, so that few others are compared.
#[derive(Default)]
struct Wanted {
    /// A bit for the length of a text, and its first and last bytes.
    bits: [u64; 32],
}

impl Wanted {
    fn place(text: &str) -> (usize, u64) {
        let bytes = text.as_bytes();
        let (first, last) = (bytes.first().copied().unwrap_or(0), bytes.last().copied().unwrap_or(0));
        (bytes.len() & 31, 1_u64 << (first.wrapping_mul(7).wrapping_add(last) & 63))
    }

    fn add(&mut self, text: &str) {
        let (row, bit) = Self::place(text);
        self.bits[row] |= bit;
    }

    fn may_contain(&self, text: &str) -> bool {
        let (row, bit) = Self::place(text);
        self.bits[row] & bit != 0
    }
}

/// The manifest as JSON, up to [`RECORD_BYTES_MAX`] bytes.
#[derive(Default)]
struct Record(Vec<u8>);

impl Write for Record {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if self.0.len() + part.len() > RECORD_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A value of the document outside the members that may contain a secret. Values are in the order of their depth.
#[derive(Clone, Copy)]
struct Place<'v> {
    /// The position of the value that contains it.
    parent: usize,
    step: Step,
    /// The name of the member that the value is, or is an element of.
    name: &'v str,
    value: &'v Value,
}

#[derive(Clone, Copy)]
enum Step {
    Root,
    Name,
    Index(usize),
}

/// Whether a value is an amount in the smallest unit of an asset, in the terms of x402, which parsers convert.
fn is_amount_of_terms(places: &[Place<'_>], place: Place<'_>, value: &Value) -> bool {
    let holder = places.get(place.parent).map_or("", |holder| holder.name);
    place.name == "amount" && holder == "accepts" && value.is_string()
}

/// The JSON pointer of a value. The nesting of a document is limited.
fn pointer_of(places: &[Place<'_>], at: usize) -> String {
    let Some(place) = places.get(at) else { return String::new() };
    match place.step {
        Step::Root => String::new(),
        Step::Name => at_name(&pointer_of(places, place.parent), place.name),
        Step::Index(index) => at_index(&pointer_of(places, place.parent), index),
    }
}

/// Drops the values of a document that declares nothing: it may be about anything, also about people.
pub(crate) fn forget(draft: &mut Draft<'_>) {
    draft.manifest.hints.remove(HINT);
}

/// Whether the unread members of a format are kept. The core dialects define what their members mean, configurations and keys may contain
/// secrets, and descriptions of an API are documents of their own.
const fn is_kept(format: Format) -> bool {
    !format.is_core()
        && !matches!(
            format,
            Format::OpenApi
                | Format::Malformed
                | Format::Unrelated
                | Format::McpConfig
                | Format::McpRegistry
                | Format::WebBotAuth
        )
}

/// Whether parsers turn a member of an element into a value without its name or its words.
fn is_mapped(format: Format, name: &str, value: &Value) -> bool {
    match (format, value) {
        (Format::ManifestV1, Value::String(risk)) => {
            name == "risk" && matches!(risk.as_str(), "low" | "medium" | "high")
        }
        (Format::AgentsTxt, Value::Bool(_)) => name == "required",
        // Parsers convert the amount from the smallest unit of the asset.
        (_, Value::String(_)) if name == "maxAmountRequired" => true,
        (Format::ManifestV1, Value::Bool(_)) if name == "log_all" => true,
        (_, Value::Bool(_)) => MAPPED_FLAGS.contains(&name),
        _ => false,
    }
}

/// Whether a member may contain a secret, which is not kept, or only a signature.
fn may_be_secret(name: &str, value: &Value) -> bool {
    let (mut is_secret, mut is_credential) = (false, false);
    text::each_word(name, |word| {
        is_secret |= SECRET_WORDS.contains(&word);
        is_credential = CREDENTIAL_WORDS.contains(&word);
    });
    let is_word = |text: &str| text.len() >= CREDENTIAL_BYTES_MIN && !text.contains(char::is_whitespace);
    is_secret || (is_credential && value.as_str().is_some_and(is_word))
}

/// Whether a value has a member that may contain a secret. The nesting of a document is limited.
pub(crate) fn holds_secret(value: &Value) -> bool {
    match value {
        Value::Object(map) => {
            map.iter().any(|(name, value)| may_be_secret(name, value) || holds_secret(value))
        }
        Value::Array(list) => list.iter().any(holds_secret),
        _ => false,
    }
}

/// The names and values of a manifest, as JSON. Only those are kept that are looked for.
struct Known<'r> {
    record: &'r str,
    names: HashSet<&'r str>,
    values: HashSet<&'r str>,
    searched: usize,
}

impl<'r> Known<'r> {
    fn of(record: &'r str, wanted: &Wanted) -> Self {
        let mut known = Self { record, names: HashSet::new(), values: HashSet::new(), searched: 0 };
        let mut rest = record;
        while let Some((between, after)) = rest.split_once('"') {
            known.add_numbers(between, wanted);
            let (string, behind) = split_string(after);
            if wanted.may_contain(string) {
                let kept = if behind.starts_with(':') { &mut known.names } else { &mut known.values };
                kept.insert(string);
            }
            rest = behind;
        }
        known.add_numbers(rest, wanted);
        known
    }

    /// Adds the numbers between two strings.
    fn add_numbers(&mut self, between: &'r str, wanted: &Wanted) {
        if !between.bytes().any(|byte| byte.is_ascii_digit()) {
            return;
        }
        let pieces = between.split([',', ':', '[', ']', '{', '}']);
        let is_number =
            |piece: &&str| piece.starts_with(|letter: char| letter == '-' || letter.is_ascii_digit());
        self.values.extend(pieces.filter(is_number).filter(|number| wanted.may_contain(number)));
    }

    /// Whether a value of this member is in the manifest. A flag and a number of one digit are compared by the name of their member.
    fn is_read(&mut self, name: &str, value: &Value, form: &str) -> bool {
        match value {
            Value::String(text) => self.has_text(text.trim(), form),
            Value::Number(_) => {
                self.names.contains(name)
                    || (form.len() >= DIGITS_MIN && self.values.contains(form))
                    || (form.len() >= PART_BYTES_MIN && self.has_part(form))
                    || (name.contains("price") && self.has_part(&format!("\"price\":\"{form}\"")))
            }
            Value::Bool(_) => self.names.contains(name),
            _ => true,
        }
    }

    /// Whether a value that was not looked for is in the manifest.
    fn has_value(&mut self, text: &str) -> bool {
        self.has_part(&["\"", text, "\""].concat())
    }

    /// Whether digits occur in the manifest, for example in a range of prices.
    fn has_part(&mut self, digits: &str) -> bool {
        self.searched += self.record.len();
        self.searched < SEARCHED_BYTES_MAX && self.record.contains(digits)
    }

    /// Whether a word names a method or a scheme of credentials that the manifest has under another spelling.
    fn has_word(&mut self, word: &str) -> bool {
        if word.len() > WORD_BYTES_MAX || word.contains(char::is_whitespace) {
            return false;
        }
        let scheme = auth::scheme(word);
        let upper = word.to_ascii_uppercase();
        (scheme != AuthScheme::Other && self.has_value(scheme.as_str()))
            || (address::is_method(&upper) && self.has_value(&upper))
    }

    fn has_text(&mut self, text: &str, inner: &str) -> bool {
        if inner.is_empty() || self.values.contains(inner) || self.has_word(inner) {
            return true;
        }
        // Parsers remove marks of Markdown, and turn the query of a path into parameters.
        if text.contains('`')
            && let Some(bare) = text::without_marks(text, TEXT_CHARS_MAX).filter(|bare| bare != text)
        {
            let form = form_of(&bare).into_owned();
            if self.has_value(&form) || self.has_text(&bare, &form) {
                return true;
            }
        }
        if inner.starts_with('/')
            && let Some((path, query)) = inner.split_once('?')
            && !query.contains(char::is_whitespace)
            && query.split('&').all(|pair| {
                let name = pair.split('=').next().unwrap_or_default();
                self.has_part(&["\"", name, "\":"].concat())
            })
        {
            return self.has_part(&[path, "\""].concat()) || self.has_part(inner);
        }
        // An address and its remark: `/book - Books a room`.
        let parts = || [" - ", " \u{2014} ", " \u{2013} "].iter().find_map(|mark| inner.split_once(mark));
        if inner.starts_with('/')
            && let Some((address, remark)) = parts()
        {
            return self.has_value(remark) && self.has_part(&[address, "\""].concat());
        }
        let is_path = inner.starts_with('/');
        if (inner.len() < PART_BYTES_MIN && !is_path) || self.searched >= SEARCHED_BYTES_MAX {
            return false;
        }
        self.searched += self.record.len();
        if inner.len() < PART_BYTES_MIN {
            // Parsers join a path with its base URL.
            return self.record.contains(&format!("{inner}\""));
        }
        let mut end = inner.len().min(COMPARED_BYTES_MAX);
        while !inner.is_char_boundary(end) {
            end -= 1;
        }
        inner.get(..end).is_some_and(|start| self.record.contains(start))
    }
}

/// The string of JSON that a text begins with, behind its first quotation mark, and what follows it.
fn split_string(text: &str) -> (&str, &str) {
    let mut from = 0;
    while let Some(quote) = text.get(from..).and_then(|rest| rest.find('"')) {
        let at = from + quote;
        let before = text.as_bytes().get(..at).unwrap_or_default();
        let escapes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
        if escapes % 2 == 0 {
            return (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
        }
        from = at + 1;
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Discovery;
    use crate::document::Document;
    use crate::name::ManifestUrl;
    use serde_json::json;

    fn unread(document: &Value) -> Value {
        let url = ManifestUrl::parse("https://shop.example/.well-known/agent.json").unwrap();
        let bytes = document.to_string();
        let manifest = crate::read(&Document {
            bytes: bytes.as_bytes(),
            url: &url,
            final_url: None,
            discovery: Discovery::WellKnown,
            served: None,
            linked: &[],
            force: None,
        });
        manifest.hints.get(HINT).cloned().unwrap_or_default()
    }

    #[test]
    fn keeps_what_no_reader_uses_with_its_pointer() {
        let found = unread(&json!({
            "name": "Shop",
            "raffle": {"one_claim": true, "claims_per_day": 3},
            "policy": {"crawlers": "welcome"},
            "endpoints": [{"path": "/a", "method": "POST", "description": "Find rooms", "slot": "b-7"}],
        }));
        let expected = json!({
            "/raffle/one_claim": true,
            "/raffle/claims_per_day": 3,
            "/policy/crawlers": "welcome",
            "/endpoints/0/slot": "b-7",
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn keeps_no_value_that_a_reader_turned_into_another() {
        let found = unread(&json!({
            "name": "Shop",
            "payment_required": true,
            "endpoints": [{"path": "/a", "method": "POST", "description": "Book rooms", "requires_approval": true}],
        }));
        assert_eq!(found, json!({"/payment_required": true}));
    }

    #[test]
    fn keeps_no_secrets() {
        let found = unread(&json!({
            "name": "Shop",
            "client_secret": "s3cr3t-value",
            "env": {"PASS": "another value"},
            "admin_key": "0123456789abcdef0123",
            "key": "on request",
            "endpoints": [{"path": "/a", "method": "POST", "description": "Find rooms"}],
        }));
        assert_eq!(found, json!({"/key": "on request"}));
    }

    #[test]
    fn keeps_nothing_of_other_documents() {
        let of_core = unread(
            &json!({"awp_version": "0.2", "domain": "shop.example", "intent": "i", "actions": [], "remark": "of the shop"}),
        );
        let of_people =
            unread(&json!({"u1": {"chat": "a private conversation"}, "u2": {"chat": "another one"}}));
        let of_client = unread(
            &json!({"mcpServers": {"shop": {"url": "https://shop.example/mcp", "remark": "of the shop"}}}),
        );
        assert_eq!([of_core, of_people, of_client], [Value::Null, Value::Null, Value::Null]);
    }

    #[test]
    fn keeps_a_limited_number_of_values_and_bytes() {
        let rows: Vec<Value> = (0..1_000).map(|at| json!(format!("remark {at}"))).collect();
        let call = json!([{"path": "/a", "method": "POST", "description": "Find rooms"}]);
        let many = unread(&json!({"name": "Shop", "remarks": rows, "endpoints": call}));
        assert_eq!(many.as_object().map(Map::len), Some(VALUES_MAX));
        let rows: Vec<Value> = (0..90).map(|at| json!(format!("{at} {}", "x".repeat(2_000)))).collect();
        let long = unread(&json!({"name": "Shop", "remarks": rows, "endpoints": call}));
        assert!(long.to_string().len() < BYTES_MAX + 2_048, "{}", long.to_string().len());
    }
}
