//! What a manifest contains: its names and values, and its texts one after another.

use super::{DIGITS_MIN, TEXT_CHARS_MAX, form_of};
use crate::address;
use crate::auth;
use crate::hash::{HashMap, HashSet};
use crate::model::{AuthScheme, Protocol};
use crate::name::parse_url;
use crate::text;
use crate::visit::{Ended, Visitor};

use memchr::memmem;
use serde_json::{Number, Value};

/// Maximum number of bytes of the names and values of a manifest with which a document is compared. The values of a document with a larger
/// one are not kept.
const RECORD_BYTES_MAX: usize = 1_024 * 1_024;
/// Maximum number of bytes of the manifest that are searched for parts of its texts. The other values count as read.
const SEARCHED_BYTES_MAX: usize = 2 * 1_024 * 1_024;
/// Maximum number of bytes of a text that are compared. Parsers truncate long texts.
const COMPARED_BYTES_MAX: usize = 96;
/// Minimum number of bytes of a text, or of the digits of a number, that is searched inside other texts.
const PART_BYTES_MIN: usize = 4;
/// Maximum number of bytes of a word that may be read under another spelling.
const WORD_BYTES_MAX: usize = 32;
/// The member of the model with the amount of a price.
const PRICE: &str = "price";
/// Marks in a record, which no text contains: the start of a name or text, the end of a text, of a name, and of a number.
const START: &str = "\u{1}";
const END: &str = "\u{2}";
const NAME_END: &str = "\u{2}:";
const NUMBER_END: &str = "\u{3}";

/// Whether a text that is looked for is in the manifest.
#[derive(Default)]
struct Seen {
    as_name: bool,
    as_value: bool,
}

/// The names and values that are looked for.
pub(super) struct Wanted<'w> {
    texts: HashMap<&'w str, Seen>,
    /// A filter, so that few other texts are hashed: a bit for the length of a text, and its first and last bytes.
    bits: [u64; 32],
}

impl<'w> Wanted<'w> {
    /// The words under which parsers keep methods, protocols and schemes of credentials, with room for the texts of this number of values.
    pub(super) fn of(values: usize) -> Self {
        let words = address::METHODS.len() + AuthScheme::ALL.len() + Protocol::ALL.len();
        let mut texts = HashMap::default();
        texts.reserve(values + words);
        let mut wanted = Self { texts, bits: [0; 32] };
        for method in address::METHODS {
            wanted.add(method);
        }
        for scheme in AuthScheme::ALL {
            wanted.add(scheme.as_str());
        }
        for protocol in Protocol::ALL {
            wanted.add(protocol.as_str());
        }
        wanted
    }

    fn place(text: &str) -> (usize, u64) {
        let bytes = text.as_bytes();
        let (first, last) = (bytes.first().copied().unwrap_or(0), bytes.last().copied().unwrap_or(0));
        (bytes.len() & 31, 1_u64 << (first.wrapping_mul(7).wrapping_add(last) & 63))
    }

    pub(super) fn add(&mut self, text: &'w str) {
        let (row, bit) = Self::place(text);
        self.bits[row] |= bit;
        self.texts.entry(text).or_default();
    }

    fn get_mut(&mut self, text: &str) -> Option<&mut Seen> {
        let (row, bit) = Self::place(text);
        if self.bits[row] & bit == 0 { None } else { self.texts.get_mut(text) }
    }
}

/// The names and values of a manifest.
pub(super) struct Record<'w> {
    /// All of them with marks between them, up to [`RECORD_BYTES_MAX`] bytes.
    text: Vec<u8>,
    wanted: Wanted<'w>,
    /// The model's names of members that were added. A set of texts, because addresses of texts differ between processes.
    fields: HashSet<&'static str>,
    /// Whether the next text is a name.
    is_name: bool,
    /// Number of bytes that were searched for parts of texts.
    searched: usize,
}

impl<'w> Record<'w> {
    /// An empty record, with room for this number of bytes.
    pub(super) fn of(wanted: Wanted<'w>, bytes: usize) -> Self {
        let text = Vec::with_capacity(bytes.min(RECORD_BYTES_MAX));
        Self { text, wanted, fields: HashSet::default(), is_name: false, searched: 0 }
    }

