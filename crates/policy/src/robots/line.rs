//! Splits robots.txt into records: one field with its value per line (RFC 9309 §2.2).
//!
//! This never fails. The misspellings that google/robotstxt accepts are accepted here too. Any other line is a record of an unknown field
//! and has no effect (§2.2.4). A line with invisible characters is read as a person sees it, and cannot allow anything, because other
//! crawlers read it differently.

use std::borrow::Cow;

use super::visible::{BLANK, HIDDEN, shown, visible_lines, with_wildcards};
use crate::plan::BodyKind;

/// Maximum number of bytes of robots.txt that are read.
pub const BODY_BYTES_MAX: usize = BodyKind::Robots.bytes_max();

/// The meaning of a field name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
    Agentmap,
    /// A statement about the use of content.
    ContentSignal,
    ContentUsage,
    Unknown,
}

/// How a field name was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    Right,
    Misspelt,
}

/// One line that has a field and a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// Counted from 1, as an editor shows it.
    pub(super) line: u32,
    pub(super) field: Field,
    pub(super) spelling: Spelling,
    pub(super) value: Cow<'a, [u8]>,
    /// Whether every crawler reads the line in the same way.
    pub(super) is_clear: bool,
}

/// Maximum bytes of the path in a line that is read as a person sees it. A longer path is truncated, so that all paths with this prefix are
/// forbidden, which is stricter.
const UNCLEAR_PATH_BYTES_MAX: usize = 16 * 1_024;

const SPELLINGS: &[(&str, Field, Spelling)] = &[
    ("user-agent", Field::UserAgent, Spelling::Right),
    ("useragent", Field::UserAgent, Spelling::Misspelt),
    ("user agent", Field::UserAgent, Spelling::Misspelt),
    ("allow", Field::Allow, Spelling::Right),
    ("disallow", Field::Disallow, Spelling::Right),
    ("dissallow", Field::Disallow, Spelling::Misspelt),
    ("dissalow", Field::Disallow, Spelling::Misspelt),
    ("disalow", Field::Disallow, Spelling::Misspelt),
    ("diasllow", Field::Disallow, Spelling::Misspelt),
    ("disallaw", Field::Disallow, Spelling::Misspelt),
    ("crawl-delay", Field::CrawlDelay, Spelling::Right),
    ("crawldelay", Field::CrawlDelay, Spelling::Misspelt),
    ("crawl delay", Field::CrawlDelay, Spelling::Misspelt),
    ("sitemap", Field::Sitemap, Spelling::Right),
    ("site-map", Field::Sitemap, Spelling::Misspelt),
    ("agentmap", Field::Agentmap, Spelling::Right),
    ("agent-map", Field::Agentmap, Spelling::Misspelt),
    ("content-signal", Field::ContentSignal, Spelling::Right),
    ("content-usage", Field::ContentUsage, Spelling::Right),
];

/// The part of a body that is read, as UTF-8 (possibly invalid), without byte order mark.
pub(super) struct Text<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// Bytes of the body beyond the cap.
    pub(super) bytes_cut: usize,
}

/// Cuts a body at the last full line under the cap and drops its byte order mark. UTF-16, which some editors write, is decoded. Otherwise
/// the file would have no rules, and everything would be allowed. Without a mark, and for UTF-32, the zero bytes of its ASCII characters
/// are dropped.
pub(super) fn text(body: &[u8]) -> Text<'_> {
    let bytes = match body.get(..BODY_BYTES_MAX) {
        Some(head) => {
            let end = head.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(head.len());
            head.get(..end).unwrap_or(head)
        }
        None => body,
    };
    let decoded = match bytes {
        [0xff, 0xfe, rest @ ..] if !rest.starts_with(&[0, 0]) => Cow::Owned(utf16(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(utf16(rest, u16::from_be_bytes)),
        _ if has_wide_characters(bytes) => {
            // 0xfe and 0xff are the mark of UTF-32, and no bytes of UTF-8
            Cow::Owned(bytes.iter().copied().filter(|byte| !matches!(byte, 0 | 0xfe | 0xff)).collect())
        }
        _ => Cow::Borrowed(without_mark(bytes)),
    };
    Text { bytes: decoded, bytes_cut: body.len() - bytes.len() }
}

/// Whether a text begins with ASCII characters of two or four bytes each: every pair of bytes has a zero.
fn has_wide_characters(bytes: &[u8]) -> bool {
    let has_zero = |unit: &[u8]| unit.contains(&0);
    // the first four bytes may be a byte order mark
    bytes.get(4..12).is_some_and(|first| first.chunks(2).all(has_zero))
}

/// Several byte order marks and a truncated one are skipped too.
fn without_mark(mut bytes: &[u8]) -> &[u8] {
    const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
    while let Some(rest) = bytes.strip_prefix(&MARK) {
        bytes = rest;
    }
    let length = bytes.iter().zip(MARK).take_while(|(byte, mark)| *byte == mark).count();
    let rest = bytes.get(length..).unwrap_or_default();
    // other characters begin with the same byte as the mark
    if matches!(rest.first(), Some(0x80..=0xbf)) { bytes } else { rest }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Vec<u8> {
    let units = bytes.chunks_exact(2).filter_map(|pair| pair.try_into().ok()).map(unit);
    char::decode_utf16(units)
        .map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect::<String>()
        .into_bytes()
}

/// The records of a text, in order.
pub(super) fn records(text: &[u8]) -> impl Iterator<Item = Record<'_>> {
    lines(text).zip(1_u32..).flat_map(|(bytes, line)| records_of_line(bytes, line))
}

/// Lines end with LF, CR or CR LF.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let current = rest?;
        let end = current.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let Some(end) = end else {
            rest = None;
            return Some(current);
        };
        let (line, tail) = current.split_at(end);
        rest = tail.strip_prefix(b"\r\n").or_else(|| tail.get(1..));
        Some(line)
    })
}

