//! Recognises texts that say that no credentials are needed.

use serde_json::{Map, Value};

use super::auth_words::{CLAUSES_MAX, names_payment};
use super::open_phrases::{is_open_clause, is_open_remark};
use super::optional_words::{Optional, optional};
use crate::auth;
use crate::format::clauses::clauses;
use crate::model::AuthScheme;
use crate::text;

/// Whether a text says that the whole service needs no credentials. A clause with a condition does not count.
pub(crate) fn says_open(text: &str) -> bool {
    const OPEN: &[&str] = &[
        "no api key",
        "no api-key",
        "zero api key",
        "without api key",
        "without an api key",
        "no auth required",
        "no auth needed",
        "no authentication",
        "no key required",
        "no keys required",
        "no login required",
        "no jwt required",
        "no jwt needed",
        "no token required",
        "no token needed",
    ];
    const CONDITIONS: &[&str] =
        &[" for ", "except", "unless", " but ", "free tier", "trial", "until", "first ", "only ", " reads"];
    if !may_say_open(text)
        && !["endpoints are", "calls are", "routes are"].iter().any(|words| text.contains(words))
    {
        return false;
    }
    if is_about_tier(text) {
        return false;
    }
    text.split(". ").take(CLAUSES_MAX).map(str::to_ascii_lowercase).any(|sentence| {
        let mut clauses = sentence.split(['.', ';', '(', ')', '\u{2014}']).take(CLAUSES_MAX);
        let is_open = |clause: &str| {
            let has = |words: &[&str]| words.iter().any(|words| clause.contains(words));
            has(OPEN) && !has(CONDITIONS)
        };
        // "x402 (USDC on Base, no API keys)": the payment is the credential. A heading applies to its section only.
        let is_whole = || !sentence.starts_with('#') && is_open_sentence(&sentence);
        (clauses.any(is_open) || is_whole()) && !names_payment(&sentence)
    })
}

/// Whether a line is labelled with one tier of a service, so that it says nothing about the others: "Free tier: … No API key required."
pub(crate) fn is_about_tier(line: &str) -> bool {
    let Some((label, _)) = line.split_once(':') else { return false };
    let mut is_tier = false;
    if label.len() <= LABEL_BYTES_MAX {
        text::each_word(label, |word| {
            is_tier |= matches!(word, "tier" | "plan" | "trial" | "demo" | "sandbox");
        });
    }
    is_tier
}

/// Maximum number of bytes of the label of a tier.
const LABEL_BYTES_MAX: usize = 40;

/// Whether one clause of a sentence in lower case only says that no credentials are needed, and no clause has a condition or names a call.
fn is_open_sentence(sentence: &str) -> bool {
    const CONDITIONS: &[&str] = &[
        "except",
        "unless",
        " but ",
        "free tier",
        "trial",
        "until",
        "only ",
        " if ",
        "when ",
        "write",
        "admin",
    ];
    let begins = ["for ", "on ", "in ", "if ", "with "].iter().any(|start| sentence.starts_with(start));
    let names_call =
        ["get /", "post /", "put /", "delete /", "patch /"].iter().any(|call| sentence.contains(call));
    !begins
        && !names_call
        && !CONDITIONS.iter().any(|words| sentence.contains(words))
        && split_clauses(sentence).any(is_open_clause)
}

fn split_clauses(sentence: &str) -> impl Iterator<Item = &str> {
    sentence.split(['.', ',', ';', '(', ')', '\u{2014}', '\u{2013}']).take(CLAUSES_MAX)
}

/// Whether a text contains the first letters of a phrase that says that no credentials are needed. It compares every byte instead of
/// stopping at the first match, so that several bytes can be compared at once.
fn may_say_open(text: &str) -> bool {
    let from = |start: usize| text.as_bytes().get(start..).unwrap_or_default();
    let threes = from(0).iter().zip(from(1)).zip(from(2));
    let begins = |[a, b, c]: [u8; 3], known: &[u8; 3]| {
        a | 0x20 == known[0] && b | 0x20 == known[1] && c | 0x20 == known[2]
    };
    threes.fold(false, |found, ((first, second), third)| {
        let three = [*first, *second, *third];
        found
            | begins(three, b"no ")
            | begins(three, b"zer")
            | begins(three, b"wit")
            | begins(three, b"ot ")
            | begins(three, b"n't")
            | begins(three, b"una")
            | begins(three, b"ano")
    })
}

/// Whether a text says that the call it describes needs no credentials: "No auth required."
pub(crate) fn says_call_is_open(text: &str) -> bool {
    const NEEDS: &[&str] = &["required", "needed", "necessary", "free with no auth"];
    const BEGINNINGS: &[&str] = &[
        "requir",
        "need",
        "o auth",
        "o API key",
        "o key",
        "o login",
        "o token",
        "nauthenticated",
        "ithout a",
    ];
    let may_be = may_say_open(text) && BEGINNINGS.iter().any(|word| text.contains(word));
    let is_paid =
        || text.split(". ").take(CLAUSES_MAX).any(|sentence| names_payment(&sentence.to_ascii_lowercase()));
    if !may_be || is_paid() {
        return false;
    }
    let is_open = |clause: &str| {
        let folded = clause.to_ascii_lowercase();
        let is_needed = NEEDS.iter().any(|word| folded.contains(word));
        // "No API keys" may refer to the response of the call.
        let is_whole = || (is_needed || folded.contains("auth")) && is_open_clause(&folded);
        is_whole() || (is_needed && says_open(clause))
    };
    text.split(['.', ';', '(', ')', ',', '\u{2014}']).take(CLAUSES_MAX).any(is_open)
        || clauses(text).any(|sentence| is_open_remark(&sentence.to_ascii_lowercase()))
}

/// Words of remarks about calls that need no credentials.
const PARTLY_OPEN: &[&str] = &[
    "no auth",
    "without auth",
    "no api key",
    "no key ",
    "endpoints are public",
    "calls are public",
    "routes are public",
    "reads are public",
];

/// Whether a remark next to the schemes says that some calls need no credentials.
pub(crate) fn is_partly_open(value: &Value) -> bool {
    let says = |text: &str| {
        let folded = text.to_ascii_lowercase();
        let is_none = auth::scheme(text) == AuthScheme::None;
        is_none || PARTLY_OPEN.iter().any(|words| folded.contains(words))
    };
    let names_scheme = |map: &Map<String, Value>| map.contains_key("type") || map.contains_key("method");
    if optional(value) == Some(Optional::Part) {
        return true;
    }
    value.as_object().is_some_and(|map| {
        map.values().filter_map(Value::as_str).any(says) && !(names_scheme(map) && map.len() == 1)
    })
}
