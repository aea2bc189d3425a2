//! Reads one phrasing: words, `"phrases"`, `-word`, and `site:`, `type:`, `format:`, `method:`, `safety:`, `auth:`.
//!
//! It never refuses punctuation: what is no operator is text. Only an unknown value of a closed vocabulary is an error.

use manifest::model::UnknownValue;

use super::super::request::{Filters, Method};
use crate::analysis::words;

/// Most phrases and exclusions of one phrasing; later ones count as words.
const OPERATORS_MAX: usize = 8;
/// Beside more words than these, quotation marks quote a value and ask for no phrase: "the post with the id \"x\"".
const WORDS_BESIDE_PHRASES_MAX: usize = 3;

/// Words of a phrase at most: longer quotations are sentences, which no capability repeats word by word.
const PHRASE_WORDS_MAX: usize = 6;

/// One phrasing, understood.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Wish {
    /// The words to rank by, phrases included.
    pub(crate) text: String,
    pub(crate) phrases: Vec<Phrase>,
    /// Texts whose words must not appear.
    pub(crate) excluded: Vec<String>,
    pub(crate) filters: Filters,
}

/// Words that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phrase {
    /// Nothing else was asked: without the phrase there is no result.
    Strict(String),
    /// Among other words: asked for only when some capability has it.
    IfAny(String),
}

impl Phrase {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Strict(text) | Self::IfAny(text) => text,
        }
    }
}

pub(crate) fn parse(query: &str) -> Result<Wish, UnknownValue> {
    let mut wish = Wish::default();
    let mut quoted: Vec<String> = Vec::new();
    let mut words_beside = 0;
    let mut rest = query.trim_start();
    while !rest.is_empty() {
        let (piece, after) = next_piece(rest);
        rest = after.trim_start();
        match piece {
            Piece::Phrase(text) if quoted.len() < OPERATORS_MAX && is_phrase(text) => {
                quoted.push(text.to_owned());
                append(&mut wish.text, text);
            }
            Piece::Excluded(text) if wish.excluded.len() < OPERATORS_MAX => {
                wish.excluded.push(text.to_owned());
            }
            Piece::Operator(key, value) => apply(&mut wish.filters, key, value)?,
            Piece::Phrase(text) | Piece::Excluded(text) | Piece::Text(text) => {
                words_beside += words(text).count();
                append(&mut wish.text, text);
            }
        }
    }
    wish.phrases = match words_beside {
        0 => quoted.into_iter().map(Phrase::Strict).collect(),
        1..=WORDS_BESIDE_PHRASES_MAX => quoted.into_iter().map(Phrase::IfAny).collect(),
        _ => Vec::new(),
    };
    Ok(wish)
}

fn is_phrase(text: &str) -> bool {
    (1..=PHRASE_WORDS_MAX).contains(&words(text).count())
}

enum Piece<'a> {
    Text(&'a str),
    Phrase(&'a str),
    Excluded(&'a str),
    Operator(&'a str, &'a str),
}

/// Cuts the first piece off a text that begins with no white space.
fn next_piece(rest: &str) -> (Piece<'_>, &str) {
    if let Some((text, after)) = quoted_at(rest) {
        return (Piece::Phrase(text), after);
    }
    if let Some(negated) = rest.strip_prefix('-') {
        if let Some((text, after)) = quoted_at(negated) {
            return (Piece::Excluded(text), after);
        }
        if negated.starts_with(char::is_alphabetic) {
            let (word, after) = word_at(negated);
            return (Piece::Excluded(word), after);
        }
    }
    let (word, after) = word_at(rest);
    match word.split_once(':') {
        Some((key, value)) if is_operator(key) && !value.is_empty() => (Piece::Operator(key, value), after),
        _ => (Piece::Text(word), after),
    }
}

fn quoted_at(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('"')?;
    inner.split_once('"')
}

fn word_at(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(more);
}

fn is_operator(key: &str) -> bool {
    matches!(key, "site" | "type" | "format" | "method" | "safety" | "auth")
}

/// Commas mean OR, as in the parameters of the same names.
fn apply(filters: &mut Filters, key: &str, values: &str) -> Result<(), UnknownValue> {
    for value in values.split(',').filter(|value| !value.is_empty()) {
        match key {
            "site" => filters.sites.push(value.to_lowercase()),
            "type" => filters.semantic_types.push(value.to_lowercase()),
            "format" => filters.formats.push(value.to_lowercase().parse()?),
            "method" => filters.methods.push(Method::parse_loosely(value)?),
            "safety" => filters.safety.push(value.to_lowercase().parse()?),
            _ => filters.auth.push(value.to_lowercase().parse()?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use manifest::model::Format;
    use proptest::prelude::*;

    #[test]
    fn operators_are_taken_out_of_the_text() {
        let wish =
            parse("book -hotel \"window seat\" site:Skyhop.example type:travel:* format:awp,woa method:post")
                .unwrap();
        assert_eq!(wish.text, "book window seat");
        assert_eq!(wish.excluded, ["hotel"]);
        assert_eq!(wish.phrases, [Phrase::IfAny("window seat".into())]);
        assert_eq!(wish.filters.sites, ["skyhop.example"]);
        assert_eq!(wish.filters.semantic_types, ["travel:*"]);
        assert_eq!(wish.filters.formats, [Format::Awp, Format::Woa]);
        assert_eq!(wish.filters.methods, [Method::Post]);
    }

    #[test]
    fn a_phrase_alone_is_strict_and_a_quoted_value_is_none() {
        assert_eq!(parse("\"book flight\"").unwrap().phrases, [Phrase::Strict("book flight".into())]);
        let wish = parse("show me everything about the post with id \"rOB hSV\"").unwrap();
        assert_eq!(wish.phrases, []);
        assert!(wish.text.ends_with("rOB hSV"));
        let sentence = "\"Book me a flight to Oslo and a hotel there\"";
        assert_eq!(parse(sentence).unwrap().phrases, []);
    }

    #[test]
    fn punctuation_that_is_no_operator_is_text() {
        for text in
            ["a - b", "-5 degrees", "re: invoice", "site:", "\"unclosed", "16:30 o'clock", "well-known"]
        {
            let wish = parse(text).unwrap();
            assert!(wish.excluded.is_empty() && wish.filters.is_empty() && wish.phrases.is_empty(), "{text}");
            assert!(!wish.text.is_empty(), "{text}");
        }
    }

    #[test]
    fn an_unknown_value_says_what_is_known() {
        let error = parse("format:pdf").unwrap_err();
        assert!(error.to_string().contains("awp, atp"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_for_an_unknown_value(text in "[-\":a-z \\PC]{0,120}") {
            if let Ok(wish) = parse(&text) {
                prop_assert!(wish.text.len() <= text.len() + 1);
            }
        }
    }
}