    fn add(&mut self, start: &str, text: &str, end: &str) -> Result<(), Ended> {
        if self.text.len() + start.len() + text.len() > RECORD_BYTES_MAX {
            return Err(Ended);
        }
        self.text.reserve(start.len() + text.len() + end.len());
        for part in [start, text, end] {
            self.text.extend_from_slice(part.as_bytes());
        }
        Ok(())
    }

    /// The name of a member of the model, or of a map, which may be a text of the document.
    fn name(&mut self, name: &str, is_of_map: bool) -> Result<(), Ended> {
        self.add(START, name, NAME_END)?;
        if let Some(seen) = self.wanted.get_mut(name) {
            seen.as_name = true;
            seen.as_value |= is_of_map;
        }
        Ok(())
    }

    fn value(&mut self, text: &str) {
        if let Some(seen) = self.wanted.get_mut(text) {
            seen.as_value = true;
        }
    }

    fn number(&mut self, number: &str) -> Result<(), Ended> {
        self.add("", number, NUMBER_END)?;
        self.value(number);
        Ok(())
    }
}

impl Visitor for Record<'_> {
    fn field(&mut self, name: &'static str) -> Result<(), Ended> {
        // The name of a member of the model counts once, except before a price that is looked for.
        if self.fields.insert(name) || name == PRICE { self.name(name, false) } else { Ok(()) }
    }

    fn key(&mut self) -> Result<(), Ended> {
        self.is_name = true;
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Ended> {
        if std::mem::take(&mut self.is_name) {
            return self.name(text, true);
        }
        self.add(START, text, END)?;
        self.value(text);
        Ok(())
    }

    fn whole(&mut self, is_negative: bool, magnitude: u64) -> Result<(), Ended> {
        let digits = if is_negative { format!("-{magnitude}") } else { magnitude.to_string() };
        self.number(&digits)
    }

    fn float(&mut self, number: f64) -> Result<(), Ended> {
        Number::from_f64(number).map_or(Ok(()), |number| self.number(&number.to_string()))
    }

    fn word(&mut self, _: &'static str) -> Result<(), Ended> {
        Ok(())
    }
}

