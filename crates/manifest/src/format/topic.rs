//! What the heading above labelled lines announces, and the lines below a heading about attribution.

use serde_json::{Map, Value};

use crate::draft::{self, Draft};
use crate::format::{asset_contracts, lenient, terms};
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
    /// The accounts or contracts of the service on a blockchain.
    Contracts,
}

impl Topic {
    pub(super) fn of(heading: &str) -> Self {
        let words = text::words(text::capped(heading, LABEL_CHARS_MAX));
        let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        if has(&["authentication", "authorization", "auth"]) {
            Self::Credentials
        } else if has(&["attribution", "citation", "citations", "citing"]) {
            Self::Attribution
        } else if has(&["rate"]) && has(&["limit", "limits", "limiting"]) {
            Self::Limits
        } else if has(&["contracts", "wallets", "addresses"]) {
            Self::Contracts
        } else {
            Self::Other
        }
    }
}

/// Maximum number of contracts of one text that are kept.
const CONTRACTS_MAX: usize = 50;

/// Keeps the address of a contract or an account, in the lines below a heading about them: `Router: 0x…`.
pub(super) fn read_contract(label: &str, value: &str, draft: &mut Draft<'_>) {
    if !asset_contracts::is_address(value) || !value.bytes().any(|byte| byte.is_ascii_digit()) {
        return;
    }
    let kept = draft.manifest.features.other.entry("contracts".to_owned());
    if let Value::Object(kept) = kept.or_insert_with(|| Value::Object(Map::new()))
        && kept.len() < CONTRACTS_MAX
    {
        kept.entry(label).or_insert_with(|| Value::from(value));
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
        "format" | "text" | "credit" | "include attribution" | "cite as" | "citation" => {
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

/// Reads a sentence that only says that sources must be named: "- Attribution is required (BY)."
pub(super) fn read_requirement(line: &str, draft: &mut Draft<'_>) {
    const SENTENCES: &[&str] =
        &["attribution is required", "attribution required", "attribution is mandatory"];
    let bare = line.trim_start_matches(|letter: char| !letter.is_ascii_alphabetic());
    let folded = text::capped(bare, LABEL_CHARS_MAX).to_ascii_lowercase();
    let says = SENTENCES.iter().filter_map(|sentence| folded.strip_prefix(sentence)).any(|rest| {
        rest.trim_start_matches(['*', '_']).is_empty() || rest.starts_with(['.', ' ', ',', ';', '*'])
    });
    let is_conditional = || ["unless", " if ", " for ", " when "].iter().any(|word| bare.contains(word));
    let policy = &mut draft.manifest.policies.attribution;
    if policy.is_none() && says && !is_conditional() {
        *policy = Some("required".to_owned());
    }
}

/// Reads a limit below a heading about limits. The first one applies to everybody, and further ones are kept by their label.
pub(super) fn read_limit(label: &str, value: &str, draft: &mut Draft<'_>) {
    let limit = lenient::rate_limit(&Value::from(value)).filter(|limit| limit.requests.is_some());
    let Some(limit) = limit else { return };
    let manifest = &mut draft.manifest;
    let known = manifest.rate_limit.get_or_insert_with(|| limit.clone());
    let of_label = (known.requests, known.window_s) != (limit.requests, limit.window_s);
    if of_label {
        let limits = manifest
            .features
            .other
            .entry("plan_limits".to_owned())
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(limits) = limits.as_object_mut().filter(|limits| limits.len() < LIMITS_MAX) {
            limits.insert(label.to_owned(), Value::from(text::capped(value, draft::NAME_CHARS_MAX)));
        }
    }
}

/// Maximum number of limits of one text that are kept.
const LIMITS_MAX: usize = 20;
