//! Strict JSON (RFC 8259) with caps: one pass that also detects duplicate names, hidden characters and deep nesting.
//!
//! Invalid JSON is refused with its offset, never repaired. Everything that is truncated or removed is recorded for a finding.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use crate::text::{self, Hidden};

/// Maximum nesting. Published manifests stay below 15, and recursion of this depth fits on any stack.
pub(crate) const DEPTH_MAX: usize = 64;
/// Longest string in bytes; no field of a real manifest is longer.
pub(crate) const STRING_BYTES_MAX: usize = 64 * 1_024;
/// Maximum bytes of a member name, because pointers repeat names. The longest path of a published OpenAPI document has 250 bytes.
pub(crate) const NAME_BYTES_MAX: usize = 1_024;
/// Maximum number of notes of one kind.
const NOTES_MAX: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Pointers of names that occur twice in their object; the last value counts.
    pub(crate) duplicates: Vec<String>,
    /// Pointers of values below [`DEPTH_MAX`] that were dropped.
    pub(crate) too_deep: Vec<String>,
    /// Pointers of strings that were truncated at [`STRING_BYTES_MAX`].
    pub(crate) cut: Vec<String>,
    /// Hidden characters that were removed: kind, how many, pointer of the first.
    pub(crate) hidden: Vec<(Hidden, usize, String)>,
}

/// A syntax error of JSON text. The offset counts bytes from the beginning of the text.
#[derive(Debug)]
pub(crate) struct NotJson {
    pub(crate) offset: usize,
    pub(crate) reason: String,
}

/// The structure of a JSON text, determined in one pass over the text.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// The number of children of each container, in the order in which they begin.
    pub(crate) sizes: Vec<u32>,
    /// Whether a string has an escape that may encode a hidden character.
    pub(crate) may_escape_hidden: bool,
}

/// Parses a whole document after the check of its budget, which returns the outline: the sizes of the containers, and whether a string may
/// contain hidden characters.
pub(crate) fn parse(text: &str, outline: &Outline) -> Result<(Value, Notes), NotJson> {
    let reading = Reading {
        notes: RefCell::new(Notes::default()),
        sizes: &outline.sizes,
        containers: Cell::new(0),
        may_hide_ascii: outline.may_escape_hidden || text.as_bytes().contains(&0x7f),
        is_ascii: text.is_ascii(),
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Seed { reading: &reading, path: None, depth: 0 }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| not_json(text, &error))?;
    Ok((value, reading.notes.into_inner()))
}

fn not_json(text: &str, error: &serde_json::Error) -> NotJson {
    let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let at_end = error.is_eof();
    let offset =
        if at_end { text.len() } else { (before + error.column().saturating_sub(1)).min(text.len()) };
    let reason = error.to_string();
    let reason = match text.get(offset..) {
        Some(rest) if is_comment(rest) => "there is a comment, and JSON has no comments",
        _ => in_words(reason.split(" at line ").next().unwrap_or(&reason)),
    };
    NotJson { offset, reason: reason.to_owned() }
}

/// Whether a text begins with a comment of JSON5 or JavaScript.
pub(crate) fn is_comment(text: &str) -> bool {
    ["//", "/*"].iter().any(|begin| text.starts_with(begin))
}

/// What is wrong, for a person who wrote the document. Reasons of the parser that are not listed are clear already.
fn in_words(reason: &str) -> &str {
    let listed = REASONS.iter().find(|(known, _)| reason.starts_with(known));
    listed.map_or(reason, |(_, words)| words)
}

/// The beginnings of the parser's reasons.
const REASONS: [(&str, &str); 13] = [
    ("EOF while parsing a list", "the document ends before the `]` of a list"),
    ("EOF while parsing an object", "the document ends before the `}` of an object"),
    ("EOF while parsing a string", "the document ends before the closing quote of a text"),
    ("EOF while parsing", "the document ends where a value is missing"),
    ("trailing characters", "there is text after the end of the document"),
    ("trailing comma", "there is no value after a comma"),
    ("key must be a string", "a name has no double quotes"),
    ("expected `:`", "there is no `:` after a name"),
    ("expected `,` or `]`", "there is no `,` and no `]` after a value of a list"),
    ("expected `,` or `}`", "there is no `,` and no `}` after a value of an object"),
    ("expected ident", "there is a word without double quotes"),
    ("expected value", "there is no value, or a text without double quotes"),
    ("control character", "there is a line break or another control character in a text"),
];

