//! Checks the syntax of regular expressions (ECMA-262), as in JSON Schema's `pattern`, and matches short ones.

use std::iter::Peekable;
use std::str::Chars;

use regex::bytes::RegexBuilder;

/// Maximum number of bytes of a pattern and of a text that are matched; published patterns have up to 80.
const MATCHED_BYTES_MAX: usize = 200;
/// Memory in bytes of a compiled pattern, which limits the time to compile it; the pattern of a UUID takes 4 KiB.
const COMPILED_BYTES_MAX: usize = 16 * 1_024;
/// Syntax that this engine interprets differently from ECMA-262: set operations, named classes, word borders, an open quantifier.
const OTHER_SYNTAX: &[&str] = &["&&", "--", "~~", "[[", "[:", "\\<", "\\>", "{,", "\\z", "\\A"];

/// Whether a text matches a pattern, in time linear in both. `None` if ECMA-262 and this engine may differ: beyond ASCII, in syntax that
/// only one of them has (look-ahead, back references), and in long patterns.
pub(crate) fn admits(pattern: &str, text: &str) -> Option<bool> {
    let is_plain = |text: &str| text.len() <= MATCHED_BYTES_MAX && text.is_ascii();
    if !is_plain(pattern) || !is_plain(text) || OTHER_SYNTAX.iter().any(|part| pattern.contains(part)) {
        return None;
    }
    let compiled = RegexBuilder::new(pattern).unicode(false).size_limit(COMPILED_BYTES_MAX).build().ok()?;
    Some(compiled.is_match(text.as_bytes()))
}

/// The defect of a pattern, if it has one.
pub(crate) fn flaw(pattern: &str) -> Option<&'static str> {
    let mut rest = pattern.chars().peekable();
    let (mut open, mut repeatable) = (0_usize, false);
    while let Some(letter) = rest.next() {
        repeatable = match letter {
            '\\' => {
                if rest.next().is_none() {
                    return Some("it ends with a backslash");
                }
                true
            }
            '[' => {
                if let Some(flaw) = class(&mut rest) {
                    return Some(flaw);
                }
                true
            }
            '(' => {
                if !group(&mut rest) {
                    return Some("a group begins with an unknown `(?`");
                }
                open += 1;
                false
            }
            ')' if open == 0 => return Some("`)` closes no group"),
            ')' => {
                open -= 1;
                true
            }
            '|' | '^' => false,
            '*' | '+' | '?' if !repeatable => return Some("a quantifier repeats nothing"),
            '*' | '+' | '?' => {
                rest.next_if_eq(&'?');
                false
            }
            '{' => match count(&mut rest) {
                Count::None => true,
                Count::Reversed => return Some("the numbers of a quantifier are out of order"),
                Count::Some if !repeatable => return Some("a quantifier repeats nothing"),
                Count::Some => {
                    rest.next_if_eq(&'?');
                    false
                }
            },
            _ => true,
        };
    }
    (open > 0).then_some("a group is not closed")
}

pub(crate) fn is_valid(pattern: &str) -> bool {
    flaw(pattern).is_none()
}

/// Skips a class after its `[`.
fn class(rest: &mut Peekable<Chars<'_>>) -> Option<&'static str> {
    rest.next_if_eq(&'^');
    let mut before: Option<char> = None;
    while let Some(letter) = rest.next() {
        before = match letter {
            ']' => return None,
            '\\' => {
                rest.next();
                None
            }
            '-' if before.is_some() => match rest.peek() {
                Some(']' | '\\') | None => None,
                Some(last) => {
                    if before.is_some_and(|first| first > *last) {
                        return Some("a range of a class is out of order");
                    }
                    rest.next();
                    None
                }
            },
            letter => Some(letter),
        };
    }
    Some("a class is not closed")
}

/// Skips the type of a group after its `(`; false if it is unknown.
fn group(rest: &mut Peekable<Chars<'_>>) -> bool {
    if rest.next_if_eq(&'?').is_none() {
        return true;
    }
    match rest.next() {
        Some(':' | '=' | '!') => true,
        Some('<') if rest.next_if(|letter| matches!(letter, '=' | '!')).is_some() => true,
        Some('<') => {
            let mut letters = 0;
            loop {
                match rest.next() {
                    Some('>') => return letters > 0,
                    Some(letter) if letter.is_alphanumeric() || matches!(letter, '_' | '$') => letters += 1,
                    _ => return false,
                }
            }
        }
        _ => false,
    }
}

enum Count {
    /// The brace is a literal character.
    None,
    Some,
    Reversed,
}

/// Skips `2}`, `2,}` or `2,5}` after `{`; skips nothing if the brace is a literal.
fn count(rest: &mut Peekable<Chars<'_>>) -> Count {
    let mut ahead = rest.clone();
    let mut number = || {
        let mut digits = String::new();
        while let Some(digit) = ahead.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        let has_comma = ahead.next_if_eq(&',').is_some();
        (digits, has_comma)
    };
    let (least, has_most) = number();
    let most = if has_most { number().0 } else { String::new() };
    if least.is_empty() || ahead.next() != Some('}') {
        return Count::None;
    }
    *rest = ahead;
    let value = |digits: &str| digits.parse().unwrap_or(u64::MAX);
    if !most.is_empty() && value(&most) < value(&least) { Count::Reversed } else { Count::Some }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_the_syntax_of_ecma_262() {
        for pattern in [
            "",
            "^[A-Z]{2}-[0-9]{3,5}$",
            r"^\d+(?:\.\d{1,2})?$",
            r"(?=.*\d)(?<year>[0-9]{4})|x*?",
            r"[^\]\\-]+[a-]",
            "{a}{,3}",
            r"^\p{Letter}+$",
            "[]|[^]",
            "(a|b)+?$",
            r"[^\]]{2,3}",
            "[(]",
        ] {
            assert_eq!(flaw(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn matches_only_patterns_that_both_engines_read_equally() {
        for (pattern, text, expected) in [
            ("^[A-Z]{3}$", "EUR", Some(true)),
            ("^[A-Z]{3}$", "euro", Some(false)),
            ("[0-9]", "no digit", Some(false)),
            (r"^\d+(?:\.\d{1,2})?$", "12.50", Some(true)),
            (r"^\/api\/", "/api/x", Some(true)),
            ("^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", "x", Some(false)),
            // syntax of one of the engines alone, text beyond ASCII, a pattern that is too large
            (r"^(?=.*\d)a", "b", None),
            (r"(a)\1", "b", None),
            ("^[a&&b]$", "c", None),
            ("^.$", "\u{e9}", None),
            ("((((a{99}){99}){99}){99})", "b", None),
        ] {
            assert_eq!(admits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn rejects_patterns_with_invalid_syntax() {
        for pattern in [
            "[a-z", "(a", "a)", "*a", "a|*", "a**", "(?<n", "(?P<n>a)", "a\\", "[z-a]", "a{5,2}", "{2}",
            "(+)", "[a\\", "(?:*)",
        ] {
            assert!(!is_valid(pattern), "{pattern}");
        }
    }
}
