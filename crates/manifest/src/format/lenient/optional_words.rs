//! Words that say that credentials are optional: "API key (optional)", "Optional bearer token", `optional_api_key`.

use serde_json::{Map, Value};

use crate::draft::{DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX};
use crate::object::Object;
use crate::text::{self, capped};

/// Maximum number of clauses of one text that are searched.
const CLAUSES_MAX: usize = 50;
/// Maximum number of words between the credential and "optional".
const WORDS_BETWEEN_MAX: usize = 3;
/// Words for credentials.
const CREDENTIALS: &[&str] = &[
    "key",
    "keys",
    "apikey",
    "token",
    "tokens",
    "bearer",
    "oauth",
    "oauth2",
    "jwt",
    "auth",
    "authentication",
    "authorization",
    "credentials",
];
/// Words after "optional for" that do not restrict it to a part of the calls.
const GAINS: &[&str] =
    &["all", "every", "any", "higher", "increased", "more", "better", "faster", "basic", "limited"];
/// Words after "optional" that restrict it to a part of the calls.
const LIMITS: &[&str] =
    &["for", "if", "when", "while", "unless", "except", "in", "on", "during", "until", "with", "but"];

/// For which calls credentials are optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Optional {
    All,
    /// For a part of the calls. It is unknown which calls need the credentials.
    Part,
}

/// For which calls a text about credentials says that they are optional.
pub(crate) fn optional_in(text: &str) -> Option<Optional> {
    let text = capped(text, DESCRIPTION_CHARS_MAX);
    if !text::has_four(text, *b"ptio") && !text::has_four(text, *b"PTIO") {
        return None;
    }
    let clauses = || text.split(['.', ';', '\n', '\u{2014}']).take(CLAUSES_MAX).map(text::words);
    let found = clauses().find_map(|words| in_clause(&words))?;
    let is_required = |words: Vec<String>| {
        let at = words
            .iter()
            .position(|word| matches!(word.as_str(), "required" | "requires" | "require" | "must"));
        at.is_some_and(|at| {
            at.checked_sub(1).and_then(|before| words.get(before)).is_none_or(|word| word != "not")
        })
    };
    Some(if clauses().any(is_required) { Optional::Part } else { found })
}

fn in_clause(words: &[String]) -> Option<Optional> {
    let at = words.iter().position(|word| word == "optional")?;
    let (before, after) = words.split_at(at);
    let after = after.get(1..).unwrap_or_default();
    if before.last().is_some_and(|word| word == "not") || before.iter().any(|word| word == "required") {
        return None;
    }
    let is_credential = |word: &String| CREDENTIALS.contains(&word.as_str());
    let is_near = |words: &mut dyn Iterator<Item = &String>| words.take(WORDS_BETWEEN_MAX).any(is_credential);
    // "Bearer token. Optional."
    let is_alone = before.is_empty() && after.is_empty();
    let is_before = || is_near(&mut before.iter().rev());
    let is_behind = || before.len() < 2 && is_near(&mut after.iter());
    if !(is_alone || is_before() || is_behind()) {
        return None;
    }
    let limit = after.iter().take(2).position(|word| LIMITS.contains(&word.as_str()));
    let is_gain = |at: usize| after.get(at + 1).is_some_and(|word| GAINS.contains(&word.as_str()));
    Some(if limit.is_none_or(is_gain) { Optional::All } else { Optional::Part })
}

/// For which calls the words of credentials say that they are optional: `"type": "api_key (optional)"`.
pub(super) fn optional(value: &Value) -> Option<Optional> {
    const KEYS: &[&str] = &["type", "scheme", "method", "description", "note", "notes", "requirement"];
    match value {
        Value::String(text) => optional_in(text),
        Value::Object(map) => KEYS.iter().find_map(|key| optional_in(map.get(*key)?.as_str()?)),
        _ => None,
    }
}

/// Whether a description next to the schemes or of the only scheme begins with the word "optional".
pub(super) fn states_optional(map: &Map<String, Value>) -> bool {
    let begins =
        |text: &str| text.get(.."optional".len()).is_some_and(|start| start.eq_ignore_ascii_case("optional"));
    let says = |map: &Map<String, Value>| {
        ["description", "note", "notes", "requirement"]
            .iter()
            .any(|key| map.get(*key).and_then(Value::as_str).is_some_and(begins))
    };
    let only = match map.get("schemes").and_then(Value::as_array).map(Vec::as_slice) {
        Some([Value::Object(only)]) => says(only),
        _ => false,
    };
    only || says(map)
}

/// Whether an object describes credentials that are not in force yet: `"status": "planned"`, `"note": "Planned — not yet live."`
pub(super) fn is_planned(object: &Object<'_>) -> bool {
    const STATES: &[&str] =
        &["planned", "upcoming", "coming soon", "coming", "future", "proposed", "roadmap", "not yet live"];
    const BEGINNINGS: &[&str] = &["planned", "coming soon", "not yet "];
    let is_state = |text: &str| {
        let folded = text.trim().replace(['_', '-'], " ").to_ascii_lowercase();
        STATES.contains(&folded.as_str())
    };
    let begins = |text: &str| {
        let sentences = capped(text, NAME_CHARS_MAX).to_ascii_lowercase();
        let mut sentences = sentences.split(['.', ';']).map(str::trim);
        sentences.any(|sentence| BEGINNINGS.iter().any(|start| sentence.starts_with(start)))
    };
    object.flag("planned") == Some(true)
        || object.text_of(&["status", "state", "availability"]).is_some_and(is_state)
        || ["note", "notes", "description"].iter().filter_map(|key| object.text(key)).any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_optional_credentials() {
        for text in [
            "API Key (optional)",
            "Optional API Key",
            "Type: Optional API Key",
            "API key is optional.",
            "api_key (optional)",
            "API key optional",
            "optional_api_key",
            "Bearer token. Optional.",
            "Optional API key for higher rate limits.",
            "API Key (optional for basic access)",
            "API key (optional): `X-K` header",
            "API key (optional): send it in the `X-K` header.",
            "Authentication is optional, not required.",
        ] {
            assert_eq!(optional_in(text), Some(Optional::All), "{text}");
        }
        for text in [
            "API Key (optional for the list of rooms)",
            "API key optional. Required for writes.",
            "The token is optional when reading",
        ] {
            assert_eq!(optional_in(text), Some(Optional::Part), "{text}");
        }
        for text in [
            "API key",
            "API key required",
            "API key required (optional X-Org header)",
            "The API key is not optional.",
            "Provide the API key and the sport, with optional filters",
            "Send the key. Optional parameters follow.",
            "An option of the key",
        ] {
            assert_eq!(optional_in(text), None, "{text}");
        }
    }
}
