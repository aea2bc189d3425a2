//! Terms of use in a document of any format: permitted uses of the content, licence, links to terms, status.
//!
//! Fills fields that the parser of the format left empty. The core dialects define these members themselves.

use serde_json::Value;

use crate::budget;
use crate::draft::{self, Draft};
use crate::model::PolicyChoice;
use crate::object::{Object, texts};
use crate::text;

/// Members that may contain terms, in addition to the root.
const HOLDERS: &[&str] = &[
    "policies",
    "policy",
    "legal",
    "terms",
    "usage",
    "usage_policy",
    "usagePolicy",
    "ai_usage_policy",
    "aiUsagePolicy",
    "ai_policy",
    "aiPolicy",
    "content_policy",
    "contentPolicy",
    "content_usage",
    "content_signals",
    "contentSignals",
    "content-signals",
    "crawl_policy",
    "crawlPolicy",
    "data_policy",
    "data_usage",
    "permissions",
    "compliance",
    "rights",
    "licensing",
    "citation",
    "contact",
    "links",
    "metadata",
    "site",
    "agent",
];
const TERMS_KEYS: &[&str] = &[
    "terms",
    "terms_url",
    "termsUrl",
    "terms_of_service",
    "termsOfService",
    "terms_of_service_url",
    "termsOfServiceUrl",
    "terms_of_use",
    "termsOfUse",
    "tos",
    "tos_url",
    "tosUrl",
    "legal_info_url",
];
const PRIVACY_KEYS: &[&str] = &[
    "privacy",
    "privacy_url",
    "privacyUrl",
    "privacy_policy",
    "privacyPolicy",
    "privacy_policy_url",
    "privacyPolicyUrl",
];
const STATUS_KEYS: &[&str] =
    &["status_url", "statusUrl", "status_page", "statusPage", "status_endpoint", "status"];
const TRAINING_KEYS: &[&str] = &[
    "training",
    "ai_training",
    "aiTraining",
    "ai-training",
    "ai_train",
    "ai-train",
    "model_training",
    "modelTraining",
    "llm_training",
    "training_allowed",
    "trainingAllowed",
    "ai_training_allowed",
    "allow_training",
    "allowTraining",
    "allow_ai_training",
];
const INFERENCE_KEYS: &[&str] = &[
    "inference",
    "ai_inference",
    "ai_input",
    "ai-input",
    "grounding",
    "rag",
    "inference_allowed",
    "allow_inference",
];
const ATTRIBUTION_KEYS: &[&str] = &[
    "attribution",
    "attribution_required",
    "attributionRequired",
    "requires_attribution",
    "require_attribution",
    "citation",
    "citation_format",
    "cite_as",
    "preferred_citation",
];
const LICENSE_KEYS: &[&str] =
    &["license", "licence", "content_license", "contentLicense", "data_license", "dataLicense"];
/// Blocks of content signals, in which `search` is a use and not a call.
const SIGNAL_KEYS: &[&str] = &["content_signals", "contentSignals", "content-signals"];
/// Maximum number of bytes of a licence that is kept as published.
const LICENSE_BYTES_MAX: usize = 2_048;

