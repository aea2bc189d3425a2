//! Associations between words of requests and words of capabilities, learnt from requests with known results.
//!
//! A word has a weight, which says how specific it is ("weather" is, "interesting" is not), and stems of the capabilities that
//! match such requests ("nurse" is associated with "job"). The stems add a little to the score of capabilities that have them, but
//! select none. The built-in ones have weights alone: the stems cost on sets that they were not learnt from (docs/BENCHMARKS.md).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

const LEARNT: &str = include_str!("../../data/associations.txt");

static BUILT_IN: LazyLock<Arc<Associations>> = LazyLock::new(|| Arc::new(Associations::parse(LEARNT)));

/// The weight and the associated stems of a word.
#[derive(Debug, Clone, PartialEq)]
pub struct Association {
    /// Weight of the word itself; 1 is average.
    pub weight: f32,
    /// Stems that go with it, each with its strength.
    pub stems: Vec<(String, f32)>,
}

/// The associations of all words, by stem.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Associations {
    by_stem: BTreeMap<String, Association>,
}

impl Associations {
    /// Those that are compiled in.
    pub fn built_in() -> Arc<Self> {
        Arc::clone(&BUILT_IN)
    }

    /// Reads `stem weight other:strength other:strength…`, one word per line. Other lines are skipped.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self { by_stem: lines.filter_map(read).collect() }
    }

    pub fn len(&self) -> usize {
        self.by_stem.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_stem.is_empty()
    }

    pub fn get(&self, stem: &str) -> Option<&Association> {
        self.by_stem.get(stem)
    }
}

impl FromIterator<(String, Association)> for Associations {
    fn from_iter<I: IntoIterator<Item = (String, Association)>>(pairs: I) -> Self {
        Self { by_stem: pairs.into_iter().collect() }
    }
}

/// The form that [`Associations::parse`] reads.
impl fmt::Display for Associations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (stem, known) in &self.by_stem {
            write!(f, "{stem} {:.2}", known.weight)?;
            for (other, strength) in &known.stems {
                write!(f, " {other}:{strength:.1}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn read(line: &str) -> Option<(String, Association)> {
    let mut fields = line.split(' ');
    let (stem, weight) = (fields.next()?, fields.next()?.parse().ok()?);
    let pair = |field: &str| {
        let (other, strength) = field.split_once(':')?;
        Some((other.to_owned(), strength.parse().ok()?))
    };
    Some((stem.to_owned(), Association { weight, stems: fields.filter_map(pair).collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_writes() {
        let text = "flight 1.10 travel:1.9 trip:0.4\ninterest 0.40\n";
        let known = Associations::parse(&format!("# words\n{text}"));
        assert_eq!(known.to_string(), text);
        assert!(known.get("flight").is_some_and(|flight| flight.stems.len() == 2));
        assert_eq!(known.get("zebrafish"), None);
    }

    #[test]
    fn reads_every_built_in_line_within_bounds() {
        let lines = LEARNT.lines().filter(|line| !line.starts_with('#')).count();
        let known = Associations::built_in();
        assert_eq!(known.len(), lines);
        assert!(!LEARNT.contains(" qx") && !LEARNT.contains("\nqx"), "made-up names of sites teach nothing");
        assert!(known.by_stem.values().all(|known| (0.2..=1.4).contains(&known.weight)));
        assert!(
            known.by_stem.values().all(|known| known.stems.is_empty()),
            "weights alone help on other sets"
        );
    }
}
