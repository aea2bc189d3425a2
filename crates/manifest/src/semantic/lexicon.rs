//! What single words mean to the vocabulary.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::vocabulary::{BOUNDARY, NEUTRAL, VOCABULARY};

/// The entries of the vocabulary that a word belongs to, by position, and their groups as bits.
type Fills = Vec<(usize, u8)>;

#[derive(Debug, Default)]
struct Known {
    fills: Fills,
    neutral: bool,
    boundary: bool,
}

/// The words by their first letter, sorted: most words of a text are rejected without a hash.
static INDEX: LazyLock<[Vec<(&'static str, Known)>; 26]> = LazyLock::new(|| {
    let mut words: BTreeMap<&'static str, Known> = BTreeMap::new();
    for (at, entry) in VOCABULARY.iter().enumerate() {
        for (group, listed) in entry.groups.iter().enumerate() {
            for word in listed.trim_start_matches('?').split(' ').filter(|word| *word != "*") {
                words.entry(word).or_default().fills.push((at, 1_u8 << group));
            }
        }
    }
    NEUTRAL.split_whitespace().for_each(|word| words.entry(word).or_default().neutral = true);
    BOUNDARY.split_whitespace().for_each(|word| words.entry(word).or_default().boundary = true);
    let mut index: [Vec<(&'static str, Known)>; 26] = Default::default();
    for (word, known) in words {
        if let Some(list) = letter(word).and_then(|letter| index.get_mut(letter)) {
            list.push((word, known));
        }
    }
    index
});

pub(super) fn letter(word: &str) -> Option<usize> {
    let first = word.bytes().next().filter(u8::is_ascii_lowercase)?;
    Some(usize::from(first - b'a'))
}

fn known(word: &str) -> Option<&'static Known> {
    let words = INDEX.get(letter(word)?)?;
    let at = words.binary_search_by(|(known, _)| known.cmp(&word)).ok()?;
    words.get(at).map(|(_, known)| known)
}

/// What the spellings of a word mean: as it is, and without a plural's or a verb's ending.
#[derive(Debug, Default)]
pub(super) struct Meaning([Option<&'static Known>; 3]);

impl Meaning {
    /// Positions of entries with the groups, as bits, that the word fills.
    pub(super) fn fills(&self) -> impl Iterator<Item = (usize, u8)> {
        self.0.iter().flatten().flat_map(|known| known.fills.iter().copied())
    }

    /// The groups of one entry that the word fills.
    pub(super) fn groups_of(&self, entry: usize) -> u8 {
        self.fills().filter(|(at, _)| *at == entry).fold(0, |groups, (_, group)| groups | group)
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.fills().next().is_none()
    }

    pub(super) fn is_neutral(&self) -> bool {
        self.0[0].is_some_and(|known| known.neutral)
    }

    pub(super) fn is_boundary(&self) -> bool {
        self.0[0].is_some_and(|known| known.boundary)
    }
}

/// Looks a lower-case word up.
pub(super) fn meaning(word: &str) -> Meaning {
    let singular = word.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let singular = singular.as_deref().or_else(|| word.strip_suffix('s'));
    let without_es = word.strip_suffix("es").filter(|stem| stem.ends_with(['h', 's', 'x']));
    Meaning([known(word), singular.and_then(known), without_es.and_then(known)])
}

/// Whether a list of words with spaces between them has a word or its singular.
pub(super) fn lists(list: &str, word: &str) -> bool {
    !list.is_empty()
        && list.split_whitespace().any(|listed| listed == word || word.strip_suffix('s') == Some(listed))
}
