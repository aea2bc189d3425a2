//! The progress of a crawl in numbers and words: sites done of those known, the rate, the waits, and an estimate of the time
//! left.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::duration::in_words;
use super::report::{counted, end_label};
use crate::fleet::CrawlState;

/// Rates are means over this time: a visit takes about as long.
const WINDOW: Duration = Duration::from_mins(1);
/// Visits that must have ended before their mean number of requests is used.
const VISITS_FOR_MEAN: u64 = 5;
/// Requests that a visit is assumed to make until then: the whole table of paths.
const REQUESTS_ASSUMED: u64 = 20;
/// Number of ends of visits that are listed, the most common first.
const ENDS_SHOWN: usize = 4;

/// The counters at an earlier time.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Instant,
    requests: u64,
    sites: u64,
}

/// The rates of the last minute.
#[derive(Debug, Default)]
pub(super) struct Rates {
    samples: VecDeque<Sample>,
    /// The number of sites done, and the time of its last change.
    sites_done: Option<(u64, Instant)>,
}

/// Requests and sites a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct PerSecond {
    requests: f64,
    sites: f64,
}

/// The displayed state of a crawl.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Shown {
    pub(super) sites_done: u64,
    pub(super) sites_known: Option<u64>,
    pub(super) requests_per_second: f64,
    pub(super) time_left: Option<Duration>,
    pub(super) waits: String,
    pub(super) ends: String,
    pub(super) manifests: u64,
}

impl Rates {
    /// Takes the counters of a state.
    fn update(&mut self, requests: u64, sites: u64, now: Instant) -> PerSecond {
        self.samples.push_back(Sample { at: now, requests, sites });
        // the oldest sample is at least as old as the window, once there is one
        while self.samples.get(1).is_some_and(|second| now.duration_since(second.at) >= WINDOW) {
            self.samples.pop_front();
        }
        let Some(first) = self.samples.front() else { return PerSecond::default() };
        let seconds = now.duration_since(first.at).as_secs_f64();
        if seconds <= 0.0 {
            return PerSecond::default();
        }
        PerSecond {
            requests: as_f64(requests.saturating_sub(first.requests)) / seconds,
            sites: as_f64(sites.saturating_sub(first.sites)) / seconds,
        }
    }

    /// How long no visit has ended.
    fn quiet(&mut self, done: u64, now: Instant) -> Duration {
        let (before, since) = *self.sites_done.get_or_insert((done, now));
        if before == done {
            return Duration::from_secs(now.duration_since(since).as_secs());
        }
        self.sites_done = Some((done, now));
        Duration::ZERO
    }

    /// The display of a state.
    pub(super) fn shown(&mut self, state: &CrawlState<'_>, now: Instant) -> Shown {
        let summary = state.summary;
        let done = summary.sites_visited;
        let rates = self.update(state.activity.requests, done, now);
        let quiet = self.quiet(done, now);
        // sites that came to be known in the meantime count when they are visited
        let open = u64::try_from(state.open).unwrap_or(u64::MAX);
        let sites_known = state.sites_known.map(|known| known.max(done.saturating_add(open)));
        Shown {
            sites_done: done,
            sites_known,
            requests_per_second: rates.requests,
            // the last visits wait for their sites, whatever the rate was: what took long takes as long again
            time_left: sites_known
                .filter(|known| *known > done)
                .and_then(|known| time_left(state, known.saturating_sub(done), rates))
                .map(|left| left.max(quiet)),
            waits: waits(state),
            ends: ends(&summary.ends),
            manifests: summary.manifests.values().sum(),
        }
    }
}

/// The time left: that of the requests that are still to be sent, or that of the sites, whichever is longer.
fn time_left(state: &CrawlState<'_>, sites: u64, rates: PerSecond) -> Option<Duration> {
    let (summary, sent) = (state.summary, state.activity.requests);
    let per_visit = match summary.sites_visited {
        0..VISITS_FOR_MEAN => REQUESTS_ASSUMED,
        done => summary.requests.div_ceil(done),
    };
    let of_open_visits = sent.saturating_sub(summary.requests);
    let requests = sites.saturating_mul(per_visit).saturating_sub(of_open_visits);
    let seconds = |count: u64, rate: f64| (rate > 0.0).then(|| as_f64(count) / rate);
    let left = [seconds(requests, rates.requests), seconds(sites, rates.sites)];
    let left =
        left.into_iter().flatten().fold(None, |most: Option<f64>, next| Some(most.unwrap_or(0.0).max(next)));
    left.and_then(|seconds| Duration::try_from_secs_f64(seconds.ceil()).ok())
}

