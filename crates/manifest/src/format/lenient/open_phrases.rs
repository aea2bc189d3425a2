//! Recognises clauses that only say that no credentials are needed.

/// Maximum number of words of a clause that only says that no credentials are needed.
const WORDS_MAX: usize = 16;

/// Words for credentials.
const CREDENTIALS: &[&str] = &[
    "key",
    "keys",
    "token",
    "tokens",
    "auth",
    "authentication",
    "authorization",
    "login",
    "credential",
    "credentials",
    "jwt",
];
/// Other words that a clause which says that no credentials are needed may contain in addition to [`CREDENTIALS`].
const BESIDE: &[&str] = &[
    "api",
    "apikey",
    "access",
    "bearer",
    "user",
    "special",
    "account",
    "accounts",
    "signup",
    "sign",
    "up",
    "in",
    "registration",
    "password",
    "a",
    "an",
    "any",
    "separate",
    "extra",
    "additional",
    "or",
    "and",
    "no",
];
const ENDS: &[&str] = &["is", "are", "required", "needed", "necessary", "at", "all"];
/// Words for the service or those who call it.
const SUBJECTS: &[&str] = &[
    "it",
    "this",
    "the",
    "these",
    "our",
    "you",
    "we",
    "all",
    "every",
    "api",
    "apis",
    "service",
    "server",
    "site",
    "endpoint",
    "endpoints",
    "call",
    "calls",
    "request",
    "requests",
    "route",
    "routes",
    "tools",
    "agents",
    "clients",
    "they",
    "agent",
    "access",
    "itself",
];
/// Maximum number of words before "itself": "the room concierge itself".
const NAME_WORDS_MAX: usize = 4;
/// Words for calls, as in "All endpoints are public".
const CALLS: &[&str] =
    &["endpoint", "endpoints", "call", "calls", "route", "routes", "apis", "tools", "requests"];
const PUBLIC: &[&str] = &["public", "open", "unauthenticated"];
const BESIDE_PUBLIC: &[&str] = &["free", "and", "fully", "read", "only", "to", "use", "api"];
/// Words in clauses such as "are publicly accessible without authentication".
const ACCESSIBLE: &[&str] = &[
    "publicly",
    "freely",
    "openly",
    "accessible",
    "available",
    "callable",
    "usable",
    "reachable",
    "readable",
];
/// Words between "unauthenticated" and "API".
const KINDS: &[&str] = &["rest", "http", "json", "web", "read", "only"];

/// Words for what a call may also do without.
const OTHER_NEEDS: &[&str] =
    &["payment", "payments", "subscription", "fee", "fees", "cost", "email", "captcha", "install"];
/// Words for an account, which is needed to obtain credentials.
const ACCOUNTS: &[&str] = &["account", "accounts", "signup", "sign", "registration", "password"];
/// Maximum number of parts of one sentence.
const PARTS_MAX: usize = 8;

/// Whether a whole sentence in lower case only lists what a call does not need, credentials among it: "no login, no payment", "free, no
/// login or payment needed", "works without an account".
pub(crate) fn is_open_remark(sentence: &str) -> bool {
    let mut names_credential = false;
    for part in sentence.split(',').take(PARTS_MAX + 1) {
        let words: Vec<&str> = part
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .take(WORDS_MAX + 1)
            .collect();
        let is_lead = |word: &&&str| {
            matches!(**word, "free" | "open" | "public" | "works" | "usable" | "it" | "is" | "and")
        };
        let said = words.get(words.iter().take_while(is_lead).count()..).unwrap_or_default();
        let Some((first, rest)) = said.split_first() else { continue };
        let count = rest.iter().rev().take_while(|word| ENDS.contains(word)).count();
        let (named, _) = rest.split_at(rest.len() - count);
        let has = |known: &[&str]| named.iter().any(|word| known.contains(word));
        let is_plain = named
            .iter()
            .all(|word| [CREDENTIALS, BESIDE, OTHER_NEEDS].iter().any(|known| known.contains(word)));
        if !matches!(*first, "no" | "without") || !is_plain || words.len() > WORDS_MAX {
            return false;
        }
        // "No tokens." may refer to the response, and "No registration." to an event.
        let is_said = count > 0 || *first == "without";
        names_credential |= has(&["key", "token", "login", "auth", "authentication", "authorization"])
            || (has(CREDENTIALS) || has(ACCOUNTS)) && is_said;
    }
    names_credential
}

