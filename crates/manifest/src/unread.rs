//! Members of a document that no parser uses: they are kept as published, so that nothing which a publisher states is lost.
//!
//! A text, a number or a flag counts as read if the manifest contains it. What is left is kept in `hints.unread`, by its JSON pointer, from
//! the root downwards. It is the publisher's text, untrusted, and decides nothing.

mod known;

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::address;
use crate::draft::Draft;
use crate::json::{at_index, at_name};
use crate::model::Format;
use crate::text::{self, capped};
use crate::visit::visit;
use known::{Record, Wanted};

/// Maximum number of values of one document that are kept, and maximum number of bytes of their pointers and texts together.
const VALUES_MAX: usize = 100;
const BYTES_MAX: usize = 8 * 1_024;
/// Maximum number of characters of one kept text.
const TEXT_CHARS_MAX: usize = 1_024;
/// Minimum number of digits of a number that is compared by its digits.
const DIGITS_MIN: usize = 2;
/// Beginnings of texts that parsers leave out.
const HEADS: &[&str] = &["mailto:", "Authorization: Bearer "];
/// Maximum number of values of one document that are compared.
const PLACES_MAX: usize = 50_000;
/// Maximum number of bytes of names and texts of one document that are compared. A value in a list counts with the name of its member.
const COMPARED_TOTAL_MAX: usize = 4 * 1_024 * 1_024;
/// The hint with the values that are kept.
const HINT: &str = "unread";

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
/// Minimum number of bytes of a word that may be a credential.
const CREDENTIAL_BYTES_MIN: usize = 16;

/// Keeps the values of a document that are not in its manifest. Of a document that declares nothing, [`forget`] drops them.
pub(crate) fn keep(document: &Value, draft: &mut Draft<'_>) {
    if !is_kept(draft.format()) {
        return;
    }
    let bytes = draft.document.bytes.len();
    let places = places_of(document, bytes / VALUE_BYTES);
    let compared = compared_in(&places, draft.format());
    let mut record = Record::of(wanted_of(&places, &compared), bytes);
    // Findings quote the document.
    let findings = std::mem::take(&mut draft.manifest.findings);
    let is_whole = visit(&draft.manifest, &mut record).is_ok();
    draft.manifest.findings = findings;
    if !is_whole {
        return;
    }
    let (mut unread, mut bytes) = (Map::new(), 0);
    for Compared { at, text, form } in &compared {
        let place = places[*at];
        if record.is_read(place.name, place.value, text, form) {
            continue;
        }
        let kept = match place.value {
            Value::String(_) => Value::from(capped(text, TEXT_CHARS_MAX)),
            other => other.clone(),
        };
        let pointer = pointer_of(&places, *at);
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

/// Usual number of bytes of a document for each of its values.
const VALUE_BYTES: usize = 32;

/// The values of a document outside the members that may contain a secret, up to the limits, in the order of their depth. `usual` is their
/// expected number.
fn places_of(document: &Value, usual: usize) -> Vec<Place<'_>> {
    let mut places = Vec::with_capacity(usual.min(PLACES_MAX));
    places.push(Place { parent: 0, step: Step::Root, name: "", value: document });
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

/// A text, a number or a flag that is looked for in the manifest.
struct Compared<'v> {
    /// Its position among the places.
    at: usize,
    /// The trimmed text; empty for numbers and flags.
    text: &'v str,
    /// The form in which it is looked for; empty for flags.
    form: Cow<'v, str>,
}

/// What is looked for: texts, numbers, and the names of numbers and flags.
fn wanted_of<'w>(places: &[Place<'w>], compared: &'w [Compared<'_>]) -> Wanted<'w> {
    let mut wanted = Wanted::of(compared.len());
    for Compared { at, text, form } in compared {
        let place = &places[*at];
        match place.value {
            Value::String(_) => {
                wanted.add(form);
                if text.len() > form.len() {
                    wanted.add(text);
                }
            }
            Value::Number(_) => {
                wanted.add(form);
                wanted.add(place.name);
            }
            _ => wanted.add(place.name),
        }
    }
    wanted
}

/// The texts, numbers and flags that no parser turns into something else.
fn compared_in<'v>(places: &[Place<'v>], format: Format) -> Vec<Compared<'v>> {
    let mut compared = Vec::new();
    for (at, place) in places.iter().enumerate() {
        let text = place.value.as_str().unwrap_or_default().trim();
        let form = match place.value {
            Value::Object(_) | Value::Array(_) | Value::Null => continue,
            Value::String(_) => Cow::Borrowed(form_of(text)),
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
            compared.push(Compared { at, text, form });
        }
    }
    compared
}

/// The form in which a text is looked for: without the method of a call.
fn form_of(text: &str) -> &str {
    let may_have_method = text.starts_with(|first: char| first.is_ascii_uppercase());
    let text = if may_have_method { address::split_method(text).1 } else { text };
    let text = HEADS.iter().find_map(|head| text.strip_prefix(head)).unwrap_or(text);
    // Parsers write variables in braces, and turn the words of types into schemas.
    let has_variable = text::has_two(text, *b"/:");
    let text = if has_variable { text.split("/:").next().unwrap_or(text) } else { text };
    if text.ends_with(['?', '[', ']']) { text.trim_end_matches(['?', '[', ']']) } else { text }
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

/// Words in the name of a member which say that its value may be secret, or is only a signature.
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
/// Last words in the name of a member which say that its value may be a credential.
const CREDENTIAL_WORDS: &[&str] = &["key", "token", "apikey", "bearer", "jwt"];

/// The letters of these words. A name without all letters of a word does not contain it.
const SECRET_LETTERS: [u32; SECRET_WORDS.len() + CREDENTIAL_WORDS.len()] = {
    let mut sets = [0; SECRET_WORDS.len() + CREDENTIAL_WORDS.len()];
    let mut at = 0;
    while at < sets.len() {
        let is_secret = at < SECRET_WORDS.len();
        let word = if is_secret { SECRET_WORDS[at] } else { CREDENTIAL_WORDS[at - SECRET_WORDS.len()] };
        sets[at] = letters_of(word.as_bytes());
        at += 1;
    }
    sets
};

/// A bit for each letter of a name, the same for capital and small letters. Other characters share the bits.
const fn letters_of(name: &[u8]) -> u32 {
    let (mut letters, mut at) = (0, 0);
    while at < name.len() {
        letters |= 1 << (name[at] & 31);
        at += 1;
    }
    letters
}

/// Whether a name certainly has none of the words that say what may be secret.
fn names_no_secret(name: &str) -> bool {
    let letters = letters_of(name.as_bytes());
    name.is_ascii() && SECRET_LETTERS.iter().all(|needed| letters & needed != *needed)
}

/// Whether a member may contain a secret, which is not kept, or only a signature.
fn may_be_secret(name: &str, value: &Value) -> bool {
    if names_no_secret(name) {
        return false;
    }
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
