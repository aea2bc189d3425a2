//! Which lines about a failure that continues are due in the log: one when it begins, one for another reason, and one at its end. Their
//! number is limited, because an operation may fail and succeed by turns.

use std::time::Duration;

use tokio::time::Instant;

/// Interval in which the number of lines is limited: the reason may change with each attempt, for example if it names a time.
const LIMIT_INTERVAL: Duration = Duration::from_mins(1);

/// The failure of an operation that is repeated.
#[derive(Debug)]
pub(crate) struct FailureLog {
    lines_max: u32,
    /// When the first attempt that failed began; `None` after a success.
    since: Option<Instant>,
    /// The reason in the last line about this failure.
    logged_reason: Option<String>,
    /// When the current interval began, and its number of lines.
    interval: Option<(Instant, u32)>,
    ended_at: Option<Instant>,
}

impl FailureLog {
    /// `lines_max` is the maximum number of lines about failures in a minute.
    pub(crate) const fn new(lines_max: u32) -> Self {
        Self { lines_max, since: None, logged_reason: None, interval: None, ended_at: None }
    }

    pub(crate) const fn is_failing(&self) -> bool {
        self.since.is_some()
    }

    /// Records the failure of an attempt that began at `began`. Returns whether a line is due: at the beginning, and for another reason
    /// than in the last line, unless there were too many lines. Then the next attempt after the minute has the line.
    pub(crate) fn failed(&mut self, reason: &str, began: Instant, now: Instant) -> bool {
        // concurrent attempts that began during an earlier failure may end after it
        if self.since.is_none() && self.ended_at.is_some_and(|ended| began < ended) {
            return false;
        }
        self.since = Some(self.since.map_or(began, |since| since.min(began)));
        if self.logged_reason.as_deref() == Some(reason) {
            return false;
        }
        let (interval_began, lines) =
            self.interval.filter(|(began, _)| now - *began < LIMIT_INTERVAL).unwrap_or((now, 0));
        if lines >= self.lines_max {
            return false;
        }
        self.interval = Some((interval_began, lines + 1));
        self.logged_reason = Some(reason.to_owned());
        true
    }

    /// Records a success. Returns how long the failure lasted, if a line about its end is due: if its beginning had one.
    pub(crate) fn succeeded(&mut self, now: Instant) -> Option<Duration> {
        let since = self.since.take()?;
        self.ended_at = Some(now);
        self.logged_reason.take().map(|_| now - since)
    }
}

/// A duration in words, for a line about an end.
pub(crate) fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min {} s", seconds / 60, seconds % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times() -> impl Fn(u64) -> Instant {
        let start = Instant::now();
        move |seconds| start + Duration::from_secs(seconds)
    }

    #[test]
    fn a_line_is_due_at_the_beginning_and_for_another_reason() {
        let (mut log, at) = (FailureLog::new(3), times());
        // an operation that waited ten seconds for a connection
        assert!(log.failed("503", at(0), at(10)));
        assert!(!log.failed("503", at(11), at(11)) && !log.failed("503", at(200), at(200)));
        assert!(log.failed("404", at(201), at(201)), "reasons that differ in a number differ");
        assert!(!log.failed("404", at(1), at(202)), "the earliest attempt that failed counts");
        assert_eq!(log.succeeded(at(202)), Some(Duration::from_secs(202)));
        assert_eq!(log.succeeded(at(203)), None, "the end is reported once");
        assert!(log.failed("404", at(264), at(264)), "the next failure has its own line");
    }

    #[test]
    fn failures_and_successes_by_turns_have_a_limited_number_of_lines() {
        let (mut log, at) = (FailureLog::new(1), times());
        let both = (0..120).map(|second| {
            let began = u32::from(log.failed("full", at(second), at(second)));
            began + u32::from(log.succeeded(at(second)).is_some())
        });
        assert_eq!(both.sum::<u32>(), 4, "two beginnings in two minutes, each with its end");
    }

    #[test]
    fn reasons_that_change_with_each_attempt_have_a_limited_number_of_lines() {
        let at = times();
        for (lines_max, expected) in [(1, 7), (3, 21)] {
            let mut log = FailureLog::new(lines_max);
            let lines = (0..376).filter(|second| log.failed(&second.to_string(), at(0), at(*second))).count();
            assert_eq!(lines, expected, "376 seconds are in seven minutes");
        }
        let mut log = FailureLog::new(1);
        assert!(log.failed("first", at(0), at(0)) && !log.failed("second", at(1), at(1)));
        assert!(log.failed("second", at(61), at(61)), "a reason that lasts has its line later");
    }

    #[test]
    fn attempts_that_began_during_a_failure_do_not_begin_another_one() {
        let (mut log, at) = (FailureLog::new(1), times());
        assert!(log.failed("lost", at(0), at(1)));
        assert!(log.succeeded(at(2)).is_some());
        assert!(!log.failed("lost", at(0), at(3)) && !log.is_failing());
        assert!(log.failed("lost", at(62), at(62)) && log.is_failing());
    }
}
