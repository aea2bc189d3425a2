//! The progress of a crawl in numbers and words: sites done of those known, the rate, the waits, and an estimate of the time
//! left.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::duration::in_words;
use super::report::{counted, end_label};
use crate::worker::{CrawlState, STATE_EVERY};

/// The rate is the mean over this time, which is about the duration of a visit.
const WINDOW: Duration = Duration::from_mins(1);
/// Maximum number of different ends of visits that are listed, the most common first.
const ENDS_SHOWN: usize = 4;

/// The rate of requests in the last minute.
#[derive(Debug, Default)]
pub(super) struct Rate {
    /// The number of requests at earlier times.
    samples: VecDeque<(Instant, u64)>,
}

/// The displayed state of a crawl.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about the crawl")]
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Shown {
    pub(super) sites_done: u64,
    pub(super) sites_known: Option<u64>,
    /// Whether a visit is open. If none is, only the mean rate still changes.
    pub(super) has_open: bool,
    /// Whether this process visits none of the remaining sites: they are not due, or other processes visit them.
    pub(super) is_idle: bool,
    /// Whether sites were visited more than once. The text then counts visits instead of sites.
    pub(super) has_revisited: bool,
    /// Whether the crawl goes on after its pass: the visits since then are counted, of a number of sites that changes.
    pub(super) follows_pass: bool,
    pub(super) requests_per_second: f64,
    pub(super) time_left: Option<Duration>,
    pub(super) waits: String,
    pub(super) ends: String,
    pub(super) manifests: u64,
}

impl Rate {
    /// Records the number of requests sent, and returns the requests per second.
    fn update(&mut self, requests: u64, now: Instant) -> f64 {
        // count the first requests too: the first state describes the first second
        if let (true, Some(start)) = (self.samples.is_empty(), now.checked_sub(STATE_EVERY)) {
            self.samples.push_back((start, 0));
        }
        self.samples.push_back((now, requests));
        // the oldest sample is at least as old as the window, once there is one
        while self.samples.get(1).is_some_and(|(second, _)| now.duration_since(*second) >= WINDOW) {
            self.samples.pop_front();
        }
        let Some((first, before)) = self.samples.front() else { return 0.0 };
        let seconds = now.duration_since(*first).as_secs_f64();
        if seconds > 0.0 { as_f64(requests.saturating_sub(*before)) / seconds } else { 0.0 }
    }

    /// The display of a state.
    pub(super) fn shown(&mut self, state: &CrawlState<'_>, now: Instant) -> Shown {
        let summary = state.summary;
        let done = summary.sites_visited;
        let requests_per_second = self.update(state.activity.requests, now);
        // sites that become known during the crawl are counted when they are visited
        let open = u64::try_from(state.open).unwrap_or(u64::MAX);
        let sites_known = state.sites_known.map(|known| known.max(done.saturating_add(open)));
        // a crawl that continues visits known sites again
        let has_revisited = state.sites_known.is_some_and(|known| known > 0 && known < done);
        let is_idle = state.open == 0 && state.parked == 0 && sites_known.is_some_and(|known| known > done);
        Shown {
            sites_done: done,
            sites_known: if has_revisited { state.sites_known } else { sites_known },
            has_revisited,
            follows_pass: false,
            has_open: state.open > 0,
            is_idle,
            requests_per_second,
            time_left: sites_known
                .filter(|known| *known > done && !has_revisited)
                .and_then(|known| time_left(state, known.saturating_sub(done), requests_per_second)),
            waits: waits(state),
            ends: ends(&summary.ends),
            manifests: summary.manifests.values().sum(),
        }
    }
}

