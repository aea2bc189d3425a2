//! The fields of the index.
//!
//! Text is analysed before it reaches tantivy: a field receives its terms joined by spaces. One field, `all`, holds every
//! word of a capability with the important ones repeated, since a sum over fields of their own ranks worse; bigrams, which
//! count less, have a field of their own. What ranks capabilities and selects none is in columns.

use tantivy::Index;
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, SchemaBuilder, TextFieldIndexing,
    TextOptions,
};
use tantivy::tokenizer::{RawTokenizer, TextAnalyzer, WhitespaceTokenizer};

const TERMS_TOKENIZER: &str = "terms";
/// Keeps a value whole.
const WHOLE_TOKENIZER: &str = "whole";

/// Stands between a suggestion and its kind in the `suggest` field; sorts before every letter.
pub(crate) const SUGGESTION_MARK: char = '\u{1}';

/// Declares the fields once: their handles and their names.
macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// Handles of the fields.
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct Fields { $($(#[$doc])* pub(crate) $name: Field),+ }

        impl Fields {
            /// Looks the fields up by name; `None` when one is missing.
            pub(crate) fn of(schema: &Schema) -> Option<Self> {
                Some(Self { $($name: schema.get_field(stringify!($name)).ok()?),+ })
            }
        }
    };
}

fields! {
    /// Capability id.
    id,
    /// Manifest id: documents are deleted by it.
    manifest,
    /// The row that is answered, as JSON.
    row,
    /// Id, key, names, site and host in their exact form.
    exact,
    /// Every term, important ones repeated.
    all,
    /// Neighbouring terms, joined.
    bigram,
    /// Words as written, in order: for corrections and phrases.
    word,
    /// Completions, each with its kind.
    suggest,
    format,
    semantic_type,
    namespace,
    method,
    safety,
    auth,
    site,
    host,
    status,
    source,
    kind,
    language,
    /// Type, publisher and tags of the capability's entry in a catalog.
    media_type,
    publisher,
    tag,
    invocable,
    updated_ms,
    first_seen_ms,
    /// The name as it sorts.
    name_sort,
    /// The id as a number: settles ties.
    tie,
    /// The site as a number.
    site_number,
    /// The capability's own text as a number: equal for copies.
    text_number,
    /// What the score is multiplied by.
    prior,
    /// Stems of the capability, its examples and its manifest, as numbers: for the closer look.
    stems,
    /// Character grams of its name and its site, as numbers.
    grams,
}

impl Fields {
    /// Those that the words of a request are looked up in.
    pub(crate) fn searched(&self) -> [Field; 5] {
        [self.all, self.bigram, self.word, self.exact, self.suggest]
    }
}

/// A schema with its field handles.
pub(crate) struct SchemaParts {
    pub(crate) schema: Schema,
    pub(crate) fields: Fields,
}

pub(crate) fn schema() -> SchemaParts {
    let mut builder = Schema::builder();
    let fields = Fields {
        id: builder.add_text_field("id", whole()),
        manifest: builder.add_text_field("manifest", whole()),
        row: builder.add_bytes_field("row", STORED),
        exact: builder.add_text_field("exact", whole()),
        all: builder.add_text_field("all", terms(IndexRecordOption::WithFreqs)),
        bigram: builder.add_text_field("bigram", terms(IndexRecordOption::WithFreqs)),
        word: builder.add_text_field("word", terms(IndexRecordOption::WithFreqsAndPositions)),
        suggest: builder.add_text_field("suggest", whole()),
        format: facet(&mut builder, "format"),
        semantic_type: facet(&mut builder, "semantic_type"),
        namespace: facet(&mut builder, "namespace"),
        method: facet(&mut builder, "method"),
        safety: facet(&mut builder, "safety"),
        auth: facet(&mut builder, "auth"),
        site: facet(&mut builder, "site"),
        host: builder.add_text_field("host", whole()),
        status: facet(&mut builder, "status"),
        source: facet(&mut builder, "source"),
        kind: facet(&mut builder, "kind"),
        language: facet(&mut builder, "language"),
        media_type: facet(&mut builder, "media_type"),
        publisher: facet(&mut builder, "publisher"),
        tag: facet(&mut builder, "tag"),
        invocable: builder.add_bool_field("invocable", INDEXED),
        updated_ms: builder.add_i64_field("updated_ms", FAST | INDEXED),
        first_seen_ms: builder.add_i64_field("first_seen_ms", FAST),
        name_sort: builder.add_text_field("name_sort", TextOptions::default().set_fast(WHOLE_TOKENIZER)),
        tie: builder.add_u64_field("tie", FAST),
        site_number: builder.add_u64_field("site_number", FAST),
        text_number: builder.add_u64_field("text_number", FAST),
        prior: builder.add_f64_field("prior", FAST),
        stems: builder.add_u64_field("stems", FAST),
        grams: builder.add_u64_field("grams", FAST),
    };
    SchemaParts { schema: builder.build(), fields }
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

fn facet(builder: &mut SchemaBuilder, name: &str) -> Field {
    builder.add_text_field(name, STRING | FAST)
}

/// Tells an index how its fields are cut; needed after every opening.
pub(crate) fn register_tokenizers(index: &Index) {
    index.tokenizers().register(TERMS_TOKENIZER, TextAnalyzer::from(WhitespaceTokenizer::default()));
    index.tokenizers().register(WHOLE_TOKENIZER, TextAnalyzer::from(RawTokenizer::default()));
    index.fast_field_tokenizer().register(WHOLE_TOKENIZER, TextAnalyzer::from(RawTokenizer::default()));
}