/// The records of one line. There are several if the line contains line breaks that only some editors show.
fn records_of_line(bytes: &[u8], line: u32) -> impl Iterator<Item = Record<'_>> {
    let visible = visible_lines(bytes);
    let clear = if visible.is_none() { clear_record(bytes, line) } else { None };
    let unclear = visible.unwrap_or_default().into_iter();
    clear.into_iter().chain(unclear.filter_map(move |seen| unclear_record(&seen, line)))
}

fn clear_record(bytes: &[u8], line: u32) -> Option<Record<'_>> {
    let (name, value) = name_and_value(bytes)?;
    let (field, spelling) = field_of(name);
    Some(Record { line, field, spelling, value: Cow::Borrowed(value), is_clear: true })
}

/// The record of a line as a person sees it. An Allow line is ignored, because other crawlers do not read it as one.
fn unclear_record(seen: &[u8], line: u32) -> Option<Record<'static>> {
    let (name, value) = name_and_value(seen)?;
    let (field, spelling) = field_of(&shown(name));
    let value = match field {
        Field::Allow => return None,
        Field::Disallow => with_wildcards(start_of_path(value)),
        _ => shown(value),
    };
    Some(Record { line, field, spelling, value: Cow::Owned(value), is_clear: false })
}

/// The first [`UNCLEAR_PATH_BYTES_MAX`] bytes of a path, without a part of a character or of an escape at their end.
fn start_of_path(path: &[u8]) -> &[u8] {
    if path.len() <= UNCLEAR_PATH_BYTES_MAX {
        return path;
    }
    let is_boundary = |at: &usize| path.get(*at).is_some_and(|byte| !matches!(byte, 0x80..=0xbf));
    let mut ends = (UNCLEAR_PATH_BYTES_MAX - 3..=UNCLEAR_PATH_BYTES_MAX).rev();
    let end = ends.find(is_boundary).unwrap_or(UNCLEAR_PATH_BYTES_MAX);
    let escape = (end - 2..end).find(|at| path.get(*at) == Some(&b'%'));
    path.get(..escape.unwrap_or(end)).unwrap_or(path)
}

fn field_of(name: &[u8]) -> (Field, Spelling) {
    let known = SPELLINGS.iter().find(|(spelling, ..)| name.eq_ignore_ascii_case(spelling.as_bytes()));
    known.map_or((Field::Unknown, Spelling::Right), |(_, field, spelling)| (*field, *spelling))
}

fn name_and_value(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let content = trim(bytes.split(|byte| *byte == b'#').next().unwrap_or_default());
    let (name, value) = match content.iter().position(|byte| *byte == b':') {
        Some(colon) => (content.get(..colon)?, content.get(colon + 1..)?),
        None => split_at_space(content)?,
    };
    Some((trim(name), trim(value)))
}

/// Without a colon, a line of exactly two words is a field and its value. Other text is not a record.
fn split_at_space(content: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = content.iter().position(|byte| is_space(*byte))?;
    let (name, value) = content.split_at(space);
    let value = trim(value);
    if value.iter().any(|byte| is_space(*byte)) { None } else { Some((name, value)) }
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == BLANK
}

