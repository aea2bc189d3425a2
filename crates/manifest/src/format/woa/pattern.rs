//! Syntax of regular expressions (ECMA-262 with the flag `u`), as far as it can be wrong whatever the engine.

/// Deepest nesting of groups that is looked at.
const GROUPS_MAX: usize = 200;

/// Why a text is no regular expression.
pub(super) fn fault(text: &str) -> Option<&'static str> {
    let mut letters = text.chars().peekable();
    let (mut groups, mut is_repeatable) = (0_usize, false);
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                if letters.next().is_none() {
                    return Some("a backslash at the end escapes nothing");
                }
                is_repeatable = true;
            }
            '[' => {
                if !skip_class(&mut letters) {
                    return Some("a [ has no closing ]");
                }
                is_repeatable = true;
            }
            '(' => {
                groups += 1;
                if groups > GROUPS_MAX {
                    return None;
                }
                if letters.next_if_eq(&'?').is_some() {
                    letters.next_if(|mark| matches!(mark, ':' | '=' | '!' | '<'));
                }
                is_repeatable = false;
            }
            ')' => {
                if groups == 0 {
                    return Some("a ) closes no group");
                }
                groups -= 1;
                is_repeatable = true;
            }
            '*' | '+' | '?' if !is_repeatable => return Some("a quantifier repeats nothing"),
            '*' | '+' | '?' => {
                letters.next_if_eq(&'?');
                is_repeatable = false;
            }
            '|' | '^' => is_repeatable = false,
            _ => is_repeatable = true,
        }
    }
    (groups > 0).then_some("a ( has no closing )")
}

/// Skips a class after its `[`. Whether it is closed.
fn skip_class(letters: &mut impl Iterator<Item = char>) -> bool {
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                letters.next();
            }
            ']' => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_broken_patterns_from_sound_ones() {
        for sound in
            ["^[a-z]+$", "(a|b)*?", "[^\\]]{2,3}", "(?<year>\\d{4})", "a{2}", "^$", "", "(?=x)y", "[(]"]
        {
            assert_eq!(fault(sound), None, "{sound}");
        }
        for broken in ["[a-z", "(a", "a)", "*a", "a**", "a|+", "\\", "(?:*)"] {
            assert!(fault(broken).is_some(), "{broken}");
        }
    }
}
