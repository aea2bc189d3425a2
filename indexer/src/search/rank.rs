//! From what each term gave to an order.
//!
//! score = (whole and best part of the request, mixed + what its site's other capabilities say) × prior, then results
//! that crowd a page (many of one site, copies of one text) give way to others that are nearly as good.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use serde_json::{Value, json};
use tantivy::DocAddress;

use super::matrix::Matrix;
use crate::query::{Plan, Role};

/// Share of the whole request against its best part.
const WHOLE_SHARE: f32 = 0.6;
/// What character grams add at most: they catch compounds and inflections that stemming misses.
const GRAM_SHARE: f32 = 0.2;
/// What the mean of a site's best scores adds to each of its capabilities.
const SITE_SHARE: f32 = 0.25;
const SITE_BEST: usize = 3;
/// Capabilities of one site that stand on their own; every further one is worth less and less against
/// those of other sites.
const SITE_CROWD: usize = 5;
const CROWD_FACTOR: f32 = 0.8;
/// Results of one site among so many results, while others are left to take their places.
const SITE_CAP: usize = 6;
const SITE_CAP_AMONG: usize = 10;
/// What a copy of a text that stands higher is worth.
const COPY_FACTOR: f32 = 0.7;
/// Above every score of the text: exact matches come first.
const PIN: f32 = 4.0;

/// What is known of a candidate beside its text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Traits {
    pub(super) tie: u64,
    pub(super) site: u64,
    pub(super) text: u64,
    pub(super) prior: f32,
    pub(super) is_exact: bool,
    /// How near its vector is to the request, where both have one.
    pub(super) cosine: Option<f32>,
}

/// Counts by sites and texts, whose numbers are hashes already.
type ByNumber<T> = HashMap<u64, T, BuildHasherDefault<Number>>;

/// Takes a number for its own hash.
#[derive(Default)]
struct Number(u64);

impl Hasher for Number {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// A candidate in its place.
#[derive(Debug, Clone)]
pub(super) struct Ranked {
    pub(super) candidate: usize,
    pub(super) address: DocAddress,
    pub(super) tie: u64,
    /// In units of the best text score, so that pages agree.
    pub(super) score: f32,
    steps: Steps,
}

/// How the score came about.
#[derive(Debug, Clone, Copy, Default)]
struct Steps {
    text: f32,
    site: f32,
    prior: f32,
    crowd: f32,
    is_exact: bool,
    cosine: Option<f32>,
}

impl Ranked {
    pub(super) fn is_exact(&self) -> bool {
        self.steps.is_exact
    }

    /// Zero where nothing was compared.
    pub(super) fn cosine(&self) -> f32 {
        self.steps.cosine.unwrap_or(0.0)
    }

