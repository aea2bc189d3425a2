//! Words that name what a request is about: a result that has none of them is about something else.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

/// Words of one field per line.
const WORDS: &str = include_str!("../../data/topics.txt");

static TOPICS: LazyLock<FxHashSet<&'static str>> = LazyLock::new(|| {
    let lines = WORDS.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).collect()
});

/// Whether a word, folded, is one of them or its plural. Stems are not compared: that of "accountant" is "account".
pub(super) fn is_topic(word: &str) -> bool {
    TOPICS.contains(word) || word.strip_suffix('s').is_some_and(|one| TOPICS.contains(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_topics_and_circumstances_are_not() {
        for word in ["kayak", "kayaks", "passport", "earthquake"] {
            assert!(is_topic(word), "{word}");
        }
        for word in ["account", "cheap", "tomorrow", "find", "oslo", ""] {
            assert!(!is_topic(word), "{word}");
        }
    }
}
