//! Estimates the memory of a value of the model, without building anything.

use std::io;

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use super::{BLOCK_BYTES, BUCKET_BYTES, MEMBER_BYTES, VALUE_BYTES};
use crate::model::Manifest;

/// About how many bytes of memory a value takes: its texts, and each element and member with its share of the container.
/// Counting stops soon after `limit`, which bounds the work.
pub(crate) fn memory_of<T: Serialize + ?Sized>(value: &T, limit: usize) -> usize {
    let mut counted = Counted { bytes: 0, limit };
    let mut serializer = Serializer::with_formatter(&mut counted, Containers);
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

/// Writes as many bytes as an element or a member takes beside its texts.
struct Containers;

const ELEMENT: [u8; VALUE_BYTES + BLOCK_BYTES] = [0; VALUE_BYTES + BLOCK_BYTES];
const MEMBER: [u8; MEMBER_BYTES + BUCKET_BYTES + BLOCK_BYTES] =
    [0; MEMBER_BYTES + BUCKET_BYTES + BLOCK_BYTES];

/// Room that small containers have for further children.
const SPARE: [u8; 3 * VALUE_BYTES] = [0; 3 * VALUE_BYTES];

impl Formatter for Containers {
    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(&SPARE)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(&SPARE)
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, _: bool) -> io::Result<()> {
        writer.write_all(&ELEMENT)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, _: bool) -> io::Result<()> {
        writer.write_all(&MEMBER)
    }
}