    pub(super) fn explanation(&self, terms: &Value) -> Value {
        let Steps { text, site, prior, crowd, is_exact, cosine } = self.steps;
        let mut said =
            json!({"text": text, "site": site, "prior": prior, "crowding": crowd, "exact": is_exact});
        if let Some(cosine) = cosine {
            said["cosine"] = json!(cosine);
        }
        said["terms"] = terms.clone();
        said
    }
}

/// Text scores of one phrasing between 0 and 1, and the best raw score. What the selection has scored is added to what
/// the matrix holds.
pub(super) fn text_scores(plan: &Plan, matrix: &Matrix, selected: &[f32]) -> (Vec<f32>, f32) {
    let rows = selected.iter().enumerate();
    let whole: Vec<f32> = rows.map(|(at, selected)| selected + matrix.sum(at)).collect();
    let best = maximum(&whole);
    let mut scores: Vec<f32> = whole.iter().map(|score| ratio(*score, best)).collect();
    if !plan.parts.is_empty() {
        mix_parts(plan, matrix, &mut scores);
    }
    let best_grams = maximum(&matrix.grams);
    for (score, grams) in scores.iter_mut().zip(&matrix.grams) {
        *score += GRAM_SHARE * ratio(*grams, best_grams);
    }
    (scores, best)
}

/// Mixes the best part of a long request into the scores of the whole.
fn mix_parts(plan: &Plan, matrix: &Matrix, scores: &mut [f32]) {
    let candidates = scores.len();
    let mut part_of_term = vec![usize::MAX; plan.terms.len()];
    for (part, places) in plan.parts.iter().enumerate() {
        for place in places {
            if let Some(slot) = part_of_term.get_mut(*place) {
                *slot = part;
            }
        }
    }
    let parts: Vec<Vec<f32>> = (0..plan.parts.len())
        .map(|part| {
            let is_in = |term: usize| part_of_term.get(term).is_some_and(|of| *of == part);
            (0..candidates)
                .map(|at| {
                    let cells = matrix.row(at).iter().zip(&matrix.columns);
                    cells.filter(|(_, column)| is_in(column.term)).map(|(value, _)| *value).sum()
                })
                .collect()
        })
        .collect();
    let bests: Vec<f32> = parts.iter().map(|scores| maximum(scores)).collect();
    for (at, score) in scores.iter_mut().enumerate() {
        let of_parts = parts.iter().zip(&bests).filter_map(|(part, best)| Some(ratio(*part.get(at)?, *best)));
        *score = WHOLE_SHARE * *score + (1.0 - WHOLE_SHARE) * of_parts.fold(0.0, f32::max);
    }
}

/// Orders the candidates by their text scores and everything else.
pub(super) fn rank(candidates: &[DocAddress], text: &[f32], traits: &[Traits], unit: f32) -> Vec<Ranked> {
    let site_scores = site_scores(text, traits);
    let mut ranked: Vec<Ranked> = Vec::with_capacity(candidates.len());
    for (candidate, ((address, text), traits)) in candidates.iter().zip(text).zip(traits).enumerate() {
        let site = SITE_SHARE * site_scores.get(&traits.site).copied().unwrap_or(0.0);
        let pin = if traits.is_exact { PIN } else { 0.0 };
        let score = (text + site) * traits.prior + pin;
        let Traits { prior, is_exact, cosine, .. } = *traits;
        let steps = Steps { text: *text, site, prior, crowd: 1.0, is_exact, cosine };
        ranked.push(Ranked { candidate, address: *address, tie: traits.tie, score, steps });
    }
    sort(&mut ranked);
    thin_crowds(&mut ranked, traits);
    sort(&mut ranked);
    let mut ranked = spread(ranked, traits);
    for hit in &mut ranked {
        hit.score *= unit;
    }
    ranked
}

/// Holds back what exceeds a site's share of every ten results, and fills up with others while there are any.
fn spread(ranked: Vec<Ranked>, traits: &[Traits]) -> Vec<Ranked> {
    let mut spread: Vec<Ranked> = Vec::with_capacity(ranked.len());
    let mut rest: VecDeque<Ranked> = ranked.into();
    let mut held_back: VecDeque<Ranked> = VecDeque::new();
    let mut of_site: Vec<(u64, usize)> = Vec::with_capacity(SITE_CAP_AMONG);
    while !rest.is_empty() || !held_back.is_empty() {
        let end = spread.len() + SITE_CAP_AMONG;
        of_site.clear();
        let mut still_held = VecDeque::new();
        while let Some(hit) = held_back.pop_front().or_else(|| rest.pop_front()) {
            if spread.len() < end && (hit.is_exact() || has_room(&mut of_site, &hit, traits)) {
                spread.push(hit);
            } else if spread.len() < end {
                still_held.push_back(hit);
            } else {
                rest.push_front(hit);
                break;
            }
        }
        let missing = end.saturating_sub(spread.len()).min(still_held.len());
        spread.extend(still_held.drain(..missing));
        still_held.append(&mut held_back);
        held_back = still_held;
    }
    // What was held back is worth no more than what it gave way to.
    let mut highest = f32::MAX;
    for hit in &mut spread {
        hit.score = hit.score.min(highest);
        highest = hit.score;
    }
    spread
}

/// Counts a result of a site among its ten, unless the site has its share of them.
fn has_room(of_site: &mut Vec<(u64, usize)>, hit: &Ranked, traits: &[Traits]) -> bool {
    let site = traits.get(hit.candidate).map_or(0, |of| of.site);
    match of_site.iter_mut().find(|(of, _)| *of == site) {
        Some((_, count)) if *count >= SITE_CAP => false,
        Some((_, count)) => {
            *count += 1;
            true
        }
        None => {
            of_site.push((site, 1));
            true
        }
    }
}

fn thin_crowds(ranked: &mut [Ranked], traits: &[Traits]) {
    let mut of_site: ByNumber<usize> = counts(ranked.len());
    let mut of_text: ByNumber<usize> = counts(ranked.len());
    for hit in ranked {
        let Some(of) = traits.get(hit.candidate) else { continue };
        let before_of_site = of_site.entry(of.site).or_default();
        let before_of_text = of_text.entry(of.text).or_default();
        let mut factor = 1.0;
        for _ in SITE_CROWD..=*before_of_site {
            factor *= CROWD_FACTOR;
        }
        if *before_of_text >= 1 {
            factor *= COPY_FACTOR;
        }
        *before_of_site += 1;
        *before_of_text += 1;
        hit.score *= factor;
        hit.steps.crowd = factor;
    }
}

/// The mean of the best scores of each site.
fn site_scores(text: &[f32], traits: &[Traits]) -> ByNumber<f32> {
    let mut best: ByNumber<[f32; SITE_BEST]> = counts(traits.len());
    for (score, of) in text.iter().zip(traits) {
        let best = best.entry(of.site).or_default();
        let mut score = *score;
        for kept in best {
            if score > *kept {
                std::mem::swap(&mut score, kept);
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "at most three")]
    let divisor = SITE_BEST as f32;
    best.into_iter().map(|(site, scores)| (site, scores.iter().sum::<f32>() / divisor)).collect()
}

fn counts<T>(capacity: usize) -> ByNumber<T> {
    ByNumber::with_capacity_and_hasher(capacity, BuildHasherDefault::default())
}

fn sort(ranked: &mut [Ranked]) {
    ranked.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.tie.cmp(&b.tie)));
}

