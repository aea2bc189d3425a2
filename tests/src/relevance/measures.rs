//! Measures over the requests of a set and over parts of them: short requests, other languages, requests without an answer, and rankings by
//! site.

use std::collections::BTreeMap;

use super::judge::Scores;

/// Maximum number of words of a short request.
const SHORT_WORDS_MAX: usize = 4;
/// A part with fewer requests has no measures: one request would change them too much.
const PART_MIN: usize = 20;
/// Number of resamples for a confidence interval.
const SAMPLES: usize = 1_000;

/// Measures by name, each between 0 and 1; more is better.
pub type Measures = BTreeMap<String, f64>;

/// The results of one request.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of a request")]
pub struct Outcome {
    pub scores: Scores,
    /// Scores by the sites of the results, if the set has sites.
    pub by_site: Option<Scores>,
    /// Whether a result is above the relevance cut-off.
    pub has_relevant: bool,
    pub has_answer: bool,
    pub is_short: bool,
    pub is_english: bool,
}

/// Whether a request belongs to a part.
type IsIn = fn(&Outcome) -> bool;
/// A measure of one request.
type Measure = fn(Scores) -> f64;

/// Whether a request is as short as typical typed requests.
pub fn is_short(text: &str) -> bool {
    text.split_whitespace().count() <= SHORT_WORDS_MAX
}

/// The measures of all requests, and of each part that is large enough.
pub fn measures(outcomes: &[Outcome]) -> Measures {
    let (answered, unanswered): (Vec<&Outcome>, Vec<&Outcome>) =
        outcomes.iter().partition(|outcome| outcome.has_answer);
    let mut found = Measures::new();
    add(&mut found, "", &answered, |outcome| Some(outcome.scores));
    if !unanswered.is_empty() {
        found.insert("kept".to_owned(), mean(&answered, |outcome| f64::from(outcome.has_relevant)));
    }
    let part = |is_in: IsIn| -> Vec<&Outcome> {
        answered.iter().copied().filter(|outcome| is_in(outcome)).collect()
    };
    let parts: [(&str, IsIn); 2] = [
        ("short ", |outcome| outcome.is_short && outcome.is_english),
        ("other languages ", |outcome| !outcome.is_english),
    ];
    for (name, is_in) in parts {
        let part = part(is_in);
        if part.len() >= PART_MIN {
            add(&mut found, name, &part, |outcome| Some(outcome.scores));
        }
    }
    let of_sites = part(|outcome| outcome.by_site.is_some());
    if of_sites.len() >= PART_MIN {
        add(&mut found, "site ", &of_sites, |outcome| outcome.by_site);
    }
    if unanswered.len() >= PART_MIN {
        found.insert("no answer".to_owned(), mean(&unanswered, |outcome| f64::from(!outcome.has_relevant)));
        let empty: Vec<&Outcome> = outcomes.iter().filter(|outcome| !outcome.has_relevant).collect();
        found
            .insert("no answer precision".to_owned(), mean(&empty, |outcome| f64::from(!outcome.has_answer)));
    }
    found
}

/// Adds nDCG, recall, reciprocal rank, and the shares of requests with a correct result first and among the first ten.
fn add(found: &mut Measures, part: &str, outcomes: &[&Outcome], scores: fn(&Outcome) -> Option<Scores>) {
    let measures: [(&str, Measure); 5] = [
        ("ndcg", |scores| scores.ndcg),
        ("recall", |scores| scores.recall),
        ("mrr", |scores| scores.mrr),
        ("first", |scores| f64::from(scores.mrr >= 1.0)),
        ("found", |scores| f64::from(scores.mrr > 0.0)),
    ];
    for (name, measure) in measures {
        let of = |outcome: &Outcome| scores(outcome).map(measure).unwrap_or_default();
        found.insert(format!("{part}{name}"), mean(outcomes, of));
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of requests are small")]
fn mean(outcomes: &[&Outcome], of: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(|outcome| of(outcome)).sum::<f64>() / outcomes.len().max(1) as f64
}

/// The unweighted mean of the measures that all sets have.
#[expect(clippy::cast_precision_loss, reason = "a few sets")]
pub fn mean_of_sets<'a>(sets: impl Iterator<Item = &'a Measures> + Clone) -> Measures {
    let count = sets.clone().count().max(1);
    let mut sums: BTreeMap<&String, (usize, f64)> = BTreeMap::new();
    for (name, value) in sets.flatten() {
        let (sets, sum) = sums.entry(name).or_default();
        *sets += 1;
        *sum += value;
    }
    let all = sums.into_iter().filter(|(_, (sets, _))| *sets == count);
    all.map(|(name, (_, sum))| (name.clone(), sum / count as f64)).collect()
}

/// The 95 % confidence interval of the mean nDCG over the sets, by resampling requests (bootstrap). It is deterministic.
#[expect(clippy::cast_precision_loss, reason = "counts of requests are small")]
pub fn interval(sets: &[Vec<f64>]) -> (f64, f64) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |count: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % count.max(1) as u64).unwrap_or_default()
    };
    let mut means: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            let of_set = |set: &Vec<f64>| {
                let drawn = (0..set.len()).map(|_| set.get(draw(set.len())).copied().unwrap_or_default());
                drawn.sum::<f64>() / set.len().max(1) as f64
            };
            let sum: f64 = sets.iter().map(of_set).sum();
            sum / sets.len().max(1) as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: usize| means.get(SAMPLES * share / 1_000).copied().unwrap_or_default();
    (at(25), at(975))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(mrr: f64, has_answer: bool, is_english: bool) -> Outcome {
        let scores = Scores { ndcg: mrr, recall: f64::from(mrr > 0.0), mrr };
        Outcome { scores, by_site: None, has_relevant: mrr > 0.0, has_answer, is_short: true, is_english }
    }

    #[test]
    fn measures_parts_that_are_large_enough() {
        let mut outcomes = vec![outcome(1.0, true, true); 15];
        outcomes.extend(vec![outcome(0.5, true, true); 15]);
        outcomes.extend(vec![outcome(0.0, true, false); 10]);
        outcomes.extend(vec![outcome(0.0, false, true); 20]);
        let found = measures(&outcomes);
        assert!((found["ndcg"] - 0.5625).abs() < 1e-9 && (found["short first"] - 0.5).abs() < 1e-9);
        assert!((found["kept"] - 0.75).abs() < 1e-9 && (found["no answer"] - 1.0).abs() < 1e-9);
        assert!((found["no answer precision"] - 2.0 / 3.0).abs() < 1e-9);
        assert!(!found.contains_key("other languages ndcg") && !found.contains_key("site ndcg"));
    }

    #[test]
    fn intervals_contain_the_mean_and_shrink_with_more_requests() {
        let few: Vec<f64> = (0..20).map(|at| f64::from(at % 2)).collect();
        let many: Vec<f64> = (0..2_000).map(|at| f64::from(at % 2)).collect();
        let (low, high) = interval(std::slice::from_ref(&many));
        assert!(low < 0.5 && 0.5 < high && high - low < 0.1, "{low} {high}");
        let (lower, higher) = interval(&[few]);
        assert!(higher - lower > high - low);
    }

    #[test]
    fn mean_of_sets_contains_only_measures_of_every_set() {
        let a = Measures::from([("ndcg".to_owned(), 0.5), ("site ndcg".to_owned(), 0.1)]);
        let b = Measures::from([("ndcg".to_owned(), 0.7)]);
        let mean = mean_of_sets([&a, &b].into_iter());
        assert_eq!(mean.len(), 1);
        assert!((mean["ndcg"] - 0.6).abs() < 1e-9);
    }
}