/// Adds the terms that a document states at its root or in one of the usual blocks.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    if draft.format().is_core() {
        return;
    }
    let mut holders = vec![root.clone()];
    let mut denies_training = false;
    for key in HOLDERS {
        match root.value(key) {
            Some(Value::Object(map)) => holders.push(Object::new(map, root.at(key))),
            Some(Value::String(text)) => denies_training |= denies_training_in(text),
            _ => {}
        }
    }
    let page = |keys: &[&str]| holders.iter().find_map(|holder| page_of(holder, keys, draft));
    let (terms, privacy, status) = (page(TERMS_KEYS), page(PRIVACY_KEYS), page(STATUS_KEYS));
    let values = |keys: &[&'static str]| -> Vec<&Value> {
        holders.iter().flat_map(|holder| keys.iter().filter_map(|key| holder.value(key))).collect()
    };
    let choice = |keys: &[&'static str]| {
        let stated = values(keys).into_iter().map(choice_of);
        stated.into_iter().find(|choice| !choice.is_unset()).unwrap_or_default()
    };
    let policies = &mut draft.manifest.policies;
    policies.terms_url = policies.terms_url.take().or(terms);
    policies.privacy_url = policies.privacy_url.take().or(privacy);
    if policies.training.is_unset() {
        policies.training = choice(TRAINING_KEYS);
    }
    if policies.training.is_unset() {
        policies.training = training_in_uses(&values(ALLOWED_USES_KEYS), &values(PROHIBITED_USES_KEYS));
    }
    if policies.training.is_unset() && denies_training {
        policies.training = PolicyChoice::Deny;
    }
    if policies.inference.is_unset() {
        policies.inference = choice(INFERENCE_KEYS);
    }
    if policies.search.is_unset() {
        let signals = SIGNAL_KEYS.iter().filter_map(|key| root.object(key));
        let mut stated = signals.filter_map(|signals| signals.value("search").map(choice_of));
        policies.search = stated.find(|choice| !choice.is_unset()).unwrap_or_default();
    }
    if policies.attribution.is_none() {
        policies.attribution = values(ATTRIBUTION_KEYS).into_iter().find_map(attribution_of);
    }
    let state = &mut draft.manifest.status;
    state.status_url = state.status_url.take().or(status);
    state.operational = state.operational.or_else(|| root.text("status").and_then(is_operational));
    let is_short = |value: &&Value| budget::bytes_of(value, LICENSE_BYTES_MAX) <= LICENSE_BYTES_MAX;
    if let Some(license) = values(LICENSE_KEYS).into_iter().find(is_short).filter(|value| is_license(value)) {
        draft.manifest.features.other.entry("license".to_owned()).or_insert_with(|| license.clone());
    }
}

/// Whether the lists of permitted and prohibited uses name the training of models.
fn training_in_uses(allowed: &[&Value], prohibited: &[&Value]) -> PolicyChoice {
    let names_training = |uses: &[&Value]| {
        let texts = uses.iter().flat_map(|uses| texts(uses)).take(USES_MAX);
        texts.map(|text| text::words(text::capped(text, draft::NAME_CHARS_MAX))).any(|words| {
            let is_denied = words.first().is_some_and(|word| matches!(word.as_str(), "no" | "not" | "non"));
            !is_denied && words.iter().any(|word| TRAINING_WORDS.contains(&word.as_str()))
        })
    };
    match (names_training(allowed), names_training(prohibited)) {
        (true, true) => PolicyChoice::Conditional,
        (true, false) => PolicyChoice::Allow,
        (false, true) => PolicyChoice::Deny,
        (false, false) => PolicyChoice::Unset,
    }
}

/// Maximum number of uses that are compared.
const USES_MAX: usize = 100;
/// Members that list permitted uses, and prohibited ones.
const ALLOWED_USES_KEYS: &[&str] =
    &["allowed_uses", "allowedUses", "permitted_uses", "permittedUses", "allowed_use", "permitted_use"];
const PROHIBITED_USES_KEYS: &[&str] = &[
    "prohibited_uses",
    "prohibitedUses",
    "disallowed_uses",
    "disallowedUses",
    "forbidden_uses",
    "restricted_uses",
    "prohibited_use",
];

/// The address in a member, or in its object.
fn page_of(holder: &Object<'_>, keys: &[&str], draft: &Draft<'_>) -> Option<String> {
    let inner = |key: &&str| holder.object(key)?.text_of(&["url", "href", "link"]);
    let published = keys.iter().filter_map(|key| holder.text(key).or_else(|| inner(key)));
    let is_address =
        |text: &&str| text.starts_with('/') || text.starts_with("https://") || text.starts_with("http://");
    published.filter(is_address).find_map(|text| draft.origin_url(text))
}

fn is_license(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.trim().is_empty() && !text.contains("://"),
        Value::Object(_) => true,
        _ => false,
    }
}

/// Maximum number of statements of one line that are read.
const SIGNALS_MAX: usize = 20;

