//! Detects the language of a text, and stems its words.
//!
//! Text is stemmed in its own language, because English rules truncate words of other languages arbitrarily. Text of an unknown language is
//! treated as English, the language of most manifests.

use std::borrow::Cow;

use frostem::{Algorithm, Stemmer};
use whatlang::Lang;

use super::stop::is_stop_word;
use super::words::words;

/// How words are reduced to stems.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stemming {
    #[default]
    English,
    Other(Algorithm),
    /// The language has no stemmer: words are not changed.
    Plain,
}

/// Separates a stem from the tag of its language in a term, which no word contains.
const LANGUAGE_MARK: char = '~';

/// Minimum length of a text for language detection, in characters. Chosen with tool descriptions: shorter ones are detected as Latin or
/// Esperanto.
const DETECTION_CHARS_MIN: usize = 60;

/// Maximum number of words that are checked for English.
const LANGUAGE_WORDS_MAX: usize = 100;

/// Languages that are detected, with their ISO 639-1 tag and the stemmer of the language if there is one.
const LANGUAGES: [(Lang, &str, Option<Algorithm>); 26] = [
    (Lang::Eng, "en", Some(Algorithm::English)),
    (Lang::Ara, "ar", Some(Algorithm::Arabic)),
    (Lang::Cmn, "zh", None),
    (Lang::Dan, "da", Some(Algorithm::Danish)),
    (Lang::Deu, "de", Some(Algorithm::German)),
    (Lang::Ell, "el", Some(Algorithm::Greek)),
    (Lang::Fin, "fi", Some(Algorithm::Finnish)),
    (Lang::Fra, "fr", Some(Algorithm::French)),
    (Lang::Heb, "he", None),
    (Lang::Hin, "hi", None),
    (Lang::Hun, "hu", Some(Algorithm::Hungarian)),
    (Lang::Ita, "it", Some(Algorithm::Italian)),
    (Lang::Jpn, "ja", None),
    (Lang::Kor, "ko", None),
    (Lang::Nld, "nl", Some(Algorithm::Dutch)),
    (Lang::Nob, "no", Some(Algorithm::Norwegian)),
    (Lang::Pol, "pl", None),
    (Lang::Por, "pt", Some(Algorithm::Portuguese)),
    (Lang::Ron, "ro", Some(Algorithm::Romanian)),
    (Lang::Rus, "ru", Some(Algorithm::Russian)),
    (Lang::Spa, "es", Some(Algorithm::Spanish)),
    (Lang::Swe, "sv", Some(Algorithm::Swedish)),
    (Lang::Tha, "th", None),
    (Lang::Tur, "tr", Some(Algorithm::Turkish)),
    (Lang::Ukr, "uk", None),
    (Lang::Vie, "vi", None),
];

impl Stemming {
    /// The stemming for the primary subtag of a language tag.
    pub(crate) fn for_language(tag: &str) -> Self {
        let tag = if tag == "nb" { "no" } else { tag };
        match LANGUAGES.iter().find(|(_, of, _)| *of == tag) {
            Some((Lang::Eng, ..)) => Self::English,
            Some((_, _, Some(algorithm))) => Self::Other(*algorithm),
            _ => Self::Plain,
        }
    }

    pub(crate) fn stem(self, word: &str) -> Cow<'_, str> {
        match self {
            Self::English => Stemmer::new(Algorithm::English).stem(word),
            Self::Other(algorithm) => Stemmer::new(algorithm).stem(word),
            Self::Plain => Cow::Borrowed(word),
        }
    }

    /// Whether a term is a stem with the mark of this language.
    pub(crate) fn marks(self, term: &str) -> bool {
        let tag = term.rsplit_once(LANGUAGE_MARK).map(|(_, tag)| tag);
        tag.is_some_and(|tag| Self::for_language(tag) == self)
    }

    /// The term of a word in the field `all`. Stems of languages other than English are marked: the French stem `plan` of
    /// "planes" is not the English word.
    pub(crate) fn term(self, word: &str) -> Cow<'_, str> {
        let stem = self.stem(word);
        match self {
            Self::English | Self::Plain => stem,
            Self::Other(of) => {
                let known = LANGUAGES.iter().find(|(.., algorithm)| *algorithm == Some(of));
                let tag = known.map_or("", |(_, tag, _)| tag);
                Cow::Owned(format!("{stem}{LANGUAGE_MARK}{tag}"))
            }
        }
    }
}

/// A text with a larger share of English function words is classified as English. Tool descriptions are terse and full of names, so a
/// letter-based detector classifies many as Latin or Dutch. In texts of other languages, the share is below 5 %.
const ENGLISH_SHARE_MIN: f32 = 0.1;

/// The primary subtag of the language of a text: the declared one, else the detected one, else English.
pub(crate) fn language_of(declared: Option<&str>, text: &str) -> String {
    let declared = declared.and_then(|tag| tag.split(['-', '_']).next()).map(str::to_ascii_lowercase);
    if let Some(tag) = declared.filter(|tag| (2..=3).contains(&tag.len()) && tag.is_ascii()) {
        return tag;
    }
    detect(text).unwrap_or("en").to_owned()
}

/// The detected language; `None` if the text is too short.
pub(crate) fn detect(text: &str) -> Option<&'static str> {
    if is_english(text) {
        return Some("en");
    }
    let dense = text.chars().filter(|c| *c > '\u{370}').count();
    if dense < 4 && text.chars().count() < DETECTION_CHARS_MIN {
        return None;
    }
    let info = whatlang::detect(text).filter(whatlang::Info::is_reliable)?;
    LANGUAGES.iter().find(|(language, ..)| *language == info.lang()).map(|(_, tag, _)| *tag)
}

fn is_english(text: &str) -> bool {
    let (mut all, mut known) = (0_u16, 0_u16);
    for word in words(text).take(LANGUAGE_WORDS_MAX) {
        all += 1;
        known += u16::from(is_stop_word(&word.text));
    }
    f32::from(known) > f32::from(all) * ENGLISH_SHARE_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems_words_by_the_rules_of_their_language() {
        assert_eq!(Stemming::English.stem("bookings"), "book");
        assert_eq!(Stemming::for_language("de").stem("flüge"), "flug");
        assert_eq!(Stemming::for_language("zh").stem("天气"), "天气");
        assert_eq!(Stemming::English.term("bookings"), "book");
        assert_eq!(Stemming::for_language("de").term("zimmer"), "zimm~de");
        assert_eq!(Stemming::for_language("zh").term("天气"), "天气");
    }

    #[test]
    fn prefers_the_declared_language_and_assumes_english_for_short_text() {
        assert_eq!(language_of(Some("de-CH"), "book a flight"), "de");
        assert_eq!(language_of(None, "book a flight"), "en");
        assert_eq!(language_of(None, "获取指定城市的天气预报信息并返回温度和湿度"), "zh");
        let german = "Sucht freie Plätze in Zügen und Bussen und bucht sie für die angegebenen Reisenden.";
        assert_eq!(language_of(None, german), "de");
    }
}
