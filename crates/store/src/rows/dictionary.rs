//! Dictionary of strings that most compacted sites have in common. Each takes two bytes instead of its length.
//!
//! Databases store positions in the list, so strings may only be appended. All other strings are written in full. The list does not have to
//! match the crawler: a rephrased reason is written in full until it is appended here.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub(crate) const STRINGS: [&str; 54] = [
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
    "it denies access",
    "it asked for a delay (Retry-After)",
    "the visit continues",
    "the owner opted out",
    "suspended",
    "after the interval that is set for all sites (revisit_every)",
];

#[derive(Serialize, Deserialize)]
enum Entry {
    None,
    Known(u8),
    Other(String),
}

#[expect(clippy::ref_option, reason = "the signature that serde asks for")]
pub(crate) fn serialize<S: Serializer>(string: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
    let Some(string) = string else { return Entry::None.serialize(to) };
    let position = STRINGS.iter().position(|known| known == string);
    let known = position.and_then(|position| u8::try_from(position).ok());
    known.map_or_else(|| Entry::Other(string.clone()), Entry::Known).serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    match Entry::deserialize(from)? {
        Entry::None => Ok(None),
        Entry::Known(position) => {
            let known = STRINGS.get(usize::from(position));
            known.map(|known| Some((*known).to_owned())).ok_or_else(|| de::Error::custom("unknown string"))
        }
        Entry::Other(string) => Ok(Some(string)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_every_slug_of_a_site_and_keeps_positions() {
        let statuses = policy::Status::ALL.iter().map(|slug| slug.as_str());
        let ends = policy::VisitEnd::ALL.iter().map(|slug| slug.as_str());
        let kinds = policy::RobotsKind::ALL.iter().map(|slug| slug.as_str());
        for slug in statuses.chain(ends).chain(kinds) {
            assert!(STRINGS.contains(&slug), "append {slug} to the list");
        }
        assert_eq!(
            (STRINGS[0], STRINGS[30], STRINGS[50]),
            ("pending", "nothing was found", "the visit continues")
        );
    }
}
