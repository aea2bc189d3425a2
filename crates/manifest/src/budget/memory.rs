//! Estimates the memory of a value of the model, without building anything.

use serde::Serialize;

use super::{BLOCK_BYTES, BUCKET_BYTES, MEMBER_BYTES, VALUE_BYTES};
use crate::model::Manifest;
use crate::visit::{Ended, Visitor, visit};

/// Estimated bytes of memory of a value: its texts, and each element and member with its share of the container. Counting stops soon after
/// `limit`, which bounds the work. A value that is nested too deeply counts as more than the limit.
pub(crate) fn memory_of<T: Serialize + ?Sized>(value: &T, limit: usize) -> usize {
    let mut counted = Counted { bytes: 0, limit };
    match visit(value, &mut counted) {
        Ok(()) => size_of_val(value) + counted.bytes,
        Err(_) => limit.saturating_add(1),
    }
}

/// Estimated bytes of memory of a manifest. Larger than its JSON.
pub fn manifest_bytes(manifest: &Manifest) -> usize {
    memory_of(manifest, usize::MAX)
}

/// Bytes of the array for each element, without the element itself.
const ELEMENT_BYTES: usize = VALUE_BYTES + BLOCK_BYTES;
/// Bytes of a member besides its name and value, with the colon of its JSON.
const MEMBER_OVERHEAD_BYTES: usize = MEMBER_BYTES + BUCKET_BYTES + BLOCK_BYTES + 1;
/// Spare capacity of small containers for further children, and the bracket of their JSON.
const SPARE_BYTES: usize = 3 * VALUE_BYTES + 1;
/// Bytes of a number with a fraction: at least the length of its JSON.
const FLOAT_BYTES: usize = 24;

/// Counts the serialised bytes; ends the visit beyond the limit.
struct Counted {
    bytes: usize,
    limit: usize,
}

/// Bytes of a text in JSON, with its quotes and escapes.
fn text_bytes(text: &str) -> usize {
    let added = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..b' ' => 5,
        _ => 0,
    };
    // Few texts have escapes, and searching for one is cheaper than counting.
    let is_escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    let has_escapes = text.bytes().fold(false, |found, byte| found | is_escaped(byte));
    let escapes = if has_escapes { text.bytes().map(added).sum::<usize>() } else { 0 };
    text.len() + escapes + 2
}

/// Bytes of a whole number in JSON.
fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |digits| digits as usize + 1)
}

impl Counted {
    const fn add(&mut self, bytes: usize) -> Result<(), Ended> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limit { Err(Ended) } else { Ok(()) }
    }
}

impl Visitor for Counted {
    fn open(&mut self) -> Result<(), Ended> {
        self.add(SPARE_BYTES)
    }

    fn element(&mut self) -> Result<(), Ended> {
        self.add(ELEMENT_BYTES)
    }

    /// The name of a field is a static string without escapes.
    fn field(&mut self, name: &'static str) -> Result<(), Ended> {
        self.add(MEMBER_OVERHEAD_BYTES + name.len() + 2)
    }

    fn key(&mut self) -> Result<(), Ended> {
        self.add(MEMBER_OVERHEAD_BYTES)
    }

    fn text(&mut self, text: &str) -> Result<(), Ended> {
        self.add(text_bytes(text))
    }

    fn whole(&mut self, is_negative: bool, magnitude: u64) -> Result<(), Ended> {
        self.add(usize::from(is_negative) + digits(magnitude))
    }

    fn float(&mut self, _: f64) -> Result<(), Ended> {
        self.add(FLOAT_BYTES)
    }

    fn word(&mut self, word: &'static str) -> Result<(), Ended> {
        self.add(word.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::visit::DEPTH_MAX;

    fn nested(levels: usize) -> Value {
        (0..levels)
            .fold(Value::Null, |inner, at| if at % 2 == 0 { json!([inner]) } else { json!({"a": inner}) })
    }

    #[test]
    fn values_too_deep_to_be_parsed_again_are_too_large() {
        assert!(memory_of(&nested(DEPTH_MAX), 1_000_000) < 1_000_000);
        assert!(memory_of(&nested(DEPTH_MAX + 1), 1_000_000) > 1_000_000);
        let beside = json!([nested(DEPTH_MAX - 1), nested(DEPTH_MAX - 1)]);
        assert!(memory_of(&beside, 1_000_000) < 1_000_000, "depths do not add up");
        let deepest = serde_json::to_string(&nested(DEPTH_MAX)).unwrap();
        assert!(serde_json::from_str::<Value>(&deepest).is_ok());
    }
}