fn maximum(scores: &[f32]) -> f32 {
    scores.iter().copied().fold(0.0, f32::max)
}

fn ratio(score: f32, best: f32) -> f32 {
    if best > 0.0 { score / best } else { 0.0 }
}

/// How much of the request a candidate speaks of: the rarer a word, the more it counts; a word that no capability has
/// counts like the rarest. The best part of a long request decides.
pub(super) fn coverage(plan: &Plan, matrix: &Matrix, candidate: usize) -> f32 {
    let mut found = vec![0.0_f32; plan.words.len()];
    let mut rarity = vec![0.0_f32; plan.words.len()];
    for (value, column) in matrix.row(candidate).iter().zip(&matrix.columns) {
        let Some(term) = plan.terms.get(column.term) else { continue };
        let share = match term.role {
            Role::Word => 1.0,
            Role::Correction => 0.8,
            Role::Synonym => 0.4,
            Role::Bigram | Role::Association => continue,
        };
        if let (Role::Word, Some(slot)) = (term.role, rarity.get_mut(term.word)) {
            *slot = slot.max(matrix.rarity.get(column.term).copied().unwrap_or(0.0));
        }
        if let Some(slot) = found.get_mut(term.word).filter(|_| *value > 0.0) {
            *slot = slot.max(share);
        }
    }
    let part_words = |places: &Vec<usize>| -> Vec<usize> {
        let terms = places.iter().filter_map(|at| plan.terms.get(*at));
        terms.filter(|term| term.role == Role::Word).map(|term| term.word).collect()
    };
    let whole = (0..plan.words.len()).collect();
    let sets = plan.parts.iter().map(part_words).chain([whole]);
    sets.map(|words: Vec<usize>| {
        let all: f32 = words.iter().filter_map(|at| rarity.get(*at)).sum();
        let part: f32 = words.iter().filter_map(|at| Some(rarity.get(*at)? * found.get(*at)?)).sum();
        ratio(part, all)
    })
    .fold(0.0, f32::max)
}

/// What the terms gave to one candidate, largest first, for an explanation.
pub(super) fn explained_terms(plan: &Plan, matrix: &Matrix, candidate: usize) -> Value {
    let cells = matrix.row(candidate).iter().zip(&matrix.columns);
    let mut terms: Vec<(f32, Value)> = cells
        .filter(|(value, _)| **value > 0.0)
        .filter_map(|(value, column)| {
            let term = plan.terms.get(column.term)?;
            Some((*value, json!({"term": term.text, "field": column.field_name, "score": value})))
        })
        .collect();
    terms.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    Value::Array(terms.into_iter().map(|(_, term)| term).collect())
}
