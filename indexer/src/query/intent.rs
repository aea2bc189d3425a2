//! The intent of a request beyond its words: actions, opposites, times, and whether it only reads.

use std::sync::LazyLock;

use crate::analysis::{Stemming, words};

/// Maximum number of words of a request that are read for its intent.
const WORDS_MAX: usize = 64;

/// Expressions of everyday language, and the words of capabilities that answer them.
const INTENTS: [(&[&str], &[&str]); 21] = [
    (&["where", "is"], &["status", "track", "location"]),
    (&["where", "are"], &["status", "track", "location"]),
    (&["how", "much"], &["price", "cost", "quote"]),
    (&["how", "expensive"], &["price", "cost", "quote"]),
    (&["on", "time"], &["delay", "status"]),
    (&["near", "me"], &["nearby", "place", "location"]),
    (&["near", "here"], &["nearby", "place", "location"]),
    (&["nearest"], &["nearby", "place", "location"]),
    (&["is", "open"], &["hours", "opening"]),
    (&["are", "open"], &["hours", "opening"]),
    (&["when", "open"], &["hours", "opening"]),
    (&["when", "close"], &["hours", "opening"]),
    (&["call", "off"], &["cancel"]),
    (&["get", "rid"], &["cancel", "delete", "remove"]),
    (&["give", "back"], &["return", "release"]),
    (&["hand", "in"], &["submit"]),
    (&["look", "up"], &["search"]),
    (&["money", "back"], &["refund"]),
    (&["pick", "up"], &["pickup", "collect"]),
    (&["set", "up"], &["create"]),
    (&["sign", "up"], &["register", "subscribe"]),
];
/// Last words of two-word expressions that may be separated by other words if the text begins with the first word.
const APART: [&str; 2] = ["open", "close"];

/// Expressions of a future time, and words in the names of capabilities about the future.
const AHEAD: [&[&str]; 9] = [
    &["tomorrow"],
    &["tonight"],
    &["next", "days"],
    &["coming", "days"],
    &["next", "week"],
    &["coming", "week"],
    &["this", "weekend"],
    &["next", "weekend"],
    &["will", "it"],
];
const NAMES_AHEAD: [&str; 1] = ["forecast"];
/// Expressions of a past time, and words in the names of capabilities about the past.
const BACK: [&[&str]; 10] = [
    &["yesterday"],
    &["ago"],
    &["last", "night"],
    &["last", "week"],
    &["last", "weekend"],
    &["last", "month"],
    &["last", "year"],
    &["last", "summer"],
    &["last", "winter"],
    &["was", "it"],
];
const NAMES_BACK: [&str; 3] = ["past", "history", "historical"];

/// Verbs that undo each other.
const OPPOSITES: [(&str, &str); 22] = [
    ("unblock", "block"),
    ("unlock", "lock"),
    ("unfreeze", "freeze"),
    ("unsubscribe", "subscribe"),
    ("unfollow", "follow"),
    ("unmute", "mute"),
    ("unpublish", "publish"),
    ("uninstall", "install"),
    ("unpin", "pin"),
    ("unarchive", "archive"),
    ("enable", "disable"),
    ("activate", "deactivate"),
    ("encode", "decode"),
    ("encrypt", "decrypt"),
    ("compress", "decompress"),
    ("import", "export"),
    ("upload", "download"),
    ("accept", "reject"),
    ("approve", "reject"),
    ("deposit", "withdraw"),
    ("start", "stop"),
    ("add", "remove"),
];

/// First words of requests that only read.
const LOOKING: [&str; 27] = [
    "where", "when", "what", "which", "who", "how", "is", "are", "was", "has", "did", "does", "show", "list",
    "see", "view", "display", "check", "find", "search", "look", "lookup", "track", "status", "compare",
    "browse", "read",
];
/// Words of requests that do not only read.
const CHANGING: [&str; 22] = [
    "cancel", "delete", "remove", "erase", "revoke", "block", "close", "withdraw", "refund", "buy", "pay",
    "purchase", "send", "transfer", "reserve", "submit", "create", "change", "move", "file", "in", "out",
];
/// Verbs of capabilities that end or undo something.
const ENDING: [&str; 6] = ["cancel", "delete", "remove", "erase", "revoke", "terminate"];

/// Verbs that say little about the wanted capability because most things can be bought, with their weight.
const TRADING: [&str; 2] = ["buy", "purchase"];
const TRADING_WEIGHT: f32 = 0.5;
/// Verbs that distinguish the actions on one object, and their weight.
const DECIDING: [&str; 8] = ["cancel", "delete", "remove", "revoke", "withdraw", "return", "renew", "block"];
const DECIDING_WEIGHT: f32 = 1.5;

/// Whether a folded word is a verb that distinguishes the actions on one object.
pub(super) fn is_deciding(word: &str) -> bool {
    DECIDING.contains(&word)
}

/// Factor for the weight of a folded word.
pub(super) fn verb_weight(word: &str) -> f32 {
    if TRADING.contains(&word) {
        TRADING_WEIGHT
    } else if is_deciding(word) {
        DECIDING_WEIGHT
    } else {
        1.0
    }
}

/// The stems of the opposites, in both directions, and of the ending verbs.
static OPPOSITE_STEMS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let pairs = OPPOSITES.iter().flat_map(|(verb, other)| [(verb, other), (other, verb)]);
    pairs.map(|(verb, other)| (stem(verb), stem(other))).collect()
});
static ENDING_STEMS: LazyLock<Vec<String>> = LazyLock::new(|| ENDING.iter().map(|verb| stem(verb)).collect());

