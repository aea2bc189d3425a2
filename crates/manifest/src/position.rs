//! Line and column of findings, computed on demand by a second scan of the text.

use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::bytes::{Decoded, decode};
use crate::document::SYNTAX;
use crate::json::{self, Outline};
use crate::model::Finding;
use crate::text;

/// The line and column of each finding, from 1, columns in characters: the position of a syntax error, or else of the value at the JSON
/// pointer. In a text of lines `Key: value`, as agents.txt, it is the position of the line. `None` if there is no value at the pointer.
///
/// JSON is scanned once for each level of the pointers, and lines once, independent of the number of findings.
pub fn finding_positions(bytes: &[u8], findings: &[Finding]) -> Vec<Option<(usize, usize)>> {
    let mut offsets = vec![None; findings.len()];
    let text = match decode(bytes) {
        Decoded::Refused(rule, offset) => {
            for (slot, finding) in offsets.iter_mut().zip(findings) {
                *slot = (finding.code == rule.code).then_some(offset);
            }
            return lines_and_columns(bytes, &offsets);
        }
        Decoded::Text(text, _) => text,
    };
    let is_syntax = |finding: &Finding| finding.code == SYNTAX.code;
    let stopped = || json::parse(text, &Outline::default()).err();
    let stopped = findings.iter().any(is_syntax).then(stopped).flatten().map(|error| error.offset);
    let is_here = |finding: &Finding| finding.pointer_document.is_none();
    let pointers: Vec<&str> =
        findings.iter().map(|finding| if is_here(finding) { finding.pointer.as_str() } else { "" }).collect();
    let found = if findings.iter().all(is_syntax) { Vec::new() } else { positions(text, &pointers) };
    for (index, (slot, finding)) in offsets.iter_mut().zip(findings).enumerate() {
        *slot = match finding {
            finding if !is_here(finding) => None,
            finding if is_syntax(finding) => stopped,
            _ => found.get(index).copied().flatten(),
        };
    }
    lines_and_columns(text.as_bytes(), &offsets)
}

/// Maximum length of a quoted line, in characters: as much as one reads at a glance.
const QUOTED_CHARS_MAX: usize = 60;

/// Where a text is wrong, as words: ``line 3, column 12: `"domain" "kiosk.example"` ``. Quotes the line from its beginning, or from shortly
/// before the place if the line is long. The offset counts bytes.
pub(crate) fn place_words(text: &str, offset: usize) -> String {
    let offset = offset.min(text.len());
    let Some(Some((line, column))) = lines_and_columns(text.as_bytes(), &[Some(offset)]).pop() else {
        return format!("byte {offset}");
    };
    let place = format!("line {line}, column {column}");
    let whole = text.lines().nth(line - 1).unwrap_or_default();
    let skipped = if whole.chars().count() > QUOTED_CHARS_MAX {
        column.saturating_sub(QUOTED_CHARS_MAX / 2)
    } else {
        0
    };
    let quoted: String = whole.chars().skip(skipped).take(QUOTED_CHARS_MAX).collect();
    let quoted = text::clean(&quoted, |_, _| {}).unwrap_or(quoted);
    let quoted = quoted.trim();
    if quoted.is_empty() || quoted.contains('`') { place } else { format!("{place}: `{quoted}`") }
}

/// Lines and columns of offsets, in one pass over the text.
fn lines_and_columns(text: &[u8], offsets: &[Option<usize>]) -> Vec<Option<(usize, usize)>> {
    let mut order: Vec<(usize, usize)> =
        offsets.iter().enumerate().filter_map(|(index, offset)| Some(((*offset)?, index))).collect();
    order.sort_unstable();
    let mut places = vec![None; offsets.len()];
    let (mut counted_to, mut line, mut column) = (0, 1, 1);
    for (offset, index) in order {
        let Some(between) = text.get(counted_to..offset) else { break };
        for byte in between {
            // Bytes that continue a character begin with the bits 10.
            match byte {
                b'\n' => (line, column) = (line + 1, 1),
                byte if byte & 0xC0 != 0x80 => column += 1,
                _ => {}
            }
        }
        counted_to = offset;
        if let Some(slot) = places.get_mut(index) {
            *slot = Some((line, column));
        }
    }
    places
}

