//! A quick check that proves for most texts that they contain none of the phrases.
//!
//! It searches one part of six bytes of each phrase: every fourth byte of a text begins a block of three bytes, one of which must be inside
//! the part. Texts in which a phrase may be spelled differently need a full check: those with several separators in a row, and those with
//! letters of other scripts.

use std::sync::LazyLock;

use super::phrases::{CONDITIONS, PHRASES, TURNS};

/// Bytes of the part of each phrase that is searched; no phrase is shorter.
const PART_BYTES: usize = 6;
/// Bytes of a block, and from one block to the next: a part holds at least one whole block.
const BLOCK_BYTES: usize = 3;
const STEP: usize = PART_BYTES - BLOCK_BYTES + 1;
/// Blocks of three codes of five bits, the last bits of a byte. They are the same for capital and small letters.
const BLOCKS: usize = 1 << (CODE_BITS * 3);
const CODE_BITS: usize = 5;
/// The separators that the full check accepts in place of a space.
const SEPARATORS: &[u8] = b" *_`~\t\n\r\x0c";

/// Whether a text certainly contains no phrase. False if a full check is needed.
pub(super) fn has_no_phrase(text: &[u8]) -> bool {
    if text.len() < PART_BYTES || (text.len() <= SHORT_BYTES && is_one_word(text)) {
        return true;
    }
    !has_separators_in_a_row(text)
        && (text.is_ascii() || has_known_characters(text))
        && PARTS.as_ref().is_some_and(|parts| !parts.may_be_in(text))
}

/// Texts up to this length are often a single word, such as a member name.
const SHORT_BYTES: usize = 32;

/// Whether a text is ASCII without separators of words and without the marks of phrases that have none.
fn is_one_word(text: &[u8]) -> bool {
    let joins = |byte: u8| is_separator(byte) || byte >= 0x80 || matches!(byte, b'/' | b'[' | b'<');
    // Comparing every byte is faster than stopping at the first match, because several bytes are compared at once.
    !text.iter().fold(false, |found, byte| found | joins(*byte))
}

/// Whether a text contains two adjacent word separators or invisible characters.
fn has_separators_in_a_row(text: &[u8]) -> bool {
    let seconds = text.get(1..).unwrap_or_default();
    // Comparing every byte is faster than stopping at the first match, because several bytes are compared at once.
    let found = text.iter().zip(seconds).fold(0, |found, (first, second)| {
        found | (u8::from(is_separator(*first)) & u8::from(is_separator(*second)))
    });
    found != 0
}

/// White space, other controls, `*`, `_`, `` ` `` or `~`.
const fn is_separator(byte: u8) -> bool {
    byte <= b' ' || byte == b'*' || byte == b'~' || byte.wrapping_sub(b'_') <= 1
}

/// Whether all characters that are not ASCII are signs that no phrase has, or letters of Latin-1, which no part has: dashes,
/// quotation marks, currencies, arrows, symbols, emoji.
fn has_known_characters(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte >= 0x80) {
        let length = match rest.get(at..).unwrap_or_default() {
            // Excludes the no-break space, the soft hyphen, and the ordinal indicators, which stand for letters.
            [0xc2, 0xa1..=0xa9 | 0xab..=0xac | 0xae..=0xb9 | 0xbb..=0xbf, ..] | [0xc3, ..] => 2,
            [0xe2, 0x80, 0x90..=0xa7 | 0xb0..=0xbe, ..]
            | [0xe2, 0x82, 0xa0..=0xbf, ..]
            | [0xe2, 0x86..=0x87 | 0x94..=0x9f, ..]
            | [0xef, 0xb8, 0x8f, ..] => 3,
            // Excludes enclosed letters.
            [0xf0, 0x9f, 0x86..=0xbf, ..] => 4,
            _ => return false,
        };
        rest = rest.get(at + length..).unwrap_or_default();
    }
    true
}

/// Bytes in lower case, with spaces for the separators of words.
static FOLDED: [u8; 256] = {
    let mut folded = [0; 256];
    let mut byte: usize = 0;
    while byte < 256 {
        let own = byte.to_le_bytes()[0];
        folded[byte] = if is_separator(own) { b' ' } else { own.to_ascii_lowercase() };
        byte += 1;
    }
    folded
};

/// The letters of English texts, the most frequent first.
const FREQUENT: &str = " etaoinsrhldcumfpgwybvkxjqz";

/// Number of bits of the filter that distinguishes parts of texts from parts of phrases. Few of them are set.
const SLOTS: usize = 1 << 14;

struct Parts {
    /// For each block, a bit for each position in a part at which it may be.
    blocks: Box<[u8; BLOCKS]>,
    /// A bit for each part.
    slots: [u64; SLOTS / 64],
    listed: Vec<Part>,
}

/// A part of a phrase.
#[derive(Clone, Copy)]
struct Part {
    bytes: u64,
    phrase: &'static [u8],
    /// Start of the part in the phrase.
    at: usize,
}

impl Part {
    /// The part of a phrase whose bytes are the rarest ones. `None` for a phrase of another script.
    fn of(phrase: &'static str) -> Option<Self> {
        let bytes = phrase.as_bytes();
        let rarity = |byte: &u8| FREQUENT.bytes().position(|known| known == *byte).unwrap_or(FREQUENT.len());
        let starts = 0..=bytes.len().checked_sub(PART_BYTES)?;
        let parts = starts.filter_map(|at| Some((at, bytes.get(at..)?.first_chunk::<PART_BYTES>()?)));
        let (at, part) = parts
            .filter(|(_, part)| part.is_ascii())
            .max_by_key(|(_, part)| part.iter().map(rarity).sum::<usize>())?;
        Some(Self { bytes: word_of(*part), phrase: bytes, at })
    }

