//! Estimates the memory of a value of the model, without building anything.

use std::io;

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use super::{BLOCK_BYTES, BUCKET_BYTES, MEMBER_BYTES, VALUE_BYTES};
use crate::model::Manifest;

/// About how many bytes of memory a value takes: its texts, and each element and member with its share of the container.
/// Counting stops soon after `limit`, which bounds the work. A value that is nested too deeply counts as more than the limit.
pub(crate) fn memory_of<T: Serialize + ?Sized>(value: &T, limit: usize) -> usize {
    let mut counted = Counted { bytes: 0, limit };
    let mut serializer = Serializer::with_formatter(&mut counted, Containers { depth: 0 });
    match value.serialize(&mut serializer) {
        Ok(()) => size_of_val(value) + counted.bytes,
        Err(_) => limit.saturating_add(1),
    }
}

/// About how many bytes of memory a manifest takes; more than its JSON has.
pub fn manifest_bytes(manifest: &Manifest) -> usize {
    memory_of(manifest, usize::MAX)
}

/// Counts bytes instead of writing them; fails beyond the limit.
struct Counted {
    bytes: usize,
    limit: usize,
}

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        if self.bytes > self.limit {
            return Err(io::Error::other("more memory than allowed"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Deepest nesting of a model: JSON of more than 127 levels is not read back.
const DEPTH_MAX: usize = 120;

/// Writes as many bytes as an element or a member takes beside its texts; fails beyond [`DEPTH_MAX`].
struct Containers {
    depth: usize,
}

impl Containers {
    fn open(&mut self) -> io::Result<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(io::Error::other("nested too deeply")) } else { Ok(()) }
    }
}

const ELEMENT: [u8; VALUE_BYTES + BLOCK_BYTES] = [0; VALUE_BYTES + BLOCK_BYTES];
const MEMBER: [u8; MEMBER_BYTES + BUCKET_BYTES + BLOCK_BYTES] =
    [0; MEMBER_BYTES + BUCKET_BYTES + BLOCK_BYTES];

/// Room that small containers have for further children.
const SPARE: [u8; 3 * VALUE_BYTES] = [0; 3 * VALUE_BYTES];

impl Formatter for Containers {
    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open()?;
        writer.write_all(&SPARE)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"]")
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open()?;
        writer.write_all(&SPARE)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"}")
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, _: bool) -> io::Result<()> {
        writer.write_all(&ELEMENT)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, _: bool) -> io::Result<()> {
        writer.write_all(&MEMBER)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels)
            .fold(Value::Null, |inner, at| if at % 2 == 0 { json!([inner]) } else { json!({"a": inner}) })
    }

    #[test]
    fn what_could_not_be_read_back_counts_as_too_large() {
        assert!(memory_of(&nested(DEPTH_MAX), 1_000_000) < 1_000_000);
        assert!(memory_of(&nested(DEPTH_MAX + 1), 1_000_000) > 1_000_000);
        let beside = json!([nested(DEPTH_MAX - 1), nested(DEPTH_MAX - 1)]);
        assert!(memory_of(&beside, 1_000_000) < 1_000_000, "depths do not add up");
        let deepest = serde_json::to_string(&nested(DEPTH_MAX)).unwrap();
        assert!(serde_json::from_str::<Value>(&deepest).is_ok());
    }
}