/// The path to the current value, on the stack. A pointer is written only for a note.
struct Path<'p> {
    parent: Option<&'p Self>,
    step: Step<'p>,
}

enum Step<'p> {
    Name(&'p str),
    Index(usize),
}

impl Path<'_> {
    fn write(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.write(out);
        }
        match self.step {
            Step::Name(name) => push_name(out, name),
            Step::Index(index) => push_index(out, index),
        }
    }
}

/// Appends a member name to a JSON pointer (RFC 6901 section 3).
pub(crate) fn push_name(pointer: &mut String, name: &str) {
    pointer.push('/');
    if !name.bytes().any(|byte| matches!(byte, b'~' | b'/')) {
        return pointer.push_str(name);
    }
    for letter in name.chars() {
        match letter {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            _ => pointer.push(letter),
        }
    }
}

/// The JSON pointer of an element of an array.
pub(crate) fn at_index(array: &str, index: usize) -> String {
    let mut pointer = String::with_capacity(array.len() + 4);
    pointer.push_str(array);
    push_index(&mut pointer, index);
    pointer
}

/// The JSON pointer of a member of an object.
pub(crate) fn at_name(object: &str, name: &str) -> String {
    let mut pointer = String::with_capacity(object.len() + name.len() + 1);
    pointer.push_str(object);
    push_name(&mut pointer, name);
    pointer
}

/// Appends an array index to a JSON pointer.
pub(crate) fn push_index(pointer: &mut String, index: usize) {
    pointer.push('/');
    match u32::try_from(index).ok().and_then(|index| char::from_digit(index, 10)) {
        Some(digit) => pointer.push(digit),
        None => pointer.push_str(&index.to_string()),
    }
}

/// The state of parsing one document.
struct Reading<'r> {
    notes: RefCell<Notes>,
    /// Numbers of children of the containers, in the order in which they begin.
    sizes: &'r [u32],
    /// Number of containers that began so far.
    containers: Cell<usize>,
    /// Whether a string may contain an ASCII control character. All of them but DEL can only be written as an escape.
    may_hide_ascii: bool,
    /// Whether the whole text is ASCII. Hidden characters outside the control characters are not ASCII.
    is_ascii: bool,
}

impl Reading<'_> {
    /// The number of children of the container that begins.
    fn size(&self) -> usize {
        let at = self.containers.get();
        self.containers.set(at.saturating_add(1));
        self.sizes.get(at).and_then(|size| usize::try_from(*size).ok()).unwrap_or_default()
    }

    /// Called when a container is dropped: the sizes of later containers are then unknown.
    fn skip(&self) {
        self.containers.set(usize::MAX);
    }
}

#[derive(Clone, Copy)]
struct Seed<'p> {
    reading: &'p Reading<'p>,
    path: Option<&'p Path<'p>>,
    depth: usize,
}

