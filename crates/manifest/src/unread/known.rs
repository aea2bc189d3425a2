//! What a manifest contains: its names and values, and its texts one after another.

use crate::address;
use crate::auth;
use crate::model::{AuthScheme, Protocol};
use crate::name::parse_url;
use crate::text;
use crate::visit::{Ended, Visitor};

use super::{DIGITS_MIN, TEXT_CHARS_MAX, form_of};
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
/// Marks in a record, which no text contains: the start of a name or text, its end, and the end of a number. A name is followed by a colon.
const START: &str = "\u{1}";
const END: &str = "\u{2}";
const NUMBER_END: &str = "\u{3}";

/// A filter for the names and values that are looked for, so that few others are compared.
pub(super) struct Wanted {
    /// A bit for the length of a text, and its first and last bytes.
    bits: [u64; 32],
}

impl Default for Wanted {
    /// The words under which parsers keep methods, protocols and schemes of credentials.
    fn default() -> Self {
        let mut wanted = Self { bits: [0; 32] };
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
}

impl Wanted {
    fn place(text: &str) -> (usize, u64) {
        let bytes = text.as_bytes();
        let (first, last) = (bytes.first().copied().unwrap_or(0), bytes.last().copied().unwrap_or(0));
        (bytes.len() & 31, 1_u64 << (first.wrapping_mul(7).wrapping_add(last) & 63))
    }

    pub(super) fn add(&mut self, text: &str) {
        let (row, bit) = Self::place(text);
        self.bits[row] |= bit;
    }

    fn may_contain(&self, text: &str) -> bool {
        let (row, bit) = Self::place(text);
        self.bits[row] & bit != 0
    }
}

/// The names and values of a manifest.
pub(super) struct Record {
    /// All of them with marks between them, up to [`RECORD_BYTES_MAX`] bytes.
    text: String,
    wanted: Wanted,
    /// Where the names and the values that are looked for begin and end.
    names: Vec<(usize, usize)>,
    values: Vec<(usize, usize)>,
    /// Whether the next text is a name.
    is_name: bool,
}

impl Record {
    pub(super) const fn of(wanted: Wanted) -> Self {
        Self { text: String::new(), wanted, names: Vec::new(), values: Vec::new(), is_name: false }
    }

    fn add(&mut self, text: &str, end: &str) -> Result<(usize, usize), Ended> {
        let from = self.text.len();
        if from + text.len() > RECORD_BYTES_MAX {
            return Err(Ended);
        }
        self.text.push_str(text);
        self.text.push_str(end);
        Ok((from, from + text.len()))
    }

    /// The name of a member of the model, or of a map, which may be a text of the document.
    fn name(&mut self, name: &str, is_of_map: bool) -> Result<(), Ended> {
        self.text.push_str(START);
        let place = self.add(name, END)?;
        self.text.push(':');
        if self.wanted.may_contain(name) {
            self.names.push(place);
            self.values.extend(is_of_map.then_some(place));
        }
        Ok(())
    }

    fn number(&mut self, number: &str) -> Result<(), Ended> {
        let place = self.add(number, NUMBER_END)?;
        if self.wanted.may_contain(number) {
            self.values.push(place);
        }
        Ok(())
    }
}

impl Visitor for Record {
    fn field(&mut self, name: &'static str) -> Result<(), Ended> {
        self.name(name, false)
    }

    fn key(&mut self) -> Result<(), Ended> {
        self.is_name = true;
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Ended> {
        if std::mem::take(&mut self.is_name) {
            return self.name(text, true);
        }
        self.text.push_str(START);
        let place = self.add(text, END)?;
        if self.wanted.may_contain(text) {
            self.values.push(place);
        }
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

/// The names and values of a record that are looked for, sorted.
pub(super) struct Known<'r> {
    record: &'r Record,
    names: Vec<&'r str>,
    values: Vec<&'r str>,
    searched: usize,
}

impl<'r> Known<'r> {
    pub(super) fn of(record: &'r Record) -> Self {
        let sorted = |places: &[(usize, usize)]| {
            let mut texts: Vec<&'r str> =
                places.iter().filter_map(|(from, to)| record.text.get(*from..*to)).collect();
            texts.sort_unstable();
            texts
        };
        Self { record, names: sorted(&record.names), values: sorted(&record.values), searched: 0 }
    }

    /// Whether a value of this member is in the manifest. A flag and a number of one digit are compared by the name of their member.
    pub(super) fn is_read(&mut self, name: &str, value: &Value, form: &str) -> bool {
        match value {
            Value::String(text) => self.has_text(text.trim(), form),
            Value::Number(_) => {
                contains(&self.names, name)
                    || (form.len() >= DIGITS_MIN && contains(&self.values, form))
                    || (form.len() >= PART_BYTES_MIN && self.has_part(form))
                    || (name.contains("price")
                        && self.has_part(&[START, "price", END, ":", START, form, END].concat()))
            }
            Value::Bool(_) => contains(&self.names, name),
            _ => true,
        }
    }

    /// Whether a name or a value is in the manifest.
    fn has_value(&mut self, text: &str) -> bool {
        if self.record.wanted.may_contain(text) {
            return contains(&self.values, text) || contains(&self.names, text);
        }
        self.has_part(&[START, text, END].concat())
    }

    /// Whether a part of a text is in the manifest.
    fn has_part(&mut self, part: &str) -> bool {
        self.searched += self.record.text.len();
        self.searched >= SEARCHED_BYTES_MAX || self.record.text.contains(part)
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
        let is_value = |known: &str| contains(&self.values, known);
        if inner.is_empty() || is_value(inner) || is_value(text) || self.has_word(inner) {
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
                self.has_part(&[START, name, END, ":"].concat())
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

/// Whether a sorted list contains a text.
fn contains(sorted: &[&str], text: &str) -> bool {
    sorted.binary_search(&text).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::visit::visit;

    #[test]
    fn a_word_that_is_read_under_another_spelling_costs_no_search() {
        let mut record = Record::of(Wanted::default());
        let manifest =
            json!({"method": "POST", "protocol": "http", "scheme": "api_key", "url": "https://a.example/"});
        visit(&manifest, &mut record).unwrap();
        let mut known = Known::of(&record);
        for word in ["post", "Post", "REST", "https", "X-API-Key"] {
            assert!(known.is_read("word", &Value::from(word), word), "{word}");
        }
        assert_eq!(known.searched, 0);
        assert!(known.is_read("url", &Value::from("https://a.example:443"), "https://a.example:443"));
        assert!(!known.is_read("word", &Value::from("MCP"), "MCP"));
    }

    #[test]
    fn the_values_behind_the_limit_of_the_search_count_as_read() {
        let mut record = Record::of(Wanted::default());
        visit(&json!({"text": "x".repeat(RECORD_BYTES_MAX / 2)}), &mut record).unwrap();
        let mut known = Known::of(&record);
        let is_read: Vec<bool> = (0..6).map(|_| known.is_read("a", &Value::from("rooms"), "rooms")).collect();
        assert_eq!(is_read, [false, false, false, true, true, true]);
    }
}
