//! Words that are known without an index: common words of languages, English synonyms, translations, and how specific the words of requests
//! are.

mod common;
mod synonyms;
mod translations;
mod word_weights;

pub(crate) use common::{is_common_word, is_english_word};
pub(crate) use synonyms::synonyms;
pub(crate) use translations::{is_only_foreign, translations};
pub use word_weights::WordWeights;
