//! Names of sites that look like each other: by confusable characters (UTS 39) or one edit.

use manifest::SiteName;
use unicode_security::skeleton;

use crate::analysis::words;

/// Minimum length of a name that others can imitate. Shorter names have too many legitimate similar names.
const CHARS_MIN: usize = 5;
/// Minimum length of a name that others can imitate with one edit.
const EDITED_CHARS_MIN: usize = 8;
/// Maximum number of compared characters: more than a domain label can have.
const CHARS_MAX: usize = 80;

/// The name of a site without its public suffix: `skyhop` of `skyhop.example`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    /// Without hyphens, in Unicode.
    text: String,
    /// The name with each character replaced by a common representative of all characters that look like it.
    looks: Vec<char>,
}

impl Label {
    pub(crate) fn of(site: &SiteName) -> Self {
        let label = site.as_str().split('.').next().unwrap_or_default();
        let (unicode, _) = idna::domain_to_unicode(label);
        let text: String = unicode.chars().filter(|letter| *letter != '-').collect();
        let looks = looks(&text);
        Self { text, looks }
    }

    /// The folded name.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is long enough to be recognised as a name in texts of others.
    pub(crate) fn is_long(&self) -> bool {
        self.looks.len() >= CHARS_MIN
    }

    /// The key of the name; see [`name_key`].
    pub(crate) fn name_key(&self) -> u32 {
        key(self.looks.iter())
    }

    /// Keys for finding similar names: the key of the name, and the keys of the name without each of its characters. Names that look alike
    /// share a key.
    pub(crate) fn near_keys(&self) -> Vec<u32> {
        let mut keys = vec![self.name_key()];
        if self.looks.len() >= EDITED_CHARS_MIN - 1 {
            let without = |left_out: usize| {
                let kept = self.looks.iter().enumerate().filter(move |(at, _)| *at != left_out);
                key(kept.map(|(_, letter)| letter))
            };
            keys.extend((0..self.looks.len()).map(without));
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Number of characters other than a to z, which names use to imitate other names.
    pub(crate) fn unusual(&self) -> usize {
        self.text.chars().filter(|letter| !letter.is_ascii_lowercase()).count()
    }

    /// Whether both have the same characters, or characters that look like them.
    pub(crate) fn is_confusable_with(&self, other: &Self) -> bool {
        self.looks == other.looks
    }

    /// Whether it is a different name that looks like a known one. Names that differ only in hyphens or in the public suffix count as the
    /// same name.
    pub(crate) fn looks_like(&self, known: &Self) -> bool {
        if self.text == known.text || !known.is_long() {
            return false;
        }
        self.looks == known.looks
            || (known.looks.len() >= EDITED_CHARS_MIN && is_one_edit(&self.looks, &known.looks))
    }
}

/// The key of a word or of a name of several words. Names that differ only in look-alike characters have the same key.
pub(crate) fn name_key(name: &str) -> u32 {
    let joined: String = words(name).map(|word| word.text).collect();
    key(looks(&joined).iter())
}

fn looks(text: &str) -> Vec<char> {
    skeleton(text).flat_map(char::to_lowercase).take(CHARS_MAX).collect()
}

/// FNV-1a of 32 bits.
fn key<'a>(letters: impl Iterator<Item = &'a char>) -> u32 {
    let bytes = letters.flat_map(|letter| u32::from(*letter).to_le_bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Whether two texts differ in one replaced, added or missing character, or in two swapped adjacent characters.
fn is_one_edit(a: &[char], b: &[char]) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let begin = short.iter().zip(long).take_while(|(one, other)| one == other).count();
    let (short, long) = (short.get(begin..).unwrap_or_default(), long.get(begin..).unwrap_or_default());
    match (short, long) {
        ([], [_]) => true,
        ([_, rest @ ..], [_, others @ ..]) if short.len() == long.len() => {
            let is_swap = matches!((short, long), ([a, b, rest @ ..], [c, d, others @ ..]) if a == d && b == c && rest == others);
            rest == others || is_swap
        }
        ([_, ..], [_, others @ ..]) => short == others,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn label(site: &str) -> Label {
        Label::of(&SiteName::parse(site).unwrap())
    }

    #[test]
    fn names_look_alike_by_confusable_characters_or_one_edit() {
        for (site, known, expected) in [
            ("skyh0p.example", "skyhop.example", true),
            ("xn--skhop-fze.example", "skyhop.example", true), // a Cyrillic у
            ("paypa1.example", "paypal.example", true),
            ("harbourbnak.example", "harbourbank.example", true),
            ("harbourbanks.example", "harbourbank.example", true),
            ("harborbank.example", "harbourbank.example", true),
            ("harbor-banks.example", "harbourbank.example", false),
            // One name with another suffix or hyphen.
            ("skyhop.test", "skyhop.example", false),
            ("harbour-bank.example", "harbourbank.example", false),
            // short names have legitimate similar names
            ("skyhops.example", "skyhop.example", false),
            ("b0x.example", "box.example", false),
            ("northstitch.example", "harbourbank.example", false),
        ] {
            assert_eq!(label(site).looks_like(&label(known)), expected, "{site} and {known}");
            let (keys, known) = (label(site).near_keys(), label(known).near_keys());
            assert!(!expected || keys.iter().any(|key| known.contains(key)), "{site} has no common key");
        }
    }

    #[test]
    fn a_name_has_the_key_of_its_domain() {
        for name in ["Harbour Bank", "harbourbank", "HarbourBank", "Harb0urbank"] {
            assert_eq!(name_key(name), label("harbourbank.example").name_key(), "{name}");
        }
        assert_ne!(name_key("Harbour Banks"), label("harbourbank.example").name_key());
    }

    proptest! {
        #[test]
        fn names_with_one_edit_share_a_key(name in "[a-km-z]{8,20}", at in 0_usize..8, letter in "[a-z]", kind in 0..4) {
            let mut letters: Vec<char> = name.chars().collect();
            match kind {
                0 => letters[at] = letter.chars().next().unwrap(),
                1 => letters.insert(at, letter.chars().next().unwrap()),
                2 => drop(letters.remove(at)),
                _ => letters.swap(at, at.saturating_sub(1)),
            }
            let (edited, known) = (letters.iter().collect::<String>(), looks(&name));
            let edited = Label { looks: looks(&edited), text: edited };
            let known = Label { looks: known, text: name };
            if edited.looks_like(&known) {
                let keys = known.near_keys();
                prop_assert!(edited.near_keys().iter().any(|key| keys.contains(key)));
            }
        }
    }
}
