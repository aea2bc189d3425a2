//! Scores the candidates term by term.
//!
//! Parts of long requests, coverage, explanations, and texts that do not select candidates (examples, the manifest) need the score of each
//! term in each candidate. These scores are computed only for the candidates, from the stems in the columns of the index, with the same
//! BM25 that selected the candidates. If only the sum is needed, terms that the selection has already scored are left out.

use tantivy::{DocAddress, DocId, columnar};

use super::bm25::{B, Bm25, K1};
use super::columns::Columns;
use super::opened::OpenedIndex;
use super::postings::{self, Row};
use crate::analysis::grams;
use crate::error::IndexError;
use crate::index::{NAME_WEIGHT, StemPart, decoded, gram_number, stem_number};
use crate::query::{Plan, Role};

/// Weight of a word in examples and in the manifest's description; in the capability's own text it is 1.
const EXAMPLE_WEIGHT: f32 = 0.5;
const ABOUT_WEIGHT: f32 = 0.1;
/// Average numbers of stems in examples and in descriptions of manifests, and of grams in names, for the length
/// normalisation.
const EXAMPLE_LENGTH: f32 = 12.0;
const ABOUT_LENGTH: f32 = 24.0;
const GRAMS_LENGTH: f32 = 24.0;
/// If the selection has scored the words, only this many of its best candidates are scored for the other terms, which add too little to
/// move later candidates into the first ten. With the dev queries of the public sets, 120 rank no better and 30 rank worse.
const RESCORED_MAX: usize = 80;

/// The terms that candidates are scored by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TermScope {
    All,
    /// Terms that the selection has not scored.
    Unscored,
}

/// One term in one text.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// Index into the terms of the plan.
    pub(super) term: usize,
    pub(super) field_name: &'static str,
    weight: f32,
    /// Whether the selection also scores it.
    pub(super) is_selecting: bool,
}

/// The score of each column in each candidate.
#[derive(Debug)]
pub(super) struct TermScores {
    pub(super) scope: TermScope,
    pub(super) columns: Vec<Column>,
    /// Scores in rows, one row for each candidate.
    values: Vec<f32>,
    /// Excess score from the selection for words that occur only in the examples of a candidate, because words of examples have a lower
    /// weight.
    excess: Vec<f32>,
    /// Inverse document frequency of each term of the plan.
    pub(super) rarity: Vec<f32>,
    /// Sum of the character grams of the request in each candidate.
    pub(super) grams: Vec<f32>,
}

impl TermScores {
    pub(super) fn of(
        opened: &OpenedIndex,
        plan: &Plan,
        candidates: &[DocAddress],
        scope: TermScope,
    ) -> Result<Self, IndexError> {
        let failed = IndexError::engine("score candidates");
        let stems = plan.terms.iter().map(|term| (term.role != Role::Bigram).then_some(term.text.as_str()));
        let frequencies = opened.words.frequencies(&opened.searcher, stems).map_err(&failed)?;
        let columns = columns(plan);
        let documents = opened.statistics.documents();
        let mut scores = Self {
            scope,
            values: vec![0.0; candidates.len() * columns.len()],
            excess: vec![0.0; candidates.len()],
            rarity: frequencies.iter().map(|frequency| rarity_of(*frequency, documents)).collect(),
            grams: vec![0.0; candidates.len()],
            columns,
        };
        let wanted = WantedTerms::of(opened, plan, &scores, &frequencies);
        let count = if scope == TermScope::Unscored { RESCORED_MAX } else { candidates.len() };
        let mut numbers = Vec::new();
        for (row, address) in candidates.iter().enumerate().take(count) {
            if let Some(columns) = opened.columns.get(address.segment_ord as usize) {
                scores.fill(&wanted, columns, (row, address.doc_id), &mut numbers);
            }
        }
        if scope == TermScope::All {
            scores.fill_bigrams(opened, plan, candidates).map_err(&failed)?;
        }
        Ok(scores)
    }

    /// Whether the words of a candidate were scored here, not only by the selection.
    pub(super) fn has_scored(&self, candidate: usize) -> bool {
        self.scope == TermScope::All || candidate < RESCORED_MAX
    }

    /// The scores of one candidate.
    pub(super) fn row(&self, candidate: usize) -> &[f32] {
        let width = self.columns.len();
        self.values.get(candidate * width..(candidate + 1) * width).unwrap_or_default()
    }

    /// The sum of one candidate, without terms that the selection has scored.
    pub(super) fn sum(&self, candidate: usize) -> f32 {
        let cells = self.row(candidate).iter().zip(&self.columns);
        let counts = |column: &Column| self.scope == TermScope::All || !column.is_selecting;
        let sum: f32 = cells.filter(|(_, column)| counts(column)).map(|(value, _)| *value).sum();
        sum - self.excess.get(candidate).copied().unwrap_or_default()
    }