fn trim(bytes: &[u8]) -> &[u8] {
    let blank = |byte: &u8| is_space(*byte) || *byte == HIDDEN;
    let start = bytes.iter().position(|byte| !blank(byte)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    bytes.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Vec<(u32, Field, String)> {
        let value = |record: Record<'_>| String::from_utf8_lossy(&record.value).into_owned();
        records(text).map(|record| (record.line, record.field, value(record))).collect()
    }

    #[test]
    fn counts_every_line_ending_once() {
        for text in [
            "a: 1\nallow: /x\n\nallow: /y",
            "a: 1\r\nallow: /x\r\n\r\nallow: /y",
            "a: 1\rallow: /x\r\rallow: /y",
        ] {
            let lines: Vec<u32> =
                records(text.as_bytes()).filter(|r| r.field == Field::Allow).map(|r| r.line).collect();
            assert_eq!(lines, [2, 4], "{text:?}");
        }
    }

    #[test]
    fn parses_fields_with_comments_spaces_and_missing_colons() {
        let table: [(&[u8], Field, &str); 12] = [
            (b"User-Agent: FooBot", Field::UserAgent, "FooBot"),
            (b"  DISALLOW\t:\t/a b # why", Field::Disallow, "/a b"),
            (b"disallow /a", Field::Disallow, "/a"),
            (b"Disallow:", Field::Disallow, ""),
            (b"dissalow: /", Field::Disallow, "/"),
            (b"user agent: x", Field::UserAgent, "x"),
            (b"Crawl-delay: 5", Field::CrawlDelay, "5"),
            (b"Sitemap: https://a.example/s.xml", Field::Sitemap, "https://a.example/s.xml"),
            (b"Agentmap: https://a.example/ard.json", Field::Agentmap, "https://a.example/ard.json"),
            (b"Content-Signal: ai-train=no", Field::ContentSignal, "ai-train=no"),
            (b"Noindex: /x", Field::Unknown, "/x"),
            (b"disallow: /a:b", Field::Disallow, "/a:b"),
        ];
        for (text, field, value) in table {
            assert_eq!(read(text), [(1, field, value.to_owned())], "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(read(b"disallow this and that"), []);
        assert_eq!(read(b"# only a comment"), []);
        assert_eq!(read(b""), []);
    }

    #[test]
    fn skips_byte_order_marks_and_decodes_utf16() {
        for mark in [&b"\xef\xbb\xbf"[..], b"\xef\xbb", b"\xef"] {
            let body = [mark, b"allow: /"].concat();
            assert_eq!(read(&text(&body).bytes), [(1, Field::Allow, "/".to_owned())]);
        }
        let broken = read(&text(b"\xef\x11\xbfallow: /\nallow: /b").bytes);
        assert_eq!(broken.iter().filter(|(_, field, _)| *field == Field::Allow).count(), 1);
        let utf16: Vec<u8> = "\u{feff}disallow: /ä".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(&text(&utf16).bytes), [(1, Field::Disallow, "/ä".to_owned())]);
    }

    #[test]
    fn reads_lines_with_invisible_characters_as_a_person_sees_them() {
        let table = [
            ("\u{feff}Disallow: /a", Field::Disallow, "/a"),
            ("Dis\u{200b}allow\u{2060}: /a\u{a0}", Field::Disallow, "/a"),
            ("Disallow\u{3000}/a", Field::Disallow, "/a"),
            ("Disallow: /a\u{ad}b", Field::Disallow, "/a*b"),
            ("User\u{a0}agent\u{180e}: \u{202a}*\u{202c}", Field::UserAgent, "*"),
            ("# why\u{2028}Disallow: /a", Field::Disallow, "/a"),
        ];
        for (text, field, value) in table {
            assert_eq!(read(text.as_bytes()), [(1, field, value.to_owned())], "{text:?}");
        }
        assert_eq!(read("\u{200b}Allow: /\nAllow:\u{a0}/\nAl\u{ad}low: /".as_bytes()), []);
        let both = read(b"User-agent: *\x0bDisallow: /\nAllow: /a");
        let expected = [
            (1, Field::UserAgent, "* Disallow: /"),
            (1, Field::UserAgent, "*"),
            (1, Field::Disallow, "/"),
            (2, Field::Allow, "/a"),
        ];
        assert_eq!(both, expected.map(|(line, field, value)| (line, field, value.to_owned())));
    }

    #[test]
    fn truncates_long_files_at_a_line_end() {
        let mut body = b"disallow: /first\n".to_vec();
        body.resize(BODY_BYTES_MAX - 5, b'#');
        body.extend_from_slice(b"\ndisallow: /cut-in-the-middle\n");
        let text = text(&body);
        assert!(text.bytes_cut > 20);
        assert_eq!(read(&text.bytes), [(1, Field::Disallow, "/first".to_owned())]);
    }
}
