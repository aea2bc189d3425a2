//! Scores the candidates term by term.
//!
//! The parts of a long request, coverage, explanations and the weak texts all need to know what each term gave to each
//! candidate. It is computed for the candidates alone, from the stems that the index keeps of each, with the same BM25
//! as the search that selected them. What that search has scored already is not added again where its sum is all that
//! is needed.

use tantivy::{DocAddress, DocId, columnar};

use super::bm25::{B, Bm25, K1};
use super::columns::Columns;
use super::loaded::Loaded;
use super::postings::{self, Place};
use crate::analysis::grams;
use crate::error::IndexError;
use crate::index::{StemPart, decoded, gram_number, stem_number};
use crate::query::{Plan, Role};

/// Weight of a word in examples, and in what the manifest says of itself, against the capability's own text.
const EXAMPLE_WEIGHT: f32 = 0.5;
const ABOUT_WEIGHT: f32 = 0.1;
/// Usual numbers of stems in examples and in what manifests say of themselves, and of grams in names: texts of another
/// length count less or more.
const EXAMPLE_LENGTH: f32 = 12.0;
const ABOUT_LENGTH: f32 = 24.0;
const GRAMS_LENGTH: f32 = 24.0;
/// Candidates, the best by their words, that are looked at where the selection has scored the words: what is left adds
/// too little to bring others among the first ten. On the dev queries of the public sets 120 rank no better, and 30 worse.
const CLOSE_MAX: usize = 80;

/// What is looked up for the candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Every term.
    Everything,
    /// What the selection has not scored.
    Rest,
}

/// One term in one text.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) term: usize,
    pub(super) field_name: &'static str,
    weight: f32,
    /// Whether the selection scores it too.
    pub(super) is_selecting: bool,
}

/// What each column gave to each candidate.
#[derive(Debug)]
pub(super) struct Matrix {
    pub(super) look: Look,
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
        let failed = IndexError::engine("score candidates");
        let stems = plan.terms.iter().map(|term| (term.role != Role::Bigram).then_some(term.text.as_str()));
        let frequencies = loaded.words.of(&loaded.searcher, stems).map_err(&failed)?;
        let columns = columns(plan);
        let documents = loaded.statistics.documents();
        let mut matrix = Self {
            look,
            values: vec![0.0; candidates.len() * columns.len()],
            rarity: frequencies.iter().map(|frequency| rarity_of(*frequency, documents)).collect(),
            grams: vec![0.0; candidates.len()],
            columns,
        };
        let wanted = Wanted::of(loaded, plan, &matrix, &frequencies);
        let close = if look == Look::Rest { CLOSE_MAX } else { candidates.len() };
        let mut numbers = Vec::new();
        for (row, address) in candidates.iter().enumerate().take(close) {
            if let Some(columns) = loaded.columns.get(address.segment_ord as usize) {
                matrix.fill(&wanted, columns, (row, address.doc_id), &mut numbers);
            }
        }
        if look == Look::Everything {
            matrix.fill_pairs(loaded, plan, candidates).map_err(&failed)?;
        }
        Ok(matrix)
    }

    /// The row of one candidate.
    pub(super) fn row(&self, candidate: usize) -> &[f32] {
        let width = self.columns.len();
        self.values.get(candidate * width..(candidate + 1) * width).unwrap_or_default()
    }

    /// What a candidate has from the terms that the selection has not scored already.
    pub(super) fn sum(&self, candidate: usize) -> f32 {
        let cells = self.row(candidate).iter().zip(&self.columns);
        let counts = |column: &Column| self.look == Look::Everything || !column.is_selecting;
        cells.filter(|(_, column)| counts(column)).map(|(value, _)| *value).sum()
    }

    /// Looks one candidate's stems and grams up among those that are wanted.
    fn fill(
        &mut self,
        wanted: &Wanted<'_>,
        columns: &Columns,
        (row, document): (usize, DocId),
        numbers: &mut Vec<u64>,
    ) {
        let (first, width) = (row * self.columns.len(), self.columns.len());
        let Some(cells) = self.values.get_mut(first..first + width) else { return };
        let (mut example_length, mut about_length) = (0, 0);
        let is_close = row < CLOSE_MAX;
        for value in numbers_of(&columns.stems, document, numbers) {
            let stem = decoded(*value);
            match stem.part {
                StemPart::Own => {}
                StemPart::Example => example_length += stem.count,
                StemPart::About => about_length += stem.count,
            }
            for of in wanted.stems(stem.number) {
                let score = match stem.part {
                    StemPart::Own => of.bm25.score(columns.words.lengths.fieldnorm_id(document), stem.count),
                    // A stand-in until the length is known.
                    StemPart::Example | StemPart::About => of.rarity * stem_share(stem.count),
                };
                let at = match stem.part {
                    StemPart::Own if of.is_association && !is_close => None,
                    StemPart::Own => Some(of.own),
                    StemPart::Example => of.example,
                    StemPart::About => of.about,
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
        if is_close
            && !wanted.grams.is_empty()
            && let Some(sum) = self.grams.get_mut(row)
        {
            let grams = numbers_of(&columns.grams, document, numbers);
            *sum = grams.iter().map(|gram| wanted.gram(*gram)).sum();
            *sum *= length_share(u32::try_from(grams.len()).unwrap_or(u32::MAX), GRAMS_LENGTH);
        }
    }

    /// What word pairs give.
    fn fill_pairs(&mut self, loaded: &Loaded, plan: &Plan, candidates: &[DocAddress]) -> tantivy::Result<()> {
        let mut places: Vec<Place> = candidates.iter().copied().enumerate().collect();
        places.sort_unstable_by_key(|(_, address)| *address);
        let width = self.columns.len();
        for (at, column) in
            self.columns.iter().enumerate().filter(|(_, column)| column.field_name == "bigram")
        {
            let Some(term) = plan.terms.get(column.term) else { continue };
            for (row, score) in postings::scores(loaded, &term.text, &places)? {
                if let Some(value) = self.values.get_mut(row * width + at) {
                    *value = score * column.weight;
                }
            }
        }
        Ok(())
    }
}

/// The values of one document, read at once: one by one, each would be a call through a pointer.
fn numbers_of<'a>(column: &columnar::Column<u64>, document: DocId, read: &'a mut Vec<u64>) -> &'a [u64] {
    let rows = column.index.value_row_ids(document);
    read.resize(rows.len(), 0);
    column.values.get_range(u64::from(rows.start), read);
    read
}