    /// Whether the phrase is in a text whose part is at `at`, ignoring the letters of the phrase that are not ASCII.
    fn is_at(&self, text: &[u8], at: usize) -> bool {
        let found = at.checked_sub(self.at).and_then(|start| text.get(start..)?.get(..self.phrase.len()));
        !self.phrase.is_ascii()
            || found.is_some_and(|found| {
                found.iter().zip(self.phrase).all(|(byte, known)| FOLDED[usize::from(*byte)] == *known)
            })
    }
}

/// `None` if a phrase of Latin letters has no part.
static PARTS: LazyLock<Option<Parts>> = LazyLock::new(|| {
    let (mut blocks, mut slots, mut parts) = (Box::new([0; BLOCKS]), [0; SLOTS / 64], Vec::new());
    for phrase in PHRASES.iter().chain(TURNS).chain(CONDITIONS) {
        let Some(part) = Part::of(phrase) else {
            // Texts with letters of other scripts always get the full check.
            if phrase.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
                return None;
            }
            continue;
        };
        let bytes = part.phrase.get(part.at..part.at + PART_BYTES)?;
        for at in 0..STEP {
            for block in blocks_of(*bytes.get(at..)?.first_chunk()?) {
                blocks[block] |= 1_u8 << at;
            }
        }
        set(&mut slots, slot_of(part.bytes));
        parts.push(part);
    }
    parts.sort_unstable_by_key(|part| part.bytes);
    Some(Parts { blocks, slots, listed: parts })
});

fn set(bits: &mut [u64], at: usize) {
    if let Some(word) = bits.get_mut(at / 64) {
        *word |= 1 << (at % 64);
    }
}

#[inline]
fn is_set(bits: &[u64], at: usize) -> bool {
    bits.get(at / 64).is_some_and(|word| word & (1 << (at % 64)) != 0)
}

/// The codes of the first three of four bytes.
#[inline]
const fn block_of(bytes: [u8; STEP]) -> usize {
    let codes = u32::from_le_bytes(bytes);
    ((codes & 0x1f) | (codes >> 3 & 0x3e0) | (codes >> 6 & 0x7c00)) as usize
}

/// The blocks of three bytes of a phrase, with each separator in place of a space.
fn blocks_of(bytes: [u8; BLOCK_BYTES]) -> Vec<usize> {
    let mut blocks = vec![[0; STEP]];
    for (at, byte) in bytes.iter().enumerate() {
        let spellings = if *byte == b' ' { SEPARATORS } else { std::slice::from_ref(byte) };
        let longer = |block: [u8; STEP]| {
            spellings.iter().map(move |spelling| {
                let mut block = block;
                block[at] = *spelling;
                block
            })
        };
        blocks = blocks.into_iter().flat_map(longer).collect();
    }
    blocks.into_iter().map(block_of).collect()
}

/// Folded bytes as one number.
fn word_of(bytes: [u8; PART_BYTES]) -> u64 {
    bytes.iter().fold(0, |word, byte| (word << 8) | u64::from(FOLDED[usize::from(*byte)]))
}

const fn slot_of(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50) as usize
}

impl Parts {
    fn may_be_in(&self, text: &[u8]) -> bool {
        let (steps, rest) = text.as_chunks::<STEP>();
        let mut last = [0; STEP];
        let has_last = rest.len() == BLOCK_BYTES;
        if has_last {
            last[..BLOCK_BYTES].copy_from_slice(rest);
        }
        let may_be_at = |(index, step): (usize, [u8; STEP])| {
            let places = self.blocks[block_of(step)];
            places != 0 && self.is_around(text, index * STEP, places)
        };
        steps.iter().copied().enumerate().any(may_be_at) || (has_last && may_be_at((steps.len(), last)))
    }

    /// Whether the text contains a phrase whose part has the block at `at` in one of these positions.
    #[cold]
    fn is_around(&self, text: &[u8], at: usize, places: u8) -> bool {
        (0..STEP).filter(|place| places & (1_u8 << place) != 0).any(|place| {
            let Some(start) = at.checked_sub(place) else { return false };
            let Some(part) = text.get(start..).and_then(<[u8]>::first_chunk::<PART_BYTES>) else {
                return false;
            };
            let word = word_of(*part);
            is_set(&self.slots, slot_of(word)) && self.is_at(word, text, start)
        })
    }

    fn is_at(&self, word: u64, text: &[u8], at: usize) -> bool {
        let first = self.listed.partition_point(|part| part.bytes < word);
        let same = self.listed.iter().skip(first).take_while(|part| part.bytes == word);
        same.into_iter().any(|part| part.is_at(text, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phrase_of_latin_letters_has_a_part() {
        for phrase in PHRASES.iter().chain(TURNS).chain(CONDITIONS) {
            for shift in 0..STEP {
                let text = ["x".repeat(shift).as_str(), "-", phrase, "-y"].concat();
                assert!(!has_no_phrase(text.as_bytes()), "{text}");
            }
        }
    }
}
