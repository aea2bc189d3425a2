//! Lenient access to an object of the document: values of another type count as absent.
//!
//! Getters report nothing; `Draft::check` checks an object against a shape. JSON null counts as absent.

use serde_json::{Map, Value};

use crate::json::{at_index, at_name};
use crate::text::capped;

/// Maximum number of characters of a text in the model without its own cap, because a document can repeat such a text for many small
/// values.
const TEXT_CHARS_MAX: usize = 4_096;

/// Maximum number of members of an object whose names are compared one by one; the names of larger ones are hashed.
const COMPARED_MAX: usize = 16;
/// Maximum number of members of an object whose names get fingerprints. With more members, most bits would be set, and fingerprints would
/// exclude nothing.
const FINGERPRINTS_MAX: usize = 48;

/// The members of an object by name. Parsers try many spellings, and a fingerprint quickly excludes absent names.
#[derive(Clone, Copy)]
pub(crate) struct Members<'v> {
    map: &'v Map<String, Value>,
    /// Fingerprints of the names.
    present: u128,
}

/// A cheap fingerprint of a name: one bit of 128.
#[inline]
const fn fingerprint(name: &str) -> u128 {
    let bytes = name.as_bytes();
    let (first, last) = match bytes {
        [first, .., last] => (*first, *last),
        [only] => (*only, *only),
        [] => (0, 0),
    };
    let mixed = first as usize * 31 + last as usize * 7 + bytes.len();
    1 << (mixed % 128)
}

/// Spellings of one member that are tried in many objects. Their combined fingerprint excludes objects that have none of them.
pub(crate) struct Keys {
    names: &'static [&'static str],
    fingerprints: u128,
}

impl Keys {
    pub(crate) const fn of(names: &'static [&'static str]) -> Self {
        let mut fingerprints = 0;
        let mut at = 0;
        while at < names.len() {
            fingerprints |= fingerprint(names[at]);
            at += 1;
        }
        Self { names, fingerprints }
    }

    /// The names; empty if the object certainly has none of these members.
    #[inline]
    pub(crate) const fn within(&self, object: &Object<'_>) -> &'static [&'static str] {
        if self.fingerprints & object.members.present == 0 { &[] } else { self.names }
    }
}

impl<'v> Members<'v> {
    pub(crate) fn of(map: &'v Map<String, Value>) -> Self {
        let is_small = map.len() <= FINGERPRINTS_MAX;
        let fingerprints = || map.keys().fold(0, |present, name| present | fingerprint(name));
        Self { map, present: if is_small { fingerprints() } else { u128::MAX } }
    }

    #[inline]
    pub(crate) fn get(&self, key: &str) -> Option<&'v Value> {
        if self.present & fingerprint(key) == 0 { None } else { self.find(key) }
    }

    fn find(&self, key: &str) -> Option<&'v Value> {
        member(self.map, key)
    }
}

/// A member of a map, in which few names are compared one by one.
#[inline]
pub(crate) fn member<'v>(map: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    if map.len() > COMPARED_MAX {
        return map.get(key);
    }
    map.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}

#[derive(Clone)]
pub(crate) struct Object<'v> {
    pub(crate) map: &'v Map<String, Value>,
    members: Members<'v>,
    /// JSON pointer of this object.
    pub(crate) pointer: String,
}

impl<'v> Object<'v> {
    pub(crate) fn root(map: &'v Map<String, Value>) -> Self {
        Self::new(map, String::new())
    }

    pub(crate) fn new(map: &'v Map<String, Value>, pointer: String) -> Self {
        Self { map, members: Members::of(map), pointer }
    }

    /// Pointer of a member, whether or not it is present.
    pub(crate) fn at(&self, key: &str) -> String {
        at_name(&self.pointer, key)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    #[inline]
    pub(crate) fn value(&self, key: &str) -> Option<&'v Value> {
        self.published(key).filter(|value| !value.is_null())
    }

