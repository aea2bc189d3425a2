//! A quick look at a whole JSON text, which decides for most documents that no string in them addresses the reader.

use std::sync::LazyLock;

use super::{PHRASES, TURNS};

/// Whether a string of a JSON text may address the reader: a quick look at the text as it is published, which decides for
/// all of its strings. True where only the strings themselves can tell: for most escaped characters, and for letters of
/// other scripts, which may look like Latin ones or be those of a phrase.
///
/// A phrase is found at the space behind its first word, or at the sign that it begins with.
pub(crate) fn any_string_may_address_reader(json: &str) -> bool {
    let (phrases, text) = (&*BY_FIRST_WORD, json.as_bytes());
    let mut at = 0;
    while let Some(plain) = text.get(at..).and_then(|rest| rest.iter().position(|byte| is_sign(*byte))) {
        at += plain;
        let rest = text.get(at..).unwrap_or_default();
        let Some(([folded, _], length)) = folded(rest) else { return true };
        let after = rest.get(length..).unwrap_or_default();
        match folded {
            b' ' => {
                let after = without_separators(after);
                let before = text.get(..at).unwrap_or_default();
                at = text.len() - after.len();
                if phrases.may_continue(before, after) && phrases.continues(before, after) {
                    return true;
                }
                continue;
            }
            b'[' | b'<' | b'/' if phrases.marks.iter().any(|mark| begins_with(rest, mark)) => return true,
            _ => {}
        }
        at += length;
    }
    false
}

/// Whether a byte may separate words, begin a mark, or has to be folded with others.
fn is_sign(byte: u8) -> bool {
    SIGNS[usize::from(byte)]
}

static SIGNS: [bool; 256] = {
    let mut signs = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        signs[byte] = matches!(FOLDED[byte], b' ' | b'[' | b'<' | b'/' | SPECIAL);
        byte += 1;
    }
    signs
};

/// Stands for a byte that is not folded alone.
const SPECIAL: u8 = 0;
/// Stands for no byte.
const NONE: u8 = 0;
/// Stands for a character that no phrase has.
const NO_LETTER: u8 = 1;

