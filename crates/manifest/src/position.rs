//! Line and column of a finding, computed only when it is shown: a second scan that keeps nothing.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::bytes::{Decoded, decode};
use crate::json;
use crate::model::Finding;
use crate::read::SYNTAX;

/// The place of a finding: line and column from 1, columns in characters. Where a document stops being text or JSON, that
/// is where its reading ended; elsewhere it is the value that the JSON pointer names.
///
/// `None` when the bytes are not JSON, or the pointer leads nowhere.
pub fn place(bytes: &[u8], finding: &Finding) -> Option<(usize, usize)> {
    match (decode(bytes), finding.code.as_ref()) {
        (Decoded::Refused(rule, offset), code) if rule.code == code => {
            Some(line_and_column(bytes.get(..offset)?))
        }
        (Decoded::Text(text, _), code) if code == SYNTAX.code => {
            let stopped = json::parse(text).err()?.offset;
            Some(line_and_column(text.as_bytes().get(..stopped)?))
        }
        (Decoded::Text(text, _), _) => position(text, &finding.pointer),
        (Decoded::Refused(..), _) => None,
    }
}

fn position(text: &str, pointer: &str) -> Option<(usize, usize)> {
    let mut raw: &RawValue = serde_json::from_str(text).ok()?;
    for step in pointer.split('/').skip(1) {
        raw = child(raw, &step.replace("~1", "/").replace("~0", "~"))?;
    }
    // The raw value borrows from `text`, so the distance of the two addresses is its offset.
    let offset = raw.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    Some(line_and_column(text.as_bytes().get(..offset)?))
}

/// Where the byte after these stands.
fn line_and_column(before: &[u8]) -> (usize, usize) {
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let line = before.split(|byte| *byte == b'\n').count();
    let in_line = before.get(line_start..).unwrap_or_default();
    (line, String::from_utf8_lossy(in_line).chars().count() + 1)
}

fn child<'t>(raw: &'t RawValue, step: &str) -> Option<&'t RawValue> {
    match raw.get().as_bytes().first()? {
        b'{' => serde_json::from_str::<HashMap<String, &RawValue>>(raw.get()).ok()?.remove(step),
        b'[' => {
            serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok()?.get(step.parse::<usize>().ok()?).copied()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Discovery, Document, ManifestUrl};

    #[test]
    fn pointers_lead_to_lines_and_columns() {
        let text = "{\n  \"ä\": [1,\n    {\"a/b\": true}]\n}";
        assert_eq!(position(text, ""), Some((1, 1)));
        assert_eq!(position(text, "/ä/0"), Some((2, 9)));
        assert_eq!(position(text, "/ä/1/a~1b"), Some((3, 13)));
        assert_eq!(position(text, "/none"), None);
        assert_eq!(position("{", ""), None);
    }

    #[test]
    fn what_cannot_be_read_is_placed_where_reading_stopped() {
        let url = ManifestUrl::parse("https://a.example/agent.json").unwrap();
        for (bytes, code, expected) in [
            ("{\n  \"ä\": \"ü\" \"b\": 1\n}".as_bytes(), "json.syntax", (2, 12)),
            (b"\xEF\xBB\xBF{\"a\": 1,}".as_slice(), "json.syntax", (1, 9)),
            (b"{\n\n  \"a\": [1, 2\n".as_slice(), "json.syntax", (4, 1)),
            (b"{\n  \"a\": \"\xFF\"}".as_slice(), "document.not_utf8", (2, 9)),
            (b"{\0}\0".as_slice(), "document.utf16", (1, 1)),
        ] {
            let document = Document {
                bytes,
                url: &url,
                final_url: None,
                discovery: Discovery::Submitted,
                served: None,
                linked: &[],
                force: None,
            };
            let read = crate::read(&document);
            let finding = read.findings.iter().find(|finding| finding.code == code).unwrap();
            assert_eq!(place(bytes, finding), Some(expected), "{}", finding.text);
        }
    }
}
