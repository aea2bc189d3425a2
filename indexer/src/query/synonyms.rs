//! Synonyms that connect everyday words with the names of interfaces.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::analysis::Stemming;

/// One group of synonyms per line.
const GROUPS: &str = include_str!("../../data/synonyms.txt");

static BY_STEM: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut by_stem: HashMap<String, Vec<String>> = HashMap::new();
    for line in GROUPS.lines().filter(|line| !line.starts_with('#')) {
        let stems: Vec<String> =
            line.split_whitespace().map(|word| Stemming::English.stem(word).into_owned()).collect();
        for stem in &stems {
            let others = by_stem.entry(stem.clone()).or_default();
            others.extend(stems.iter().filter(|other| *other != stem).cloned());
        }
    }
    for others in by_stem.values_mut() {
        others.sort_unstable();
        others.dedup();
    }
    by_stem
});

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
}