/// Reads a line `Content-Signal: search=yes, ai-train=no` or `Content-Usage: train-ai=n` of a text for all agents.
pub(crate) fn read_signals(line: &str, draft: &mut Draft<'_>) {
    let policies = &mut draft.manifest.policies;
    for stated in line.split([',', ';']).take(SIGNALS_MAX) {
        let Some((use_, choice)) = stated.split_once('=') else { continue };
        let choice = choice_in_words(choice.trim());
        let policy = match use_.trim().to_ascii_lowercase().as_str() {
            "ai-train" | "train-ai" => &mut policies.training,
            "ai-input" => &mut policies.inference,
            "search" => &mut policies.search,
            _ => continue,
        };
        if policy.is_unset() {
            *policy = choice;
        }
    }
}

/// The publisher's choice, from a flag or from the first words of a text.
pub(crate) fn choice_of(value: &Value) -> PolicyChoice {
    match value {
        Value::Bool(true) => PolicyChoice::Allow,
        Value::Bool(false) => PolicyChoice::Deny,
        Value::String(text) => choice_in_words(text),
        Value::Object(map) => {
            let keys = ["allowed", "permitted", "allow", "policy", "value"];
            keys.iter().find_map(|key| map.get(*key)).map_or(PolicyChoice::Unset, |inner| match inner {
                Value::Object(_) => PolicyChoice::Unset,
                plain => choice_of(plain),
            })
        }
        _ => PolicyChoice::Unset,
    }
}

fn choice_in_words(text: &str) -> PolicyChoice {
    let folded: String = text.chars().take(draft::NAME_CHARS_MAX).collect::<String>().to_ascii_lowercase();
    let first = folded.split(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or_default();
    let denies =
        ["not allowed", "not permitted", "disallow", "prohibit", "forbid", "denied", "opt-out", "opt out"];
    if matches!(first, "no" | "n" | "none" | "false" | "deny" | "never")
        || denies.iter().any(|words| folded.contains(words))
    {
        return PolicyChoice::Deny;
    }
    let is_allowed = matches!(
        first,
        "y" | "yes" | "true" | "allow" | "allowed" | "permitted" | "welcome" | "encouraged" | "ok" | "open"
    );
    let conditions = ["with ", "if ", "only", "unless", "subject to", "permission", "license"];
    if first == "conditional" || (is_allowed && conditions.iter().any(|words| folded.contains(words))) {
        return PolicyChoice::Conditional;
    }
    if is_allowed { PolicyChoice::Allow } else { PolicyChoice::Unset }
}

/// Maximum number of bytes of a text that are searched for a prohibition.
const PROHIBITION_BYTES_MAX: usize = 8_192;
const TRAINING_WORDS: &[&str] = &["train", "training", "pretraining", "finetuning", "tuning"];
const MODEL_WORDS: &[&str] =
    &["ai", "llm", "llms", "model", "models", "foundational", "generative", "machine", "ml"];
const USE_WORDS: &[&str] = &[
    "use",
    "used",
    "using",
    "usage",
    "utilization",
    "utilisation",
    "scrape",
    "scraping",
    "crawl",
    "crawling",
    "ingest",
    "ingestion",
    "train",
    "on",
];
const CONTENT_WORDS: &[&str] = &[
    "content",
    "contents",
    "data",
    "dataset",
    "datasets",
    "site",
    "website",
    "domain",
    "page",
    "pages",
    "text",
    "texts",
    "material",
    "materials",
    "code",
    "images",
    "work",
    "works",
    "documentation",
    "articles",
    "scrape",
    "scraping",
    "crawl",
    "crawling",
];
const PROHIBITIONS: &[&str] = &[
    "no ai training",
    "no training",
    "not permit",
    "not allow",
    "prohibit",
    "forbid",
    "not permitted",
    "not allowed",
    "not authorized",
    "not licensed",
    "may not",
    "must not",
    "do not",
    "don't",
    "not be used",
    "not to be used",
    "disallow",
    "never use",
    "not consent",
];
/// Words that show that a prohibition concerns something else, or that it is lifted.
const PERMISSIONS: &[&str] =
    &["allow", "permit", "welcome", "encourage", "not prohibit", "not forbid", "free to"];

/// Whether a sentence of a text prohibits the training of models with the content of the site: "Use of this data for training AI models is
/// prohibited". A sentence that also permits something does not count.
pub(crate) fn denies_training_in(text: &str) -> bool {
    let may_deny = text.contains("rain") || text.contains("RAIN") || text.contains("uning");
    may_deny && text::capped(text, PROHIBITION_BYTES_MAX).split(". ").any(denies_training)
}

fn denies_training(sentence: &str) -> bool {
    let folded = sentence.to_ascii_lowercase();
    let (mut trains, mut names_models, mut names_content, mut uses) = (false, false, false, false);
    for word in folded.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        trains |= TRAINING_WORDS.contains(&word);
        names_models |= MODEL_WORDS.contains(&word);
        names_content |= CONTENT_WORDS.contains(&word);
        uses |= USE_WORDS.contains(&word);
    }
    let has = |known: &[&str], text: &str| known.iter().any(|words| text.contains(words));
    if !(trains && names_models && names_content && uses && has(PROHIBITIONS, &folded)) {
        return false;
    }
    let mut rest = folded;
    for words in ["not permitted", "not permit", "not allowed", "not allow", "disallow"] {
        rest = rest.replace(words, "");
    }
    !has(PERMISSIONS, &rest)
}