    /// Scores the stems and grams of one candidate.
    fn fill(
        &mut self,
        wanted: &WantedTerms<'_>,
        columns: &Columns,
        (row, document): (usize, DocId),
        numbers: &mut Vec<u64>,
    ) {
        let (first, width) = (row * self.columns.len(), self.columns.len());
        let Some(cells) = self.values.get_mut(first..first + width) else { return };
        let (mut example_length, mut about_length) = (0, 0);
        let is_rescored = row < RESCORED_MAX;
        for value in numbers_of(&columns.stems, document, numbers) {
            let stem = decoded(*value);
            match stem.part {
                StemPart::Own => {}
                StemPart::Example => example_length += stem.count,
                StemPart::About => about_length += stem.count,
            }
            for term in wanted.stems(stem.number) {
                let score = match stem.part {
                    StemPart::Own => {
                        term.bm25.score(columns.words.lengths.fieldnorm_id(document), stem.count)
                    }
                    // Normalised below, when the length is known.
                    StemPart::Example | StemPart::About => term.rarity * stem_share(stem.count),
                };
                let at = match stem.part {
                    StemPart::Own if term.only_ranks && !is_rescored => None,
                    StemPart::Own if term.is_opposite && stem.count < NAME_WEIGHT => None,
                    StemPart::Own => Some(term.own),
                    StemPart::Example => term.example,
                    StemPart::About => term.about,
                };
                if let Some(cell) = at.and_then(|at| cells.get_mut(at)) {
                    *cell = score;
                }
            }
        }
        for (cell, column) in cells.iter_mut().zip(&self.columns) {
            *cell *= column.weight
                * match column.field_name {
                    "example" => length_share(example_length, EXAMPLE_LENGTH),
                    "about" => length_share(about_length, ABOUT_LENGTH),
                    _ => 1.0,
                };
        }
        if example_length > 0
            && is_rescored
            && self.scope == TermScope::Unscored
            && let Some(excess) = self.excess.get_mut(row)
        {
            let length = columns.words.lengths.fieldnorm_id(document);
            *excess = wanted.excess(cells, &self.columns, length);
        }
        if is_rescored
            && !wanted.grams.is_empty()
            && let Some(sum) = self.grams.get_mut(row)
        {
            let grams = numbers_of(&columns.grams, document, numbers);
            *sum = grams.iter().map(|gram| wanted.gram(*gram)).sum();
            *sum *= length_share(u32::try_from(grams.len()).unwrap_or(u32::MAX), GRAMS_LENGTH);
        }
    }

    fn fill_bigrams(
        &mut self,
        opened: &OpenedIndex,
        plan: &Plan,
        candidates: &[DocAddress],
    ) -> tantivy::Result<()> {
        let mut rows: Vec<Row> = candidates.iter().copied().enumerate().collect();
        rows.sort_unstable_by_key(|(_, address)| *address);
        let width = self.columns.len();
        for (at, column) in
            self.columns.iter().enumerate().filter(|(_, column)| column.field_name == "bigram")
        {
            let Some(term) = plan.terms.get(column.term) else { continue };
            for (row, score) in postings::bigram_scores(opened, &term.text, &rows)? {
                if let Some(value) = self.values.get_mut(row * width + at) {
                    *value = score * column.weight;
                }
            }
        }
        Ok(())
    }
}

/// The values of one document, read together, because each single read would be a virtual call.
fn numbers_of<'a>(column: &columnar::Column<u64>, document: DocId, read: &'a mut Vec<u64>) -> &'a [u64] {
    let rows = column.index.value_row_ids(document);
    read.resize(rows.len(), 0);
    column.values.get_range(u64::from(rows.start), read);
    read
}

/// The term frequency part of BM25 in a text of average length.
fn stem_share(count: u32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "counts of words are small")]
    let count = count as f32;
    count * (K1 + 1.0) / (count + K1)
}

/// The length normalisation of BM25, relative to a text of average length.
fn length_share(length: u32, average: f32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "counts of words are small")]
    let length = length as f32;
    (1.0 + K1) / (1.0 + K1 * (1.0 - B + B * length / average))
}

struct WantedStem<'a> {
    number: u32,
    own: usize,
    example: Option<usize>,
    about: Option<usize>,
    only_ranks: bool,
    is_opposite: bool,
    rarity: f32,
    bm25: Bm25<'a>,
}

/// The stems and grams of a plan by their numbers.
struct WantedTerms<'a> {
    /// Sorted by number.
    stems: Vec<WantedStem<'a>>,
    stems_filter: Bloom,
    /// Sorted by number, each with its score.
    grams: Vec<(u16, f32)>,
    grams_filter: Bloom,
}

/// A Bloom filter over the last bits of numbers.
struct Bloom([u64; Self::WORDS]);

impl Bloom {
    const WORDS: usize = 64;

    fn of(numbers: impl Iterator<Item = u64>) -> Self {
        let mut bits = [0_u64; Self::WORDS];
        for number in numbers {
            if let Some(word) = bits.get_mut(Self::word(number)) {
                *word |= 1 << (number % 64);
            }
        }
        Self(bits)
    }

