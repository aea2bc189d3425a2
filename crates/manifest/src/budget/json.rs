//! Counts the budget of JSON text in one pass over its bytes.
//!
//! It only distinguishes strings from structure; the parser reports invalid JSON. It allocates one entry for each open container and four
//! bytes for each container, so the limits on depth and values bound its memory.

use serde::de::DeserializeOwned;

use super::{Cost, Limits, Meter, OverBudget};
use crate::json::Outline;

/// JSON text within limits.
#[derive(Debug)]
pub(crate) struct CheckedJson {
    pub(crate) spent: Cost,
    pub(crate) outline: Outline,
}

/// Minimum bytes of JSON text per container in most published documents.
const CONTAINER_BYTES: usize = 64;

/// Counts the cost of JSON text as a tree.
pub(crate) fn check_json(text: &[u8], limits: Limits) -> Result<CheckedJson, OverBudget> {
    let mut meter = Meter::new(limits);
    let (mut sizes, mut open): (Vec<u32>, Vec<usize>) =
        (Vec::with_capacity(text.len() / CONTAINER_BYTES), Vec::new());
    let (mut at, mut may_escape_hidden) = (0, false);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                if *byte == b'{' {
                    meter.open_object()?;
                } else {
                    meter.open_list()?;
                }
                open.push(sizes.len());
                sizes.push(0);
            }
            b'}' | b']' => {
                let children = meter.close();
                if let Some(size) = open.pop().and_then(|at| sizes.get_mut(at)) {
                    *size = u32::try_from(children).unwrap_or_default();
                }
            }
            b'"' => {
                let length = string_bytes(text.get(at..).unwrap_or_default(), &mut may_escape_hidden);
                at += length + 1;
                if is_name(text.get(at..).unwrap_or_default()) {
                    meter.name(length)?;
                } else {
                    meter.scalar(length, true)?;
                }
            }
            b'\n' => at += indentation(text.get(at..).unwrap_or_default()),
            b' ' | b'\t' | b'\r' | b',' | b':' => {}
            _ => {
                let rest = text.get(at..).unwrap_or_default();
                let length = rest.iter().position(|byte| is_structure(*byte)).unwrap_or(rest.len());
                at += length;
                meter.scalar(length + 1, false)?;
            }
        }
    }
    Ok(CheckedJson { spent: meter.spent(), outline: Outline { sizes, may_escape_hidden } })
}

/// Checks the limits of JSON text, and returns the bytes of memory that its tree takes, estimated from above.
pub fn check(text: &[u8], limits: &Limits) -> Result<usize, OverBudget> {
    Ok(check_json(text, *limits)?.spent.tree_bytes)
}

/// Bytes of a string up to its closing quote. Remembers an escape that may encode a hidden character.
fn string_bytes(text: &[u8], may_escape_hidden: &mut bool) -> usize {
    let mut at = 0;
    while let Some(plain) = text.get(at..).and_then(plain_bytes) {
        at += plain;
        if text.get(at) != Some(&b'\\') {
            return at;
        }
        at += 2;
        *may_escape_hidden |= matches!(text.get(at - 1), Some(b'u' | b'b' | b'f'));
    }
    text.len()
}

/// Number of bytes before the first quote or backslash, searched eight bytes at a time. `None` if there is no such byte.
fn plain_bytes(text: &[u8]) -> Option<usize> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // The lowest set bit belongs to the first zero byte.
    let zeros = |word: u64| word.wrapping_sub(EACH) & !word & (EACH << 7);
    let (words, rest) = text.as_chunks::<8>();
    for (index, bytes) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*bytes);
        let found = zeros(word ^ (EACH * u64::from(b'"'))) | zeros(word ^ (EACH * u64::from(b'\\')));
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let found = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    Some(words.len() * 8 + found)
}

/// Number of bytes of a line's indentation, searched eight bytes at a time: all spaces, or fewer.
fn indentation(text: &[u8]) -> usize {
    let (words, _) = text.as_chunks::<8>();
    words.iter().take_while(|bytes| **bytes == [b' '; 8]).count() * 8
}

/// Whether a string is a member name, by the text that follows it.
fn is_name(rest: &[u8]) -> bool {
    rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}

const fn is_structure(byte: u8) -> bool {
    matches!(byte, b'{' | b'}' | b'[' | b']' | b',' | b':' | b'"' | b' ' | b'\t' | b'\n' | b'\r')
}

#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Parses untrusted JSON after checking its budget.
pub fn parse_within_budget<T: DeserializeOwned>(bytes: &[u8], limits: &Limits) -> Result<T, BodyError> {
    check_json(bytes, *limits)?;
    Ok(serde_json::from_slice(bytes)?)
}
