//! Shows the parts of a serialisable value to a visitor, without encoding it.

use std::fmt;

use serde::Serialize;
use serde::ser::{
    Error, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// Deepest nesting of a value: JSON of more than 127 levels is not read back.
pub(crate) const DEPTH_MAX: usize = 120;

/// Receives the parts of a value in their order. Each method may end the visit.
pub(crate) trait Visitor {
    /// A container begins. By default, only its parts count.
    fn open(&mut self) -> Result<(), Ended> {
        Ok(())
    }

    /// The next value is an element of a list.
    fn element(&mut self) -> Result<(), Ended> {
        Ok(())
    }

    /// The next value is the field of a struct, or the content of an enum variant, with this name.
    fn field(&mut self, name: &'static str) -> Result<(), Ended>;

    /// The next text is the name of a member of a map.
    fn key(&mut self) -> Result<(), Ended>;

    fn text(&mut self, text: &str) -> Result<(), Ended>;

    /// A whole number.
    fn whole(&mut self, is_negative: bool, magnitude: u64) -> Result<(), Ended>;

    /// A number with a fraction.
    fn float(&mut self, number: f64) -> Result<(), Ended>;

    /// A flag, or null.
    fn word(&mut self, word: &'static str) -> Result<(), Ended>;
}

/// The visitor ended the visit, or the value is nested too deeply.
#[derive(Debug)]
pub(crate) struct Ended;

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the visit of a value ended early")
    }
}

impl std::error::Error for Ended {}

impl Error for Ended {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// Shows all parts of a value.
pub(crate) fn visit<T: Serialize + ?Sized>(value: &T, visitor: &mut impl Visitor) -> Result<(), Ended> {
    value.serialize(&mut Visit { visitor, depth: 0 })
}

struct Visit<'v, V> {
    visitor: &'v mut V,
    depth: usize,
}

impl<V: Visitor> Visit<'_, V> {
    fn open(&mut self) -> Result<&mut Self, Ended> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Ended);
        }
        self.visitor.open()?;
        Ok(self)
    }

    const fn close(&mut self) {
        self.depth -= 1;
    }

    /// Begins an enum variant, which is encoded as an object with one member.
    fn variant(&mut self, name: &'static str) -> Result<&mut Self, Ended> {
        let inner = self.open()?;
        inner.visitor.field(name)?;
        Ok(inner)
    }
}

impl<V: Visitor> Serializer for &mut Visit<'_, V> {
    type Ok = ();
    type Error = Ended;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn serialize_bool(self, value: bool) -> Result<(), Ended> {
        self.visitor.word(if value { "true" } else { "false" })
    }

    fn serialize_i8(self, value: i8) -> Result<(), Ended> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), Ended> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), Ended> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Ended> {
        self.visitor.whole(value < 0, value.unsigned_abs())
    }

    fn serialize_u8(self, value: u8) -> Result<(), Ended> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Ended> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), Ended> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), Ended> {
        self.visitor.whole(false, value)
    }

    fn serialize_f32(self, value: f32) -> Result<(), Ended> {
        self.visitor.float(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Ended> {
        self.visitor.float(value)
    }

    fn serialize_char(self, letter: char) -> Result<(), Ended> {
        self.visitor.text(letter.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Result<(), Ended> {
        self.visitor.text(text)
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Ended> {
        let inner = self.open()?;
        for byte in bytes {
            inner.visitor.element()?;
            inner.visitor.whole(false, u64::from(*byte))?;
        }
        inner.close();
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Ended> {
        self.visitor.word("null")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Ended> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Ended> {
        self.visitor.word("null")
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Ended> {
        self.visitor.word("null")
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<(), Ended> {
        self.visitor.text(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Ended> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result<(), Ended> {
        let inner = self.variant(name)?;
        value.serialize(&mut *inner)?;
        inner.close();
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Ended> {
        self.open()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Ended> {
        self.open()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Ended> {
        self.open()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Self, Ended> {
        self.variant(name)?.open()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Ended> {
        self.open()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Ended> {
        self.open()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Self, Ended> {
        self.variant(name)?.open()
    }
}

/// Implements the serde traits of containers, which show their elements or members in the same way.
macro_rules! containers {
    ($($container:ident: $method:ident $(($name:ident: $kind:ty))? closes $levels:literal;)*) => {$(
        impl<V: Visitor> $container for &mut Visit<'_, V> {
            type Ok = ();
            type Error = Ended;

            fn $method<T: Serialize + ?Sized>(&mut self, $($name: $kind,)? value: &T) -> Result<(), Ended> {
                containers!(@beside self $($name)?);
                value.serialize(&mut **self)
            }

            fn end(self) -> Result<(), Ended> {
                self.depth -= $levels;
                Ok(())
            }
        }
    )*};
    (@beside $visit:ident) => { $visit.visitor.element()? };
    (@beside $visit:ident $name:ident) => { $visit.visitor.field($name)? };
}

containers! {
    SerializeSeq: serialize_element closes 1;
    SerializeTuple: serialize_element closes 1;
    SerializeTupleStruct: serialize_field closes 1;
    SerializeTupleVariant: serialize_field closes 2;
    SerializeStruct: serialize_field (name: &'static str) closes 1;
    SerializeStructVariant: serialize_field (name: &'static str) closes 2;
}

impl<V: Visitor> SerializeMap for &mut Visit<'_, V> {
    type Ok = ();
    type Error = Ended;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), Ended> {
        self.visitor.key()?;
        name.serialize(&mut **self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Ended> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), Ended> {
        self.close();
        Ok(())
    }
}
