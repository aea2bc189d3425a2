//! Converts response headers to the form from which freshness is computed.
//!
//! `http-cache-semantics` parses headers loosely: it compares directive names case-sensitively, splits quoted strings at commas, and
//! accepts only one of HTTP's three date formats. So its input is rewritten here. In case of doubt the earlier expiry is used: invalid
//! values count as expired (RFC 9111 §4.2.1, §5.3). Headers are stored as they were sent.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// RFC 9111 §1.2.2: larger numbers of seconds are treated as this one.
pub(super) const DELTA_SECONDS_MAX: u64 = 1 << 31;

/// The directives of Cache-Control. Names are in lower case. If a directive is repeated, the last one is used.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Directives(BTreeMap<String, Option<String>>);

impl Directives {
    pub(super) fn parse<'v>(values: impl IntoIterator<Item = &'v str>) -> Self {
        let mut directives = BTreeMap::new();
        for value in values {
            for part in split_list(value) {
                let (name, argument) = match part.split_once('=') {
                    Some((name, argument)) => (name, Some(unquote(argument))),
                    None => (part, None),
                };
                directives.insert(name.to_ascii_lowercase(), argument);
            }
        }
        Self(directives)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Seconds of max-age; a value that is not a plain number makes the response stale immediately.
    pub(super) fn max_age_s(&self) -> Option<u64> {
        let argument = self.0.get("max-age")?;
        Some(argument.as_deref().and_then(delta_seconds).unwrap_or(0))
    }

    /// The directives that matter to a private cache, in canonical spelling.
    pub(super) fn canonical(&self) -> String {
        let flags = ["no-cache", "no-store", "public", "immutable"].into_iter().filter(|name| self.has(name));
        let max_age = self.max_age_s().map(|seconds| format!("max-age={seconds}"));
        flags.map(str::to_owned).chain(max_age).collect::<Vec<_>>().join(", ")
    }
}

/// A number of seconds: digits only, saturating.
pub(super) fn delta_seconds(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(DELTA_SECONDS_MAX).min(DELTA_SECONDS_MAX))
}

/// An HTTP date in any of its three forms (RFC 9110 §5.6.7).
pub(super) fn date(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text).ok()
}

/// Age by RFC 9111 §4.2.3: the larger of the Age header (the first member of a list, 0 if it is not a number) and the time since
/// the Date header.
pub(super) fn age(age: Option<&str>, date: Option<SystemTime>, received_at: SystemTime) -> Duration {
    let stated =
        age.and_then(|text| text.split(',').next()).map(str::trim).and_then(delta_seconds).unwrap_or(0);
    let apparent = date.and_then(|date| received_at.duration_since(date).ok()).unwrap_or_default();
    Duration::from_secs(stated.max(apparent.as_secs()).min(DELTA_SECONDS_MAX))
}

/// The members of a comma-separated list. Commas inside quoted strings do not separate members.
fn split_list(value: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let mut escaped = false;
    value
        .split(move |character: char| {
            let was_escaped = std::mem::take(&mut escaped);
            match character {
                '"' if !was_escaped => quoted = !quoted,
                '\\' if quoted && !was_escaped => escaped = true,
                _ => {}
            }
            character == ',' && !quoted
        })
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

fn unquote(argument: &str) -> String {
    let inner = argument.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.map_or_else(|| argument.to_owned(), |inner| inner.replace('\\', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_directives_strictly() {
        let table = [
            ("max-age=3600", "max-age=3600"),
            ("MAX-AGE=3600, Public", "public, max-age=3600"),
            ("max-age=\"3600\"", "max-age=3600"),
            ("max-age=1, max-age=2", "max-age=2"),
            ("max-age=99999999999999999999999", "max-age=2147483648"),
            ("max-age=-1", "max-age=0"),
            ("max-age=1.5", "max-age=0"),
            ("max-age= 3600", "max-age=0"),
            ("max-age", "max-age=0"),
            ("max-age='3600'", "max-age=0"),
            ("max-age =3600", ""),
            ("foo=\"max-age=3600, no-store\"", ""),
            ("foo=\"a\\\", no-store, b\", no-cache", "no-cache"),
            ("s-maxage=3600", ""),
            ("no-cache=\"set-cookie, x\"", "no-cache"),
            (",, ,max-age=5,", "max-age=5"),
        ];
        for (value, canonical) in table {
            assert_eq!(Directives::parse([value]).canonical(), canonical, "{value}");
        }
        assert_eq!(Directives::parse(["max-age=5", "no-store"]).canonical(), "no-store, max-age=5");
    }

    #[test]
    fn uses_the_larger_of_stated_and_apparent_age() {
        let received = date("Wed, 01 Jul 2026 12:00:00 GMT").unwrap();
        let hour_ago = date("Wed, 01 Jul 2026 11:00:00 GMT");
        let table = [
            (None, None, 0),
            (Some("120"), None, 120),
            (Some("120, 7200"), None, 120),
            (Some("7200"), hour_ago, 7_200),
            (Some("120"), hour_ago, 3_600),
            (Some("-5"), None, 0),
            (Some("abc"), None, 0),
            (Some("1.5"), None, 0),
            (Some("99999999999999999999"), None, DELTA_SECONDS_MAX),
            (None, date("Thu, 01 Jul 2027 12:00:00 GMT"), 0),
        ];
        for (stated, dated, seconds) in table {
            assert_eq!(age(stated, dated, received).as_secs(), seconds, "{stated:?}");
        }
    }
}
