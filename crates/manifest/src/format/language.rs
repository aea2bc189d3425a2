//! The language of a document: by its members, or at the beginning of a line.

use serde_json::Value;

use crate::draft;
use crate::object::Object;

const LANGUAGE_KEYS: &[&str] = &[
    "language",
    "lang",
    "inLanguage",
    "locale",
    "languages",
    "locales",
    "supported_languages",
    "supportedLanguages",
    "supported_locales",
    "supportedLocales",
];

/// The first language of a text or of a list of languages.
pub(super) fn language_of(object: &Object<'_>) -> Option<String> {
    LANGUAGE_KEYS.iter().find_map(|key| {
        let texts = object.texts(key);
        let is_list = texts.len() > 1 || object.list(key).is_some();
        let is_known = !is_list || texts.iter().all(|text| is_language(text));
        draft::name(texts.first().copied().filter(|_| is_known))
    })
}

/// All languages of a list of several.
pub(super) fn languages_of(object: &Object<'_>) -> Option<Value> {
    LANGUAGE_KEYS.iter().find_map(|key| {
        let texts = object.texts(key);
        let is_list = texts.len() > 1 && texts.iter().all(|text| is_language(text));
        is_list.then(|| texts.into_iter().take(LANGUAGES_MAX).map(Value::from).collect())
    })
}

/// Maximum number of languages of one document that are kept; published lists have up to 40.
const LANGUAGES_MAX: usize = 100;

/// The language at the beginning of a line.
pub(crate) fn language_in(words: &str) -> Option<String> {
    let first = words.split([',', ';', ' ', '/']).next().unwrap_or_default();
    is_language(first).then(|| first.to_owned())
}

/// Whether a text has the form of a language tag (BCP 47): `en`, `pt-BR`.
fn is_language(text: &str) -> bool {
    let mut parts = text.split(['-', '_']);
    let is_primary =
        |part: &str| (2..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphabetic());
    let is_sub =
        |part: &str| (2..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric());
    parts.next().is_some_and(is_primary) && parts.all(is_sub)
}