/// Whether a clause in lower case only states that no credentials are needed: "no account or API key required", "authentication is not
/// required", "all endpoints are public", "unauthenticated API that …".
pub(crate) fn is_open_clause(clause: &str) -> bool {
    let words: Vec<&str> = clause
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(WORDS_MAX + 1)
        .collect();
    let all: &[&str] = &words;
    if let Some(at) = all.iter().position(|word| *word == "unauthenticated") {
        return is_open_api(all, at) || is_public(all);
    }
    // "Open access: no authentication is needed"
    let lead =
        all.iter().take_while(|word| matches!(**word, "open" | "free" | "public" | "access" | "and")).count();
    let said = all.get(lead..).unwrap_or_default();
    all.len() <= WORDS_MAX
        && (negates_credentials(said)
            || is_not_needed(all)
            || needs_nothing(all)
            || is_public(all)
            || is_anonymous(all))
}

/// "no API key or account required", "without authentication"
fn negates_credentials(words: &[&str]) -> bool {
    let Some((&first, rest)) = words.split_first() else { return false };
    let count = rest.iter().rev().take_while(|word| ENDS.contains(word)).count();
    let (named, _) = rest.split_at(rest.len() - count);
    // "No login" alone often refers to pages.
    let is_of_calls = count > 0 || !named.contains(&"login");
    matches!(first, "no" | "without" | "zero") && is_of_calls && are_credentials(named)
}

/// "authentication is not required", "API key not needed"
fn is_not_needed(words: &[&str]) -> bool {
    let Some(at) = words.iter().position(|word| *word == "not") else { return false };
    let (before, after) = words.split_at(at);
    let named = match before.split_last() {
        Some((&("is" | "are"), named)) => named,
        _ => before,
    };
    let needed = after.get(1..).unwrap_or_default();
    are_credentials(named) && !needed.is_empty() && needed.iter().all(|word| ENDS.contains(word))
}

/// "does not require authentication", "you don't need an API key", "requires no API key"
fn needs_nothing(words: &[&str]) -> bool {
    let Some(at) = words.iter().position(|word| matches!(*word, "require" | "requires" | "need" | "needs"))
    else {
        return false;
    };
    let (before, after) = words.split_at(at);
    let named = after.get(1..).unwrap_or_default();
    let (subject, is_negated) = match before {
        [subject @ .., "do" | "does", "not"] | [subject @ .., "don" | "doesn", "t"] => (subject, true),
        subject => (subject, named.first() == Some(&"no")),
    };
    is_negated
        && is_service(subject)
        && (are_credentials(named) || (!subject.is_empty() && are_accounts(named)))
}

/// Whether words are a subject that is the service, its callers or their calls; also none.
fn is_service(words: &[&str]) -> bool {
    words.iter().all(|word| SUBJECTS.contains(word))
        || (words.last() == Some(&"itself") && words.len() <= NAME_WORDS_MAX + 1)
}

/// "anonymous access", "the concierge itself is anonymous and quota-free", "works anonymously"
fn is_anonymous(words: &[&str]) -> bool {
    let Some(at) = words.iter().position(|word| matches!(*word, "anonymous" | "anonymously")) else {
        return false;
    };
    let (before, after) = words.split_at(at);
    let said = after.get(1..).unwrap_or_default();
    match before.split_last() {
        None => said == ["access"],
        Some((&("is" | "are"), subject)) => {
            let is_joined = said.first() == Some(&"and") && said.len() <= NAME_WORDS_MAX;
            !subject.is_empty() && is_service(subject) && (said.is_empty() || is_joined)
        }
        Some((&"works", subject)) => is_service(subject) && said.is_empty(),
        _ => false,
    }
}

/// Whether words name an account or a login, and nothing else.
fn are_accounts(words: &[&str]) -> bool {
    words.iter().any(|word| ACCOUNTS.contains(word))
        && words.iter().all(|word| ACCOUNTS.contains(word) || BESIDE.contains(word) || *word == "login")
}

