//! Splits text into words with their byte offsets.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

/// Maximum length of a word that becomes a term, in characters. Longer ones are keys and hashes.
const WORD_CHARS_MAX: usize = 40;

/// A folded word, and its byte range in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) span: Range<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    /// A character of a script without spaces between words, or of Korean, whose words end in particles.
    Dense,
    Apostrophe,
    Separator,
}

impl Class {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' => Self::Lower,
            'A'..='Z' => Self::Upper,
            '0'..='9' => Self::Digit,
            '\'' | '’' => Self::Apostrophe,
            _ if c.is_ascii() => Self::Separator,
            '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{0e00}'..='\u{0eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1100}'..='\u{11ff}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{ac00}'..='\u{d7af}'
            | '\u{20000}'..='\u{3134f}' => Self::Dense,
            _ if c.is_uppercase() => Self::Upper,
            _ if c.is_numeric() => Self::Digit,
            // Combining marks belong to the word around them.
            _ if c.is_alphabetic() || unicode_normalization::char::is_combining_mark(c) => Self::Lower,
            _ => Self::Separator,
        }
    }
}

/// The words of a text, in order.
pub(crate) fn words(text: &str) -> impl Iterator<Item = Word> + '_ {
    let mut runs = Runs { text, at: 0 };
    let mut pending: Vec<Word> = Vec::new();
    std::iter::from_fn(move || {
        loop {
            if let Some(word) = pending.pop() {
                return Some(word);
            }
            let (span, class) = runs.next()?;
            let run = text.get(span.clone())?;
            if class == Class::Dense {
                pending.extend(pairs(run, span.start));
                pending.reverse();
            } else if run.len() <= WORD_CHARS_MAX || run.chars().count() <= WORD_CHARS_MAX {
                return Some(Word { text: fold(run), span });
            }
        }
    })
}

/// Splits where the case or kind of character changes.
struct Runs<'a> {
    text: &'a str,
    at: usize,
}

impl Iterator for Runs<'_> {
    type Item = (Range<usize>, Class);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..)?;
        let mut chars = rest.char_indices().map(|(at, c)| (at, c, Class::of(c)));
        let (skipped, _, first) =
            chars.by_ref().find(|(_, _, class)| !matches!(class, Class::Separator | Class::Apostrophe))?;
        let start = self.at + skipped;
        let mut end = self.text.len();
        let (mut last, mut last_at, mut uppers) = (first, start, usize::from(first == Class::Upper));
        for (offset, c, class) in chars {
            let at = self.at + offset;
            if class == last || (class == Class::Lower && last == Class::Upper) {
                // `APIs`: a plural, not the word `Is`
                let is_plural = c == 's' && self.is_end_of_letters(at + 1);
                if class == Class::Lower && last == Class::Upper && uppers > 1 && !is_plural {
                    // `HTTPServer`: the last capital begins the next word.
                    end = last_at;
                    break;
                }
                uppers = if class == Class::Upper { uppers + 1 } else { 0 };
                (last, last_at) = (class, at);
                continue;
            }
            end = at;
            break;
        }
        self.at = end + self.contraction(end);
        Some((start..end, first))
    }
}

impl Runs<'_> {
    /// Whether no letter follows at an offset.
    fn is_end_of_letters(&self, at: usize) -> bool {
        let next = self.text.get(at..).and_then(|rest| rest.chars().next());
        !next.is_some_and(char::is_alphabetic)
    }

    /// Length of an English contraction (`'s`, `'ve`) at an offset, which is skipped.
    fn contraction(&self, at: usize) -> usize {
        let Some(rest) = self.text.get(at..) else { return 0 };
        let Some(mark) = rest.chars().next().filter(|c| Class::of(*c) == Class::Apostrophe) else { return 0 };
        let tail: String = rest.chars().skip(1).take_while(|c| c.is_alphabetic()).take(3).collect();
        let known = matches!(tail.to_ascii_lowercase().as_str(), "s" | "m" | "d" | "t" | "re" | "ve" | "ll");
        if known { mark.len_utf8() + tail.len() } else { 0 }
    }
}

