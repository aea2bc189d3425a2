//! Reasons for which clients report sites and operators suspend them: one closed list for both.

use manifest::string_enum;

/// Maximum number of places that a suspension names: enough to show its owner what is wrong.
pub const PLACES_MAX: usize = 20;
/// Maximum length of a place, which is a URL or the id of a capability.
pub const PLACE_CHARS_MAX: usize = 500;
/// Maximum length of an objection and of the answer to it: a few paragraphs.
pub const OBJECTION_CHARS_MAX: usize = 1_000;

/// Prefix of the reason in feed entries that remove a suspended site.
const FEED_PREFIX: &str = "suspended_";

string_enum! {
    /// Why a site is reported or suspended. The slugs are stored and shown, so they never change their meaning.
    AbuseReason, "reason" {
        /// It misleads the search: repeated words, copies, or names that have nothing to do with what it offers.
        Spam = "spam",
        /// It pretends to be another publisher.
        Impersonation = "impersonation",
        /// It harms the agents that call it, or the people for whom they call it.
        Malware = "malware",
        /// Its content or offer is against the law.
        Illegal = "illegal",
        /// It exposes data about people.
        Privacy = "privacy",
        /// Anything else, which needs an explanation in words.
        Other = "other",
    }
}

impl AbuseReason {
    /// The reason in words, as a part of a sentence.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Spam => "it misleads the search",
            Self::Impersonation => "it pretends to be another publisher",
            Self::Malware => "it harms the agents or people that use it",
            Self::Illegal => "its content or offer is against the law",
            Self::Privacy => "it exposes data about people",
            Self::Other => "another reason",
        }
    }

    /// The reason in feed entries that remove a site that was suspended for this reason.
    pub fn feed_reason(self) -> String {
        format!("{FEED_PREFIX}{self}")
    }

    /// Parses the reason of a suspension from the reason of a feed entry. `None` for other entries.
    pub fn of_feed_reason(text: &str) -> Option<Self> {
        text.strip_prefix(FEED_PREFIX)?.parse().ok()
    }

    /// Whether the reason needs an explanation in words.
    pub const fn needs_explanation(self) -> bool {
        matches!(self, Self::Other)
    }
}

/// Checks the number and the lengths of the places that a suspension names. The error names what is wrong.
pub fn check_places(places: &[String]) -> Result<(), String> {
    if places.len() > PLACES_MAX {
        return Err(format!("there are {} places; the maximum is {PLACES_MAX}", places.len()));
    }
    let is_long = |place: &&String| place.chars().count() > PLACE_CHARS_MAX || place.trim().is_empty();
    match places.iter().find(is_long) {
        Some(_) => Err(format!("a place is a URL or an id, of 1 to {PLACE_CHARS_MAX} characters")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_of_a_suspension_are_bounded() {
        let places = |number: usize, chars: usize| check_places(&vec!["a".repeat(chars); number]);
        assert_eq!(places(0, 1), Ok(()));
        assert_eq!(places(PLACES_MAX, PLACE_CHARS_MAX), Ok(()));
        assert!(places(PLACES_MAX + 1, 1).unwrap_err().contains("maximum is 20"));
        assert!(places(1, PLACE_CHARS_MAX + 1).is_err() && places(1, 0).is_err());
    }

    #[test]
    fn only_the_reason_other_needs_an_explanation() {
        for reason in AbuseReason::ALL {
            assert_eq!(reason.as_str().parse(), Ok(*reason));
            assert_eq!(AbuseReason::of_feed_reason(&reason.feed_reason()), Some(*reason));
            assert_eq!(reason.needs_explanation(), reason.as_str() == "other");
        }
        assert_eq!(AbuseReason::Spam.feed_reason(), "suspended_spam");
        assert_eq!(AbuseReason::of_feed_reason("spam"), None);
        let unknown = "rude".parse::<AbuseReason>().unwrap_err().to_string();
        assert!(unknown.contains("spam, impersonation, malware, illegal, privacy, other"), "{unknown}");
    }
}