/// "all endpoints are public"
fn is_public(words: &[&str]) -> bool {
    let Some(at) = words.iter().position(|word| *word == "are") else { return false };
    let (subject, rest) = words.split_at(at);
    let said = rest.get(1..).unwrap_or_default();
    let is_about_all = subject.first() == Some(&"all")
        && subject.iter().any(|word| CALLS.contains(word))
        && subject
            .iter()
            .skip(1)
            .all(|word| CALLS.contains(word) || matches!(*word, "the" | "our" | "api" | "these"));
    let is_said = |said: &[&str]| {
        said.iter().any(|word| PUBLIC.contains(word))
            && said.iter().all(|word| PUBLIC.contains(word) || BESIDE_PUBLIC.contains(word))
    };
    let needs_nothing = || {
        let at = said.iter().position(|word| *word == "without")?;
        let (accessible, named) = said.split_at(at);
        Some(
            accessible.iter().all(|word| ACCESSIBLE.contains(word) || PUBLIC.contains(word))
                && negates_credentials(named),
        )
    };
    is_about_all && (is_said(said) || needs_nothing().unwrap_or_default())
}

/// "a public unauthenticated REST API that converts texts"
fn is_open_api(words: &[&str], at: usize) -> bool {
    let (before, after) = words.split_at(at);
    let is_lead = |word: &&str| {
        PUBLIC.contains(word) || matches!(*word, "free" | "read" | "only" | "and" | "a" | "an" | "fully")
    };
    let mut named = after.iter().skip(1).skip_while(|word| KINDS.contains(word));
    before.iter().all(is_lead)
        && matches!(named.next(), Some(&("api" | "service")))
        && matches!(
            named.next(),
            None | Some(&("that" | "which" | "serving" | "returning" | "of" | "with" | "over"))
        )
}

fn are_credentials(words: &[&str]) -> bool {
    words.iter().any(|word| CREDENTIALS.contains(word))
        && words.iter().all(|word| CREDENTIALS.contains(word) || BESIDE.contains(word))
}

#[cfg(test)]
mod tests {
    use super::{is_open_clause, is_open_remark};

    #[test]
    fn recognises_sentences_that_only_list_what_a_call_does_not_need() {
        for sentence in [
            "no login, no payment",
            "no login",
            "free, no login",
            "no login or payment needed",
            "no api key",
            "no account required",
            "no account needed",
            "no registration required",
            "no signup required",
            "no sign-up required",
            "works without an account",
            "free and without login",
        ] {
            assert!(is_open_remark(sentence), "{sentence}");
        }
        for sentence in [
            "no payment",
            "no registration",
            "no tokens",
            "no api keys",
            "no login for reads",
            "no login, but a key",
            "free, a key is required",
            "no account for guests",
            "no",
            "free",
            "",
        ] {
            assert!(!is_open_remark(sentence), "{sentence}");
        }
    }

    #[test]
    fn recognises_statements_that_no_credentials_are_needed() {
        for clause in [
            "no authentication required.",
            "no api token needed",
            "no account or api key required",
            "authentication is not required",
            "api key not required",
            "all endpoints are public",
            "all api endpoints are free and public",
            "all endpoints are publicly accessible without authentication",
            "all endpoints are accessible without an api key",
            "unauthenticated api that converts texts",
            "public unauthenticated rest api",
            "does not require authentication",
            "this api doesn't require an api key",
            "you do not need an api key",
            "no credentials needed",
            "no keys",
            "open access: no authentication is needed",
            "requires no authentication",
            "no login or sign-up required",
            "no separate auth required",
            "the concierge itself is anonymous and quota-free",
            "the concierge itself needs no account",
            "access is anonymous",
            "anonymous access",
            "it works anonymously",
            "the server does not require an account",
        ] {
            assert!(is_open_clause(clause), "{clause}");
        }
    }

    #[test]
    fn ignores_other_clauses() {
        for clause in [
            "no account required",
            "anonymous users get 10 calls",
            "anonymous access to rooms",
            "guests are anonymous",
            "is anonymous",
            "the agent is anonymous for reads",
            "requires no account",
            "no signup",
            "no login",
            "no oauth",
            "api key required",
            "no authentication for reads",
            "authentication is not required for reads",
            "not all endpoints are public",
            "all endpoints are public except /admin",
            "some endpoints are public",
            "all endpoints are limited without authentication",
            "endpoints are accessible without authentication",
            "unauthenticated requests are limited",
            "unauthenticated api calls are limited",
            "you need an api key",
            "does not require a wallet",
            "no tokens are stored",
            "no",
            "",
        ] {
            assert!(!is_open_clause(clause), "{clause}");
        }
    }
}
