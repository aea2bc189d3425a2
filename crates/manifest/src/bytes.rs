//! Checks the bytes before detection: byte order marks, encodings, and HTML pages that are served instead of manifests.
//!
//! It decides whether the bytes are text, and finds the first invalid byte. It repairs nothing.

use crate::rule::{Rule, findings};

pub(crate) enum Decoded<'a> {
    /// The text without its byte order mark, and the length of the mark in bytes.
    Text(&'a str, usize),
    /// Not text: the violated rule and the offset.
    Refused(&'static Rule, usize),
}

findings! {
    rule EMPTY: Must("document.empty", "RFC 8259 §2")
        "the document is empty" => "Serve the manifest's content, or respond with 404 if there is none.";
    rule UTF16: Must("document.utf16", "RFC 8259 §8.1")
        "the document is encoded in UTF-16" => "Save the file as UTF-8.";
    rule NOT_UTF8: Must("document.not_utf8", "RFC 8259 §8.1")
        "the document is not valid UTF-8" => "Save the file as UTF-8, and decompress it if it is compressed.";
    rule HTML: Must("document.html", "RFC 9110 §15.5.5")
        "the response is an HTML page, not a manifest"
            => "Serve the manifest itself at this path, or respond with 404 instead of the site's start page.";
    rule BOM: May("document.bom", "RFC 8259 §8.1")
        "the document begins with a byte order mark" => "Save the file as UTF-8 without byte order mark.";
}

/// Bytes inspected to recognise HTML: enough for comments before the doctype.
const HTML_SNIFF_BYTES: usize = 1_024;

pub(crate) fn decode(bytes: &[u8]) -> Decoded<'_> {
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) || looks_like_utf16(bytes) {
        return Decoded::Refused(&UTF16, 0);
    }
    let skipped = if bytes.starts_with(&[0xEF, 0xBB, 0xBF]) { 3 } else { 0 };
    match std::str::from_utf8(bytes.get(skipped..).unwrap_or_default()) {
        Ok(text) if text.trim().is_empty() => Decoded::Refused(&EMPTY, skipped),
        Ok(text) => Decoded::Text(text, skipped),
        Err(error) => Decoded::Refused(&NOT_UTF8, skipped + error.valid_up_to()),
    }
}

/// JSON begins with an ASCII character, so a zero among the first two bytes means 16-bit characters.
fn looks_like_utf16(bytes: &[u8]) -> bool {
    matches!(bytes, [0, second, ..] if *second != 0) || matches!(bytes, [first, 0, ..] if *first != 0)
}

/// Whether a body is an HTML page, regardless of its content type. Distinguishes soft 404s from manifests.
pub fn is_html(bytes: &[u8]) -> bool {
    let head = bytes.get(..bytes.len().min(HTML_SNIFF_BYTES)).unwrap_or_default();
    let mut rest = head.strip_prefix(&[0xEF, 0xBB, 0xBF]).unwrap_or(head).trim_ascii_start();
    while let Some(comment) = rest.strip_prefix(b"<!--").or_else(|| rest.strip_prefix(b"<?xml")) {
        match comment.iter().position(|byte| *byte == b'>') {
            Some(end) => rest = comment.get(end + 1..).unwrap_or_default().trim_ascii_start(),
            None => return false,
        }
    }
    [b"<!doctype html".as_slice(), b"<html", b"<head", b"<body"]
        .iter()
        .any(|tag| rest.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_html_after_comments_in_any_case() {
        assert!(is_html(b"\xEF\xBB\xBF  <!-- built --> <!DOCTYPE HTML><html>"));
        assert!(is_html(b"<html lang=en>"));
        assert!(!is_html(b"{\"html\": \"<html>\"}"));
        assert!(!is_html(b"# Title\n<html>"));
    }

    #[test]
    fn reports_the_offset_of_the_first_invalid_byte() {
        assert!(matches!(decode(b"ab\xFF"), Decoded::Refused(rule, 2) if rule.code == NOT_UTF8.code));
        assert!(matches!(decode(b"\xFF\xFE{\0"), Decoded::Refused(rule, 0) if rule.code == UTF16.code));
        assert!(matches!(decode(b"{\0}\0"), Decoded::Refused(rule, 0) if rule.code == UTF16.code));
        assert!(matches!(decode(b" \n"), Decoded::Refused(rule, 0) if rule.code == EMPTY.code));
        assert!(matches!(decode(b"\xEF\xBB\xBF{}"), Decoded::Text("{}", 3)));
    }
}