/// Overlapping pairs of characters; a single character is a word.
fn pairs(run: &str, offset: usize) -> Vec<Word> {
    let chars: Vec<(usize, char)> = run.char_indices().collect();
    let word = |slice: &[(usize, char)]| -> Option<Word> {
        let (start, _) = slice.first()?;
        let (last, c) = slice.last()?;
        let span = offset + start..offset + last + c.len_utf8();
        Some(Word { text: slice.iter().map(|(_, c)| *c).collect(), span })
    };
    if chars.len() == 1 {
        word(&chars).into_iter().collect()
    } else {
        chars.windows(2).filter_map(word).collect()
    }
}

/// The characters of a pair of a script without spaces; none for other words.
pub(crate) fn dense_characters(word: &str) -> impl Iterator<Item = char> + '_ {
    let is_dense = word.chars().next().is_some_and(|first| Class::of(first) == Class::Dense);
    word.chars().filter(move |_| is_dense)
}

/// Lower case, without the accents of Latin letters.
fn fold(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    word.chars().flat_map(char::to_lowercase).flat_map(fold_char).collect()
}

fn fold_char(c: char) -> impl Iterator<Item = char> {
    // Letters whose accent is not a separate character.
    let c = match c {
        'ı' => 'i',
        'ł' => 'l',
        'ø' => 'o',
        'đ' => 'd',
        _ => c,
    };
    let is_latin = c < '\u{250}' || ('\u{1e00}'..'\u{1f00}').contains(&c);
    let is_accent = ('\u{300}'..'\u{370}').contains(&c);
    let folded =
        is_latin.then(|| std::iter::once(c).nfd().find(|part| !('\u{300}'..'\u{370}').contains(part)));
    let kept = if is_accent { None } else { Some(folded.flatten().unwrap_or(c)) };
    kept.into_iter()
}

/// The form for comparing whole names: words joined by a space.
pub(crate) fn fold_exact(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in words(text) {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(&word.text);
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> Vec<String> {
        words(text).map(|word| word.text).collect()
    }

    #[test]
    fn splits_identifiers_into_words() {
        for (text, expected) in [
            ("bookFlight", vec!["book", "flight"]),
            ("book_flight.v2", vec!["book", "flight", "v", "2"]),
            ("HTTPServerURL", vec!["http", "server", "url"]),
            ("GetJSON", vec!["get", "json"]),
            ("APIs and listURLs_2", vec!["apis", "and", "list", "urls", "2"]),
            ("ISSue", vec!["is", "sue"]),
            ("dentist's", vec!["dentist"]),
            ("I've don’t", vec!["i", "don"]),
            ("O'Reilly", vec!["o", "reilly"]),
            ("CAFÉ Zürich", vec!["cafe", "zurich"]),
            ("Położenie ışık", vec!["polozenie", "isik"]),
            ("天气预报", vec!["天气", "气预", "预报"]),
            ("云", vec!["云"]),
            ("날씨를 보기", vec!["날씨", "씨를", "보기"]),
            ("", vec![]),
            ("--", vec![]),
        ] {
            assert_eq!(split(text), expected, "{text:?}");
        }
    }

    #[test]
    fn words_have_their_byte_ranges() {
        let text = "Zürich: bookFlight";
        let spans: Vec<&str> = words(text).filter_map(|word| text.get(word.span)).collect();
        assert_eq!(spans, ["Zürich", "book", "Flight"]);
    }

    #[test]
    fn spellings_of_a_name_have_the_same_exact_form() {
        assert_eq!(fold_exact("bookSeat"), fold_exact("Book seat"));
        assert_eq!(fold_exact("book_seat"), "book seat");
    }

    proptest! {
        #[test]
        fn byte_ranges_are_ascending_and_inside_the_text(text in "\\PC{0,200}") {
            let mut end = 0;
            for word in words(&text) {
                prop_assert!(text.get(word.span.clone()).is_some_and(|slice| !slice.is_empty()));
                prop_assert!(word.span.end >= end);
                end = word.span.end;
            }
        }
    }
}
