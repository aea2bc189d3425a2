//! Parses one phrasing: words, `"phrases"`, `-word`, and operators like `site:`, which [`crate::filter`] lists.
//!
//! Punctuation is never an error: anything that is not an operator is text. Only an unknown value of a closed vocabulary is an error.

use manifest::model::UnknownValue;

use crate::analysis::words;
use crate::filter::{FacetKey, Filters};
use crate::named_host::named_host;

/// Maximum length of a phrasing, in bytes. Requests to agents may contain pasted documents (the longest in the public tool-retrieval sets
/// has 18,686 bytes). Parsing them is cheap, because only the first words are used.
pub(crate) const QUERY_BYTES_MAX: usize = 32_768;
/// Maximum number of phrasings of one request.
pub(crate) const PHRASINGS_MAX: usize = 5;
/// Maximum number of phrases and exclusions of one phrasing; later ones count as words.
const OPERATORS_MAX: usize = 8;
/// If a phrasing has more other words than this, quotation marks are taken as quoting a value, not as a phrase: "the post with the id
/// \"x\"".
const WORDS_BESIDE_PHRASES_MAX: usize = 3;
/// Maximum number of words of a phrase or an exclusion. Longer quotations are sentences, which no capability contains verbatim.
const PHRASE_WORDS_MAX: usize = 6;

/// One phrasing, parsed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ParsedQuery {
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
    /// The phrasing has no other words, so results must contain the phrase.
    Strict(String),
    /// The phrasing has other words, so the phrase is required only if some capability contains it.
    IfPresent(String),
}

impl Phrase {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Strict(text) | Self::IfPresent(text) => text,
        }
    }
}

pub(crate) fn parse(query: &str) -> Result<ParsedQuery, UnknownValue> {
    let mut parsed = ParsedQuery::default();
    let mut quoted: Vec<String> = Vec::new();
    let mut words_beside = 0;
    let mut rest = query.trim_start();
    while !rest.is_empty() {
        let (piece, after) = next_piece(rest);
        rest = after.trim_start();
        match piece {
            // A domain is no condition: a request for it finds its site, whose texts need not contain it.
            Piece::Phrase(text)
                if quoted.len() < OPERATORS_MAX
                    && is_phrase(text)
                    && named_host(&text.to_lowercase()).is_none() =>
            {
                quoted.push(text.to_owned());
                append(&mut parsed.text, text);
            }
            Piece::Excluded(text) if parsed.excluded.len() < OPERATORS_MAX && is_phrase(text) => {
                parsed.excluded.push(text.to_owned());
            }
            Piece::Operator(key, values) => {
                // Commas mean OR, as in the HTTP parameters.
                for value in values.split(',').filter(|value| !value.is_empty()) {
                    parsed.filters.add(key, &value.to_lowercase())?;
                }
            }
            Piece::Phrase(text) | Piece::Excluded(text) | Piece::Text(text) => {
                words_beside += words(text).count();
                append(&mut parsed.text, text);
            }
        }
    }
    parsed.phrases = match words_beside {
        0 => quoted.into_iter().map(Phrase::Strict).collect(),
        1..=WORDS_BESIDE_PHRASES_MAX => quoted.into_iter().map(Phrase::IfPresent).collect(),
        _ => Vec::new(),
    };
    Ok(parsed)
}

/// The phrasing with operators that are misspelt by one letter, as in `sites:skyhop.example`, corrected. `None` if there are none.
pub(crate) fn with_known_operators(query: &str) -> Option<String> {
    let (mut corrected, mut has_changed) = (String::new(), false);
    let mut rest = query.trim_start();
    while !rest.is_empty() {
        let (piece, after) = next_piece(rest);
        let written = rest.get(..rest.len() - after.len())?.trim_end();
        rest = after.trim_start();
        let misspelt = match piece {
            Piece::Text(word) => word.split_once(':').filter(|(_, value)| !value.is_empty()),
            _ => None,
        };
        let operator = misspelt.and_then(|(name, value)| Some((FacetKey::operator_near(name)?, value)));
        has_changed |= operator.is_some();
        append(
            &mut corrected,
            &operator.map_or_else(|| written.to_owned(), |(name, value)| format!("{name}:{value}")),
        );
    }
    has_changed.then_some(corrected)
}

fn is_phrase(text: &str) -> bool {
    (1..=PHRASE_WORDS_MAX).contains(&words(text).count())
}