/// Bytes in lower case, with spaces for the separators of words.
static FOLDED: [u8; 256] = {
    let mut folded = [SPECIAL; 256];
    let mut byte = 1_u8;
    while byte < 0x7f {
        folded[byte as usize] = match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' | b'*' | b'_' | b'`' => b' ',
            b'\\' => SPECIAL,
            other => other.to_ascii_lowercase(),
        };
        byte += 1;
    }
    folded
};

/// The folded form of the first character of a text, and its bytes. `None` if only the string can tell, or there is no character.
fn folded(text: &[u8]) -> Option<([u8; 2], usize)> {
    let (first, after) = text.split_first()?;
    match FOLDED[usize::from(*first)] {
        SPECIAL => folded_special(*first, after).map(|(folded, length)| (folded, length + 1)),
        folded => Some(([folded, NONE], 1)),
    }
}

/// The folded form of an escape, or of a character that is not ASCII, and the bytes that it takes after its first.
fn folded_special(first: u8, after: &[u8]) -> Option<([u8; 2], usize)> {
    match (first, after) {
        (b'\\', [b'n' | b't' | b'r', ..]) => Some(([b' ', NONE], 1)),
        (b'\\', [escaped @ (b'"' | b'\\' | b'/'), ..]) => Some(([*escaped, NONE], 1)),
        (b'\\', [b'u', digits @ ..]) => folded_escape(digits).map(|length| ([NO_LETTER, NONE], length + 1)),
        // Signs and letters of Latin-1, but no space and no soft hyphen.
        (0xc2, [0xa1..=0xac | 0xae..=0xbf, ..]) => Some(([NO_LETTER, NONE], 1)),
        (0xc3, [capital @ (0x80..=0x96 | 0x98..=0x9e), ..]) => Some(([first, *capital + 0x20], 1)),
        (0xc3, [second, ..]) => Some(([first, *second], 1)),
        // Dashes, quotation marks, currencies, the trade mark, arrows, symbols, emoji.
        (
            0xe2,
            [0x80, 0x90..=0xa7 | 0xb0..=0xbe, ..]
            | [0x82, 0xa0..=0xbf, ..]
            | [0x84, 0xa2, ..]
            | [0x86..=0x87 | 0x94..=0x9f, ..],
        )
        | (0xef, [0xb8, 0x8f, ..]) => Some(([NO_LETTER, NONE], 2)),
        (0xf0, [0x9f, ..]) => Some(([NO_LETTER, NONE], 3)),
        _ => None,
    }
}

/// Bytes after `\u` of an escaped character that is of those signs. `None` for others.
fn folded_escape(after: &[u8]) -> Option<usize> {
    let (digits, rest) = after.split_at_checked(4)?;
    match u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()? {
        0x2010..=0x2027 | 0x2030..=0x203e | 0x20a0..=0x20bf | 0x2122 | 0x2190..=0x21ff | 0x2500..=0x27ff => {
            Some(4)
        }
        // The first half of a pair that stands for a symbol or an emoji.
        0xd83c..=0xd83f if rest.starts_with(b"\\u") => Some(10),
        _ => None,
    }
}

/// The text behind the separators of words that it begins with.
fn without_separators(mut text: &[u8]) -> &[u8] {
    loop {
        let plain = text.iter().take_while(|byte| **byte == b' ').count();
        text = text.get(plain..).unwrap_or_default();
        match folded(text) {
            Some(([b' ', _], length)) => text = text.get(length..).unwrap_or_default(),
            _ => return text,
        }
    }
}

/// Whether a text begins with a phrase, or only the string can tell.
fn begins_with(mut text: &[u8], mut phrase: &[u8]) -> bool {
    while let [wanted, rest @ ..] = phrase {
        let Some(([first, second], length)) = folded(text) else { return !text.is_empty() };
        if first != *wanted {
            return false;
        }
        text = text.get(length..).unwrap_or_default();
        phrase = rest;
        if first == b' ' {
            text = without_separators(text);
        }
        if second != NONE {
            let Some(rest) = rest.strip_prefix(&[second]) else { return false };
            phrase = rest;
        }
    }
    true
}

/// Whether a text ends with a word in lower case.
fn ends_with(text: &[u8], word: &[u8]) -> bool {
    let Some(end) = text.len().checked_sub(word.len()).and_then(|at| text.get(at..)) else { return false };
    let mut before = NONE;
    end.iter().zip(word).all(|(byte, wanted)| {
        let is_capital = before == 0xc3 && matches!(byte, 0x80..=0x96 | 0x98..=0x9e);
        before = *byte;
        byte.to_ascii_lowercase() == *wanted || (is_capital && byte + 0x20 == *wanted)
    })
}

/// Bits that tell most places of texts from those of phrases; few of them are set.
const SLOTS: usize = 1 << 14;

/// The phrases of several words by the bytes around their first space, and the marks of one word.
struct ByFirstWord {
    slots: [u64; SLOTS / 64],
    /// Sorted: the bytes around the first space, the word before it, and what is after it.
    phrases: Vec<(u32, &'static [u8], &'static [u8])>,
    marks: Vec<&'static [u8]>,
}

/// The two bytes before a space and the one after it. `None` if there are fewer.
fn around(before: &[u8], after: u8) -> Option<u32> {
    let [.., first, second] = before else { return None };
    let folded = |byte: u8| if byte.is_ascii() { byte.to_ascii_lowercase() } else { NO_LETTER };
    Some(u32::from_be_bytes([0, folded(*first), folded(*second), folded(after)]))
}

const fn slot_of(around: u32) -> usize {
    (around.wrapping_mul(0x9e37_79b1) >> 18) as usize
}

impl ByFirstWord {
    fn new(listed: impl Iterator<Item = &'static str>) -> Self {
        let mut new = Self { slots: [0; SLOTS / 64], phrases: Vec::new(), marks: Vec::new() };
        for phrase in listed {
            let Some((word, rest)) = phrase.split_once(' ') else {
                new.marks.extend(phrase.is_ascii().then_some(phrase.as_bytes()));
                continue;
            };
            let (word, rest) = (word.as_bytes(), rest.as_bytes());
            if let Some(around) = rest.first().and_then(|first| around(word, *first)) {
                new.phrases.push((around, word, rest));
                let slot = slot_of(around);
                new.slots[slot / 64] |= 1 << (slot % 64);
            }
        }
        new.phrases.sort_unstable();
        new
    }

    /// Whether the texts before and after a space may be those of a phrase.
    fn may_continue(&self, before: &[u8], after: &[u8]) -> bool {
        let around = after.first().and_then(|first| around(before, *first));
        let slot = around.map_or(0, slot_of);
        around.is_some() && self.slots[slot / 64] & (1 << (slot % 64)) != 0
    }

    /// Whether the texts before and after a space are those of a phrase.
    #[cold]
    fn continues(&self, before: &[u8], after: &[u8]) -> bool {
        let around = after.first().and_then(|first| around(before, *first)).unwrap_or_default();
        let first = self.phrases.partition_point(|(known, ..)| *known < around);
        let same = self.phrases.iter().skip(first).take_while(|(known, ..)| *known == around);
        same.into_iter().any(|(_, word, rest)| ends_with(before, word) && begins_with(after, rest))
    }
}

static BY_FIRST_WORD: LazyLock<ByFirstWord> =
    LazyLock::new(|| ByFirstWord::new(PHRASES.iter().chain(TURNS).copied()));
