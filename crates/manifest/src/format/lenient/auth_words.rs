//! Credentials in sentences: schemes, and what calls that read or write require.

use serde_json::{Map, Value};

use super::auth::{auth_of_word, header_in, required_by};
use super::optional_words::optional_in;
use super::registration::first_address;
use crate::auth;
use crate::model::{Auth, AuthScheme, CapabilityAuth, SCHEMES_PER_CAPABILITY_MAX, Tristate};
use crate::text;

/// Maximum number of clauses of one text that are searched for credentials.
pub(super) const CLAUSES_MAX: usize = 50;

/// Credentials that sentences name.
pub(crate) fn auth_in_words<'t>(sentences: impl IntoIterator<Item = &'t str>) -> Vec<Auth> {
    let mut found: Vec<Auth> = Vec::new();
    let clauses = sentences.into_iter().flat_map(|text| text.split(". ").take(CLAUSES_MAX));
    for text in clauses {
        let registered = first_address(text).filter(|url| url.contains("://"));
        for scheme in schemes_in(&text.to_ascii_lowercase()) {
            if found.iter().any(|known| known.scheme == scheme) {
                continue;
            }
            let registration_url = registered.clone().filter(|_| scheme != AuthScheme::None);
            let name = header_in(text).filter(|_| scheme == AuthScheme::ApiKey).map(str::to_owned);
            let location = name.as_ref().map(|_| "header".to_owned());
            found.push(Auth { location, name, registration_url, ..Auth::new(scheme) });
        }
    }
    found
}

/// The schemes that a lower-case sentence names: one for each part about a kind of calls, or only the first scheme if there are no such
/// parts.
fn schemes_in(sentence: &str) -> Vec<AuthScheme> {
    let parts = sentence.split(", ").take(CLAUSES_MAX);
    let of_kind = parts.filter(|part| READING.iter().chain(WRITING).any(|words| part.contains(words)));
    let found: Vec<AuthScheme> = of_kind.filter_map(scheme_in).collect();
    if !found.is_empty() {
        return found;
    }
    match scheme_in(sentence) {
        // "x402, no API keys": the payment is the credential.
        None | Some(AuthScheme::None) if names_payment(sentence) => vec![AuthScheme::Payment],
        found => found.into_iter().collect(),
    }
}

/// Whether a lower-case sentence names a payment scheme for calls.
pub(crate) fn names_payment(sentence: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| sentence.contains(word));
    has(&["x402", "l402"]) && !has(&["planned", "coming", "soon", "future", "not yet"])
}

/// The scheme that a clause in lower-case letters names.
fn scheme_in(clause: &str) -> Option<AuthScheme> {
    let has = |words: &[&str]| words.iter().any(|word| clause.contains(word));
    Some(
        if has(&["no auth", "no api key", "no key", "without auth", "none required", "not required"])
            || has(&["needs nothing", "need nothing", "no jwt", "no token required"])
        {
            AuthScheme::None
        } else if has(&["api key", "api-key", "apikey", "x-api-key"]) {
            AuthScheme::ApiKey
        } else if has(&["oauth"]) {
            AuthScheme::OAuth2
        } else if has(&[
            "bearer ",
            " jwt",
            "needs the token",
            "need the token",
            "needs a token",
            "need a token",
        ]) || has(&[
            "requires the token",
            "require the token",
            "requires a token",
            "require a token",
        ]) {
            AuthScheme::Bearer
        } else if has(&["session-based", "session cookie"]) {
            AuthScheme::Session
        } else {
            return None;
        },
    )
}

/// The requirements of calls that read and of calls that write, if a document distinguishes them: `{"public_reads": "none", "writes":
/// "bearer"}`, or in words: "None required for browsing. Writing needs the token."
pub(crate) fn by_effect(value: &Value) -> Option<(CapabilityAuth, CapabilityAuth)> {
    match value {
        Value::String(sentences) => by_effect_in_words(sentences),
        Value::Object(map) => by_effect_in_members(map).or_else(|| {
            let remarks = ["description", "note", "notes"].iter().filter_map(|key| map.get(*key)?.as_str());
            remarks.take(CLAUSES_MAX).find_map(by_effect_in_words)
        }),
        _ => None,
    }
}

fn by_effect_in_members(map: &Map<String, Value>) -> Option<(CapabilityAuth, CapabilityAuth)> {
    let stated = |wanted: fn(&str) -> bool| {
        let is_wanted = |name: &str| text::words(name).iter().any(|word| wanted(word));
        let (_, value) = map.iter().take(SCHEMES_PER_CAPABILITY_MAX).find(|(name, _)| is_wanted(name))?;
        let stated = value.as_str()?;
        if stated.contains(' ') {
            let found = auth_in_words([stated]);
            return (!found.is_empty()).then(|| required_by(&found));
        }
        (auth::scheme(stated) != AuthScheme::Other).then(|| required_by(&[auth_of_word(stated)]))
    };
    let reads = stated(|word| matches!(word, "read" | "reads" | "reading" | "browse" | "browsing"))?;
    Some((reads, stated(|word| matches!(word, "write" | "writes" | "writing"))?))
}

/// Words in clauses about calls that read, and in clauses about calls that write.
const READING: &[&str] = &[
    "browsing",
    "to browse",
    "reading",
    "to read",
    "for reads",
    "reads need",
    "read access",
    "for read-only",
    "viewing",
];
const WRITING: &[&str] = &[
    "writing",
    "to write",
    "for writes",
    "writes need",
    "write access",
    "write operations",
    "to post",
    "posting",
];

/// The requirements that the clauses of a text state for calls that read and for calls that write. Unknown for calls that write if no
/// clause mentions them.
fn by_effect_in_words(sentences: &str) -> Option<(CapabilityAuth, CapabilityAuth)> {
    let folded = sentences.to_ascii_lowercase();
    let about = |words: &[&str], others: &[&str]| {
        let mut clauses =
            folded.split(['.', ',', ';', '\u{2014}']).flat_map(|part| part.split(" but ")).take(CLAUSES_MAX);
        clauses.find_map(|clause| {
            let has = |words: &[&str]| words.iter().any(|word| clause.contains(word));
            let scheme = scheme_in(clause).filter(|_| has(words) && !has(others))?;
            let needed = required_by(&[Auth::new(scheme)]);
            let is_optional = optional_in(clause).is_some();
            Some(if is_optional { CapabilityAuth { required: Tristate::No, ..needed } } else { needed })
        })
    };
    let (reads, writes) = (about(READING, WRITING), about(WRITING, READING));
    let is_told_apart = reads.is_some() || writes.is_some();
    is_told_apart.then(|| (reads.unwrap_or_default(), writes.unwrap_or_default()))
}
