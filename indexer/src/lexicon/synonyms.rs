//! Synonyms that connect everyday words with the names of interfaces.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::analysis::Stemming;

/// One group of synonyms per line.
const GROUPS: &str = include_str!("../../data/synonyms.txt");

static BY_STEM: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut by_stem: HashMap<String, Vec<String>> = HashMap::new();
    for line in GROUPS.lines().filter(|line| !line.starts_with('#')) {
        let (requested, wider) = match line.split_once('>') {
            Some((narrower, wider)) => (stems(narrower), stems(wider)),
            None => (stems(line), stems(line)),
        };
        for stem in requested {
            let others = by_stem.entry(stem.clone()).or_default();
            others.extend(wider.iter().filter(|other| **other != stem).cloned());
        }
    }
    for others in by_stem.values_mut() {
        others.sort_unstable();
        others.dedup();
    }
    by_stem
});

fn stems(words: &str) -> Vec<String> {
    words.split_whitespace().map(|word| Stemming::English.stem(word).into_owned()).collect()
}

pub(crate) fn synonyms(stem: &str) -> &'static [String] {
    BY_STEM.get(stem).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synonyms_work_in_both_directions_on_stems() {
        assert!(synonyms("purchas").iter().any(|stem| stem == "buy"));
        assert!(synonyms("buy").iter().any(|stem| stem == "purchas"));
        assert!(synonyms("zebra").is_empty());
    }

    #[test]
    fn wider_words_are_synonyms_of_narrower_ones_only() {
        assert!(synonyms("mug").iter().any(|stem| stem == "potteri"));
        assert!(!synonyms("potteri").iter().any(|stem| stem == "mug"));
    }
}
