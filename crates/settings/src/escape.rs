//! Escapes text from outside for log lines and terminals: line breaks, terminal controls and characters that reorder text. Long values are
//! truncated.
//!
//! The log formatters apply this to every field, and the command lines to every line that they print.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Appended to a value that was truncated.
pub(crate) const CUT_MARK: &str = "…[cut]";

/// Whether a character is escaped: control characters (C0, DEL, C1), line and paragraph separators, marks that reorder text (bidi), and
/// invisible characters (byte order marks, annotation marks and tags).
pub const fn is_unsafe(letter: char) -> bool {
    matches!(
        letter,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Escapes text for one line. Unsafe characters are escaped as in Rust (`\n`, `\u{1b}`).
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_unsafe)
}

/// Escapes text of several lines, like [`line()`], but keeps line breaks.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| letter != '\n' && is_unsafe(letter))
}

/// Escapes unsafe characters in JSON. The parsed values do not change. Line breaks between values are kept; those in strings are already
/// escaped in JSON.
pub fn json(text: &str) -> Cow<'_, str> {
    let is_unsafe = |letter| letter != '\n' && is_unsafe(letter);
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_unsafe(letter) {
            let mut units = [0; 2];
            escaped.extend(letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            escaped.push(letter);
        }
    }
    Cow::Owned(escaped)
}

/// Escapes a URL for one line. White space and unsafe characters are percent-encoded, as a browser would send them.
pub fn address(text: &str) -> Cow<'_, str> {
    let is_encoded = |letter: char| letter.is_whitespace() || is_unsafe(letter);
    if !text.chars().any(is_encoded) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_encoded(letter) {
            encoded.extend(letter.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")));
        } else {
            encoded.push(letter);
        }
    }
    Cow::Owned(encoded)
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_escaped(letter) { escaped.extend(letter.escape_default()) } else { escaped.push(letter) }
    }
    Cow::Owned(escaped)
}

/// A writer that escapes text and truncates it after a number of characters.
#[derive(Debug)]
pub(crate) struct Escaping<W> {
    inner: W,
    chars_left: usize,
    is_cut: bool,
}

impl<W: Write> Escaping<W> {
    pub(crate) const fn new(inner: W, chars_max: usize) -> Self {
        Self { inner, chars_left: chars_max, is_cut: false }
    }

    fn put(&mut self, letter: char) -> fmt::Result {
        if self.chars_left > 0 {
            self.chars_left -= 1;
            return self.inner.write_char(letter);
        }
        if self.is_cut {
            return Ok(());
        }
        self.is_cut = true;
        self.inner.write_str(CUT_MARK)
    }
}

impl<W: Write> Write for Escaping<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            if self.is_cut {
                break;
            }
            if is_unsafe(letter) {
                letter.escape_default().try_for_each(|letter| self.put(letter))?;
            } else {
                self.put(letter)?;
            }
        }
        Ok(())
    }
}

/// Quotes a word for a shell.
pub fn shell_word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+:@,=".contains(letter);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_on_one_line() {
        let hostile = "https://a.example/{id}\n- b\r\u{2028}\u{85}\u{202e}\t\u{a0}?q=é";
        let encoded = address(hostile);
        assert_eq!(encoded, "https://a.example/{id}%0A-%20b%0D%E2%80%A8%C2%85%E2%80%AE%09%C2%A0?q=é");
        assert!(matches!(address("https://a.example/é?q={x}"), Cow::Borrowed(_)));
    }

    #[test]
    fn escapes_controls_separators_and_bidi_marks() {
        for (hostile, shown) in [
            ("a\r\nb", r"a\r\nb"),
            ("\u{1b}[2J\u{7}\u{7f}", r"\u{1b}[2J\u{7}\u{7f}"),
            ("\u{9b}31m\u{85}", r"\u{9b}31m\u{85}"),
            ("a\u{2028}b\u{2029}c", r"a\u{2028}b\u{2029}c"),
            ("\u{202e}txt.exe\u{2066}\u{200f}", r"\u{202e}txt.exe\u{2066}\u{200f}"),
            ("\u{feff}\u{e0041}", r"\u{feff}\u{e0041}"),
        ] {
            assert_eq!(line(hostile), shown);
        }
        for plain in ["bücher.example – 東京 👩‍🚀", "quote \" and \\ stay", ""] {
            assert!(matches!(line(plain), Cow::Borrowed(_)), "{plain}");
        }
        assert_eq!(lines("a\nb\u{1b}"), "a\nb\\u{1b}");
        let hostile = "\u{9b}\u{202e}\u{e0041}\n";
        let written = serde_json::to_string(hostile).unwrap();
        let shown = json(&written);
        assert_eq!(shown, r#""\u009b\u202e\udb40\udc41\n""#);
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), hostile);
        assert!(matches!(json("{\n  \"a\": 1\n}"), Cow::Borrowed(_)));
    }

    #[test]
    fn truncates_long_values_with_a_mark() {
        let cut = |text: &str, chars_max| {
            let mut out = String::new();
            Escaping::new(&mut out, chars_max).write_str(text).unwrap();
            out
        };
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(cut("abcde", 4), format!("abcd{CUT_MARK}"));
        assert_eq!(cut("\n\n\n", 4), format!("\\n\\n{CUT_MARK}"));
        assert_eq!(cut(&"é".repeat(20_000), 10).chars().count(), 10 + CUT_MARK.chars().count());
    }
}