/// Estimates the time left: the remaining requests at the rate of the last minute, but at least the time that the longest open visit needs
/// because of the delays of its site. A visit that has not begun is assumed to need as many requests as the others. `None` while nothing is
/// known, while no visit is open, and while fewer visits are open than allowed. In the last two cases only parked visits are left, or other
/// processes visit the remaining sites.
fn time_left(state: &CrawlState<'_>, sites_left: u64, requests_per_second: f64) -> Option<Duration> {
    if state.open == 0 {
        return None;
    }
    let activity = state.activity;
    let parked = u64::try_from(state.parked).unwrap_or(u64::MAX);
    let not_begun = sites_left.saturating_sub(activity.begun).saturating_sub(parked);
    let begun = state.summary.sites_visited + activity.begun;
    let each = (activity.requests + activity.planned).checked_div(begun).filter(|each| *each > 0);
    let of_others = if not_begun == 0 { 0 } else { not_begun.saturating_mul(each?) };
    // this process would have begun these visits if it could: other processes visit the sites, or they are not due yet
    let open = u64::try_from(state.open).unwrap_or(u64::MAX);
    if sites_left > open.saturating_add(parked) && !state.is_full {
        return None;
    }
    let requests = activity.planned.saturating_add(of_others);
    let is_known = requests > 0 && (requests_per_second > 0.0 || of_others == 0);
    let at_this_rate = if requests_per_second > 0.0 { as_f64(requests) / requests_per_second } else { 0.0 };
    let seconds = at_this_rate.max(activity.longest.as_secs_f64()).ceil();
    Duration::try_from_secs_f64(seconds).ok().filter(|left| is_known && !left.is_zero())
}