enum Piece<'a> {
    Text(&'a str),
    Phrase(&'a str),
    Excluded(&'a str),
    Operator(FacetKey, &'a str),
}

/// Splits the first piece off a text that does not begin with white space.
fn next_piece(rest: &str) -> (Piece<'_>, &str) {
    if let Some((text, after)) = split_quoted(rest) {
        return (Piece::Phrase(text), after);
    }
    if let Some(negated) = rest.strip_prefix('-') {
        if let Some((text, after)) = split_quoted(negated) {
            return (Piece::Excluded(text), after);
        }
        if negated.starts_with(char::is_alphabetic) {
            let (word, after) = split_word(negated);
            return (Piece::Excluded(word), after);
        }
    }
    let (word, after) = split_word(rest);
    let operator = word.split_once(':').filter(|(_, value)| !value.is_empty());
    match operator.and_then(|(name, value)| Some((FacetKey::of_operator(name)?, value))) {
        Some((key, value)) => (Piece::Operator(key, value), after),
        None => (Piece::Text(word), after),
    }
}

fn split_quoted(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('"')?;
    inner.split_once('"')
}

fn split_word(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn separates_operators_from_the_text() {
        let parsed =
            parse("book -hotel \"window seat\" site:Skyhop.example type:travel:* format:awp,woa method:post")
                .unwrap();
        assert_eq!(parsed.text, "book window seat");
        assert_eq!(parsed.excluded, ["hotel"]);
        assert_eq!(parsed.phrases, [Phrase::IfPresent("window seat".into())]);
        assert!(parsed.filters.values(FacetKey::Site).eq(["skyhop.example"]));
        assert!(parsed.filters.values(FacetKey::SemanticType).eq(["travel:*"]));
        assert!(parsed.filters.values(FacetKey::Format).eq(["awp", "woa"]));
        assert!(parsed.filters.values(FacetKey::Method).eq(["POST"]));
    }

    #[test]
    fn requires_a_phrase_without_other_words_and_treats_quoted_values_as_text() {
        assert_eq!(parse("\"book flight\"").unwrap().phrases, [Phrase::Strict("book flight".into())]);
        let parsed = parse("show me everything about the post with id \"rOB hSV\"").unwrap();
        assert_eq!(parsed.phrases, []);
        assert!(parsed.text.ends_with("rOB hSV"));
        let sentence = "\"Book me a flight to Oslo and a hotel there\"";
        assert_eq!(parse(sentence).unwrap().phrases, []);
    }

    #[test]
    fn phrases_and_exclusions_of_more_than_six_words_are_plain_text() {
        let six = "one two three four five six";
        for (quoted, is_condition) in [(six.to_owned(), true), (format!("{six} seven"), false)] {
            let parsed = parse(&format!("-\"{quoted}\" \"{quoted}\"")).unwrap();
            assert_eq!((parsed.excluded.len() == 1, parsed.phrases.len() == 1), (is_condition, is_condition));
        }
        let parsed = parse(&format!("hotel -{}", "a_b_".repeat(4_000))).unwrap();
        assert!(parsed.excluded.is_empty(), "the words of an identifier are not exclusions");
    }

    #[test]
    fn treats_other_punctuation_as_text() {
        for text in
            ["a - b", "-5 degrees", "re: invoice", "site:", "\"unclosed", "16:30 o'clock", "well-known"]
        {
            let parsed = parse(text).unwrap();
            assert!(
                parsed.excluded.is_empty() && parsed.filters.is_empty() && parsed.phrases.is_empty(),
                "{text}"
            );
            assert!(!parsed.text.is_empty(), "{text}");
        }
    }

    #[test]
    fn corrects_operators_that_are_misspelt_by_one_letter() {
        for (typed, corrected) in [
            ("sites:skyhop.example", "site:skyhop.example"),
            ("book \"window seat\" -hotel fromat:awp", "book \"window seat\" -hotel format:awp"),
            ("methods:post tpye:travel:*", "method:post type:travel:*"),
        ] {
            assert_eq!(with_known_operators(typed).as_deref(), Some(corrected));
        }
        for query in [
            "site:skyhop.example",
            "sites:",
            "book sites",
            "\"sites:skyhop.example\"",
            "-sites:skyhop.example",
            "https://skyhop.example",
            "re: invoice 16:30",
            "",
        ] {
            assert_eq!(with_known_operators(query), None, "{query}");
        }
    }

    #[test]
    fn rejects_an_unknown_value_and_lists_the_known_ones() {
        let error = parse("format:pdf").unwrap_err();
        assert!(error.to_string().contains("awp, atp"), "{error}");
    }

    proptest! {
        #[test]
        fn parses_any_text_without_panicking(text in "[-\":a-z \\PC]{0,120}") {
            drop(with_known_operators(&text));
            if let Ok(parsed) = parse(&text) {
                prop_assert!(parsed.text.len() <= text.len() + 1);
            }
        }
    }
}
