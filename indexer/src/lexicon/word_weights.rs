//! Weights of the words of requests, learned from requests with known results.
//!
//! A weight states how specific a word is: "weather" is specific, "interesting" is not. Words without a weight have average weight.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

const LEARNED: &str = include_str!("../../data/word_weights.txt");

static BUILT_IN: LazyLock<Arc<WordWeights>> = LazyLock::new(|| Arc::new(WordWeights::parse(LEARNED)));

/// The weights by stem; 1 is average.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WordWeights {
    by_stem: HashMap<String, f32>,
}

impl WordWeights {
    /// The weights that are compiled in.
    pub fn built_in() -> Arc<Self> {
        Arc::clone(&BUILT_IN)
    }

    /// Reads `stem weight`, one word per line. Other lines are skipped.
    fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let weight = |line: &str| {
            let (stem, weight) = line.split_once(' ')?;
            Some((stem.to_owned(), weight.parse().ok()?))
        };
        Self { by_stem: lines.filter_map(weight).collect() }
    }

    pub(crate) fn get(&self, stem: &str) -> Option<f32> {
        self.by_stem.get(stem).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_weights_and_skips_other_lines() {
        let weights = WordWeights::parse("# words\nflight 1.10\ninterest 0.40\n\nweather much\n");
        assert_eq!(weights.get("flight"), Some(1.1));
        assert_eq!(weights.get("interest"), Some(0.4));
        assert_eq!(weights.get("weather"), None);
    }

    #[test]
    fn reads_every_built_in_line_within_bounds() {
        let lines = LEARNED.lines().filter(|line| !line.starts_with('#')).count();
        let weights = WordWeights::built_in();
        assert_eq!(weights.by_stem.len(), lines);
        assert!(!LEARNED.contains("\nqx"), "invented site names have no weight");
        assert!(weights.by_stem.values().all(|weight| (0.2..=1.4).contains(weight)));
    }
}