    /// The value of a member, including null.
    #[inline]
    pub(crate) fn published(&self, key: &str) -> Option<&'v Value> {
        self.members.get(key)
    }

    /// A string that is not blank, trimmed.
    pub(crate) fn text(&self, key: &str) -> Option<&'v str> {
        self.value(key)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    /// The first of several spellings with a string.
    pub(crate) fn text_of(&self, keys: &[&str]) -> Option<&'v str> {
        keys.iter().find_map(|key| self.text(key))
    }

    /// A copy of a text, truncated to [`TEXT_CHARS_MAX`].
    pub(crate) fn string(&self, key: &str) -> Option<String> {
        self.string_of(&[key])
    }

    pub(crate) fn string_of(&self, keys: &[&str]) -> Option<String> {
        self.text_of(keys).map(|text| capped(text, TEXT_CHARS_MAX).to_owned())
    }

    /// The first of several spellings with a value.
    pub(crate) fn value_of(&self, keys: &[&str]) -> Option<&'v Value> {
        keys.iter().find_map(|key| self.value(key))
    }

    /// The first of several spellings with an object.
    pub(crate) fn object_of(&self, keys: &[&str]) -> Option<Self> {
        keys.iter().find_map(|key| self.object(key))
    }

    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.value(key)?.as_bool()
    }

    /// A non-negative integer. `60.0` and `"60"` are accepted, because both are published.
    pub(crate) fn whole(&self, key: &str) -> Option<u64> {
        whole(self.value(key)?)
    }

    pub(crate) fn object(&self, key: &str) -> Option<Self> {
        let map = self.value(key)?.as_object()?;
        Some(Object::new(map, self.at(key)))
    }

    pub(crate) fn list(&self, key: &str) -> Option<&'v [Value]> {
        self.value(key)?.as_array().map(Vec::as_slice)
    }

    /// The objects of a list with their pointers; other elements are skipped.
    pub(crate) fn objects(&self, key: &str) -> impl Iterator<Item = Object<'v>> + use<'v> {
        let pointer = self.at(key);
        self.list(key).unwrap_or_default().iter().enumerate().filter_map(move |(index, value)| {
            Some(Object::new(value.as_object()?, at_index(&pointer, index)))
        })
    }

    /// The members of a map whose values are objects: name and object.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'v str, Object<'v>)> + use<'_, 'v> {
        let map = self.map;
        map.iter()
            .filter_map(|(name, value)| Some((name.as_str(), Object::new(value.as_object()?, self.at(name)))))
    }

    /// The strings of a list; a lone string counts as a list of one.
    pub(crate) fn texts(&self, key: &str) -> Vec<&'v str> {
        self.value(key).map(texts).unwrap_or_default()
    }
}

/// The elements of an array or the members of an object: name of the member, value, pointer. Empty for other values.
pub(crate) fn children<'v>(
    value: &'v Value,
    pointer: &str,
) -> impl Iterator<Item = (Option<&'v str>, &'v Value, String)> + use<'v> {
    let (list, map) = (value.as_array(), value.as_object());
    let (of_list, of_map) = (pointer.to_owned(), pointer.to_owned());
    let elements = list
        .into_iter()
        .flatten()
        .enumerate()
        .map(move |(index, item)| (None, item, at_index(&of_list, index)));
    let members = map
        .into_iter()
        .flatten()
        .map(move |(name, item)| (Some(name.as_str()), item, at_name(&of_map, name)));
    elements.chain(members)
}

/// The strings of a list; a lone string counts as a list of one.
pub(crate) fn texts(value: &Value) -> Vec<&str> {
    let kept = |value: &'_ Value| -> bool { value.as_str().is_some_and(|text| !text.trim().is_empty()) };
    match value {
        Value::String(_) if kept(value) => value.as_str().map(str::trim).into_iter().collect(),
        Value::Array(list) => {
            list.iter().filter(|item| kept(item)).filter_map(|item| item.as_str().map(str::trim)).collect()
        }
        _ => Vec::new(),
    }
}

/// A non-negative integer, even if it is published as a float or a string.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| whole_float(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Largest interoperable integer (RFC 8259 section 6).
const EXACT_FLOAT_MAX: f64 = 9_007_199_254_740_991.0;

fn whole_float(value: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be whole, positive and exact"
    )]
    (value.fract() == 0.0 && (0.0..=EXACT_FLOAT_MAX).contains(&value)).then_some(value as u64)
}

/// The JSON type of a value, with its article.
pub(crate) const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
