//! Converts a line of robots.txt to the text that a person sees.
//!
//! Editors and joined files leave invisible characters in lines: byte order marks, zero-width and no-break spaces, soft hyphens. Other
//! crawlers read such a line as an unknown field, or as a path that no URL has. But its author sees a rule that forbids something.

/// Replaces characters that are not shown.
pub(super) const HIDDEN: u8 = 0;
/// Replaces a character that is shown as a space and is not ASCII.
pub(super) const BLANK: u8 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Shown,
    Blank,
    Hidden,
    /// Some editors show the rest on the next line.
    LineBreak,
}

/// A line as a person sees it, with [`HIDDEN`] and [`BLANK`] in place of invisible characters, followed by its parts if some editors show
/// it as several lines. `None` if the line contains no such characters.
pub(super) fn visible_lines(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    if line.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
        return None;
    }
    let (mut seen, mut breaks, mut is_unclear, mut has_colon) = (Vec::new(), Vec::new(), false, false);
    for chunk in line.utf8_chunks() {
        for character in chunk.valid().chars() {
            // a full-width colon ends the field name if no other colon precedes it
            let is_wide_colon = character == '\u{ff1a}' && !has_colon;
            let character = if is_wide_colon { ':' } else { character };
            has_colon |= character == ':';
            let look = look(character);
            is_unclear |= look != Look::Shown || is_wide_colon;
            match look {
                Look::Shown => seen.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
                Look::Hidden => seen.push(HIDDEN),
                Look::Blank => seen.push(BLANK),
                Look::LineBreak => {
                    breaks.push(seen.len());
                    seen.push(BLANK);
                }
            }
        }
        for byte in chunk.invalid() {
            // Controls, the no-break space and the soft hyphen of Latin-1.
            let is_blank = matches!(byte, 0x80..=0xa0 | 0xad);
            is_unclear |= is_blank;
            seen.push(if is_blank { BLANK } else { *byte });
        }
    }
    let mut parts = Vec::new();
    if !breaks.is_empty() {
        let starts = std::iter::once(0).chain(breaks.iter().map(|at| at + 1));
        let ends = breaks.iter().copied().chain([seen.len()]);
        parts.extend(starts.zip(ends).filter_map(|(start, end)| Some(seen.get(start..end)?.to_vec())));
    }
    is_unclear.then(|| std::iter::once(seen).chain(parts).collect())
}

/// How a character is shown. Special cases are control characters, separators, and characters with the property
/// `Default_Ignorable_Code_Point` (Unicode, DerivedCoreProperties.txt).
fn look(character: char) -> Look {
    match character {
        '\t' | ' '..='~' => Look::Shown,
        '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Look::LineBreak,
        '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}' => Look::Blank,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => Look::Hidden,
        _ if character.is_control() => Look::Hidden,
        _ if character.is_whitespace() => Look::Blank,
        _ => Look::Shown,
    }
}

/// The text of a name or a value, without hidden characters and with ASCII spaces.
pub(super) fn shown(seen: &[u8]) -> Vec<u8> {
    let shown = seen.iter().filter(|byte| **byte != HIDDEN);
    shown.map(|byte| if *byte == BLANK { b' ' } else { *byte }).collect()
}

/// A path that matches with and without the characters that are not shown.
pub(super) fn with_wildcards(seen: &[u8]) -> Vec<u8> {
    let mut path = Vec::new();
    for run in seen.split(|byte| matches!(*byte, HIDDEN | BLANK)).filter(|run| !run.is_empty()) {
        if !path.is_empty() {
            path.push(b'*');
        }
        path.extend_from_slice(run);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Option<Vec<String>> {
        let text_of = |line: Vec<u8>| String::from_utf8(shown(&line)).unwrap();
        visible_lines(text.as_bytes()).map(|lines| lines.into_iter().map(text_of).collect())
    }

    #[test]
    fn ordinary_lines_are_read_as_they_are() {
        for text in ["", "Disallow: /x\t# y", "Disallow: /ツ", "Disallow: /a：b", "Disallow: /café"] {
            assert_eq!(lines(text), None, "{text}");
        }
        assert_eq!(visible_lines(b"Disallow: /caf\xe9"), None);
    }

    #[test]
    fn invisible_characters_are_dropped_and_line_breaks_split() {
        assert_eq!(lines("Dis\u{ad}allow\u{a0}: /").unwrap(), ["Disallow : /"]);
        assert_eq!(lines("Disallow：/").unwrap(), ["Disallow:/"]);
        let broken = lines("a: 1\u{b}b: 2\u{85}c: 3\u{2028}d: 4").unwrap();
        assert_eq!(broken, ["a: 1 b: 2 c: 3 d: 4", "a: 1", "b: 2", "c: 3", "d: 4"]);
        let latin1 = visible_lines(b"\xa0Disallow: /").unwrap();
        assert_eq!(shown(&latin1[0]), b" Disallow: /");
        let path = visible_lines("/a\u{200c}\u{200c}b\u{a0}c".as_bytes()).unwrap();
        assert_eq!(with_wildcards(&path[0]), b"/a*b*c");
    }
}
