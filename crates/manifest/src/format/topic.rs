//! What the heading above labelled lines announces, and the lines below a heading about attribution.

use serde_json::Value;

use crate::draft::{self, Draft};
use crate::format::terms;
use crate::model::PolicyChoice;
use crate::text;

/// Maximum number of characters of a heading that are compared.
const LABEL_CHARS_MAX: usize = 40;

/// What the lines below a heading are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Topic {
    #[default]
    Other,
    Credentials,
    Attribution,
    Limits,
}

impl Topic {
    pub(super) fn of(heading: &str) -> Self {
        let words = text::words(text::capped(heading, LABEL_CHARS_MAX));
        let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        if has(&["authentication", "authorization", "auth"]) {
            Self::Credentials
        } else if has(&["attribution"]) {
            Self::Attribution
        } else if has(&["rate"]) && has(&["limit", "limits", "limiting"]) {
            Self::Limits
        } else {
            Self::Other
        }
    }
}

/// Reads whether and how to name the source, in the lines below a heading about attribution: `Required: Yes`, `Format: Data by Acme`.
pub(super) fn read_attribution(label: &str, value: &str, draft: &mut Draft<'_>) -> bool {
    let policy = &mut draft.manifest.policies.attribution;
    match label {
        "required" if policy.is_none() => {
            let choice = terms::choice_of(&Value::from(value));
            let word = if choice == PolicyChoice::Deny { "none" } else { "required" };
            *policy = Some(word.to_owned()).filter(|_| !choice.is_unset());
        }
        "format" | "text" | "credit" => {
            let stated = match policy.as_deref() {
                Some("required") => draft::name(Some(&format!("required: {value}"))),
                Some(_) => None,
                None => draft::name(Some(value)),
            };
            *policy = stated.or_else(|| policy.take());
        }
        _ => return false,
    }
    true
}