/// The share of its rarity that a term gives where it is so many times in a text of the usual length.
fn stem_share(count: u32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "counts of words are small")]
    let count = count as f32;
    count * (K1 + 1.0) / (count + K1)
}

/// How much words of a text of so many words count against those of a usual one.
fn length_share(length: u32, usual: f32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "counts of words are small")]
    let length = length as f32;
    (1.0 + K1) / (1.0 + K1 * (1.0 - B + B * length / usual))
}

/// A term of the plan as candidates are searched for it.
struct WantedStem<'a> {
    number: u32,
    own: usize,
    example: Option<usize>,
    about: Option<usize>,
    is_association: bool,
    rarity: f32,
    bm25: Bm25<'a>,
}

/// The terms of a plan by their numbers.
struct Wanted<'a> {
    /// In order of numbers.
    stems: Vec<WantedStem<'a>>,
    stems_filter: Filter,
    /// In order of numbers, each with what it gives.
    grams: Vec<(u16, f32)>,
    grams_filter: Filter,
}

/// Tells most numbers that are not among some, by their last bits.
struct Filter([u64; Self::WORDS]);

impl Filter {
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

impl<'a> Wanted<'a> {
    fn of(loaded: &'a Loaded, plan: &Plan, matrix: &Matrix, frequencies: &[u64]) -> Self {
        let mut stems: Vec<WantedStem<'_>> = Vec::with_capacity(plan.terms.len());
        for (own, column) in
            matrix.columns.iter().enumerate().filter(|(_, column)| column.field_name == "all")
        {
            let (Some(of), Some(frequency)) = (plan.terms.get(column.term), frequencies.get(column.term))
            else {
                continue;
            };
            let is_said = is_said(of.role);
            stems.push(WantedStem {
                number: stem_number(&of.text),
                own,
                example: is_said.then_some(own + 1),
                about: is_said.then_some(own + 2),
                is_association: of.role == Role::Association,
                rarity: matrix.rarity.get(column.term).copied().unwrap_or_default(),
                bm25: loaded.statistics.of_word((*frequency).max(1)),
            });
        }
        stems.sort_unstable_by_key(|stem| stem.number);
        let grams = wanted_grams(plan, &matrix.rarity);
        Self {
            stems_filter: Filter::of(stems.iter().map(|stem| u64::from(stem.number))),
            grams_filter: Filter::of(grams.iter().map(|(gram, _)| u64::from(*gram))),
            stems,
            grams,
        }
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

/// The grams of the words, each with its share of what its word says.
fn wanted_grams(plan: &Plan, rarity: &[f32]) -> Vec<(u16, f32)> {
    let mut found: Vec<(u16, f32)> = Vec::new();
    for (at, word) in plan.words.iter().enumerate() {
        let terms = plan.terms.iter().zip(rarity);
        let own = terms.filter(|(term, _)| term.role == Role::Word && term.word == at);
        let rarity = own.map(|(_, rarity)| *rarity).fold(0.0, f32::max);
        let numbers: Vec<u16> = grams(&word.said).map(gram_number).collect();
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
fn rarity_of(frequency: u64, documents: u64) -> f32 {
    let (n, all) = (frequency as f32, documents as f32);
    (1.0 + (all - n + 0.5).max(0.0) / (n + 0.5)).ln()
}

/// Whether a term is looked for in examples, and in what manifests say of themselves.
fn is_said(role: Role) -> bool {
    matches!(role, Role::Word | Role::Correction)
}

/// The columns of a term lie side by side: its own text, examples, what the manifest says of itself.
fn columns(plan: &Plan) -> Vec<Column> {
    let mut columns = Vec::with_capacity(plan.terms.len() * 2);
    for (term, of) in plan.terms.iter().enumerate() {
        let is_selecting = of.role != Role::Association;
        let field_name = if of.role == Role::Bigram { "bigram" } else { "all" };
        columns.push(Column { term, field_name, weight: of.weight, is_selecting });
        if is_said(of.role) {
            for (field_name, share) in [("example", EXAMPLE_WEIGHT), ("about", ABOUT_WEIGHT)] {
                columns.push(Column { term, field_name, weight: of.weight * share, is_selecting: false });
            }
        }
    }
    columns
}
