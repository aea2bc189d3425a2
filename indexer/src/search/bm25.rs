//! BM25 with the same results as tantivy's.
//!
//! tantivy computes a table over the lengths of documents for each term of each request, although it is the same for all terms of a field.
//! This module computes it once per commit.

use std::sync::Arc;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::query::Bm25StatisticsProvider as _;
use tantivy::schema::Field;
use tantivy::{Score, Searcher};

use crate::index::Fields;

/// The constants of BM25, as in tantivy.
pub(super) const K1: f32 = 1.2;
pub(super) const B: f32 = 0.75;

/// The statistics of a whole index for BM25.
#[derive(Debug, Clone)]
pub(crate) struct Statistics {
    documents: u64,
    all: Lengths,
    bigram: Lengths,
}

/// The part of the denominator that depends on the length of a document, by its field norm id.
type Lengths = Arc<[Score; 256]>;

fn lengths(average: Score) -> Lengths {
    let mut lengths = [0.0; 256];
    for (id, length) in (0..=u8::MAX).zip(&mut lengths) {
        #[expect(clippy::cast_precision_loss, reason = "field norms are far more coarse")]
        let tokens = FieldNormReader::id_to_fieldnorm(id) as f32;
        *length = K1 * (1.0 - B + B * tokens / average);
    }
    Arc::new(lengths)
}

impl Statistics {
    pub(crate) fn of(searcher: &Searcher, fields: &Fields) -> tantivy::Result<Self> {
        let documents = searcher.total_num_docs()?;
        let average = |field: Field| -> tantivy::Result<Score> {
            let tokens = searcher.total_num_tokens(field)?;
            #[expect(clippy::cast_precision_loss, reason = "an average of lengths needs no more than f32")]
            Ok(tokens as f32 / documents.max(1) as f32)
        };
        Ok(Self::given(documents, average(fields.all)?, average(fields.bigram)?))
    }

    /// The statistics of this many documents, with the mean numbers of terms of the fields `all` and `bigram`.
    pub(super) fn given(documents: u64, all: Score, bigram: Score) -> Self {
        Self { documents, all: lengths(all), bigram: lengths(bigram) }
    }

    pub(crate) fn documents(&self) -> u64 {
        self.documents
    }

    /// Scores a term of the field `all` that `frequency` documents have.
    pub(super) fn of_word(&self, frequency: u64) -> Bm25<'_> {
        self.bm25(&self.all, frequency)
    }

    /// Scores a term of the field `bigram` that `frequency` documents have.
    pub(super) fn of_bigram(&self, frequency: u64) -> Bm25<'_> {
        self.bm25(&self.bigram, frequency)
    }

    fn bm25<'a>(&self, lengths: &'a Lengths, frequency: u64) -> Bm25<'a> {
        // the index may be empty, and callers score unknown words like rare ones
        let documents = self.documents.max(frequency);
        #[expect(clippy::cast_precision_loss, reason = "as tantivy computes it")]
        let ratio = ((documents - frequency) as f32 + 0.5) / (frequency as f32 + 0.5);
        Bm25 { weight: (1.0 + ratio).ln() * (1.0 + K1), lengths }
    }
}

/// Scores one term.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bm25<'a> {
    weight: Score,
    lengths: &'a [Score; 256],
}

impl Bm25<'_> {
    pub(super) fn times(self, factor: Score) -> Self {
        Self { weight: self.weight * factor, ..self }
    }

    /// The score of a document with this field norm id that has the term `count` times.
    #[inline]
    pub(super) fn score(&self, length: u8, count: u32) -> Score {
        #[expect(clippy::cast_precision_loss, reason = "counts of words are small")]
        let count = count as f32;
        self.weight * (count / (count + self.lengths[usize::from(length)]))
    }
}
