//! Unique tool names that every runtime accepts (`[a-zA-Z0-9_-]`, at most 64).
//!
//! A name is a readable part and the capability's id, which makes it unique. The id changes only with the URL of the declaration, so the
//! name does not change when a description is edited. A readable part that addresses the reader is left out.

use manifest::{Capability, addresses_reader};

/// Maximum length of a name that OpenAI and Anthropic accept.
pub(super) const NAME_CHARS_MAX: usize = 64;

pub(super) fn of(capability: &Capability) -> String {
    let id = capability.id.as_str();
    let room = NAME_CHARS_MAX.saturating_sub(id.len() + 1);
    let readable = [capability.native_id.as_str(), capability.name.as_str(), capability.kind.as_str()]
        .into_iter()
        .map(|text| slug(text, room))
        .find(|slug| !(slug.is_empty() || capability.addresses_reader && addresses_reader(slug)))
        .unwrap_or_default();
    format!("{readable}_{id}")
}

/// The letters and digits of a text. Each run of other characters becomes one `_`.
pub(super) fn slug(text: &str, chars_max: usize) -> String {
    let mut slug = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() || character == '-' {
            slug.push(character);
        } else if !slug.is_empty() && !slug.ends_with('_') {
            slug.push('_');
        }
        if slug.len() >= chars_max {
            break;
        }
    }
    slug.trim_matches(['_', '-']).to_owned()
}
