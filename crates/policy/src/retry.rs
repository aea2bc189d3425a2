//! Decides when to retry after a failure.
//!
//! Retry-After is honoured in both forms (RFC 9110 §10.2.3), up to a week, on every response that contains it. The RFC defines it for 503,
//! 429 and 3xx; other responses are treated in the same way. An invalid value counts as a request for the default delay. A ladder contains
//! increasing delays, one for each failure in a row, up to the last step.

use std::time::Duration;

use chrono::{DateTime, Utc};
use http::HeaderMap;
use http::header::RETRY_AFTER;

use crate::outcome::FetchOutcome;
use crate::time::{DAY, HOUR, later, until};

/// Minimum delay after a 429 or 503. Servers that limit requests per second ask for a second or two, but the visit has already ended.
const RETRY_AFTER_MIN: Duration = Duration::from_mins(1);
/// Maximum delay that is honoured. Longer values are probably mistakes; the usual ladders apply after a week.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_hours(7 * 24);
/// The delay if none was given, or an invalid one.
pub(crate) const RETRY_AFTER_DEFAULT: Duration = HOUR;

/// The end of the delay that Retry-After requests, and how the header was interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    /// The stated time.
    Given(DateTime<Utc>),
    /// More than a week; or, in a 429 or 503, less than a minute or a time in the past.
    Clamped(DateTime<Utc>),
    /// Neither a number of seconds nor a date.
    Invalid(DateTime<Utc>),
    /// A 429 or 503 without the header.
    Absent(DateTime<Utc>),
}

impl RetryAfter {
    /// The delay that a response asks for. The response was received at `now`, and `outcome` is the result of
    /// [`FetchOutcome::of_response`]. If there are several values, the longest applies.
    pub fn of_response(
        headers: &HeaderMap,
        outcome: Option<FetchOutcome>,
        now: DateTime<Utc>,
    ) -> Option<Self> {
        let is_limited = outcome == Some(FetchOutcome::RateLimited);
        let default = later(now, RETRY_AFTER_DEFAULT);
        let requested = headers.get_all(RETRY_AFTER).iter().map(|value| {
            let Some(wait) = value.to_str().ok().and_then(|text| read_wait(text.trim(), now)) else {
                return Self::Invalid(default);
            };
            let shortest = if is_limited { RETRY_AFTER_MIN } else { Duration::ZERO };
            let clamped = wait.clamp(shortest, RETRY_AFTER_MAX);
            let at = later(now, clamped);
            if clamped == wait { Self::Given(at) } else { Self::Clamped(at) }
        });
        let longest = requested.max_by_key(|requested| requested.not_before());
        longest.or_else(|| is_limited.then_some(Self::Absent(default)))
    }

    /// No request is sent to the site before this.
    pub const fn not_before(self) -> DateTime<Utc> {
        match self {
            Self::Given(at) | Self::Clamped(at) | Self::Invalid(at) | Self::Absent(at) => at,
        }
    }

    /// The slug of the variant, which does not change.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Given(_) => "asked",
            Self::Clamped(_) => "clamped",
            Self::Invalid(_) => "garbled",
            Self::Absent(_) => "absent",
        }
    }
}

fn read_wait(text: &str, now: DateTime<Utc>) -> Option<Duration> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(until(now, DateTime::<Utc>::from(date)))
}

/// Delays by the number of failures in a row. The last one applies to all further failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ladder(&'static [Duration]);

impl Ladder {
    /// For a robots.txt that cannot be read. The first delays are short, because the server may be restarting; later ones are a week.
    pub(crate) const ROBOTS: Self = Self(&[HOUR, hours(6), DAY, days(7)]);
    /// For names that do not exist. Few of them exist again later.
    pub(crate) const DNS_DEAD: Self = Self(&[DAY, days(3), days(7), days(30), days(90), days(180)]);
    /// For failed connections, TLS handshakes and name servers, which usually recover.
    pub(crate) const TRANSPORT: Self = Self(&[hours(6), DAY, days(3), days(7), days(30), days(90)]);

    /// The delay after this many failures in a row, counted from 1.
    pub(crate) fn wait(self, failures_in_row: u32) -> Duration {
        let step = usize::try_from(failures_in_row.saturating_sub(1)).unwrap_or(usize::MAX);
        self.0.get(step).or_else(|| self.0.last()).copied().unwrap_or(DAY)
    }
}

/// `base`, doubled for each failure after the first, at most `cap`.
pub(crate) fn backoff(base: Duration, failures_in_row: u32, cap: Duration) -> Duration {
    let doublings = failures_in_row.saturating_sub(1);
    2_u32.checked_pow(doublings).map_or(cap, |factor| base.saturating_mul(factor)).min(cap)
}

pub(crate) const fn days(count: u64) -> Duration {
    Duration::from_hours(count * 24)
}

