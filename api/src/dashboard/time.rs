//! Relative and exact times for pages.

use chrono::{DateTime, TimeDelta, Utc};

/// A time to show: relative ("3 hours ago"), and exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    /// "3 hours ago", "in 2 days".
    pub(crate) words: String,
    /// RFC 3339, for machines.
    pub(crate) machine: String,
    /// "2026-11-21 07:00 UTC".
    pub(crate) exact: String,
}

impl Moment {
    pub(crate) fn new(at: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        Self {
            words: words(at - now),
            machine: at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
            exact: at.format("%Y-%m-%d %H:%M UTC").to_string(),
        }
    }

    /// A planned time; shown as due if it is in the past.
    pub(crate) fn planned(at: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        let moment = Self::new(at, now);
        if at <= now { Self { words: "due now".to_owned(), ..moment } } else { moment }
    }

    pub(crate) fn maybe(at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Option<Self> {
        at.map(|at| Self::new(at, now))
    }
}

/// How long something took: `3.1 s`, `2 min`, `5 h`.
pub(crate) fn duration(took: TimeDelta) -> String {
    let milliseconds = took.num_milliseconds().max(0);
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        60_000..7_200_000 => format!("{} min", milliseconds / 60_000),
        _ => format!("{} h", milliseconds / 3_600_000),
    }
}

fn words(distance: TimeDelta) -> String {
    let seconds = distance.num_seconds().abs();
    let (count, unit) = match seconds {
        0..45 => return if distance < TimeDelta::zero() { "just now" } else { "now" }.to_owned(),
        45..5_400 => ((seconds + 30) / 60, "minute"),
        5_400..129_600 => ((seconds + 1_800) / 3_600, "hour"),
        129_600..5_184_000 => ((seconds + 43_200) / 86_400, "day"),
        5_184_000..63_072_000 => (seconds / 2_592_000, "month"),
        _ => (seconds / 31_536_000, "year"),
    };
    let plural = if count == 1 { "" } else { "s" };
    if distance < TimeDelta::zero() {
        format!("{count} {unit}{plural} ago")
    } else {
        format!("in {count} {unit}{plural}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_time_that_is_past_is_due() {
        let now = DateTime::UNIX_EPOCH;
        assert_eq!(Moment::planned(now - TimeDelta::days(2), now).words, "due now");
        assert_eq!(Moment::planned(now + TimeDelta::hours(2), now).words, "in 2 hours");
    }

    #[test]
    fn durations_have_a_unit_that_fits() {
        for (milliseconds, expected) in
            [(-5, "0 ms"), (999, "999 ms"), (3_149, "3.1 s"), (125_000, "2 min"), (8_000_000, "2 h")]
        {
            assert_eq!(duration(TimeDelta::milliseconds(milliseconds)), expected);
        }
    }

    #[test]
    fn relative_times_are_rounded() {
        for (seconds, expected) in [
            (-3, "just now"),
            (0, "now"),
            (-60, "1 minute ago"),
            (600, "in 10 minutes"),
            (-7_200, "2 hours ago"),
            (86_400 * 3, "in 3 days"),
            (-86_400 * 90, "3 months ago"),
            (-86_400 * 800, "2 years ago"),
        ] {
            assert_eq!(words(TimeDelta::seconds(seconds)), expected);
        }
    }
}
