//! Contacts of a service for a specific purpose, such as security reports.

use serde_json::{Map, Value};

use crate::check::is_email;
use crate::draft::{self, Draft};
use crate::object::Object;
use crate::text;

/// Maximum number of contacts for a specific purpose of one document that are kept.
const CONTACTS_MAX: usize = 20;

/// Keeps contact addresses for a specific purpose, in addition to the general contact: `security_contact`, `security_email`.
pub(crate) fn keep_others(root: &Object<'_>, draft: &mut Draft<'_>) {
    let names_contact = |name: &str| name.contains("ontact") || name.contains("mail");
    let others = root.map.iter().filter(|(name, _)| names_contact(name));
    for (name, value) in others.take(CONTACTS_MAX) {
        if let Some(address) = value.as_str() {
            keep_for_purpose(name, address, draft);
        }
    }
    let mut left = CONTACTS_MAX;
    keep_inner(root.map, 0, &mut left, draft);
}

/// Keeps addresses for security reports in the blocks of a document: `"trust": {"security_contact": "security@shop.example"}`.
fn keep_inner(map: &Map<String, Value>, depth: usize, left: &mut usize, draft: &mut Draft<'_>) {
    for (name, value) in map.iter().take(MEMBERS_MAX) {
        match value {
            Value::Object(_) if OTHER_BLOCKS.contains(&name.as_str()) => {}
            Value::Object(inner) if depth < NESTING_MAX => keep_inner(inner, depth + 1, left, draft),
            Value::String(address) if depth > 0 && name.contains("ecurity") && address.contains('@') => {
                let Some(fewer) = left.checked_sub(1) else { return };
                *left = fewer;
                keep_for_purpose(name, address, draft);
            }
            _ => {}
        }
    }
}

/// Blocks with values of calls, not of the service.
const OTHER_BLOCKS: &[&str] = &["example", "examples", "schema", "properties"];
/// Deepest nesting of blocks that is searched, and maximum number of members of one block.
const NESTING_MAX: usize = 3;
const MEMBERS_MAX: usize = 100;

/// Keeps an e-mail address for the purpose in the name of its member, unless it is a contact already.
pub(crate) fn keep_for_purpose(name: &str, address: &str, draft: &mut Draft<'_>) {
    let address = address.strip_prefix("mailto:").unwrap_or(address);
    let contact = &draft.manifest.contact;
    let known = [&contact.email, &contact.url, &contact.other];
    let is_new = !known.iter().any(|known| known.as_deref() == Some(address));
    let words = text::words(name);
    let is_contact = words.len() > 1 && words.iter().any(|word| matches!(word.as_str(), "contact" | "email"));
    let is_short = address.len() <= draft::NAME_BYTES_MAX && name.len() <= draft::NAME_BYTES_MAX;
    if is_short && is_email(address) && is_new && is_contact {
        draft.manifest.features.other.insert(name.to_owned(), Value::String(address.to_owned()));
    }
}
