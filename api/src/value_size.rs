//! The size of JSON values, measured up to a limit.

use std::io;

use manifest::budget::LimitedWriter;
use serde::Serialize;
use serde_json::Value;

/// Cost of a value without its text.
const VALUE_BYTES: usize = 8;

/// The remaining bytes after a value; `None` if there are too few.
pub(crate) fn bytes_left_after(value: &Value, bytes: usize) -> Option<usize> {
    let bytes = bytes.checked_sub(VALUE_BYTES)?;
    match value {
        Value::String(text) => bytes.checked_sub(text.len()),
        Value::Array(list) => list.iter().try_fold(bytes, |left, member| bytes_left_after(member, left)),
        Value::Object(map) => map
            .iter()
            .try_fold(bytes, |left, (name, member)| bytes_left_after(member, left.checked_sub(name.len())?)),
        _ => Some(bytes),
    }
}

/// The remaining bytes after a value is written as JSON; `None` if there are too few. Writes no more than `bytes`.
pub(crate) fn json_bytes_left_after(value: &impl Serialize, bytes: usize) -> Option<usize> {
    let mut counter = LimitedWriter::new(io::sink(), bytes);
    serde_json::to_writer(&mut counter, value).ok()?;
    Some(counter.bytes_left())
}
