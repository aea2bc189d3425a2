//! Estimates the memory of a value of the model, without building anything.

use std::fmt;

use serde::Serialize;
use serde::ser::{
    Error, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::{BLOCK_BYTES, BUCKET_BYTES, MEMBER_BYTES, VALUE_BYTES};
use crate::model::Manifest;

/// Estimated bytes of memory of a value: its texts, and each element and member with its share of the container. Counting stops soon after
/// `limit`, which bounds the work. A value that is nested too deeply counts as more than the limit.
pub(crate) fn memory_of<T: Serialize + ?Sized>(value: &T, limit: usize) -> usize {
    let mut counted = Counted { bytes: 0, limit, depth: 0 };
    match value.serialize(&mut counted) {
        Ok(()) => size_of_val(value) + counted.bytes,
        Err(_) => limit.saturating_add(1),
    }
}

/// Estimated bytes of memory of a manifest. Larger than its JSON.
pub fn manifest_bytes(manifest: &Manifest) -> usize {
    memory_of(manifest, usize::MAX)
}

/// Deepest nesting of a model: JSON of more than 127 levels is not read back.
const DEPTH_MAX: usize = 120;
/// Bytes of the array for each element, without the element itself.
const ELEMENT_BYTES: usize = VALUE_BYTES + BLOCK_BYTES;
/// Bytes of a member besides its name and value, with the colon of its JSON.
const MEMBER_OVERHEAD_BYTES: usize = MEMBER_BYTES + BUCKET_BYTES + BLOCK_BYTES + 1;
/// Spare capacity of small containers for further children, and the bracket of their JSON.
const SPARE_BYTES: usize = 3 * VALUE_BYTES + 1;
/// Bytes of a number with a fraction: at least the length of its JSON.
const FLOAT_BYTES: usize = 24;
/// Bytes of null.
const NULL_BYTES: usize = 4;

/// Counts the serialised bytes; fails beyond the limit.
struct Counted {
    bytes: usize,
    limit: usize,
    depth: usize,
}

/// The value takes more memory than allowed, or is nested too deeply.
#[derive(Debug)]
struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("more memory than allowed")
    }
}

impl std::error::Error for TooLarge {}

impl Error for TooLarge {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
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
    const fn add(&mut self, bytes: usize) -> Result<(), TooLarge> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limit { Err(TooLarge) } else { Ok(()) }
    }

    const fn open(&mut self) -> Result<&mut Self, TooLarge> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(TooLarge);
        }
        match self.add(SPARE_BYTES) {
            Ok(()) => Ok(self),
            Err(error) => Err(error),
        }
    }

    const fn close(&mut self) {
        self.depth -= 1;
    }

    /// Begins an enum variant, which is encoded as an object with one member.
    fn variant(&mut self, name: &'static str) -> Result<&mut Self, TooLarge> {
        let inner = self.open()?;
        inner.field(name)?;
        Ok(inner)
    }

    const fn element(&mut self) -> Result<(), TooLarge> {
        self.add(ELEMENT_BYTES)
    }

    /// Counts a struct field, whose name is a static string without escapes.
    const fn field(&mut self, name: &'static str) -> Result<(), TooLarge> {
        self.add(MEMBER_OVERHEAD_BYTES + name.len() + 2)
    }
}

impl Serializer for &mut Counted {
    type Ok = ();
    type Error = TooLarge;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn serialize_bool(self, value: bool) -> Result<(), TooLarge> {
        self.add(if value { "true".len() } else { "false".len() })
    }

    fn serialize_i8(self, value: i8) -> Result<(), TooLarge> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), TooLarge> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), TooLarge> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), TooLarge> {
        self.add(usize::from(value < 0) + digits(value.unsigned_abs()))
    }

    fn serialize_u8(self, value: u8) -> Result<(), TooLarge> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), TooLarge> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), TooLarge> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), TooLarge> {
        self.add(digits(value))
    }

    fn serialize_f32(self, _: f32) -> Result<(), TooLarge> {
        self.add(FLOAT_BYTES)
    }

    fn serialize_f64(self, _: f64) -> Result<(), TooLarge> {
        self.add(FLOAT_BYTES)
    }

    fn serialize_char(self, letter: char) -> Result<(), TooLarge> {
        self.serialize_str(letter.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Result<(), TooLarge> {
        self.add(text_bytes(text))
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), TooLarge> {
        self.add(bytes.len().saturating_mul(ELEMENT_BYTES + NULL_BYTES))
    }

    fn serialize_none(self) -> Result<(), TooLarge> {
        self.add(NULL_BYTES)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), TooLarge> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), TooLarge> {
        self.add(NULL_BYTES)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), TooLarge> {
        self.add(NULL_BYTES)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<(), TooLarge> {
        self.serialize_str(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), TooLarge> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result<(), TooLarge> {
        let inner = self.variant(name)?;
        value.serialize(&mut *inner)?;
        inner.close();
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, TooLarge> {
        self.open()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, TooLarge> {
        self.open()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, TooLarge> {
        self.open()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Self, TooLarge> {
        self.variant(name)?.open()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, TooLarge> {
        self.open()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, TooLarge> {
        self.open()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Self, TooLarge> {
        self.variant(name)?.open()
    }
}

/// Implements the serde traits of containers, which count their elements or members in the same way.
macro_rules! containers {
    ($($container:ident: $method:ident $(($name:ident: $kind:ty))? closes $levels:literal;)*) => {$(
        impl $container for &mut Counted {
            type Ok = ();
            type Error = TooLarge;

            fn $method<T: Serialize + ?Sized>(&mut self, $($name: $kind,)? value: &T) -> Result<(), TooLarge> {
                containers!(@beside self $($name)?);
                value.serialize(&mut **self)
            }

            fn end(self) -> Result<(), TooLarge> {
                self.depth -= $levels;
                Ok(())
            }
        }
    )*};
    (@beside $counted:ident) => { $counted.element()? };
    (@beside $counted:ident $name:ident) => { $counted.field($name)? };
}

containers! {
    SerializeSeq: serialize_element closes 1;
    SerializeTuple: serialize_element closes 1;
    SerializeTupleStruct: serialize_field closes 1;
    SerializeTupleVariant: serialize_field closes 2;
    SerializeStruct: serialize_field (name: &'static str) closes 1;
    SerializeStructVariant: serialize_field (name: &'static str) closes 2;
}

impl SerializeMap for &mut Counted {
    type Ok = ();
    type Error = TooLarge;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), TooLarge> {
        self.add(MEMBER_OVERHEAD_BYTES)?;
        name.serialize(&mut **self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TooLarge> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), TooLarge> {
        self.close();
        Ok(())
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
    fn values_too_deep_to_be_parsed_again_are_too_large() {
        assert!(memory_of(&nested(DEPTH_MAX), 1_000_000) < 1_000_000);
        assert!(memory_of(&nested(DEPTH_MAX + 1), 1_000_000) > 1_000_000);
        let beside = json!([nested(DEPTH_MAX - 1), nested(DEPTH_MAX - 1)]);
        assert!(memory_of(&beside, 1_000_000) < 1_000_000, "depths do not add up");
        let deepest = serde_json::to_string(&nested(DEPTH_MAX)).unwrap();
        assert!(serde_json::from_str::<Value>(&deepest).is_ok());
    }
}
