//! Scores the candidates term by term.
//!
//! The parts of a long request, coverage, explanations and the weak fields all need to know what each term gave to each
//! candidate. It is computed for the candidates alone, with the same BM25 as the search that selected them. What that
//! search has scored already is not computed again where its sum is all that is needed.

use std::collections::BTreeSet;

use tantivy::postings::{Postings, TermInfo};
use tantivy::query::{Bm25StatisticsProvider, Bm25Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocSet, Searcher, Term};

use super::loaded::Loaded;
use crate::analysis::grams;
use crate::error::IndexError;
use crate::index::Fields;
use crate::query::{Plan, Role};

/// Weight of a word in examples, and in what the manifest says of itself, against the capability's own text.
const EXAMPLE_WEIGHT: f32 = 0.5;
const ABOUT_WEIGHT: f32 = 0.1;
/// Character grams of one request that are looked at.
const GRAMS_MAX: usize = 200;
/// Candidates, the best by their words, for which associations and grams are looked up: both add too little to bring
/// others among the first ten.
const CLOSE_MAX: usize = 120;

/// What is looked up for the candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Every term in every field.
    Everything,
    /// What the selection has not scored.
    Rest,
    /// What tells how much of the request a candidate speaks of.
    Words,
}

/// What BM25 needs to know of a whole index.
#[derive(Debug, Clone)]
pub(crate) struct Statistics {
    documents: u64,
    /// Terms of a document, on average.
    lengths: [(Field, f32); 5],
}

impl Statistics {
    pub(crate) fn of(searcher: &Searcher, fields: &Fields) -> tantivy::Result<Self> {
        let documents = searcher.total_num_docs()?;
        let mut lengths =
            [fields.all, fields.bigram, fields.gram, fields.example, fields.about].map(|field| (field, 0.0));
        for (field, length) in &mut lengths {
            #[expect(clippy::cast_precision_loss, reason = "an average of lengths needs no more than f32")]
            let average = searcher.total_num_tokens(*field)? as f32 / documents.max(1) as f32;
            *length = average;
        }
        Ok(Self { documents, lengths })
    }

    fn bm25(&self, field: Field, frequency: u64) -> Bm25Weight {
        let length = self.lengths.iter().find(|(of, _)| *of == field).map_or(1.0, |(_, length)| *length);
        Bm25Weight::for_one_term_without_explain(frequency, self.documents, length)
    }
}

/// One term in one field.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) term: usize,
    pub(super) field_name: &'static str,
    field: Field,
    weight: f32,
}

/// What each column gave to each candidate.
#[derive(Debug)]
pub(super) struct Matrix {
    pub(super) columns: Vec<Column>,
    /// Row after row.
    values: Vec<f32>,
    /// How rare each term of the plan is.
    pub(super) rarity: Vec<f32>,
    /// What the character grams of the request gave to each candidate, together.
    pub(super) grams: Vec<f32>,
}

impl Matrix {
    pub(super) fn of(
        loaded: &Loaded,
        plan: &Plan,
        candidates: &[DocAddress],
        look: Look,
    ) -> Result<Self, IndexError> {
        let columns = columns(loaded, plan, look);
        let mut matrix = Self {
            values: vec![0.0; candidates.len() * columns.len()],
            rarity: vec![0.0; plan.terms.len()],
            grams: vec![0.0; candidates.len()],
            columns,
        };
        let mut by_document: Vec<(usize, DocAddress)> = candidates.iter().copied().enumerate().collect();
        by_document.sort_unstable_by_key(|(_, address)| *address);
        let close: Vec<_> = by_document.iter().copied().filter(|(row, _)| *row < CLOSE_MAX).collect();
        let failed = IndexError::engine("score candidates");
        matrix.fill(loaded, plan, &by_document, &close).map_err(&failed)?;
        if look != Look::Words {
            matrix.fill_grams(loaded, plan, &close).map_err(&failed)?;
        }
        Ok(matrix)
    }

    /// The row of one candidate.
    pub(super) fn row(&self, candidate: usize) -> &[f32] {
        let width = self.columns.len();
        self.values.get(candidate * width..(candidate + 1) * width).unwrap_or_default()
    }

    fn fill(
        &mut self,
        loaded: &Loaded,
        plan: &Plan,
        by_document: &[(usize, DocAddress)],
        close: &[(usize, DocAddress)],
    ) -> tantivy::Result<()> {
        let width = self.columns.len();
        for (at, column) in self.columns.iter().enumerate() {
            let Some(term) = plan.terms.get(column.term) else { continue };
            let scores = Scores::of(loaded, column.field, &term.text)?;
            let looked_at = if term.role == Role::Association { close } else { by_document };
            if matches!(column.field_name, "all" | "bigram")
                && let Some(rarity) = self.rarity.get_mut(column.term)
            {
                *rarity = rarity_of(scores.frequency, loaded.statistics.documents);
            }
            for (row, score) in scores.of_candidates(loaded, looked_at)? {
                if let Some(value) = self.values.get_mut(row * width + at) {
                    *value = score * column.weight;
                }
            }
        }
        Ok(())
    }

