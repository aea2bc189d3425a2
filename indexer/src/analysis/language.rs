//! Which language a text is in, and how its words are stemmed.
//!
//! English is stemmed as English only where the text is English: the English rules cut the ends off other languages'
//! words at random. What cannot be told is treated as English, which most manifests are.

use std::borrow::Cow;

use frostem::{Algorithm, Stemmer};
use whatlang::Lang;

use super::{is_stop_word, words};

/// How words are reduced to stems.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stemming {
    #[default]
    English,
    Other(Algorithm),
    /// The language has no stemmer: words stay as they are.
    Plain,
}

/// Characters below which a text says too little about its language (chosen on tool descriptions: shorter ones are
/// taken for Latin or Esperanto).
const DETECTION_CHARS_MIN: usize = 60;

/// Words that are looked at to tell a language.
const LANGUAGE_WORDS_MAX: usize = 100;

impl Stemming {
    /// By the primary subtag of a language tag.
    pub(crate) fn for_language(tag: &str) -> Self {
        let algorithm = match tag {
            "en" => return Self::English,
            "ar" => Algorithm::Arabic,
            "da" => Algorithm::Danish,
            "nl" => Algorithm::Dutch,
            "fi" => Algorithm::Finnish,
            "fr" => Algorithm::French,
            "de" => Algorithm::German,
            "el" => Algorithm::Greek,
            "hu" => Algorithm::Hungarian,
            "it" => Algorithm::Italian,
            "no" | "nb" => Algorithm::Norwegian,
            "pt" => Algorithm::Portuguese,
            "ro" => Algorithm::Romanian,
            "ru" => Algorithm::Russian,
            "es" => Algorithm::Spanish,
            "sv" => Algorithm::Swedish,
            "tr" => Algorithm::Turkish,
            _ => return Self::Plain,
        };
        Self::Other(algorithm)
    }

    pub(crate) fn stem(self, word: &str) -> Cow<'_, str> {
        match self {
            Self::English => Stemmer::new(Algorithm::English).stem(word),
            Self::Other(algorithm) => Stemmer::new(algorithm).stem(word),
            Self::Plain => Cow::Borrowed(word),
        }
    }
}

/// Share of English function words above which a text is English. Tool descriptions are terse and full of names, so that
/// a detector by letters takes many for Latin or Dutch; other languages stay below a twentieth.
const ENGLISH_SHARE_MIN: f32 = 0.1;

/// The primary subtag of the language of a text: as declared, else as detected, else English.
pub(crate) fn language_of(declared: Option<&str>, text: &str) -> String {
    let declared = declared.and_then(|tag| tag.split(['-', '_']).next()).map(str::to_ascii_lowercase);
    if let Some(tag) = declared.filter(|tag| (2..=3).contains(&tag.len()) && tag.is_ascii()) {
        return tag;
    }
    detect(text).unwrap_or("en").to_owned()
}

/// The language of a text, when it is long enough to tell.
pub(crate) fn detect(text: &str) -> Option<&'static str> {
    if is_english(text) {
        return Some("en");
    }
    let dense = text.chars().filter(|c| *c > '\u{370}').count();
    if dense < 4 && text.chars().count() < DETECTION_CHARS_MIN {
        return None;
    }
    let info = whatlang::detect(text).filter(whatlang::Info::is_reliable)?;
    tag(info.lang())
}

fn is_english(text: &str) -> bool {
    let (mut all, mut known) = (0_u16, 0_u16);
    for word in words(text).take(LANGUAGE_WORDS_MAX) {
        all += 1;
        known += u16::from(is_stop_word(&word.text));
    }
    f32::from(known) > f32::from(all) * ENGLISH_SHARE_MIN
}

/// ISO 639-1 tags of the languages that are told apart.
fn tag(language: Lang) -> Option<&'static str> {
    Some(match language {
        Lang::Eng => "en",
        Lang::Ara => "ar",
        Lang::Cmn => "zh",
        Lang::Dan => "da",
        Lang::Deu => "de",
        Lang::Ell => "el",
        Lang::Fin => "fi",
        Lang::Fra => "fr",
        Lang::Heb => "he",
        Lang::Hin => "hi",
        Lang::Hun => "hu",
        Lang::Ita => "it",
        Lang::Jpn => "ja",
        Lang::Kor => "ko",
        Lang::Nld => "nl",
        Lang::Nob => "no",
        Lang::Pol => "pl",
        Lang::Por => "pt",
        Lang::Ron => "ro",
        Lang::Rus => "ru",
        Lang::Spa => "es",
        Lang::Swe => "sv",
        Lang::Tha => "th",
        Lang::Tur => "tr",
        Lang::Ukr => "uk",
        Lang::Vie => "vi",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_has_its_own_stems() {
        assert_eq!(Stemming::English.stem("bookings"), "book");
        assert_eq!(Stemming::for_language("de").stem("flüge"), "flug");
        assert_eq!(Stemming::for_language("zh").stem("天气"), "天气");
    }

    #[test]
    fn a_declared_language_wins_and_short_text_is_english() {
        assert_eq!(language_of(Some("de-CH"), "book a flight"), "de");
        assert_eq!(language_of(None, "book a flight"), "en");
        assert_eq!(language_of(None, "获取指定城市的天气预报信息并返回温度和湿度"), "zh");
        let german = "Sucht freie Plätze in Zügen und Bussen und bucht sie für die angegebenen Reisenden.";
        assert_eq!(language_of(None, german), "de");
    }
}
