//! Which words of requests go with which words of capabilities, learnt from public request sets.
//!
//! Two things are known of a word: how much it says about what is wanted ("weather" much, "interesting" little), and
//! which words the capabilities have that such requests mean ("nurse" goes with "job"). The first weighs the word, the
//! second adds a little to capabilities with those words; neither brings in a capability that no word selected.

use std::collections::HashMap;
use std::sync::LazyLock;

const LEARNT: &str = include_str!("../../data/associations.txt");

/// What is known of a word.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Association {
    /// What the word itself counts; 1 is usual.
    pub(crate) weight: f32,
    /// Stems that go with it, and how strongly.
    pub(crate) stems: Vec<(&'static str, f32)>,
}

static BY_STEM: LazyLock<HashMap<&'static str, Association>> =
    LazyLock::new(|| LEARNT.lines().filter(|line| !line.starts_with('#')).filter_map(read).collect());

/// `stem weight other:strength other:strength…`
fn read(line: &'static str) -> Option<(&'static str, Association)> {
    let mut fields = line.split(' ');
    let (stem, weight) = (fields.next()?, fields.next()?.parse().ok()?);
    let pair = |field: &'static str| {
        let (other, strength) = field.split_once(':')?;
        Some((other, strength.parse().ok()?))
    };
    Some((stem, Association { weight, stems: fields.filter_map(pair).collect() }))
}

/// What is known of a stem.
pub(crate) fn association(stem: &str) -> Option<&'static Association> {
    BY_STEM.get(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let lines = LEARNT.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(BY_STEM.len(), lines);
        assert!(BY_STEM.values().all(|known| (0.2..=1.4).contains(&known.weight)));
        assert!(
            association("flight").is_some_and(|known| known.stems.iter().any(|(stem, _)| *stem == "travel"))
        );
        assert_eq!(association("zebrafish"), None);
    }
}
