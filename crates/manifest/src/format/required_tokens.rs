//! Tokens that a clause requires without naming a scheme ("Requires token authentication.", "Requires an access token."), and the scopes
//! that a call needs ("Requires a write-scoped token.", "Requires the write scope.").

use crate::draft::{NAME_BYTES_MAX, NAME_CHARS_MAX};
use crate::format::clauses::clauses;
use crate::model::{Auth, AuthScheme};
use crate::text::{self, capped};

/// Maximum number of words between "requires" and the token.
const KINDS_MAX: usize = 3;
/// Maximum number of words behind "obtained via".
const WAY_WORDS_MAX: usize = 4;
/// Maximum number of scopes of one description.
const SCOPES_MAX: usize = 16;
const ARTICLES: &[&str] = &["a", "an", "the", "valid", "your"];
/// Words that say what a token is for. Names of services begin with a capital letter.
const KINDS: &[&str] = &[
    "access",
    "auth",
    "authentication",
    "authorization",
    "user",
    "bot",
    "personal",
    "service",
    "admin",
    "account",
    "scoped",
];
const AUTHENTICATION: &[&str] = &["authentication", "auth", "authorization"];
/// Verbs before the way to obtain a token.
const OBTAINED: &[&str] = &["obtained", "issued", "available"];
const VIA: &[&str] = &["via", "by", "through", "after"];
const NEEDS: &[&str] = &["requires", "require", "needs", "need"];
/// Words before "scope" that name none.
const NO_SCOPES: &[&str] = &[
    "right",
    "correct",
    "same",
    "given",
    "full",
    "required",
    "following",
    "appropriate",
    "this",
    "that",
    "global",
    "token",
];

/// The token that a clause requires: `words` are those behind the verb, in lower case. Its scheme is not known.
pub(super) fn token_in(clause: &str, words: &[&str]) -> Option<Auth> {
    let lead = words.iter().take_while(|word| ARTICLES.contains(word)).count();
    let named = words.get(lead..)?;
    let at = named.iter().position(|word| *word == "token").filter(|at| *at <= KINDS_MAX)?;
    let (kinds, behind) = (named.get(..at)?, named.get(at + 1..)?);
    let is_name = |word: &str| is_capitalised(clause, word);
    let is_plain = kinds.iter().enumerate().all(|(position, word)| {
        KINDS.contains(word) || is_name(word) || kinds.get(position + 1) == Some(&"scoped")
    });
    let rest = match behind {
        [first, rest @ ..] if kinds.is_empty() && AUTHENTICATION.contains(first) => rest,
        behind => behind,
    };
    let way = registration_in(rest);
    (is_plain && (rest.is_empty() || way.is_some())).then(|| Auth {
        declared: Some("token".to_owned()),
        registration: way,
        ..Auth::new(AuthScheme::Other)
    })
}

/// Whether a word in lower case is a name in the clause: `slack` in "a Slack token", but not in "an API token".
fn is_capitalised(clause: &str, word: &str) -> bool {
    let is_name = |own: &str| {
        let mut letters = own.chars();
        letters.next().is_some_and(char::is_uppercase) && letters.next().is_some_and(char::is_lowercase)
    };
    let mut words = clause.split(|letter: char| !letter.is_alphanumeric()).skip(1);
    !matches!(word, "bearer" | "basic" | "oauth")
        && words.any(|own| own.eq_ignore_ascii_case(word) && is_name(own))
}

/// The way to obtain a token: "obtained via email registration".
fn registration_in(words: &[&str]) -> Option<String> {
    let [obtained, via, way @ ..] = words else { return None };
    let is_way = OBTAINED.contains(obtained) && VIA.contains(via) && (1..=WAY_WORDS_MAX).contains(&way.len());
    is_way.then(|| way.join(" "))
}

/// The scopes that a description says that its call needs.
pub(super) fn scopes_in(description: &str) -> Vec<String> {
    if !text::has_four(description, *b"cope") {
        return Vec::new();
    }
    let found = clauses(description).filter(|clause| clause.len() <= NAME_BYTES_MAX).filter_map(scope_in);
    let mut scopes: Vec<String> = Vec::new();
    for scope in found.take(SCOPES_MAX) {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    scopes
}

fn scope_in(clause: &str) -> Option<String> {
    let is_mark = |letter: char| "`\"',.".contains(letter);
    let words: Vec<&str> = clause.split_whitespace().map(|word| word.trim_matches(is_mark)).collect();
    let (verb, behind) = words.split_first()?;
    if !NEEDS.iter().any(|known| verb.eq_ignore_ascii_case(known)) {
        return None;
    }
    let lead = behind.iter().take_while(|word| ARTICLES.contains(word)).count();
    let scope = match behind.get(lead..)? {
        [scoped, "token" | "key"] => scoped.strip_suffix("-scoped")?,
        [scope, "scope"] | ["scope" | "scope:", scope] | ["OAuth", "scope", scope] => scope,
        _ => return None,
    };
    let is_scope = scope.starts_with(|letter: char| letter.is_ascii_lowercase())
        && scope
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b":._-/".contains(&byte));
    (is_scope && !NO_SCOPES.contains(&scope)).then(|| capped(scope, NAME_CHARS_MAX).to_owned())
}

/// "Lists the rooms of the authenticated user": a call that knows its caller needs a credential.
pub(super) fn names_caller(folded: &str) -> bool {
    let is_named = ["the authenticated user", "the signed-in user", "the logged-in user"]
        .iter()
        .any(|caller| folded.contains(caller));
    is_named && ![" if ", "optional", "when ", "whether "].iter().any(|word| folded.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(clause: &str) -> Option<Auth> {
        let folded = clause.to_ascii_lowercase();
        let words: Vec<&str> =
            folded.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        token_in(clause, words.get(1..).unwrap_or_default())
    }

    #[test]
    fn finds_the_token_that_a_clause_requires() {
        for clause in [
            "Requires token authentication",
            "Requires an access token",
            "Requires a token",
            "Requires a Slack token",
            "Requires a write-scoped token",
            "Requires an authentication token obtained via e-mail",
        ] {
            assert!(token(clause).is_some(), "{clause}");
        }
        let way = token("Requires token authentication obtained via email registration");
        assert_eq!(way.and_then(|auth| auth.registration).as_deref(), Some("email registration"));
        for clause in [
            "Requires a page token",
            "Requires the token address",
            "Requires a token of the shop",
            "Requires a bearer token",
            "Requires an API token",
            "Requires Bearer token",
            "Requires an OAuth token",
            "Requires a USDC token",
            "Requires a token count",
            "Requires tokens",
        ] {
            assert_eq!(token(clause), None, "{clause}");
        }
    }

    #[test]
    fn finds_the_scopes_that_a_description_requires() {
        for (text, scope) in [
            ("Makes a funnel. Requires a write-scoped token.", "write"),
            ("Requires the write scope.", "write"),
            ("Requires scope rooms:write.", "rooms:write"),
            ("Requires the `rooms.write` scope.", "rooms.write"),
        ] {
            assert_eq!(scopes_in(text), [scope], "{text}");
        }
        for text in [
            "Requires the right scope.",
            "Lists the scopes.",
            "Requires the write scope for private rooms.",
            "Requires a scope.",
            "Out of scope.",
        ] {
            assert!(scopes_in(text).is_empty(), "{text}");
        }
    }
}
