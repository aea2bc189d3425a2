//! The fields of the index.
//!
//! Text is analysed before it is passed to tantivy: a field receives its terms joined by spaces. The field `all` contains every word of a
//! capability, with important words repeated, because a sum over several fields ranks worse. Bigrams, which have a lower weight, have their
//! own field. Values that are used only for ranking are in columns.

use tantivy::Index;
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{RawTokenizer, TextAnalyzer, TokenizerManager, WhitespaceTokenizer};

use crate::filter::FacetKey;

/// Version of fields and analysis: an index of another version is rebuilt.
pub const SCHEMA_VERSION: u32 = 21;
/// Version of the ranking: a cursor of another version has expired.
pub(crate) const RANKING_VERSION: u16 = 16;

const TERMS_TOKENIZER: &str = "terms";
/// Keeps a value as a single token.
const WHOLE_TOKENIZER: &str = "whole";

/// Separates a suggestion from its kind in the `suggest` field; sorts before every letter.
pub(crate) const SUGGESTION_MARK: char = '\u{1}';

/// Separates a later part of a suggestion, which is indexed so that its prefixes match, from the whole text. Also sorts before every
/// letter.
pub(crate) const REST_MARK: char = '\u{2}';

/// Declares the fields, each with the method that adds it and its options. Every filter has a field too.
macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $add:ident($options:expr)),+ $(,)?) => {
        /// Handles of the fields.
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct Fields {
            $($(#[$doc])* pub(crate) $name: Field,)+
            /// One field for each [`FacetKey`], in the order of its variants.
            facets: [Field; FacetKey::ALL.len()],
        }

        impl Fields {
            /// Looks the fields up by name.
            pub(crate) fn of(schema: &Schema) -> tantivy::Result<Self> {
                let mut facets = [Field::from_field_id(0); FacetKey::ALL.len()];
                for key in FacetKey::ALL {
                    facets[*key as usize] = schema.get_field(key.as_str())?;
                }
                Ok(Self { $($name: schema.get_field(stringify!($name))?,)+ facets })
            }
        }

        pub(crate) fn schema() -> Schema {
            let mut builder = Schema::builder();
            $(builder.$add(stringify!($name), $options);)+
            for key in FacetKey::ALL {
                builder.add_text_field(key.as_str(), STRING | FAST);
            }
            builder.build()
        }
    };
}

fields! {
    /// Capability id.
    id: add_text_field(whole()),
    /// Manifest id: documents are deleted by it.
    manifest: add_text_field(whole()),
    /// The row of the response, as JSON.
    row: add_bytes_field(STORED),
    /// Id, key, names, site and host in their exact form.
    exact: add_text_field(whole()),
    /// Every term, important ones repeated.
    all: add_text_field(terms(IndexRecordOption::WithFreqs)),
    /// Neighbouring terms, joined.
    bigram: add_text_field(terms(IndexRecordOption::WithFreqs)),
    /// Words as written, in order: for corrections and phrases.
    word: add_text_field(terms(IndexRecordOption::WithFreqsAndPositions)),
    /// Completions, each with its kind.
    suggest: add_text_field(whole()),
    host: add_text_field(whole()),
    /// The slug of the publisher of a document that may speak for its site.
    speaker: add_text_field(whole()),
    invocable: add_bool_field(INDEXED),
    updated_ms: add_i64_field(FAST | INDEXED),
    first_seen_ms: add_i64_field(FAST),
    /// The folded name, which results are sorted by.
    name_sort: add_text_field(TextOptions::default().set_fast(WHOLE_TOKENIZER)),
    /// Hash of the id: breaks ties.
    tie: add_u64_field(FAST),
    /// Hash of the site.
    site_number: add_u64_field(FAST),
    /// Hash of the capability's own text: equal for copies.
    text_number: add_u64_field(FAST),
    /// Fingerprint of its words and its schema: close for near copies.
    sketch: add_u64_field(FAST),
    /// Hash of its name without case and separators.
    name_number: add_u64_field(FAST),
    /// Hash of the site that is called, and whether that site declares it.
    address_number: add_u64_field(FAST),
    /// Factor of the score.
    prior: add_f64_field(FAST),
    /// Why the capability's own document makes it spam, as bits; absent for most.
    spam: add_u64_field(FAST),
    /// Facts of a manifest about its site, as JSON; only in one document of each manifest.
    site_facts: add_bytes_field(FAST),
    /// Encoded stems of the capability, its examples and its manifest: for re-ranking.
    stems: add_u64_field(FAST),
    /// Hashed character grams of its name and its site.
    grams: add_u64_field(FAST),
}

impl Fields {
    /// The field of a filter.
    pub(crate) fn facet(&self, key: FacetKey) -> Field {
        self.facets[key as usize]
    }

    /// The fields in which the words of a request are looked up.
    pub(crate) fn searched(&self) -> [Field; 5] {
        [self.all, self.bigram, self.word, self.exact, self.suggest]
    }
}

fn terms(record: IndexRecordOption) -> TextOptions {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(TERMS_TOKENIZER)
        .set_index_option(record)
        .set_fieldnorms(record == IndexRecordOption::WithFreqs);
    TextOptions::default().set_indexing_options(indexing)
}

fn whole() -> TextOptions {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(WHOLE_TOKENIZER)
        .set_index_option(IndexRecordOption::Basic)
        .set_fieldnorms(false);
    TextOptions::default().set_indexing_options(indexing)
}

/// The tokenizers of texts and of columns.
#[cfg(feature = "cluster")]
pub(crate) fn tokenizers() -> (TokenizerManager, TokenizerManager) {
    let (texts, columns) = (TokenizerManager::default(), TokenizerManager::default());
    register(&texts, &columns);
    (texts, columns)
}

/// Registers the tokenizers of the fields; needed each time an index is opened.
pub(crate) fn register_tokenizers(index: &Index) {
    register(index.tokenizers(), index.fast_field_tokenizer());
}

fn register(texts: &TokenizerManager, columns: &TokenizerManager) {
    texts.register(TERMS_TOKENIZER, TextAnalyzer::from(WhitespaceTokenizer::default()));
    texts.register(WHOLE_TOKENIZER, TextAnalyzer::from(RawTokenizer::default()));
    columns.register(WHOLE_TOKENIZER, TextAnalyzer::from(RawTokenizer::default()));
}