/// Longest pointer in steps; deeper values are not read.
const STEPS_MAX: usize = json::DEPTH_MAX;

/// The pointers that pass through one value, by their next step.
#[derive(Default)]
struct PointerTree {
    /// Indices of the pointers that end here.
    here: Vec<usize>,
    below: HashMap<String, Self>,
}

/// The offset of the value at each pointer; `None` if there is no value.
fn positions(text: &str, pointers: &[&str]) -> Vec<Option<usize>> {
    let mut offsets = vec![None; pointers.len()];
    let mut root = PointerTree::default();
    for (index, pointer) in pointers.iter().enumerate() {
        if pointer.split('/').nth(STEPS_MAX + 1).is_some() {
            continue;
        }
        let mut wanted = &mut root;
        for step in pointer.split('/').skip(1) {
            wanted = wanted.below.entry(step.replace("~1", "/").replace("~0", "~")).or_default();
        }
        wanted.here.push(index);
    }
    if let Ok(raw) = serde_json::from_str::<&RawValue>(text) {
        walk(text, raw, &root, &mut offsets);
    } else {
        let lines = keyed_lines(text);
        for (offset, pointer) in offsets.iter_mut().zip(pointers) {
            *offset = line_at(&lines, pointer);
        }
    }
    offsets
}

/// Maximum number of lines with a key that are compared with pointers.
const KEYED_LINES_MAX: usize = 2_000;

/// A line `Key: value` that is neither a comment nor indented below another one.
struct KeyedLine<'t> {
    offset: usize,
    is_indented: bool,
    /// In lower case, without hyphens and underscores.
    key: String,
    value: &'t str,
}

fn keyed_lines(text: &str) -> Vec<KeyedLine<'_>> {
    let mut end = 0;
    let lines = text.split_inclusive('\n').filter_map(|line| {
        let start = end;
        end += line.len();
        let trimmed = line.trim_start();
        let (key, value) = trimmed.split_once(':').filter(|_| !trimmed.starts_with('#'))?;
        let offset = start + line.len() - trimmed.len();
        Some(KeyedLine { offset, is_indented: offset > start, key: plain_key(key), value: value.trim() })
    });
    lines.take(KEYED_LINES_MAX).collect()
}

fn plain_key(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase()).collect()
}

/// The line that became the value at a pointer: `/capabilities/1/method` is in the second block of `Capability:`, and `/site/name` is the
/// line `Site-Name:`. A value that has no line of its own is at the line that contains it.
fn line_at(lines: &[KeyedLine<'_>], pointer: &str) -> Option<usize> {
    let steps: Vec<&str> = pointer.split('/').skip(1).collect();
    let top = |key: &str| lines.iter().find(|line| !line.is_indented && line.key == key);
    let block = match *steps.as_slice() {
        ["capabilities", index, ..] => {
            let index = index.parse().ok()?;
            lines
                .iter()
                .enumerate()
                .filter(|(_, line)| !line.is_indented && line.key == "capability")
                .nth(index)
        }
        ["agents", agent, ..] => {
            lines.iter().enumerate().find(|(_, line)| line.key == "agent" && line.value == agent)
        }
        [first, ..] => {
            let whole = steps.iter().map(|step| plain_key(step)).collect::<String>();
            return top(&whole).or_else(|| top(&plain_key(first))).map(|line| line.offset);
        }
        [] => None,
    };
    let (at, head) = block?;
    let mut body = lines.get(at + 1..)?.iter().take_while(|line| line.is_indented);
    let member = steps.get(2).map(|step| plain_key(step));
    let line = member.and_then(|key| body.find(|line| line.key == key));
    Some(line.unwrap_or(head).offset)
}

fn walk(text: &str, raw: &RawValue, wanted: &PointerTree, offsets: &mut [Option<usize>]) {
    // The raw value borrows from `text`, so the distance of the two addresses is its offset.
    let offset = raw.get().as_ptr().addr().checked_sub(text.as_ptr().addr());
    for index in &wanted.here {
        if let Some(slot) = offsets.get_mut(*index) {
            *slot = offset;
        }
    }
    if wanted.below.is_empty() {
        return;
    }
    let children = Children { wanted }.deserialize(&mut serde_json::Deserializer::from_str(raw.get()));
    for (step, child) in children.unwrap_or_default() {
        if let Some(below) = wanted.below.get(&step) {
            walk(text, child, below, offsets);
        }
    }
}

/// Extracts the wanted children of one container and skips the others. The last of two equal names counts.
struct Children<'w> {
    wanted: &'w PointerTree,
}

