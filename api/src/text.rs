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