/// Describes what open visits wait for, or their number if none waits.
fn waits(state: &CrawlState<'_>) -> String {
    let activity = state.activity;
    let parts = [
        (
            activity.delays,
            if activity.delays == 1 { "for the delay of its site" } else { "for the delays of their sites" },
        ),
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
    /// The display of a crawl that goes on after its pass. What will become due is not known, and so neither is a time left.
    pub(super) fn since_pass(self) -> Self {
        Self {
            follows_pass: true,
            has_revisited: false,
            is_idle: false,
            sites_known: None,
            time_left: None,
            ..self
        }
    }

    /// The display while the database is unavailable: nothing is sent, so there is no estimate.
    pub(super) fn in_outage(self) -> Self {
        Self { time_left: None, waits: "waiting for the database".to_owned(), ..self }
    }

    /// Whether there is something to report: a visit, or sites that are due.
    pub(super) fn has_begun(&self) -> bool {
        self.sites_done > 0 || self.has_open || self.sites_known.is_some_and(|known| known > 0)
    }

    /// The rate, and the time left if it is known.
    pub(super) fn pace(&self) -> String {
        let left = match self.time_left {
            Some(left) => format!(", about {} left", in_words(left)),
            None if self.sites_known == Some(self.sites_done) => ", none is left".to_owned(),
            None => String::new(),
        };
        format!("{:.1} requests/s{left}", self.requests_per_second)
    }

    /// The waits; then the outcomes and the manifests, if there are any.
    pub(super) fn details(&self) -> Vec<String> {
        let ended = (!self.ends.is_empty()).then(|| format!("ended: {}", self.ends));
        let manifests = (self.manifests > 0).then(|| counted(self.manifests, "manifest"));
        let outcomes: Vec<String> = ended.into_iter().chain(manifests).collect();
        let outcomes = (!outcomes.is_empty()).then(|| outcomes.join("; "));
        [self.waits.clone()].into_iter().chain(outcomes).collect()
    }

    /// The parts of a progress line that indicate progress, without those that change on their own. A line without an open visit is not
    /// repeated while these parts are unchanged. `None` while a visit is open: then every line is written.
    pub(super) fn news(&self, details: &str) -> Option<String> {
        (!self.has_open).then(|| format!("{}; {details}", self.sites_done))
    }

    /// The number of sites that are done, and the rate.
    pub(super) fn head(&self) -> String {
        let (done, pace) = (self.sites_done, self.pace());
        match self.sites_known {
            Some(known) if self.has_revisited => {
                format!("{}, {known} {} known, {pace}", counted(done, "visit"), sites(known))
            }
            Some(known) if self.is_idle => {
                format!("{} done by this process, {known} known, {pace}", counted(done, "site"))
            }
            Some(known) => format!("{done} of {known} {} done, {pace}", sites(known)),
            None if self.follows_pass => format!("{} after the pass, {pace}", counted(done, "visit")),
            None => format!("{} done, {pace}", counted(done, "site")),
        }
    }
}

/// The noun after the number of all sites.
pub(super) const fn sites(known: u64) -> &'static str {
    if known == 1 { "site" } else { "sites" }
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

    /// A crawl of 20 sites, of which `done` were visited with 10 requests each.
    fn shown(rate: &mut Rate, done: u64, activity: ActivityCounts, now: Instant) -> Shown {
        let ends = if done > 0 { [("completed", done)].into() } else { BTreeMap::new() };
        let summary = Summary { sites_visited: done, requests: done * 10, ends, ..Summary::default() };
        let state = CrawlState {
            summary: &summary,
            sites_known: Some(20),
            open: 4,
            is_full: true,
            parked: 0,
            activity,
        };
        rate.shown(&state, now)
    }

    #[test]
    fn estimates_the_time_left_from_the_plans_of_open_visits() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        let nothing = ActivityCounts { delays: 3, answers: 1, ..ActivityCounts::default() };
        assert_eq!(shown(&mut rate, 0, nothing, start).time_left, None, "nothing is known yet");
        // 4 visits of 10 requests, and 16 sites like them: 180 requests at 2 a second
        let longest = Duration::from_secs(25);
        let begun = ActivityCounts { requests: 20, begun: 4, planned: 20, longest, ..nothing };
        let first = shown(&mut rate, 0, begun, start + Duration::from_secs(9));
        assert_eq!(first.time_left, Some(Duration::from_secs(90)));
        assert_eq!(first.head(), "0 of 20 sites done, 2.0 requests/s, about 1 min 30 s left");
        assert_eq!(first.details(), ["waiting: 3 for the delays of their sites, 1 for an answer"]);
        let unavailable = first.clone().in_outage();
        assert_eq!(unavailable.head(), "0 of 20 sites done, 2.0 requests/s");
        assert_eq!(unavailable.details(), ["waiting for the database"]);
        // 16 visits of 10 requests have ended
        let rest = ActivityCounts { requests: 180, begun: 4, planned: 20, longest, ..nothing };
        let later = shown(&mut rate, 16, rest, start + Duration::from_secs(50));
        assert_eq!(
            later.time_left,
            Some(longest),
            "the remaining requests wait for the delays of their sites, whatever the rate was"
        );
        assert_eq!(first.news("same"), None, "every line is written while a visit is open");
        let resting = |requests_per_second| Shown { has_open: false, requests_per_second, ..later.clone() };
        assert_eq!(
            resting(12.0).news("same"),
            resting(6.0).news("same"),
            "a changed rate alone does not repeat the line of a crawl without visits"
        );
        assert!(resting(6.0).news("same").is_some());
        assert_eq!(later.details()[1], "ended: 16 completed", "a line of its own");
    }

    #[test]
    fn counts_visits_when_sites_are_visited_again() {
        let activity = ActivityCounts { requests: 300, begun: 4, planned: 20, ..ActivityCounts::default() };
        let text = |done| {
            let start = Instant::now();
            let mut rate = Rate::default();
            shown(&mut rate, 0, ActivityCounts::default(), start);
            shown(&mut rate, done, activity, start + Duration::from_secs(9)).head()
        };
        assert!(text(18).starts_with("18 of 22 sites done, "), "{}", text(18));
        assert!(text(97).starts_with("97 visits, 20 sites known, "), "{}", text(97));
    }

    #[test]
    fn visits_after_the_pass_are_counted_without_a_number_of_sites() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        let activity = ActivityCounts { requests: 3, begun: 1, planned: 20, ..ActivityCounts::default() };
        let nothing = shown(&mut rate, 0, ActivityCounts::default(), start).since_pass();
        assert!(!Shown { has_open: false, ..nothing }.has_begun());
        let one = shown(&mut rate, 1, activity, start + Duration::from_secs(9)).since_pass();
        assert!(one.has_begun() && one.head().starts_with("1 visit after the pass, "), "{}", one.head());
        assert!(one.head().ends_with(" requests/s"), "neither sites nor a time left: {}", one.head());
    }

    /// Three sites with ten requests each and a delay of 3 s.
    #[test]
    fn the_estimate_for_few_sites_does_not_grow() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        let summary = Summary::default();
        for second in 0..27 {
            let sent = 3 * (second / 3 + 1);
            let longest = Duration::from_secs(28 - second);
            let activity = ActivityCounts {
                requests: sent,
                begun: 3,
                planned: 30 - sent,
                longest,
                ..ActivityCounts::default()
            };
            let state = CrawlState {
                summary: &summary,
                sites_known: Some(3),
                open: 3,
                is_full: false,
                parked: 0,
                activity,
            };
            let left = rate.shown(&state, start + Duration::from_secs(second)).time_left;
            let error = left.unwrap().abs_diff(longest);
            assert!(error <= Duration::from_secs(1), "{left:?} of {longest:?}");
        }
    }

    #[test]
    fn estimates_no_time_for_parked_visits_and_unresolved_names() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        let summary = Summary { sites_visited: 2, ..Summary::default() };
        for (known, parked, requests) in [(3, 1, 20), (3, 0, 0)] {
            let activity = ActivityCounts { requests, ..ActivityCounts::default() };
            let state = CrawlState {
                summary: &summary,
                sites_known: Some(known),
                open: 0,
                is_full: false,
                parked,
                activity,
            };
            let shown = rate.shown(&state, start + Duration::from_secs(1));
            assert!(shown.head().ends_with(" requests/s"), "{}", shown.head());
        }
    }

    #[test]
    fn a_crawl_without_due_sites_waits_for_one() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        let summary = Summary { sites_visited: 2, requests: 20, ..Summary::default() };
        let activity = ActivityCounts::default();
        let state = CrawlState {
            summary: &summary,
            sites_known: Some(2),
            open: 0,
            is_full: false,
            parked: 0,
            activity,
        };
        for seconds in [0, 10] {
            let idle = rate.shown(&state, start + Duration::from_secs(seconds));
            assert_eq!(idle.head(), "2 of 2 sites done, 0.0 requests/s, none is left");
            assert_eq!(idle.details(), ["waiting: for a site to become due"]);
        }
    }

    /// Of 37 sites that were due at the start, another process has visited all but one.
    #[test]
    fn estimates_no_time_for_visits_of_other_processes() {
        let summary = Summary { sites_visited: 1, requests: 26, ..Summary::default() };
        let activity = ActivityCounts { requests: 26, ..ActivityCounts::default() };
        let state = CrawlState {
            summary: &summary,
            sites_known: Some(37),
            open: 0,
            is_full: false,
            parked: 0,
            activity,
        };
        let shown = Rate::default().shown(&state, Instant::now());
        assert_eq!(shown.time_left, None);
        assert_eq!(shown.head(), "1 site done by this process, 37 known, 26.0 requests/s");
        // this process visits its last site, and other processes visit the rest
        let begun = ActivityCounts { requests: 5, begun: 1, planned: 3, ..ActivityCounts::default() };
        let summary = Summary::default();
        let state = CrawlState {
            summary: &summary,
            sites_known: Some(35),
            open: 1,
            is_full: false,
            parked: 0,
            activity: begun,
        };
        assert_eq!(Rate::default().shown(&state, Instant::now()).time_left, None);
        let idle = CrawlState { open: 0, activity: ActivityCounts::default(), ..state };
        let shown = Rate::default().shown(&idle, Instant::now());
        assert_eq!(shown.head(), "0 sites done by this process, 35 known, 0.0 requests/s");
        let one = CrawlState { sites_known: Some(1), open: 1, ..idle };
        assert_eq!(Rate::default().shown(&one, Instant::now()).head(), "0 of 1 site done, 0.0 requests/s");
    }

    #[test]
    fn forgets_requests_before_the_last_minute() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        rate.update(0, start);
        rate.update(600, at(60));
        assert!((rate.update(660, at(120)) - 1.0).abs() < 1e-9);
        assert!(rate.samples.len() <= 3);
    }
}
