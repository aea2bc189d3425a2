//! Computes nDCG@10, Recall@10 and the reciprocal rank of the first correct result.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Number of evaluated ranks.
pub const CUT: usize = 10;

/// The scores of one request, or their mean over many requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    pub ndcg: f64,
    pub recall: f64,
    pub mrr: f64,
}

/// Scores the results of one request by the grades of the correct ones (1 if grades are binary).
#[expect(clippy::cast_precision_loss, reason = "ranks and counts are small")]
pub fn judge<S: Ord + Borrow<str>>(found: &[String], grades: &BTreeMap<S, u32>) -> Scores {
    let discount = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let gain = |grade: u32| f64::from(2_u32.pow(grade.min(8)) - 1);
    let mut sum = 0.0;
    let mut hits = 0_usize;
    let mut mrr = 0.0;
    for (rank, id) in found.iter().take(CUT).enumerate() {
        let Some(grade) = grades.get(id.as_str()).filter(|grade| **grade > 0) else { continue };
        sum += gain(*grade) * discount(rank);
        hits += 1;
        if mrr == 0.0 {
            mrr = 1.0 / (rank as f64 + 1.0);
        }
    }
    let mut best: Vec<u32> = grades.values().copied().filter(|grade| *grade > 0).collect();
    best.sort_unstable_by(|a, b| b.cmp(a));
    let ideal: f64 =
        best.iter().take(CUT).enumerate().map(|(rank, grade)| gain(*grade) * discount(rank)).sum();
    let ndcg = if ideal > 0.0 { sum / ideal } else { 0.0 };
    let recall = if best.is_empty() { 0.0 } else { hits as f64 / best.len() as f64 };
    Scores { ndcg, recall, mrr }
}

/// The unweighted mean.
#[expect(clippy::cast_precision_loss, reason = "counts of requests are small")]
pub fn mean(scores: &[Scores]) -> Scores {
    let n = scores.len().max(1) as f64;
    let sum = |of: fn(&Scores) -> f64| scores.iter().map(of).sum::<f64>() / n;
    Scores { ndcg: sum(|of| of.ndcg), recall: sum(|of| of.recall), mrr: sum(|of| of.mrr) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn computes_known_scores() {
        let grades = BTreeMap::from([("a", 1), ("b", 1)]);
        let scores = judge(&found(&["x", "a", "y"]), &grades);
        assert!((scores.mrr - 0.5).abs() < 1e-9 && (scores.recall - 0.5).abs() < 1e-9);
        let ideal = 1.0 + 1.0 / 3_f64.log2();
        assert!((scores.ndcg - (1.0 / 3_f64.log2()) / ideal).abs() < 1e-9);
        assert_eq!(judge(&found(&["b", "a"]), &grades), Scores { ndcg: 1.0, recall: 1.0, mrr: 1.0 });
        assert_eq!(judge(&[], &grades), Scores::default());
    }

    #[test]
    fn scores_a_better_grade_first_higher() {
        let grades = BTreeMap::from([("a", 3), ("b", 1)]);
        let (right, wrong) = (judge(&found(&["a", "b"]), &grades), judge(&found(&["b", "a"]), &grades));
        assert!(right.ndcg > wrong.ndcg && (right.ndcg - 1.0).abs() < 1e-9);
    }
}
