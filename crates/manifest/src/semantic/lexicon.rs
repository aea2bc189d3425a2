//! The meanings of single words in the vocabulary.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::vocabulary::{BOUNDARY, Entry, NEUTRAL, VOCABULARY};

/// Positions of the vocabulary entries that contain a word, in ascending order, and the groups that it is in, as bits.
type Fills = Vec<(usize, u8)>;

#[derive(Debug, Default)]
struct Known {
    fills: Fills,
    neutral: bool,
    boundary: bool,
}

impl Known {
    fn groups_of(&self, entry: usize) -> u8 {
        let at = self.fills.binary_search_by_key(&entry, |(at, _)| *at);
        at.ok().and_then(|at| self.fills.get(at)).map_or(0, |(_, groups)| *groups)
    }
}

/// Number of word lengths in the index of the vocabulary; no word of the vocabulary is longer.
const LENGTHS: usize = 20;

/// The words by their first letter and length: most words of a text are rejected without a hash.
static INDEX: LazyLock<Vec<Vec<(&'static str, Known)>>> = LazyLock::new(|| {
    let mut words: BTreeMap<&'static str, Known> = BTreeMap::new();
    for (at, entry) in VOCABULARY.iter().enumerate() {
        for (group, listed) in entry.groups.iter().enumerate() {
            for word in listed.trim_start_matches('?').split(' ').filter(|word| *word != "*") {
                let fills = &mut words.entry(word).or_default().fills;
                match fills.last_mut().filter(|(last, _)| *last == at) {
                    Some((_, groups)) => *groups |= 1 << group,
                    None => fills.push((at, 1 << group)),
                }
            }
        }
    }
    NEUTRAL.split_whitespace().for_each(|word| words.entry(word).or_default().neutral = true);
    BOUNDARY.split_whitespace().for_each(|word| words.entry(word).or_default().boundary = true);
    let mut index = Vec::new();
    index.resize_with(26 * LENGTHS, Vec::new);
    for (word, known) in words {
        if let Some(list) = place(word).and_then(|place| index.get_mut(place)) {
            list.push((word, known));
        }
    }
    index
});

/// The position of a word in the index.
fn place(word: &str) -> Option<usize> {
    let letter = letter(word)?;
    (word.len() < LENGTHS).then_some(letter * LENGTHS + word.len())
}

/// The groups of an entry that the words of a phrase must match, and the evidence that the entry needs.
pub(super) struct Needs {
    pub(super) required: u8,
    pub(super) takes_any_object: bool,
    pub(super) within: WordList,
    pub(super) unless: WordList,
}

static NEEDS: LazyLock<Vec<Needs>> = LazyLock::new(|| {
    let needs = |entry: &Entry| Needs {
        required: entry.required(),
        takes_any_object: entry.takes_any_object(),
        within: WordList::of(entry.within),
        unless: WordList::of(entry.unless),
    };
    VOCABULARY.iter().map(needs).collect()
});

/// The conditions of an entry.
pub(super) fn needs(entry: usize) -> Option<&'static Needs> {
    NEEDS.get(entry)
}

pub(super) fn letter(word: &str) -> Option<usize> {
    let first = word.bytes().next().filter(u8::is_ascii_lowercase)?;
    Some(usize::from(first - b'a'))
}

fn known(word: &str) -> Option<&'static Known> {
    let words = INDEX.get(place(word)?)?;
    words.iter().find(|(known, _)| *known == word).map(|(_, known)| known)
}

/// The meanings of a word: as written, and without the ending of a plural or a verb.
#[derive(Debug, Default)]
pub(super) struct Meaning([Option<&'static Known>; 3]);

impl Meaning {
    /// Positions of entries with the groups, as bits, that the word fills.
    pub(super) fn fills(&self) -> impl Iterator<Item = (usize, u8)> {
        self.0.iter().flatten().flat_map(|known| known.fills.iter().copied())
    }

    /// The groups of one entry that the word fills.
    pub(super) fn groups_of(&self, entry: usize) -> u8 {
        self.0.iter().flatten().fold(0, |groups, known| groups | known.groups_of(entry))
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

/// Looks up a lower-case word.
pub(super) fn meaning(word: &str) -> Meaning {
    let singular = word.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let singular = singular.as_deref().or_else(|| word.strip_suffix('s'));
    let without_es = word.strip_suffix("es").filter(|stem| stem.ends_with(['h', 's', 'x']));
    Meaning([known(word), singular.and_then(known), without_es.and_then(known)])
}

/// A list of words that are evidence.
pub(super) struct WordList {
    /// Sorted.
    words: Vec<&'static str>,
    /// The letters that words begin with, as bits: most words of a text are rejected by them.
    initials: u32,
}

impl WordList {
    fn of(listed: &'static str) -> Self {
        let mut words: Vec<&'static str> = listed.split_whitespace().collect();
        words.sort_unstable();
        let initials = words.iter().fold(0, |initials, word| initials | initial(word));
        Self { words, initials }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether the list has a word or its singular.
    pub(super) fn has(&self, word: &str) -> bool {
        let has = |word: &str| self.words.binary_search(&word).is_ok();
        self.initials & initial(word) != 0 && (has(word) || word.strip_suffix('s').is_some_and(has))
    }
}

/// The first letter of a word as a bit. All characters other than letters share one bit.
fn initial(word: &str) -> u32 {
    1 << letter(word).unwrap_or(26)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_has_every_word() {
        let listed =
            VOCABULARY.iter().flat_map(|entry| entry.groups.iter().flat_map(|group| group.split(' ')));
        let words = listed.map(|word| word.trim_start_matches('?')).filter(|word| !matches!(*word, "" | "*"));
        for word in words.chain(NEUTRAL.split_whitespace()).chain(BOUNDARY.split_whitespace()) {
            assert!(known(word).is_some(), "{word}");
        }
    }
}
