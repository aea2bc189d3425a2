//! How much of a request a result covers.
//!
//! `coverage` measures whether the words of the request are in a result at all. `evidence` also considers where: a word that a long
//! description mentions once is weak evidence, a word of the name is strong evidence.

use super::bm25::K1;
use super::rank::Ranked;
use super::term_scores::TermScores;
use crate::query::{Plan, QueryTerm, Role};

/// Minimum evidence of a relevant result, for requests of at most `EVIDENCE_WORDS_MAX` words and for longer ones, which contain many other
/// words. Chosen on the tuning half of the labelled requests; docs/BENCHMARKS.md has the effect.
const EVIDENCE_MIN: f32 = 0.18;
const EVIDENCE_WORDS_MAX: usize = 2;
const LONG_EVIDENCE_MIN: f32 = 0.1;
/// Number of first results among which the best evidence is looked up.
const BEST_AMONG: usize = 10;
/// Shares of the best evidence and of the best score that a result needs.
const EVIDENCE_SHARE_MIN: f32 = 0.5;
const SCORE_SHARE_MIN: f32 = 0.6;
/// A word is prominent if it has at least this share of its highest possible score. A word of the name, in a text of average length, has
/// about this share.
const PROMINENT: f32 = 0.6;

/// How well a candidate matches each word of a request.
struct WordShares {
    found: Vec<f32>,
    importance: Vec<f32>,
}

impl WordShares {
    fn of(plan: &Plan) -> Self {
        Self { found: vec![0.0; plan.words.len()], importance: vec![0.0; plan.words.len()] }
    }

    /// Adds a term of a word; `share` is the part of it that the candidate has, 0 to 1.
    fn add(&mut self, term: &QueryTerm, importance: f32, share: f32) {
        let role_share = match term.role {
            Role::Word | Role::Variant => 1.0,
            Role::Correction | Role::Translation => 0.8,
            Role::Synonym => 0.4,
            Role::Bigram | Role::Talk | Role::Opposite => return,
        };
        if let (Role::Word, Some(slot)) = (term.role, self.importance.get_mut(term.word)) {
            *slot = slot.max(importance);
        }
        if let Some(slot) = self.found.get_mut(term.word) {
            *slot = slot.max(role_share * share);
        }
    }

    /// The share of the whole request, or of its best part if it is long.
    fn best_part(&self, plan: &Plan) -> f32 {
        let part_words = |part: &Vec<usize>| -> Vec<usize> {
            let terms = part.iter().filter_map(|at| plan.terms.get(*at));
            terms.filter(|term| term.role == Role::Word).map(|term| term.word).collect()
        };
        let whole = (0..plan.words.len()).collect();
        let sets = plan.parts.iter().map(part_words).chain([whole]);
        sets.map(|words: Vec<usize>| {
            let all: f32 = words.iter().filter_map(|at| self.importance.get(*at)).sum();
            let pairs = words.iter().filter_map(|at| Some((self.importance.get(*at)?, self.found.get(*at)?)));
            ratio(pairs.map(|(importance, found)| importance * found).sum(), all)
        })
        .fold(0.0, f32::max)
    }
}

/// The share of the request that a candidate covers, weighted by the rarity of the words. A word that no capability contains counts like
/// the rarest one. For a long request, the best part is used.
pub(super) fn coverage(plan: &Plan, term_scores: &TermScores, row: usize) -> f32 {
    let mut shares = WordShares::of(plan);
    for (value, column) in term_scores.row(row).iter().zip(&term_scores.columns) {
        let Some(term) = plan.terms.get(column.term) else { continue };
        let rarity = term_scores.rarity.get(column.term).copied().unwrap_or_default();
        shares.add(term, rarity, if *value > 0.0 { 1.0 } else { 0.0 });
    }
    shares.best_part(plan)
}

/// The share of the request that a candidate covers: like [`coverage`], but weighted by how prominent each word is in the candidate, and by
/// its weight in the request.
pub(super) fn evidence(plan: &Plan, term_scores: &TermScores, row: usize) -> f32 {
    evidence_of(plan, term_scores, row, |_| true)
}

/// The same for a part of the words.
pub(super) fn evidence_of(
    plan: &Plan,
    term_scores: &TermScores,
    row: usize,
    counts: impl Fn(&str) -> bool,
) -> f32 {
    let mut shares = WordShares::of(plan);
    for (value, column) in term_scores.row(row).iter().zip(&term_scores.columns) {
        let Some(term) = plan.terms.get(column.term) else { continue };
        let rarity = term_scores.rarity.get(column.term).copied().unwrap_or_default();
        if !plan.words.get(term.word).is_some_and(|word| counts(&word.text)) {
            continue;
        }
        let highest = term.weight * rarity * (1.0 + K1);
        shares.add(term, rarity * term.weight, (ratio(*value, highest) / PROMINENT).min(1.0));
    }
    shares.best_part(plan)
}

/// Number of first results that are relevant. A result with unknown evidence counts if a later result is relevant.
pub(super) fn relevant(plans: &[Plan], ranked: &[Ranked], evidence: impl Fn(&Ranked) -> Option<f32>) -> u64 {
    let best = ranked.iter().take(BEST_AMONG).filter_map(&evidence).fold(0.0, f32::max);
    let is_long = plans.iter().any(|plan| plan.words.len() > EVIDENCE_WORDS_MAX);
    let evidence_min = if is_long { LONG_EVIDENCE_MIN } else { EVIDENCE_MIN };
    let evidence_min = evidence_min.max(EVIDENCE_SHARE_MIN * best);
    let others = ranked.iter().filter(|hit| !hit.candidate.is_exact);
    let score_min = SCORE_SHARE_MIN * others.map(Ranked::uncrowded_score).fold(0.0, f32::max);
    let mut relevant = 0;
    for (hit, place) in ranked.iter().zip(1..) {
        let evidence = evidence(hit);
        let is_evident = evidence.is_none_or(|evidence| evidence >= evidence_min);
        if !hit.candidate.is_exact && (!is_evident || hit.uncrowded_score() < score_min) {
            break;
        }
        if hit.candidate.is_exact || evidence.is_some() {
            relevant = place;
        }
    }
    relevant
}

fn ratio(part: f32, whole: f32) -> f32 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
