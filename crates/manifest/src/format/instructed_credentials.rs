//! Credentials in instructions to the caller: "Must include Authorization: Bearer TOKEN.", "Pass the X-API-Key header.", "Auth: Bearer".
//!
//! Instructions with a condition, or with the path of another call, are ignored. "Also accepts Authorization: Bearer TOKEN" states optional
//! credentials.

use crate::auth;
use crate::cues::{Cue, Cues};
use crate::draft::{NAME_BYTES_MAX, NAME_CHARS_MAX};
use crate::format::clauses::clauses;
use crate::format::{auth_sentences, lenient, request_headers};
use crate::model::{Auth, AuthScheme};
use crate::text::{self, capped};

/// Words before the verb of an instruction.
const LEADS: &[&str] =
    &["please", "always", "also", "and", "then", "you", "must", "callers", "clients", "agents"];
const VERBS: &[&str] = &["include", "send", "pass", "provide", "attach", "set", "add", "use", "authenticate"];
/// Verbs after "must".
const OBLIGED: &[&str] =
    &["include", "send", "pass", "provide", "carry", "contain", "have", "set", "authenticate", "be"];
/// Verbs before credentials that a call accepts but does not need.
const ACCEPTING: &[&str] = &["accepts", "accept", "supports"];
/// Words after a verb of [`ACCEPTING`].
const ALSO: &[&str] = &["also", "optionally"];
/// Labels of the credentials of a call.
const LABELS: &[&str] = &["auth", "authentication", "authorization"];
/// Words in the description of a call that issues a credential.
const ISSUING: &[&str] = &[
    "issue",
    "issues",
    "create",
    "creates",
    "generate",
    "generates",
    "mint",
    "mints",
    "return",
    "returns",
    "get",
    "obtain",
    "exchange",
    "exchanges",
    "refresh",
];
const ISSUED: &[&str] = &["key", "token", "jwt", "credential", "credentials", "apikey"];
/// Maximum number of words between the two.
const WORDS_BETWEEN_MAX: usize = 6;
/// Maximum number of words of one clause that are searched.
const WORDS_MAX: usize = 60;

/// How a clause states credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Each call must send them.
    Obliged,
    /// The caller sends them, but they may be the credentials that the call itself returns.
    Advised,
    /// The call also accepts them.
    Optional,
}

/// Whether a text contains the beginning of an instruction.
pub(super) fn may_instruct(text: &str, cues: Cues) -> bool {
    cues.has(Cue::Instruction) || cues.has(Cue::Token) && text.contains("X-")
}

/// The credential that a clause tells the caller to send.
pub(super) fn in_clause(clause: &str, folded: &str) -> Option<(Need, Auth)> {
    if clause
        .split_whitespace()
        .take(WORDS_MAX)
        .any(|word| word.trim_start_matches(['`', '"']).starts_with('/'))
    {
        return None;
    }
    if let Some(stated) = labelled(clause) {
        return Some((Need::Obliged, stated));
    }
    let words: Vec<&str> = folded
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(WORDS_MAX)
        .collect();
    let need = need_of(&words)?;
    let credential = credential_in(clause, folded)?;
    Some((need, credential))
}

fn need_of(words: &[&str]) -> Option<Need> {
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let takes = || {
        words
            .windows(2)
            .any(|two| ALSO.contains(&two[0]) && (ACCEPTING.contains(&two[1]) || VERBS.contains(&two[1])))
    };
    if takes() {
        return Some(Need::Optional);
    }
    if has(&["no", "not", "never", "without", "returns", "returned", "response"]) {
        return None;
    }
    let is_obliged = words.windows(2).any(|two| two[0] == "must" && OBLIGED.contains(&two[1]));
    if is_obliged {
        return Some(Need::Obliged);
    }
    let lead = words.iter().take_while(|word| LEADS.contains(word)).count();
    words.get(lead).filter(|word| VERBS.contains(word)).map(|_| Need::Advised)
}

/// The credential in `Authorization: Bearer <token>`, in a custom header, or a bearer token.
fn credential_in(clause: &str, folded: &str) -> Option<Auth> {
    if folded.contains("authorization: bearer") || folded.contains("authorization` header") {
        return Some(auth_sentences::in_header(AuthScheme::Bearer, "Authorization"));
    }
    if let Some(name) = lenient::headers_in(clause).find(is_key_header) {
        return Some(auth_sentences::in_header(AuthScheme::ApiKey, name));
    }
    let at = folded.find("bearer token")?;
    (!auth_sentences::is_of_another(clause, at)).then(|| Auth::new(AuthScheme::Bearer))
}

fn is_key_header(name: &&str) -> bool {
    request_headers::is_credential(name) && !name.to_ascii_lowercase().contains("payment")
}

/// Whether a description refers to a credential that its call issues: "Creates an API key. Pass the key as X-API-Key header."
pub(super) fn issues_credential(description: &str) -> bool {
    let is_issued =
        |rest: &[String]| rest.iter().take(WORDS_BETWEEN_MAX).any(|word| ISSUED.contains(&word.as_str()));
    clauses(capped(description, NAME_CHARS_MAX)).map(text::words).any(|words| {
        words
            .iter()
            .enumerate()
            .any(|(at, word)| ISSUING.contains(&word.as_str()) && words.get(at + 1..).is_some_and(is_issued))
    })
}

/// The credential after a label: "Auth: Bearer", "Authorization: Bearer <token>".
fn labelled(clause: &str) -> Option<Auth> {
    let (label, value) = clause.split_once(':')?;
    let label = label.trim_matches(['*', '`', ' ']);
    if label.eq_ignore_ascii_case("header") || label.eq_ignore_ascii_case("headers") {
        let name = value.trim_matches(['*', '`', ' ', '.']);
        let is_key = lenient::header_in(name) == Some(name) && is_key_header(&name);
        return if is_key {
            Some(auth_sentences::in_header(AuthScheme::ApiKey, name))
        } else {
            labelled_auth(value)
        };
    }
    labelled_auth(clause)
}

fn labelled_auth(clause: &str) -> Option<Auth> {
    let (label, value) = clause.split_once(':')?;
    let label = label.trim_matches(['*', '`', ' ']);
    let value = value.trim_matches(['*', '`', ' ', '.']);
    if value.is_empty()
        || value.len() > NAME_BYTES_MAX
        || !LABELS.iter().any(|known| label.eq_ignore_ascii_case(known))
    {
        return None;
    }
    if label.eq_ignore_ascii_case("authorization") && value.starts_with("Bearer") {
        return Some(auth_sentences::in_header(AuthScheme::Bearer, "Authorization"));
    }
    if let Some(name) = lenient::header_in(value).filter(is_key_header) {
        return Some(auth_sentences::in_header(AuthScheme::ApiKey, name));
    }
    let named = auth::scheme(value.trim_end_matches(" required").trim_end_matches(" token"));
    matches!(named, AuthScheme::ApiKey | AuthScheme::Bearer | AuthScheme::OAuth2)
        .then(|| Auth::new(named))
        .filter(|_| value.split_whitespace().count() <= 3)
}
