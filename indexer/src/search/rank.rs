//! Orders the candidates.
//!
//! score = (text score + share of the site's best scores) × prior, reduced for spam. The text score combines the score of the whole request
//! with the score of its best part. Results that crowd a page (many results of one site, copies of one text) are then demoted below others
//! with nearly the same score.

use std::collections::{HashSet, VecDeque};

use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use tantivy::DocAddress;

use super::columns::DocumentTraits;
use super::group::grouped;
use super::term_scores::TermScores;
use crate::query::Plan;
use crate::request::Grouping;
use crate::spam::SPAM_FACTOR;

/// Weight of the whole request; the rest is the weight of its best part.
const WHOLE_SHARE: f32 = 0.6;
/// Maximum share that character grams add. They match compounds and inflections that stemming misses.
const GRAM_SHARE: f32 = 0.2;
/// Share of the mean of a site's best scores that is added to each of its capabilities.
const SITE_SHARE: f32 = 0.25;
const SITE_BEST: usize = 3;
/// Number of capabilities of one site with their full score; each further one is multiplied by `CROWD_FACTOR` once more.
const SITE_CROWD: usize = 5;
const CROWD_FACTOR: f32 = 0.8;
/// Maximum number of results of one site among every ten, while there are results of other sites.
const SITE_CAP: usize = 6;
const SITE_CAP_AMONG: usize = 10;
/// Factor for a copy of a text that ranks higher.
const COPY_FACTOR: f32 = 0.7;
/// Maximum number of words of a phrasing whose scores an explanation lists.
const EXPLAINED_WORDS_MAX: usize = 16;
/// Added to exact matches; larger than every text score and the bonus of a named site.
const EXACT_BONUS: f32 = 4.0;
/// Added to results of a site that the request names among other words; larger than every text score.
const NAMED_SITE_BONUS: f32 = 2.0;

/// A document with all values that determine its rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate {
    /// Row in the [`TermScores`].
    pub(super) row: usize,
    pub(super) address: DocAddress,
    /// Text scores of all phrasings, averaged, mixed with the cosine if there is one.
    pub(super) text_score: f32,
    pub(super) traits: DocumentTraits,
    /// Whether its id, name or site is a whole phrasing.
    pub(super) is_exact: bool,
    /// Whether the request names its site among other words.
    pub(super) is_of_named_site: bool,
    /// Whether it or its site is spam.
    pub(super) is_spam: bool,
    /// Cosine similarity of its vector and the request's vector, if both exist.
    pub(super) cosine: Option<f32>,
}

/// A candidate with its final score.
#[derive(Debug, Clone)]
pub(super) struct Ranked {
    pub(super) candidate: Candidate,
    /// In units of the best text score, so that scores are comparable across pages.
    pub(super) score: f32,
    /// Score that the site adds, before the prior is applied.
    site_score: f32,
    /// Factor of crowding.
    crowding: f32,
    /// The results grouped under this one, the best first.
    pub(super) members: Vec<Candidate>,
}

impl Ranked {
    /// The score without demotion for crowding, because crowded results are equally relevant.
    pub(super) fn uncrowded_score(&self) -> f32 {
        self.score / self.crowding
    }

    /// The parts of the score, without its words.
    pub(super) fn explanation(&self, evidence: f32) -> Value {
        let Candidate { text_score, traits, is_exact, is_of_named_site, cosine, .. } = self.candidate;
        let mut explanation = json!({"text": text_score, "site": self.site_score, "prior": traits.prior,
                                     "crowding": self.crowding, "exact": is_exact,
                                     "named_site": is_of_named_site, "evidence": evidence});
        if let Some(cosine) = cosine {
            explanation["cosine"] = json!(cosine);
        }
        explanation
    }
}

/// Text scores of one phrasing between 0 and 1, by row, and the best raw score. `selected` has the scores of the selection, which
/// are added.
pub(super) fn text_scores(plan: &Plan, term_scores: &TermScores, selected: &[f32]) -> (Vec<f32>, f32) {
    let rows = selected.iter().enumerate();
    let whole: Vec<f32> = rows.map(|(at, selected)| selected + term_scores.sum(at)).collect();
    let best = maximum(&whole);
    let mut scores: Vec<f32> = whole.iter().map(|score| ratio(*score, best)).collect();
    if !plan.parts.is_empty() {
        mix_parts(plan, term_scores, &mut scores);
    }
    let best_grams = maximum(&term_scores.grams);
    for (score, grams) in scores.iter_mut().zip(&term_scores.grams) {
        *score += GRAM_SHARE * ratio(*grams, best_grams);
    }
    (scores, best)
}