    fn fill_grams(
        &mut self,
        loaded: &Loaded,
        plan: &Plan,
        close: &[(usize, DocAddress)],
    ) -> tantivy::Result<()> {
        let all: BTreeSet<&str> = plan.words.iter().flat_map(|word| grams(&word.said)).collect();
        for gram in all.into_iter().take(GRAMS_MAX) {
            let scores = Scores::of(loaded, loaded.fields.gram, gram)?;
            for (row, score) in scores.of_candidates(loaded, close)? {
                if let Some(sum) = self.grams.get_mut(row) {
                    *sum += score;
                }
            }
        }
        Ok(())
    }
}

/// BM25 of one term in one field.
struct Scores {
    field: Field,
    frequency: u64,
    /// Where the term is, by segment; empty where no document has it.
    places: Vec<Option<TermInfo>>,
}

impl Scores {
    fn of(loaded: &Loaded, field: Field, text: &str) -> tantivy::Result<Self> {
        let term = Term::from_field_text(field, text);
        let segments = loaded.searcher.segment_readers().iter();
        let place = |segment: &tantivy::SegmentReader| -> tantivy::Result<Option<TermInfo>> {
            Ok(segment.inverted_index(field)?.get_term_info(&term)?)
        };
        let places: Vec<Option<TermInfo>> = segments.map(place).collect::<tantivy::Result<_>>()?;
        let frequency = places.iter().flatten().map(|place| u64::from(place.doc_freq)).sum();
        Ok(Self { field, frequency, places })
    }

    /// Rows that have the term, with their score.
    fn of_candidates(
        &self,
        loaded: &Loaded,
        by_document: &[(usize, DocAddress)],
    ) -> tantivy::Result<Vec<(usize, f32)>> {
        let mut scores = Vec::new();
        if self.frequency == 0 {
            return Ok(scores);
        }
        let bm25 = loaded.statistics.bm25(self.field, self.frequency);
        for group in by_document.chunk_by(|(_, a), (_, b)| a.segment_ord == b.segment_ord) {
            let Some((_, first)) = group.first() else { continue };
            let place = self.places.get(first.segment_ord as usize);
            if let Some(place) = place.and_then(Option::as_ref) {
                scores.extend(segment_scores(loaded, self.field, place, &bm25, group)?);
            }
        }
        Ok(scores)
    }
}

/// Rows of one segment that have the term, with their score. The group is in order of documents.
fn segment_scores(
    loaded: &Loaded,
    field: Field,
    place: &TermInfo,
    bm25: &Bm25Weight,
    group: &[(usize, DocAddress)],
) -> tantivy::Result<Vec<(usize, f32)>> {
    let Some((_, first)) = group.first() else { return Ok(Vec::new()) };
    let segment = loaded.searcher.segment_reader(first.segment_ord);
    let inverted = segment.inverted_index(field)?;
    let mut postings = inverted.read_postings_from_terminfo(place, IndexRecordOption::WithFreqs)?;
    let lengths = segment.get_fieldnorms_reader(field)?;
    let mut scores = Vec::new();
    for (row, address) in group {
        let at = if postings.doc() < address.doc_id { postings.seek(address.doc_id) } else { postings.doc() };
        if at == address.doc_id {
            scores.push((*row, bm25.score(lengths.fieldnorm_id(at), postings.term_freq())));
        }
    }
    Ok(scores)
}

/// The inverse document frequency of BM25.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of documents are far below the precision of f32's exponent"
)]
fn rarity_of(frequency: u64, documents: u64) -> f32 {
    let (n, all) = (frequency as f32, documents as f32);
    (1.0 + (all - n + 0.5).max(0.0) / (n + 0.5)).ln()
}

fn columns(loaded: &Loaded, plan: &Plan, look: Look) -> Vec<Column> {
    let fields = &loaded.fields;
    let mut columns = Vec::new();
    for (term, of) in plan.terms.iter().enumerate() {
        let mut add = |field_name, field, weight| columns.push(Column { term, field_name, field, weight });
        let is_wanted = match of.role {
            Role::Bigram => look == Look::Everything,
            Role::Association => look != Look::Words,
            Role::Word | Role::Correction | Role::Synonym => look != Look::Rest,
        };
        match of.role {
            Role::Bigram if is_wanted => add("bigram", fields.bigram, of.weight),
            _ if is_wanted => add("all", fields.all, of.weight),
            _ => {}
        }
        if matches!(of.role, Role::Word | Role::Correction) {
            add("example", fields.example, of.weight * EXAMPLE_WEIGHT);
            add("about", fields.about, of.weight * ABOUT_WEIGHT);
        }
    }
    columns
}
