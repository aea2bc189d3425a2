//! Texts that say that no credentials are needed.

use super::auth_words::{CLAUSES_MAX, names_payment};

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
    if !may_say_open(text) {
        return false;
    }
    text.split(". ").take(CLAUSES_MAX).map(str::to_ascii_lowercase).any(|sentence| {
        let mut clauses = sentence.split(['.', ';', '(', ')', '\u{2014}']).take(CLAUSES_MAX);
        let is_open = |clause: &str| {
            let has = |words: &[&str]| words.iter().any(|words| clause.contains(words));
            has(OPEN) && !has(CONDITIONS)
        };
        // "x402 (USDC on Base, no API keys)": the payment is the credential.
        clauses.any(is_open) && !names_payment(&sentence)
    })
}

/// Whether a text contains the first letters of such a phrase. It compares every byte instead of stopping at the first match, since several
/// bytes are compared at once.
fn may_say_open(text: &str) -> bool {
    let from = |start: usize| text.as_bytes().get(start..).unwrap_or_default();
    let threes = from(0).iter().zip(from(1)).zip(from(2));
    let begins = |[a, b, c]: [u8; 3], known: &[u8; 3]| {
        a | 0x20 == known[0] && b | 0x20 == known[1] && c | 0x20 == known[2]
    };
    threes.fold(false, |found, ((first, second), third)| {
        let three = [*first, *second, *third];
        found | begins(three, b"no ") | begins(three, b"zer") | begins(three, b"wit")
    })
}

/// Whether a text says that the call it describes needs no credentials: "No auth required."
pub(crate) fn says_call_is_open(text: &str) -> bool {
    const NEEDS: &[&str] = &["required", "needed", "necessary", "free with no auth"];
    let may_be = ["required", "needed", "no auth"].iter().any(|word| text.contains(word));
    let is_paid =
        || text.split(". ").take(CLAUSES_MAX).any(|sentence| names_payment(&sentence.to_ascii_lowercase()));
    may_be
        && !is_paid()
        && text.split(['.', ';', '(', ')', ',', '\u{2014}']).take(CLAUSES_MAX).any(|clause| {
            says_open(clause) && NEEDS.iter().any(|word| clause.to_ascii_lowercase().contains(word))
        })
}