/// Mixes the best part of a long request into the scores of the whole.
fn mix_parts(plan: &Plan, term_scores: &TermScores, scores: &mut [f32]) {
    let candidates = scores.len();
    let mut part_of_term = vec![usize::MAX; plan.terms.len()];
    for (part, terms) in plan.parts.iter().enumerate() {
        for term in terms {
            if let Some(slot) = part_of_term.get_mut(*term) {
                *slot = part;
            }
        }
    }
    let parts: Vec<Vec<f32>> = (0..plan.parts.len())
        .map(|part| {
            let is_in = |term: usize| part_of_term.get(term).is_some_and(|term_part| *term_part == part);
            (0..candidates)
                .map(|at| {
                    let cells = term_scores.row(at).iter().zip(&term_scores.columns);
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

/// Orders the candidates. `unit` is the best raw text score.
pub(super) fn rank(candidates: &[Candidate], unit: f32, group_by: Grouping) -> Vec<Ranked> {
    let site_scores = site_scores(candidates);
    let ranked = |candidate: &Candidate| {
        let traits = candidate.traits;
        let site_score = SITE_SHARE * site_scores.get(&traits.site).copied().unwrap_or(0.0);
        let bonus = match candidate {
            // spam may use any name, so an exact match means nothing
            Candidate { is_spam: true, .. } => 0.0,
            Candidate { is_exact: true, .. } => EXACT_BONUS,
            Candidate { is_of_named_site: true, text_score, .. } if *text_score > 0.0 => NAMED_SITE_BONUS,
            Candidate { .. } => 0.0,
        };
        let factor = if candidate.is_spam { SPAM_FACTOR } else { 1.0 };
        let score = (candidate.text_score + site_score) * traits.prior * factor + bonus;
        Ranked { candidate: *candidate, score, site_score, crowding: 1.0, members: Vec::new() }
    };
    let mut ranked: Vec<Ranked> = candidates.iter().map(ranked).collect();
    sort(&mut ranked);
    if group_by != Grouping::None {
        ranked = grouped(ranked, group_by);
    }
    // with one result per site, no site crowds a page or exceeds its share
    if group_by != Grouping::Site {
        demote_crowds(&mut ranked);
        sort(&mut ranked);
        ranked = spread(ranked);
    }
    for hit in &mut ranked {
        hit.score *= unit;
    }
    ranked
}

/// If a site has more than its share among ten results, moves the excess below results of other sites, as long as there are any.
fn spread(ranked: Vec<Ranked>) -> Vec<Ranked> {
    let mut spread: Vec<Ranked> = Vec::with_capacity(ranked.len());
    let mut rest: VecDeque<Ranked> = ranked.into();
    let mut held_back: VecDeque<Ranked> = VecDeque::new();
    let mut by_site: Vec<(u64, usize)> = Vec::with_capacity(SITE_CAP_AMONG);
    while !rest.is_empty() || !held_back.is_empty() {
        let end = spread.len() + SITE_CAP_AMONG;
        by_site.clear();
        let mut still_held = VecDeque::new();
        while let Some(hit) = held_back.pop_front().or_else(|| rest.pop_front()) {
            let is_exact = hit.candidate.is_exact;
            if spread.len() < end && (is_exact || has_room(&mut by_site, hit.candidate.traits.site)) {
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
    // a moved result must not have a higher score than the results before it
    let mut highest = f32::MAX;
    for hit in &mut spread {
        hit.score = hit.score.min(highest);
        highest = hit.score;
    }
    spread
}

/// Counts a result of a site, unless the site has already reached its share. Returns whether it was counted.
fn has_room(by_site: &mut Vec<(u64, usize)>, site: u64) -> bool {
    match by_site.iter_mut().find(|(of, _)| *of == site) {
        Some((_, count)) if *count >= SITE_CAP => false,
        Some((_, count)) => {
            *count += 1;
            true
        }
        None => {
            by_site.push((site, 1));
            true
        }
    }
}

fn demote_crowds(ranked: &mut [Ranked]) {
    let mut by_site: FxHashMap<u64, usize> = FxHashMap::default();
    let mut by_text: FxHashMap<u64, usize> = FxHashMap::default();
    for hit in ranked {
        let before_of_site = by_site.entry(hit.candidate.traits.site).or_default();
        let before_of_text = by_text.entry(hit.candidate.traits.text).or_default();
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
        hit.crowding = factor;
    }
}

/// The mean of the best scores of each site.
fn site_scores(candidates: &[Candidate]) -> FxHashMap<u64, f32> {
    let mut best: FxHashMap<u64, [f32; SITE_BEST]> = FxHashMap::default();
    for candidate in candidates {
        let mut score = candidate.text_score;
        for kept in best.entry(candidate.traits.site).or_default() {
            if score > *kept {
                std::mem::swap(&mut score, kept);
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "at most three")]
    let divisor = SITE_BEST as f32;
    best.into_iter().map(|(site, scores)| (site, scores.iter().sum::<f32>() / divisor)).collect()
}

fn sort(ranked: &mut [Ranked]) {
    ranked.sort_unstable_by(|a, b| {
        b.score.total_cmp(&a.score).then(a.candidate.traits.tie.cmp(&b.candidate.traits.tie))
    });
}

fn maximum(scores: &[f32]) -> f32 {
    scores.iter().copied().fold(0.0, f32::max)
}

fn ratio(score: f32, best: f32) -> f32 {
    if best > 0.0 { score / best } else { 0.0 }
}

/// The scores of the terms in one candidate.
pub(super) struct ExplainedTerms {
    /// In descending order of size.
    pub(super) terms: Vec<Value>,
    /// Number of scores that were left out because of [`EXPLAINED_WORDS_MAX`] or the limit of bytes.
    pub(super) left_out: usize,
}

/// The largest scores of the terms in one candidate, up to `bytes_max` bytes of JSON.
pub(super) fn explained_terms(
    plan: &Plan,
    term_scores: &TermScores,
    row: usize,
    bytes_max: usize,
) -> ExplainedTerms {
    let cells = term_scores.row(row).iter().zip(&term_scores.columns);
    let mut cells: Vec<_> = cells.filter(|(value, _)| **value > 0.0).collect();
    cells.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let (mut words, mut bytes) = (HashSet::new(), 0);
    let mut explained = ExplainedTerms { terms: Vec::new(), left_out: 0 };
    for (value, column) in cells {
        let Some(term) = plan.terms.get(column.term) else { continue };
        if words.contains(&column.term) || words.len() < EXPLAINED_WORDS_MAX {
            let score = json!({"term": term.text, "field": column.field_name, "score": value});
            bytes += score.to_string().len() + 1;
            if bytes <= bytes_max {
                words.insert(column.term);
                explained.terms.push(score);
                continue;
            }
        }
        explained.left_out += 1;
    }
    explained
}