impl<'de> DeserializeSeed<'de> for Children<'_> {
    type Value = HashMap<String, &'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Children<'_> {
    type Value = HashMap<String, &'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let wanted: HashMap<usize, &String> =
            self.wanted.below.keys().filter_map(|step| Some((step.parse().ok()?, step))).collect();
        let mut found = HashMap::new();
        for index in 0_usize.. {
            if let Some(step) = wanted.get(&index) {
                let Some(raw) = list.next_element::<&RawValue>()? else { break };
                found.insert((*step).clone(), raw);
            } else if list.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(found)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut found = HashMap::new();
        while let Some(name) = object.next_key::<String>()? {
            if self.wanted.below.contains_key(&name) {
                found.insert(name, object.next_value::<&RawValue>()?);
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Discovery, Document, ManifestUrl};

    fn position(text: &str, pointer: &str) -> Option<(usize, usize)> {
        let offsets = positions(text, &[pointer]);
        lines_and_columns(text.as_bytes(), &offsets)[0]
    }

    #[test]
    fn converts_pointers_to_lines_and_columns() {
        let text = "{\n  \"ä\": [1,\n    {\"a/b\": true}]\n}";
        assert_eq!(position(text, ""), Some((1, 1)));
        assert_eq!(position(text, "/ä/0"), Some((2, 9)));
        assert_eq!(position(text, "/ä/1/a~1b"), Some((3, 13)));
        assert_eq!(position(text, "/none"), None);
        assert_eq!(position("{", ""), None);
    }

    #[test]
    fn pointers_into_lines_are_the_positions_of_the_lines() {
        let text = "# Site-Name: no\nSite-Name: A\nRate_Limit: x\nCapability: a\n  Method: GET\nCapability: b\n  Auth: none\n\
                    \tMethod: FETCH\nAgent: bot\n  Capabilities: c\n";
        for (pointer, at) in [
            ("/site/name", Some((2, 1))),
            ("/rate-limit", Some((3, 1))),
            ("/rateLimit/requests", Some((3, 1))),
            ("/capabilities/0/method", Some((5, 3))),
            ("/capabilities/1/method", Some((8, 2))),
            ("/capabilities/1/endpoint", Some((6, 1))),
            ("/capabilities/2", None),
            ("/agents/bot/capabilities/0", Some((10, 3))),
            ("/site/url", None),
            ("", None),
        ] {
            assert_eq!(position(text, pointer), at, "{pointer}");
        }
    }

    #[test]
    fn place_of_a_syntax_error_is_quoted() {
        assert_eq!(place_words("{\n  \"\"a\"\": 1}", 5), "line 2, column 4: `\"\"a\"\": 1}`");
        assert_eq!(place_words("{\n\n", 3), "line 3, column 1");
        assert_eq!(place_words("{`}", 9), "line 1, column 4");
        let long = format!("{{\"é\": \"{}\" x, {}}}", "ä".repeat(5_000), "ö".repeat(5_000));
        let words = place_words(&long, long.find(" x,").unwrap());
        let (place, quoted) = words.split_once(": ").unwrap();
        assert_eq!(place, "line 1, column 5009");
        assert!(quoted.contains("ä\" x, ö") && quoted.chars().count() <= QUOTED_CHARS_MAX + 2, "{quoted}");
        assert!(!place_words("{\u{202e}\u{7}x", 1).contains(['\u{202e}', '\u{7}']));
    }

    #[test]
    fn syntax_errors_have_the_position_at_which_reading_stopped() {
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
            assert_eq!(
                finding_positions(bytes, std::slice::from_ref(finding)),
                [Some(expected)],
                "{}",
                finding.text
            );
        }
    }
}