const fn hours(count: u64) -> Duration {
    Duration::from_hours(count)
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn now() -> DateTime<Utc> {
        Utc.with_ymd_and_hms(1994, 11, 6, 8, 49, 37).unwrap()
    }

    fn with(value: Option<&str>) -> HeaderMap {
        let value = value.map(|text| (RETRY_AFTER, HeaderValue::from_str(text).unwrap()));
        value.into_iter().collect()
    }

    #[test]
    fn reads_and_clamps_both_forms() {
        let after = |wait: u64| now() + Duration::from_secs(wait);
        let table = [
            (Some("120"), RetryAfter::Given(after(120))),
            (Some(" 3600 "), RetryAfter::Given(after(3_600))),
            (Some("0"), RetryAfter::Clamped(after(60))),
            (Some("59"), RetryAfter::Clamped(after(60))),
            (Some("604800"), RetryAfter::Given(after(604_800))),
            (Some("604801"), RetryAfter::Clamped(after(604_800))),
            (Some("1000000000000"), RetryAfter::Clamped(after(604_800))),
            (Some("99999999999999999999999999"), RetryAfter::Clamped(after(604_800))),
            (Some("Sun, 06 Nov 1994 10:49:37 GMT"), RetryAfter::Given(after(7_200))),
            (Some("Sunday, 06-Nov-94 10:49:37 GMT"), RetryAfter::Given(after(7_200))),
            (Some("Sun Nov  6 10:49:37 1994"), RetryAfter::Given(after(7_200))),
            (Some("Sun, 06 Nov 1994 00:00:00 GMT"), RetryAfter::Clamped(after(60))),
            (Some("Fri, 31 Dec 9999 23:59:59 GMT"), RetryAfter::Clamped(after(604_800))),
            (Some("-5"), RetryAfter::Invalid(after(3_600))),
            (Some("1.5"), RetryAfter::Invalid(after(3_600))),
            (Some("soon"), RetryAfter::Invalid(after(3_600))),
            (Some(""), RetryAfter::Invalid(after(3_600))),
            (None, RetryAfter::Absent(after(3_600))),
        ];
        for (header, expected) in table {
            let limited = RetryAfter::of_response(&with(header), Some(FetchOutcome::RateLimited), now());
            assert_eq!(limited, Some(expected), "{header:?}");
        }
    }

    #[test]
    fn honours_retry_after_on_every_response() {
        let after = |seconds| now() + Duration::from_secs(seconds);
        let outcomes = [
            None,
            Some(FetchOutcome::Blocked),
            Some(FetchOutcome::NotFound),
            Some(FetchOutcome::ServerError),
        ];
        for outcome in outcomes {
            let table = [
                (Some("3600"), Some(RetryAfter::Given(after(3_600)))),
                (Some("5"), Some(RetryAfter::Given(after(5)))),
                (Some("0"), Some(RetryAfter::Given(now()))),
                (Some("604801"), Some(RetryAfter::Clamped(after(604_800)))),
                (Some("soon"), Some(RetryAfter::Invalid(after(3_600)))),
                (None, None),
            ];
            for (header, expected) in table {
                assert_eq!(
                    RetryAfter::of_response(&with(header), outcome, now()),
                    expected,
                    "{outcome:?} {header:?}"
                );
            }
        }
        let mut twice = with(Some("60"));
        twice.append(RETRY_AFTER, HeaderValue::from_static("600"));
        assert_eq!(RetryAfter::of_response(&twice, None, now()), Some(RetryAfter::Given(after(600))));
    }

    #[test]
    fn ladders_increase_up_to_their_last_step() {
        let hours_of = |ladder: Ladder| (0..8).map(|n| ladder.wait(n).as_secs() / 3_600).collect::<Vec<_>>();
        assert_eq!(hours_of(Ladder::ROBOTS), [1, 1, 6, 24, 168, 168, 168, 168]);
        assert_eq!(hours_of(Ladder::DNS_DEAD), [24, 24, 72, 168, 720, 2_160, 4_320, 4_320]);
        assert_eq!(hours_of(Ladder::TRANSPORT), [6, 6, 24, 72, 168, 720, 2_160, 2_160]);
    }

    proptest! {
        #[test]
        fn clamps_the_delay_of_a_429_to_a_minute_and_a_week(header in "[ -~]{0,40}") {
            let requested = RetryAfter::of_response(&with(Some(&header)), Some(FetchOutcome::RateLimited), now());
            let wait = requested.map(|requested| until(now(), requested.not_before()));
            prop_assert!(wait.is_some_and(|wait| (RETRY_AFTER_MIN..=RETRY_AFTER_MAX).contains(&wait)));
        }

        #[test]
        fn backoff_is_monotone_and_capped(base_s in 1_u64..10_000, cap_s in 1_u64..1_000_000, failures: u32) {
            let cap = Duration::from_secs(cap_s);
            let wait = |failures| backoff(Duration::from_secs(base_s), failures, cap);
            prop_assert!(wait(failures) <= cap);
            prop_assert!(wait(failures) <= wait(failures.saturating_add(1)));
        }

        #[test]
        fn ladders_are_monotone_and_capped(failures: u32) {
            for ladder in [Ladder::ROBOTS, Ladder::DNS_DEAD, Ladder::TRANSPORT] {
                prop_assert!(ladder.wait(failures) <= ladder.wait(failures.saturating_add(1)));
                prop_assert!(Some(&ladder.wait(failures)) <= ladder.0.last());
            }
        }
    }
}
