//! The budget of JSON text, counted in one pass over its bytes.
//!
//! It tells strings from structure and nothing else: what is not JSON is left to the parser, which stops at the same byte
//! or before. It keeps one entry for each open container, and so no more than the depth allows.

use serde::de::DeserializeOwned;

use super::{Limits, Meter, OverBudget};

/// Counts what JSON text would cost as a tree. The meter tells what was spent.
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

/// Why a body cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Parses JSON of a stranger under a budget that is counted before anything is built.
pub fn parse_within_budget<T: DeserializeOwned>(bytes: &[u8], limits: &Limits) -> Result<T, BodyError> {
    check_json(bytes, *limits)?;
    Ok(serde_json::from_slice(bytes)?)
}