/// A text on what open visits wait for; if none waits, on their number.
fn waits(state: &CrawlState<'_>) -> String {
    let activity = state.activity;
    let parts = [
        (activity.delays, "for the delay of their site"),
        (activity.answers, "for an answer"),
        (activity.names, "for name servers"),
        (u64::try_from(state.parked).unwrap_or(u64::MAX), "parked"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let parts: Vec<String> = parts.collect();
    match (parts.is_empty(), state.open) {
        (false, _) => format!("waiting: {}", parts.join(", ")),
        (true, 0) => "waiting: for a site to become due".to_owned(),
        (true, open) => format!("{} open", counted(open as u64, "visit")),
    }
}

fn ends(ends: &BTreeMap<&'static str, u64>) -> String {
    let mut sorted: Vec<_> = ends.iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let shown = sorted.iter().take(ENDS_SHOWN).map(|(end, count)| format!("{count} {}", end_label(end)));
    shown.collect::<Vec<_>>().join(", ")
}

impl Shown {
    /// The rate and the time left.
    pub(super) fn pace(&self) -> String {
        let left = match self.time_left {
            Some(left) => format!("about {} left", in_words(left)),
            None if self.sites_known == Some(self.sites_done) => "none is left".to_owned(),
            None => "time left unknown".to_owned(),
        };
        format!("{:.1} requests/s, {left}", self.requests_per_second)
    }

    /// The waits and the outcomes.
    pub(super) fn details(&self) -> String {
        let mut details = self.waits.clone();
        if !self.ends.is_empty() {
            details = format!("{details}; ended: {}", self.ends);
        }
        if self.manifests > 0 {
            details = format!("{details}; {}", counted(self.manifests, "manifest"));
        }
        details
    }

    /// The share of sites that are done.
    pub(super) fn head(&self) -> String {
        let known = self.sites_known.map_or_else(String::new, |known| format!(" of {known}"));
        format!("{}{known} sites done, {}", self.sites_done, self.pace())
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with one decimal place")]
const fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::ActivityCounts;
    use crate::summary::Summary;

    fn shown(rates: &mut Rates, visited: u64, sent: u64, now: Instant) -> Shown {
        let ends = if visited > 0 { [("completed", visited)].into() } else { BTreeMap::new() };
        let summary = Summary { sites_visited: visited, requests: visited * 10, ends, ..Summary::default() };
        let activity = ActivityCounts { requests: sent, delays: 3, answers: 1, ..ActivityCounts::default() };
        let state = CrawlState { summary: &summary, sites_known: Some(20), open: 4, parked: 0, activity };
        rates.shown(&state, now)
    }

    #[test]
    fn estimates_the_time_left_before_a_visit_has_ended() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        assert_eq!(shown(&mut rates, 0, 0, start).time_left, None, "nothing is known yet");
        let first = shown(&mut rates, 0, 40, start + Duration::from_secs(10));
        // 20 sites of 20 requests, 40 of them sent, at 4 a second
        assert_eq!(first.time_left, Some(Duration::from_secs(90)));
        assert_eq!(first.head(), "0 of 20 sites done, 4.0 requests/s, about 1 min 30 s left");
        assert_eq!(first.details(), "waiting: 3 for the delay of their site, 1 for an answer");
    }

    #[test]
    fn uses_the_mean_of_visits_that_have_ended() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        shown(&mut rates, 0, 0, start);
        let later = shown(&mut rates, 10, 100, start + Duration::from_secs(50));
        // 10 sites of 10 requests at 2 a second, and 10 sites at 0.2 a second
        assert_eq!(later.time_left, Some(Duration::from_secs(50)));
        assert!(later.details().ends_with("; ended: 10 completed"), "{}", later.details());
    }

    #[test]
    fn expects_a_visit_that_waits_to_take_as_long_again() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        shown(&mut rates, 0, 0, start);
        assert_eq!(shown(&mut rates, 19, 190, at(1)).time_left, Some(Duration::from_secs(1)));
        assert_eq!(shown(&mut rates, 19, 190, at(31)).time_left, Some(Duration::from_secs(30)));
    }

    #[test]
    fn a_crawl_without_due_sites_waits_for_one() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        let summary = Summary { sites_visited: 2, requests: 20, ..Summary::default() };
        let activity = ActivityCounts { requests: 20, ..ActivityCounts::default() };
        let state = CrawlState { summary: &summary, sites_known: Some(2), open: 0, parked: 0, activity };
        for seconds in [0, 10] {
            let idle = rates.shown(&state, start + Duration::from_secs(seconds));
            assert_eq!(idle.head(), "2 of 2 sites done, 0.0 requests/s, none is left");
            assert_eq!(idle.details(), "waiting: for a site to become due");
        }
    }

    #[test]
    fn forgets_what_was_sent_before_the_last_minute() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        shown(&mut rates, 0, 0, start);
        shown(&mut rates, 0, 600, at(60));
        assert!((shown(&mut rates, 0, 660, at(120)).requests_per_second - 1.0).abs() < 1e-9);
        assert!(rates.samples.len() <= 3);
    }
}