impl Record<'_> {
    /// Whether a value of this member is in the manifest. A flag and a number of one digit are compared by the name of their member.
    pub(super) fn is_read(&mut self, name: &str, value: &Value, text: &str, form: &str) -> bool {
        match value {
            Value::String(_) => self.has_text(text, form),
            Value::Number(_) => {
                self.is_name(name)
                    || (form.len() >= DIGITS_MIN && self.is_value(form))
                    || (form.len() >= PART_BYTES_MIN && self.has_part(form))
                    || (name.contains("price")
                        && self.has_part(&[START, PRICE, NAME_END, START, form, END].concat()))
            }
            Value::Bool(_) => self.is_name(name),
            _ => true,
        }
    }

    /// Whether a text that is looked for is a name in the manifest.
    fn is_name(&self, text: &str) -> bool {
        self.wanted.texts.get(text).is_some_and(|seen| seen.as_name)
    }

    /// Whether a text that is looked for is a value in the manifest.
    fn is_value(&self, text: &str) -> bool {
        self.wanted.texts.get(text).is_some_and(|seen| seen.as_value)
    }

    /// Whether a name or a value is in the manifest.
    fn has_value(&mut self, text: &str) -> bool {
        match self.wanted.texts.get(text) {
            Some(seen) => seen.as_name || seen.as_value,
            None => self.has_part(&[START, text, END].concat()),
        }
    }

    /// Whether a part of a text is in the manifest.
    fn has_part(&mut self, part: &str) -> bool {
        self.searched += self.text.len();
        self.searched >= SEARCHED_BYTES_MAX || contains(&self.text, part.as_bytes())
    }

    /// Whether a word names a method, a protocol or a scheme of credentials that the manifest has under another spelling.
    fn has_word(&mut self, word: &str) -> bool {
        if word.len() > WORD_BYTES_MAX || word.contains(char::is_whitespace) {
            return false;
        }
        let (scheme, protocol) = (auth::scheme(word), auth::protocol(word));
        let method = address::METHODS.iter().find(|method| method.eq_ignore_ascii_case(word));
        (scheme != AuthScheme::Other && self.has_value(scheme.as_str()))
            || (protocol != Protocol::Other && self.has_value(protocol.as_str()))
            || method.is_some_and(|method| self.has_value(method))
    }

    /// Whether an address is in the manifest in its normal form, without the default port and with a path.
    fn has_address(&mut self, text: &str) -> bool {
        let is_absolute = text.starts_with("http") && !text.contains(char::is_whitespace);
        let url = Some(text).filter(|_| is_absolute).and_then(|text| parse_url(text).ok());
        url.is_some_and(|url| self.has_part(&[START, url.as_str(), END].concat()))
    }

    fn has_text(&mut self, text: &str, inner: &str) -> bool {
        let is_value =
            inner.is_empty() || self.is_value(inner) || (text.len() > inner.len() && self.is_value(text));
        if is_value || self.has_word(inner) {
            return true;
        }
        // Parsers remove marks of Markdown, and turn the query of a path into parameters.
        if text.contains('`')
            && let Some(bare) = text::without_marks(text, TEXT_CHARS_MAX).filter(|bare| bare != text)
        {
            let form = form_of(&bare);
            if self.has_value(form) || self.has_text(&bare, form) {
                return true;
            }
        }
        if inner.starts_with('/')
            && let Some((path, query)) = inner.split_once('?')
            && !query.contains(char::is_whitespace)
            && query.split('&').all(|pair| {
                let name = pair.split('=').next().unwrap_or_default();
                self.has_part(&[START, name, NAME_END].concat())
            })
        {
            return self.has_part(&[path, END].concat()) || self.has_part(inner);
        }
        // An address and its remark: `/book - Books a room`.
        let parts = || [" - ", " \u{2014} ", " \u{2013} "].iter().find_map(|mark| inner.split_once(mark));
        if inner.starts_with('/')
            && let Some((address, remark)) = parts()
        {
            return self.has_value(remark) && self.has_part(&[address, END].concat());
        }
        if inner.len() < PART_BYTES_MIN {
            // Parsers join a path with its base URL.
            return inner.starts_with('/') && self.has_part(&[inner, END].concat());
        }
        let end = inner.floor_char_boundary(COMPARED_BYTES_MAX);
        inner.get(..end).is_some_and(|start| self.has_part(start)) || self.has_address(inner)
    }
}

/// Length of the end of a part that is searched first. Searching for so few bytes is fast, and most parts are absent.
const SEARCHED_END_BYTES: usize = 32;

/// Whether a record contains a part.
fn contains(record: &[u8], part: &[u8]) -> bool {
    let Some(from) = part.len().checked_sub(SEARCHED_END_BYTES) else {
        return memmem::find(record, part).is_some();
    };
    let end = part.get(from..).unwrap_or(part);
    let first = memmem::find(record, end).and_then(|at| record.get(at.checked_sub(from)?..));
    first.is_some_and(|rest| rest.starts_with(part) || memmem::find(rest, part).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::visit::visit;

    #[test]
    fn a_word_that_is_read_under_another_spelling_costs_no_search() {
        let mut record = Record::of(Wanted::of(0), 0);
        let manifest =
            json!({"method": "POST", "protocol": "http", "scheme": "api_key", "url": "https://a.example/"});
        visit(&manifest, &mut record).unwrap();
        for word in ["post", "Post", "REST", "https", "X-API-Key"] {
            assert!(record.is_read("word", &Value::from(word), word, word), "{word}");
        }
        assert_eq!(record.searched, 0);
        assert!(record.is_read(
            "url",
            &Value::from("https://a.example:443"),
            "https://a.example:443",
            "https://a.example:443"
        ));
        assert!(!record.is_read("word", &Value::from("MCP"), "MCP", "MCP"));
    }

    #[test]
    fn the_values_behind_the_limit_of_the_search_count_as_read() {
        let mut record = Record::of(Wanted::of(0), 0);
        visit(&json!({"text": "x".repeat(RECORD_BYTES_MAX / 2)}), &mut record).unwrap();
        let is_read: Vec<bool> =
            (0..6).map(|_| record.is_read("a", &Value::from("rooms"), "rooms", "rooms")).collect();
        assert_eq!(is_read, [false, false, false, true, true, true]);
    }
}