impl Seed<'_> {
    fn pointer(self) -> String {
        let mut pointer = String::new();
        if let Some(path) = self.path {
            path.write(&mut pointer);
        }
        pointer
    }

    fn note(self, list: fn(&mut Notes) -> &mut Vec<String>) {
        let mut notes = self.reading.notes.borrow_mut();
        let list = list(&mut notes);
        if list.len() < NOTES_MAX {
            list.push(self.pointer());
        }
    }

    /// The cleaned and truncated string; `None` if it is unchanged.
    fn keep(self, text: &str, bytes_max: usize) -> Option<String> {
        let cut = text.len() > bytes_max;
        let reading = self.reading;
        if !cut && !reading.may_hide_ascii && (reading.is_ascii || text.is_ascii()) {
            return None;
        }
        if cut {
            self.note(|notes| &mut notes.cut);
        }
        let text = text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text);
        let cleaned = text::clean(text, |kind, count| self.note_hidden(kind, count));
        if cut { Some(cleaned.unwrap_or_else(|| text.to_owned())) } else { cleaned }
    }

    fn note_hidden(self, kind: Hidden, count: usize) {
        let mut notes = self.reading.notes.borrow_mut();
        match notes.hidden.iter_mut().find(|(known, ..)| *known == kind) {
            Some((_, sum, _)) => *sum += count,
            None => notes.hidden.push((kind, count, self.pointer())),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(self.keep(value, STRING_BYTES_MAX).unwrap_or_else(|| value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        if self.depth >= DEPTH_MAX {
            self.reading.skip();
            self.note(|notes| &mut notes.too_deep);
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        }
        let mut values = Vec::with_capacity(self.reading.size());
        loop {
            let path = Path { parent: self.path, step: Step::Index(values.len()) };
            let seed = Seed { reading: self.reading, path: Some(&path), depth: self.depth + 1 };
            match list.next_element_seed(seed)? {
                Some(value) => values.push(value),
                None => return Ok(Value::Array(values)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        if self.depth >= DEPTH_MAX {
            self.reading.skip();
            self.note(|notes| &mut notes.too_deep);
            while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        }
        let mut values = Map::with_capacity(self.reading.size());
        while let Some(name) = object.next_key::<String>()? {
            let name = self.keep(&name, NAME_BYTES_MAX).unwrap_or(name);
            let path = Path { parent: self.path, step: Step::Name(&name) };
            let seed = Seed { reading: self.reading, path: Some(&path), depth: self.depth + 1 };
            let value = object.next_value_seed(seed)?;
            match values.entry(name) {
                Entry::Vacant(slot) => drop(slot.insert(value)),
                Entry::Occupied(mut slot) => {
                    let path = Path { parent: self.path, step: Step::Name(slot.key()) };
                    Seed { path: Some(&path), ..self }.note(|notes| &mut notes.duplicates);
                    slot.insert(value);
                }
            }
        }
        Ok(Value::Object(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget;

    fn parse(text: &str) -> Result<(Value, Notes), NotJson> {
        super::parse(text, &budget::check_json(text.as_bytes(), budget::DOCUMENT).unwrap().outline)
    }

    #[test]
    fn keeps_the_last_duplicate_and_notes_its_pointer() {
        let (value, notes) = parse(r#"{"a": {"b~/": 1, "b~/": 2}}"#).unwrap();
        assert_eq!(value["a"]["b~/"], 2);
        assert_eq!(notes.duplicates, ["/a/b~0~1"]);
    }

    #[test]
    fn syntax_errors_have_an_offset() {
        for (text, offset, reason) in [
            ("{\n \"\"a", 5, "there is no `:` after a name"),
            ("{} x", 3, "there is text after the end of the document"),
            ("[1,]", 3, "there is no value after a comma"),
            ("[1 2]", 3, "there is no `,` and no `]` after a value of a list"),
            ("{\"a\": 1 \"b\"}", 8, "there is no `,` and no `}` after a value of an object"),
            ("{\"a\": 1", 7, "the document ends before the `}` of an object"),
            ("[\"a\"", 4, "the document ends before the `]` of a list"),
            ("[\"a", 3, "the document ends before the closing quote of a text"),
            ("{\"a\":", 5, "the document ends where a value is missing"),
            ("{a: 1}", 1, "a name has no double quotes"),
            ("{\"a\": 1, // b\n}", 9, "there is a comment, and JSON has no comments"),
            ("[1 /* b */]", 3, "there is a comment, and JSON has no comments"),
            ("[trua]", 4, "there is a word without double quotes"),
            ("[yes]", 1, "there is no value, or a text without double quotes"),
            ("[\"a\nb\"]", 4, "there is a line break or another control character in a text"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.offset, error.reason.as_str()), (offset, reason), "{text}");
        }
    }

    #[test]
    fn drops_values_nested_too_deeply() {
        let deep = format!("{{\"kept\": 1, \"deep\": {}{}}}", "[".repeat(5_000), "]".repeat(5_000));
        let (value, notes) = parse(&deep).unwrap();
        assert_eq!(value["kept"], 1);
        assert_eq!(notes.too_deep.len(), 1);
    }

    #[test]
    fn removes_hidden_characters_and_truncates_long_strings() {
        let text = format!("{{\"a\": \"x\u{202e}y\\u0007\", \"long\": \"{}\"}}", "ä".repeat(40_000));
        let (value, notes) = parse(&text).unwrap();
        assert_eq!(value["a"], "xy");
        assert_eq!(value["long"].as_str().unwrap().len(), STRING_BYTES_MAX);
        assert_eq!(notes.cut, ["/long"]);
        assert_eq!(notes.hidden.len(), 2);
    }
}