/// The intents of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Intent {
    /// Stems of capabilities that match the intent.
    pub(super) wanted: Vec<String>,
    /// Stems that are not in the name of a capability that matches the request.
    pub(super) unwanted: Vec<String>,
    pub(super) only_reads: bool,
}

impl Intent {
    pub(super) fn of(text: &str) -> Self {
        let asked: Vec<String> = words(text).take(WORDS_MAX).map(|word| word.text).collect();
        let stems: Vec<String> = asked.iter().map(|word| stem(word)).collect();
        let first = asked.first().map_or("", String::as_str);
        let only_reads =
            LOOKING.contains(&first) && !asked.iter().any(|word| CHANGING.contains(&word.as_str()));
        let intents = INTENTS.iter().filter(|(expression, _)| has(&asked, expression));
        let wanted = intents.flat_map(|(_, wanted)| wanted.iter().map(|word| stem(word))).collect();
        let opposites =
            OPPOSITE_STEMS.iter().filter(|(verb, _)| stems.contains(verb)).map(|(_, other)| other);
        let ending = ENDING_STEMS.iter().filter(|_| only_reads);
        let mut unwanted: Vec<String> = opposites.chain(ending).cloned().collect();
        unwanted.retain(|of| !stems.contains(of));
        Self { wanted, unwanted, only_reads }
    }
}

/// Evidence from the time in a request about the capabilities that answer it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Times {
    /// Stems of capabilities for that time.
    pub(super) wanted: Vec<String>,
    /// Stems in the names of capabilities for other times.
    pub(super) unwanted: Vec<String>,
}

impl Times {
    /// No evidence if the text mentions both future and past, or neither.
    pub(super) fn of(text: &str) -> Self {
        let asked: Vec<String> = words(text).take(WORDS_MAX).map(|word| word.text).collect();
        let has_any = |expressions: &[&[&str]]| expressions.iter().any(|of| has(&asked, of));
        let stems = |names: &[&str]| names.iter().map(|name| stem(name)).collect();
        match (has_any(&AHEAD), has_any(&BACK)) {
            (true, false) => Self { wanted: stems(&NAMES_AHEAD), unwanted: stems(&NAMES_BACK) },
            (false, true) => Self { wanted: stems(&NAMES_BACK), unwanted: stems(&NAMES_AHEAD) },
            (true, true) | (false, false) => Self::default(),
        }
    }
}

fn stem(word: &str) -> String {
    Stemming::English.stem(word).into_owned()
}

/// Whether a text has an expression.
fn has(asked: &[String], expression: &[&str]) -> bool {
    match expression {
        [first, last] if APART.contains(last) => {
            asked.first().is_some_and(|word| word == first) && asked.iter().any(|word| word == last)
        }
        _ => asked.windows(expression.len()).any(|window| window == expression),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyday_expressions_have_intents() {
        assert_eq!(Intent::of("where is my order").wanted, ["status", "track", "locat"]);
        assert_eq!(Intent::of("how much is a room").wanted, ["price", "cost", "quot"]);
        assert_eq!(Intent::of("is the museum open").wanted, ["hour", "open"]);
        assert_eq!(Intent::of("order a pizza"), Intent::default());
    }

    #[test]
    fn deciding_verbs_weigh_more_than_trading_ones() {
        assert!(verb_weight("cancel") > verb_weight("flight") && verb_weight("buy") < verb_weight("boots"));
    }

    #[test]
    fn verbs_of_two_words_have_intents() {
        assert_eq!(Intent::of("call off my appointment").wanted, ["cancel"]);
        assert_eq!(Intent::of("set up a standing order").wanted, ["creat"]);
    }

    #[test]
    fn opposites_and_endings_are_unwanted() {
        assert_eq!(Intent::of("unblock my card").unwanted, ["block"]);
        assert_eq!(Intent::of("block and unblock a card").unwanted, [""; 0]);
        assert!(Intent::of("where is my order").unwanted.contains(&"cancel".to_owned()));
        assert!(Intent::of("cancel my order").unwanted.is_empty());
    }

    #[test]
    fn times_decide_between_forecasts_and_records() {
        let (ahead, back) = (["forecast"].as_slice(), ["past", "histori", "histor"].as_slice());
        for (text, wanted, unwanted) in [
            ("weather tomorrow", ahead, back),
            ("Will it rain in Oslo?", ahead, back),
            ("weather next week", ahead, back),
            ("rainfall last year", back, ahead),
            ("how warm was it in 1983", back, ahead),
            ("weather", &[], &[]),
            ("my last order", &[], &[]),
            ("compare the weather of yesterday and tomorrow", &[], &[]),
        ] {
            let times = Times::of(text);
            assert_eq!(times.wanted, wanted, "{text}");
            assert_eq!(times.unwanted, unwanted, "{text}");
        }
    }

    #[test]
    fn requests_for_changes_are_not_read_only() {
        for text in ["where is my order", "show flights", "is my flight late"] {
            assert!(Intent::of(text).only_reads, "{text}");
        }
        for text in ["check in online", "how do i cancel my order", "book a flight", ""] {
            assert!(!Intent::of(text).only_reads, "{text}");
        }
    }
}
