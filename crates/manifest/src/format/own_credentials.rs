//! Calls with credentials of their own, which the credentials of the document do not cover: "Uses a separate auth model (API token with read
//! or write scope)".

use std::collections::BTreeMap;

use super::needed_credentials::named_in;
use crate::draft::{DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX};
use crate::format::clauses::clauses;
use crate::model::{Auth, AuthScheme};
use crate::text::capped;

/// Maximum number of scopes of one sentence that are read.
const SCOPES_MAX: usize = 16;

/// Whether a description says that its call has credentials of its own: "Uses a separate auth model (API token)".
pub(crate) fn has_own(description: &str) -> bool {
    let description = capped(description, DESCRIPTION_CHARS_MAX);
    clauses(description).any(|clause| says_own(&clause.to_ascii_lowercase()))
}

/// Whether a clause in lower case says that a call has credentials of its own. Their name follows in brackets.
pub(super) fn says_own(clause: &str) -> bool {
    let words: Vec<&str> =
        clause.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let at = words.iter().position(|word| matches!(*word, "separate" | "different"));
    let verb = at.and_then(|at| words.get(at.checked_sub(2)?));
    let named = at.and_then(|at| words.get(at + 1));
    matches!(verb, Some(&("uses" | "has" | "with")))
        && matches!(
            named,
            Some(&("auth" | "authentication" | "credential" | "credentials" | "token" | "key"))
        )
}

/// The credential in the brackets behind such a clause: "team-scoped API token with read or write scope".
pub(super) fn own_in(clause: &str, folded: &str) -> Vec<Auth> {
    let names = ["token", "key", "oauth", "bearer", "jwt"].iter().any(|word| folded.contains(word));
    let mut found = if names { named_in(clause, folded) } else { Vec::new() };
    for auth in found.iter_mut().filter(|auth| auth.scheme == AuthScheme::Other) {
        auth.declared = Some(capped(clause, NAME_CHARS_MAX).to_owned());
    }
    if let [single] = found.as_mut_slice() {
        single.scopes = scopes_of_own(folded);
    }
    found
}

/// The scopes of a credential with its name: `read` and `write` in "API token with read or write scope".
fn scopes_of_own(folded: &str) -> BTreeMap<String, String> {
    let behind = folded.split_once(" with ").map_or("", |(_, behind)| behind);
    let listed = behind.split_once(" scope").map_or("", |(listed, _)| listed);
    let words =
        listed.split([' ', ',', '`']).filter(|word| !matches!(*word, "" | "or" | "and" | "the" | "a"));
    words.take(SCOPES_MAX).map(|scope| (scope.to_owned(), String::new())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_credentials_that_a_call_has_of_its_own() {
        let text = "Query by MCP. Uses a separate auth model (shop API token with read or write scope) and needs a plan.";
        assert!(has_own(text) && !has_own("Uses a separate room (key at the desk)."));
        let clause = "shop API token with read or write scope";
        let found = own_in(clause, &clause.to_ascii_lowercase());
        assert_eq!(found.iter().map(|auth| auth.scheme).collect::<Vec<_>>(), [AuthScheme::ApiKey]);
        assert_eq!(found[0].scopes.keys().collect::<Vec<_>>(), ["read", "write"]);
        assert!(own_in("at the desk", "at the desk").is_empty());
    }
}