/// The attribution that the publisher requires, if any.
fn attribution_of(value: &Value) -> Option<String> {
    match value {
        Value::Bool(required) => Some(if *required { "required" } else { "none" }.to_owned()),
        Value::String(text) if !text.contains("://") || text.contains(' ') => draft::name(Some(text)),
        Value::Object(map) => {
            let text = ["format", "text", "notice", "credit", "preferred_format", "cite_as", "preferred"];
            let text = text.iter().find_map(|key| draft::name(map.get(*key).and_then(Value::as_str)));
            match (map.get("required").and_then(Value::as_bool), text) {
                (Some(true), Some(text)) => draft::name(Some(&format!("required: {text}"))),
                (Some(true), None) => Some("required".to_owned()),
                (_, text) => text,
            }
        }
        _ => None,
    }
}

fn is_operational(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "operational" | "online" | "live" | "active" | "up" => Some(true),
        "down" | "offline" | "maintenance" | "outage" | "suspended" | "inactive" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_prohibitions_of_training_in_sentences() {
        for text in [
            "Use of this content for training AI models is prohibited without a license.",
            "You may read our pages. Do not use our data to train LLMs.",
            "Scraping of any data for the purpose of training or fine-tuning foundational models IS STRICTLY PROHIBITED.",
            "Material of this site must not be used for machine learning training",
            "AI training on our content is not permitted.",
            "We do not permit AI training on our content.",
            "No AI training on this content.",
        ] {
            assert!(denies_training_in(text), "{text}");
        }
        for text in [
            "Do not reproduce pages of this site, but training of AI models is allowed",
            "Training of AI models with our data is not prohibited",
            "Courses: training for teams that build AI models with their data",
            "Employees may not skip the training about AI and data",
            "Do not book trains with an AI model",
            "We do not permit scraping, but allow AI training on our content",
            "Unauthorized scraping for model training is a violation",
        ] {
            assert!(!denies_training_in(text), "{text}");
        }
    }

    #[test]
    fn reads_choices_from_flags_words_and_sentences() {
        for (published, expected) in [
            (json!(true), PolicyChoice::Allow),
            (json!(false), PolicyChoice::Deny),
            (json!("allowed"), PolicyChoice::Allow),
            (json!("Allowed with attribution"), PolicyChoice::Conditional),
            (json!("not permitted without a licence"), PolicyChoice::Deny),
            (json!("no"), PolicyChoice::Deny),
            (json!({"allowed": false}), PolicyChoice::Deny),
            (json!("Courses for model trainers"), PolicyChoice::Unset),
            (json!({"courses": true}), PolicyChoice::Unset),
        ] {
            assert_eq!(choice_of(&published), expected, "{published}");
        }
    }
}
