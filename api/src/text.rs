//! Makes texts of clients and publishers safe to repeat: removes hidden characters and limits the length.

/// Characters that a person cannot see: controls other than line ends and tabs, and those that reorder text.
pub(crate) fn is_hidden(character: char) -> bool {
    let reorders =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    // XML forbids the last two characters of the first plane, and one of them would break a feed.
    let is_noncharacter = matches!(character, '\u{fffe}' | '\u{ffff}');
    reorders || is_noncharacter || (character.is_control() && !matches!(character, '\n' | '\t'))
}

/// The visible characters of a text on one line, at most `chars_max` of them.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
    let visible: String = text.chars().filter(|character| !is_hidden(*character)).collect();
    let line = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= chars_max {
        return line;
    }
    let mut cut: String = line.chars().take(chars_max.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// At most `chars_max` characters of a text, with an ellipsis if it was longer.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A text in quotation marks that it cannot close: quotation marks inside it, similar-looking characters, and runs of apostrophes become an
/// apostrophe.
pub(crate) fn quoted(text: &str) -> String {
    let mut chars: Vec<char> =
        text.chars().map(|char| if is_quotation_mark(char) { '\'' } else { char }).collect();
    chars.dedup_by(|next, before| *next == '\'' && *before == '\'');
    format!("\"{}\"", String::from_iter(chars))
}

/// Whether a character is a double quotation mark or looks like one (Unicode 16: names with QUOTATION MARK or DOUBLE PRIME, and the
/// corner brackets).
const fn is_quotation_mark(char: char) -> bool {
    matches!(
        char,
        '"' | '\u{ab}'
            | '\u{bb}'
            | '\u{2ba}'
            | '\u{2dd}'
            | '\u{2ee}'
            | '\u{5f4}'
            | '\u{201c}'..='\u{201f}'
            | '\u{2033}'
            | '\u{2034}'
            | '\u{2036}'
            | '\u{2037}'
            | '\u{275d}'
            | '\u{275e}'
            | '\u{2760}'
            | '\u{2e42}'
            | '\u{300c}'..='\u{300f}'
            | '\u{301d}'..='\u{301f}'
            | '\u{ff02}'
            | '\u{1f676}'..='\u{1f678}'
            | '\u{e0022}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_visible_and_bounded() {
        assert_eq!(one_line(" Book\u{202e} a\n\tseat\u{7} ", 80), "Book a seat");
        assert_eq!(one_line("Book\u{fffe} a\u{ffff} seat", 80), "Book a seat", "XML forbids them");
        assert_eq!(one_line("déjà vu", 5), "déjà…");
        assert_eq!((cut("déjà vu", 4), cut("déjà", 4)), ("déjà…".to_owned(), "déjà".to_owned()));
    }
}
