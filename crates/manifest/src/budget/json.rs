//! The budget of JSON text, counted in one pass over its bytes.
//!
//! It distinguishes only strings from structure; the parser reports invalid JSON. Memory: one entry for each open
//! container and four bytes for each container, so the limits of depth and values bound it.

use serde::de::DeserializeOwned;

use super::{Cost, Limits, Meter, OverBudget};
use crate::json::Outline;

/// JSON text within limits.
#[derive(Debug)]
pub(crate) struct CheckedJson {
    pub(crate) spent: Cost,
    pub(crate) outline: Outline,
}

/// Counts the cost of JSON text as a tree.
pub(crate) fn check_json(text: &[u8], limits: Limits) -> Result<CheckedJson, OverBudget> {
    let mut meter = Meter::new(limits);
    let (mut sizes, mut open): (Vec<u32>, Vec<usize>) = (Vec::new(), Vec::new());
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
            b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' => {}
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

/// Whether JSON text is within limits.
pub fn check(text: &[u8], limits: &Limits) -> Result<(), OverBudget> {
    check_json(text, *limits).map(drop)
}

/// Bytes of a string up to its closing quote. Remembers an escape that may encode a hidden character.
fn string_bytes(text: &[u8], may_escape_hidden: &mut bool) -> usize {
    let mut at = 0;
    loop {
        at += plain_bytes(text.get(at..).unwrap_or_default());
        match text.get(at..).and_then(|rest| rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))) {
            Some(found) if text.get(at + found) == Some(&b'\\') => {
                at += found + 2;
                *may_escape_hidden |= matches!(text.get(at - 1), Some(b'u' | b'b' | b'f'));
            }
            Some(found) => return at + found,
            None => return text.len(),
        }
    }
}

/// Bytes before the eight in which the first quote or backslash is, or all but the last ones.
fn plain_bytes(text: &[u8]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let has_zero = |word: u64| word.wrapping_sub(EACH) & !word & (EACH << 7) != 0;
    let (words, _) = text.as_chunks::<8>();
    let plain = words.iter().take_while(|bytes| {
        let word = u64::from_ne_bytes(**bytes);
        !has_zero(word ^ (EACH * u64::from(b'"'))) && !has_zero(word ^ (EACH * u64::from(b'\\')))
    });
    plain.count() * 8
}

/// Whether what follows a string makes it the name of a member.
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