    fn may_have(&self, number: u64) -> bool {
        self.0.get(Self::word(number)).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    fn word(number: u64) -> usize {
        (number / 64) as usize % Self::WORDS
    }
}

impl<'a> WantedTerms<'a> {
    fn of(opened: &'a OpenedIndex, plan: &Plan, scores: &TermScores, frequencies: &[u64]) -> Self {
        let mut stems: Vec<WantedStem<'_>> = Vec::with_capacity(plan.terms.len());
        for (own, column) in
            scores.columns.iter().enumerate().filter(|(_, column)| column.field_name == "all")
        {
            let (Some(term), Some(frequency)) = (plan.terms.get(column.term), frequencies.get(column.term))
            else {
                continue;
            };
            let is_literal = is_literal(term.role);
            stems.push(WantedStem {
                number: stem_number(&term.text),
                own,
                example: is_literal.then_some(own + 1),
                about: is_literal.then_some(own + 2),
                only_ranks: !term.role.selects(),
                is_opposite: term.role == Role::Opposite,
                rarity: scores.rarity.get(column.term).copied().unwrap_or_default(),
                bm25: opened.statistics.of_word((*frequency).max(1)),
            });
        }
        stems.sort_unstable_by_key(|stem| stem.number);
        let grams = wanted_grams(plan, &scores.rarity);
        Self {
            stems_filter: Bloom::of(stems.iter().map(|stem| u64::from(stem.number))),
            grams_filter: Bloom::of(grams.iter().map(|(gram, _)| u64::from(*gram))),
            stems,
            grams,
        }
    }

    /// The scores of words in the selection that occur only in an example of the capability.
    fn excess(&self, cells: &[f32], columns: &[Column], length: u8) -> f32 {
        let has = |at: usize| cells.get(at).is_some_and(|score| *score > 0.0);
        let only_examples = self.stems.iter().filter(|stem| !has(stem.own) && stem.example.is_some_and(has));
        let selecting = only_examples.filter_map(|stem| {
            let column = columns.get(stem.own).filter(|column| column.is_selecting)?;
            Some(column.weight * stem.bm25.score(length, 1))
        });
        selecting.sum()
    }

    fn stems(&self, number: u32) -> &[WantedStem<'a>] {
        if !self.stems_filter.may_have(u64::from(number)) {
            return &[];
        }
        let first = self.stems.partition_point(|stem| stem.number < number);
        let after = self.stems.partition_point(|stem| stem.number <= number);
        self.stems.get(first..after).unwrap_or_default()
    }

    fn gram(&self, number: u64) -> f32 {
        if !self.grams_filter.may_have(number) {
            return 0.0;
        }
        let found = self.grams.binary_search_by(|(gram, _)| u64::from(*gram).cmp(&number));
        found.ok().and_then(|at| self.grams.get(at)).map_or(0.0, |(_, score)| *score)
    }
}

/// The grams of the words, each with its share of the rarity of its word.
fn wanted_grams(plan: &Plan, rarity: &[f32]) -> Vec<(u16, f32)> {
    let mut found: Vec<(u16, f32)> = Vec::new();
    for (at, word) in plan.words.iter().enumerate() {
        let terms = plan.terms.iter().zip(rarity);
        let own = terms.filter(|(term, _)| term.role == Role::Word && term.word == at);
        let rarity = own.map(|(_, rarity)| *rarity).fold(0.0, f32::max);
        let numbers: Vec<u16> = grams(&word.text).map(gram_number).collect();
        #[expect(clippy::cast_precision_loss, reason = "a word has few grams")]
        let share = rarity / numbers.len().max(1) as f32;
        found.extend(numbers.into_iter().map(|number| (number, share)));
    }
    found.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    found.dedup_by_key(|(number, _)| *number);
    found
}

/// The inverse document frequency of BM25.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of documents are far below the precision of f32's exponent"
)]
pub(super) fn rarity_of(frequency: u64, documents: u64) -> f32 {
    let (n, all) = (frequency as f32, documents as f32);
    (1.0 + (all - n + 0.5).max(0.0) / (n + 0.5)).ln()
}

/// Whether a term is also searched for in examples and descriptions of manifests.
fn is_literal(role: Role) -> bool {
    matches!(role, Role::Word | Role::Variant | Role::Correction | Role::Translation)
}

/// Each term has adjacent columns: own text, examples, description of the manifest.
fn columns(plan: &Plan) -> Vec<Column> {
    let mut columns = Vec::with_capacity(plan.terms.len() * 2);
    for (index, term) in plan.terms.iter().enumerate() {
        let is_selecting = term.role.selects();
        let field_name = if term.role == Role::Bigram { "bigram" } else { "all" };
        columns.push(Column { term: index, field_name, weight: term.weight, is_selecting });
        if is_literal(term.role) {
            for (field_name, share) in [("example", EXAMPLE_WEIGHT), ("about", ABOUT_WEIGHT)] {
                columns.push(Column {
                    term: index,
                    field_name,
                    weight: term.weight * share,
                    is_selecting: false,
                });
            }
        }
    }
    columns
}
