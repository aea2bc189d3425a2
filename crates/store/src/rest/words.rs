//! Words that a byte stands for: the closed words of a site's state, and the reasons that the crawler gives.
//!
//! The list only ever grows at its end, since databases hold the numbers. A word that is not in it is written out.

/// A word without a number follows, with its length before it.
pub(super) const WRITTEN_OUT: u8 = 255;
/// There is no word.
pub(super) const NONE: u8 = 254;

const WORDS: [&str; 48] = [
    "pending",
    "fresh",
    "stale",
    "unreachable",
    "gone",
    "denied",
    "opted_out",
    "invalid",
    "catch_all",
    "completed",
    "nothing_new",
    "dns_dead",
    "dns_failed",
    "tls_failed",
    "robots_denied",
    "robots_unreachable",
    "rate_limited",
    "blocked",
    "server_errors",
    "transport_errors",
    "out_of_time",
    "over_budget",
    "parked",
    "interrupted",
    "lease_lost",
    "address_refused",
    "rules",
    "no_file",
    "as often as its manifests change",
    "when the first of its documents is no longer fresh",
    "nothing was found",
    "every path is answered with a page",
    "by the operator's interval",
    "the name does not exist",
    "it could not be reached",
    "robots.txt could not be read",
    "robots.txt forbids everything",
    "it refuses us",
    "it asked for a pause (Retry-After)",
    "the day's budget of requests is used up",
    "the visit goes on",
    "the owner asked to be left out",
    "the server failed",
    "timed out",
    "connection refused",
    "HTTP 403",
    "HTTP 401",
    "HTTP 503",
];

/// The number of a word.
pub(super) fn code(word: &str) -> Option<u8> {
    WORDS.iter().position(|known| *known == word).and_then(|at| u8::try_from(at).ok())
}

/// The word of a number.
pub(super) fn word(code: u8) -> Option<&'static str> {
    WORDS.get(usize::from(code)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_closed_word_of_a_site_has_a_byte() {
        let statuses = policy::Status::ALL.iter().map(|word| word.as_str());
        let ends = policy::VisitEnd::ALL.iter().map(|word| word.as_str());
        let kinds = policy::RobotsKind::ALL.iter().map(|word| word.as_str());
        for known in statuses.chain(ends).chain(kinds) {
            assert_eq!(code(known).and_then(word), Some(known), "{known} is missing at the end of the list");
        }
        // Numbers that lie in databases.
        assert_eq!(
            (code("pending"), code("nothing was found"), code("HTTP 503")),
            (Some(0), Some(30), Some(47))
        );
        assert!(WORDS.len() < usize::from(NONE) && word(NONE).is_none());
    }
}
