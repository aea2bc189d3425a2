//! The size of JSON values, measured up to a limit.

use std::io;

use serde::Serialize;
use serde_json::Value;

/// Cost of a value besides its text.
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
    let mut left = BytesLeft(bytes);
    serde_json::to_writer(&mut left, value).ok()?;
    Some(left.0)
}

/// Counts written bytes, and fails when the limit is exceeded.
struct BytesLeft(usize);

impl io::Write for BytesLeft {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(part.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
