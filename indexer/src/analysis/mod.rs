//! Converts text to terms, in the same way for capabilities and for queries.
//!
//! Identifiers are split into words (`bookFlight`, `book_flight`, `book.flight` and `flight2` have two each), folded to lower
//! case without Latin accents, and stemmed in their language. A word keeps its offsets in the text, which snippets need.
//! Text in scripts without spaces becomes overlapping pairs of characters.

mod language;
mod stop;
mod terms;
mod tokenizer;
mod words;

pub(crate) use language::{Stemming, detect, language_of};
pub(crate) use stop::{is_chat_verb, is_stop_word, is_topical};
pub use terms::stems_of;
pub(crate) use terms::{bigram, grams, terms};
pub(crate) use tokenizer::CapabilityTokenizer;
pub(crate) use words::{dense_characters, fold_exact, words};
