//! The budget of JSON text, counted in one pass over its bytes.
//!
//! It distinguishes only strings from structure; the parser reports invalid JSON. Memory: one entry for each open
//! container, so the depth limit bounds it.

use serde::de::DeserializeOwned;

use super::{Limits, Meter, OverBudget};

/// Counts the cost of JSON text as a tree.
pub(crate) fn check_json(text: &[u8], limits: Limits) -> Result<Meter, OverBudget> {
    let mut meter = Meter::new(limits);
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' => meter.open_object()?,
            b'[' => meter.open_list()?,
            b'}' | b']' => meter.close(),
            b'"' => {
                let length = string_bytes(text.get(at..).unwrap_or_default());
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
    Ok(meter)
}

/// Whether JSON text is within limits.
pub fn check(text: &[u8], limits: &Limits) -> Result<(), OverBudget> {
    check_json(text, *limits).map(drop)
}

/// Bytes of a string up to its closing quote.
fn string_bytes(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match text.get(at..).and_then(|rest| rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))) {
            Some(found) if text.get(at + found) == Some(&b'\\') => at += found + 2,
            Some(found) => return at + found,
            None => return text.len(),
        }
    }
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
