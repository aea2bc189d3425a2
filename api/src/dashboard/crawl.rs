//! The health of the crawl: its progress, the latest visits, the outcomes of visits over time, and the sites that fail.

use askama::Template;
use policy::{FetchOutcome, VisitEnd};

use super::bars::{Bar, Number, bars, number};
use super::frame::{Frame, Section};
use super::time::{Moment, duration};
use super::{chart, icons, labels};
use crate::answers::crawl::{CrawlAnswer, Interval, Visit, is_refusal};
use crate::page_context::PageContext;

/// Displayed visits; the JSON response has more.
const VISITS_SHOWN: usize = 20;

struct VisitRow {
    id: i64,
    site: String,
    site_icon: String,
    /// The outcome as text, and its colour.
    outcome: String,
    class: &'static str,
    /// `12 requests in 3.1 s`
    effort: String,
    at: Moment,
}

/// A chart of visits over time, with its data.
struct OverTime {
    name: &'static str,
    chart_svg: Option<String>,
    /// The intervals that have visits, the latest first.
    rows: Vec<IntervalRow>,
}

struct IntervalRow {
    label: String,
    visits: String,
    refused: String,
    troubled: String,
}

/// A worker or a site, with a text about it.
struct NamedText {
    site: String,
    text: String,
}

#[derive(Template)]
#[template(path = "crawl.html")]
pub(crate) struct CrawlPage {
    frame: Frame,
    /// Sites, and how many of them need no visit now.
    sites: u64,
    up_to_date: u64,
    progress_words: String,
    rate: String,
    oldest_due: Option<Moment>,
    numbers: Vec<Number>,
    visits: Vec<VisitRow>,
    over_time: [OverTime; 2],
    ends: Vec<Bar>,
    workers: Vec<NamedText>,
    slowest: Vec<NamedText>,
    failing: Vec<NamedText>,
}

/// Sites with at least this time to the first byte, in milliseconds, are listed as slow.
const SLOW_MS: u32 = 500;

pub(crate) fn page(answer: &CrawlAnswer, context: &PageContext) -> CrawlPage {
    let now = context.now;
    let end = |slug: &str| {
        slug.parse().map_or_else(|_| slug.to_owned(), |end: VisitEnd| end.description().to_owned())
    };
    let worker =
        |worker: &store::WorkerLoad| NamedText { site: worker.worker.in_words(), text: load(worker) };
    let slow = |slow: &store::SlowSite| NamedText {
        site: slow.site.to_string(),
        text: format!("{} ms to the first byte", slow.first_byte_ms),
    };
    CrawlPage {
        frame: Frame::new("The crawl", Section::Crawl)
            .at(context, "/crawl")
            .described("What the crawler does now: visits, the queue, and failing sites."),
        sites: answer.sites,
        up_to_date: up_to_date(answer),
        progress_words: progress_words(answer),
        rate: rate(answer.requests_last_day, answer.excluded),
        oldest_due: Moment::maybe(answer.queue.oldest_due_at, now),
        numbers: numbers(answer),
        visits: answer.visits.iter().take(VISITS_SHOWN).map(|visit| row(visit, now)).collect(),
        over_time: [
            over_time("Visits in the last hour, by the minute (UTC)", &answer.minutes, "%H:%M UTC"),
            over_time("Visits in the last 24 hours, by the hour (UTC)", &answer.hours, "%Y-%m-%d %H:%M UTC"),
        ],
        ends: bars(
            answer.visit_ends_last_day.iter().map(|count| (end(count.value), String::new(), count.count)),
        ),
        workers: answer.workers.iter().map(worker).collect(),
        slowest: answer.slowest.iter().filter(|slow| slow.first_byte_ms >= SLOW_MS).map(slow).collect(),
        failing: answer.failing.iter().map(failing).collect(),
    }
}

fn row(visit: &Visit, now: chrono::DateTime<chrono::Utc>) -> VisitRow {
    let requests = labels::counted(u64::from(visit.requests), "request", "requests");
    VisitRow {
        id: visit.id,
        site: visit.site.to_string(),
        site_icon: icons::of_site(visit.site.as_str(), 32),
        outcome: outcome_words(visit),
        class: outcome_class(visit),
        effort: format!("{requests} in {}", duration(visit.ended_at - visit.started_at)),
        at: Moment::new(visit.ended_at, now),
    }
}

/// Number of fetches of a visit with one of these outcomes.
fn fetches_with(visit: &Visit, outcomes: &[FetchOutcome]) -> u64 {
    let has = |slug: &str| outcomes.iter().any(|outcome| outcome.as_str() == slug);
    visit.outcomes.iter().filter(|count| has(count.value)).map(|count| count.count).sum()
}

/// The result of a visit, or the reason why it has none.
fn outcome_words(visit: &Visit) -> String {
    if visit.end != VisitEnd::Completed {
        return visit.end.description().to_owned();
    }
    // a visit does not record whether each document could be read as a manifest
    let documents = |count| labels::counted(count, "document", "documents");
    let read = fetches_with(visit, &[FetchOutcome::Found]);
    let same = fetches_with(visit, &[FetchOutcome::NotModified, FetchOutcome::Fresh]);
    match (read, same) {
        (0, 0) => "no manifest found".to_owned(),
        (0, same) => format!("{} unchanged", documents(same)),
        (read, 0) => format!("{} fetched", documents(read)),
        (read, same) => format!("{} fetched, {same} unchanged", documents(read)),
    }
}

fn outcome_class(visit: &Visit) -> &'static str {
    let present = [FetchOutcome::Found, FetchOutcome::NotModified, FetchOutcome::Fresh];
    match visit.end {
        end if end.is_failure() => "error",
        end if is_refusal(end) => "stale",
        _ if fetches_with(visit, &present) > 0 => "ok",
        _ => "",
    }
}

/// The chart and the table of visits per interval.
fn over_time(name: &'static str, intervals: &[Interval], row_label: &str) -> OverTime {
    let column = |interval: &Interval| chart::Column {
        label: interval.at.format("%H:%M").to_string(),
        value: interval.visits,
        refused: interval.refused,
        troubled: interval.troubled,
    };
    let row = |interval: &Interval| IntervalRow {
        label: interval.at.format(row_label).to_string(),
        visits: labels::grouped(interval.visits),
        refused: labels::grouped(interval.refused),
        troubled: labels::grouped(interval.troubled),
    };
    let columns: Vec<chart::Column> = intervals.iter().map(column).collect();
    OverTime {
        name,
        chart_svg: chart::columns(&columns),
        rows: intervals.iter().rev().filter(|interval| interval.visits > 0).map(row).collect(),
    }
}

fn load(worker: &store::WorkerLoad) -> String {
    let sites = labels::counted(worker.sites, "site", "sites");
    match worker.addresses_owned() {
        None => sites,
        Some(addresses) => format!("{sites}, {addresses}"),
    }
}

fn failing(site: &store::FailingSite) -> NamedText {
    let times = labels::counted(u64::from(site.failures_in_row), "failed visit", "failed visits in a row");
    let end = site.last_end.map(|end| format!(": {}", end.description())).unwrap_or_default();
    NamedText { site: site.site.to_string(), text: format!("{times}{end}") }
}

fn numbers(answer: &CrawlAnswer) -> Vec<Number> {
    let queue = &answer.queue;
    let mut numbers = vec![
        number("Sites due", queue.due),
        number("Sites being visited", queue.leased),
        Number {
            name: "Requests a second, last 5 minutes",
            text: format!("{:.2}", answer.requests_per_second),
        },
        number("Visits, last 24 hours", answer.hours.iter().map(|hour| hour.visits).sum()),
    ];
    // unusual states are shown only if there are any
    numbers.extend((queue.parked > 0).then(|| number("Visits parked", queue.parked)));
    numbers.extend((queue.lag_s > 0).then(|| Number { name: "Longest overdue", text: lag(queue.lag_s) }));
    numbers.extend((queue.blocked > 0).then(|| number("Sites blocked", queue.blocked)));
    numbers
}

fn up_to_date(answer: &CrawlAnswer) -> u64 {
    answer.sites.saturating_sub(answer.queue.due + answer.queue.leased)
}

fn progress_words(answer: &CrawlAnswer) -> String {
    let open = answer.queue.due + answer.queue.leased;
    match (answer.sites, open) {
        (0, _) => "No site is known yet.".to_owned(),
        (_, 0) => "No site is due.".to_owned(),
        (sites, open) => format!(
            "{} % of the sites are up to date: {} of {}, {} to visit.",
            up_to_date(answer) * 100 / sites,
            labels::grouped(up_to_date(answer)),
            labels::counted(sites, "site", "sites"),
            labels::grouped(open)
        ),
    }
}

/// Requests of the last day, and their average rate. Visits to the `excluded` sites are deleted, so their requests are not counted.
fn rate(requests: u64, excluded: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with two decimals")]
    let per_second = requests as f64 / 86_400.0;
    let without = match excluded {
        0 => "",
        1 => ", without those to the site that is blocked or suspended",
        _ => ", without those to sites that are blocked or suspended",
    };
    format!(
        "{} requests in the last 24 hours, {per_second:.2} a second on average{without}.",
        labels::grouped(requests)
    )
}

fn lag(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta, Utc};

    use super::*;
    use crate::answers::stats::Count;

    fn visit(end: VisitEnd, outcomes: &[(FetchOutcome, u64)]) -> Visit {
        let now = DateTime::<Utc>::UNIX_EPOCH;
        let count = |(outcome, count): &(FetchOutcome, u64)| Count { value: outcome.as_str(), count: *count };
        Visit {
            id: 7,
            site: manifest::SiteName::parse("a.example").unwrap(),
            started_at: now,
            ended_at: now + TimeDelta::milliseconds(3_140),
            end,
            requests: 12,
            outcomes: outcomes.iter().map(count).collect(),
        }
    }

    #[test]
    fn requests_to_sites_whose_visits_are_deleted_are_left_out() {
        assert_eq!(rate(1_728, 0), "1,728 requests in the last 24 hours, 0.02 a second on average.");
        assert!(rate(1_728, 1).ends_with("average, without those to the site that is blocked or suspended."));
        assert!(rate(1_728, 3).ends_with("average, without those to sites that are blocked or suspended."));
    }

    #[test]
    fn outcome_of_a_visit_is_described() {
        use FetchOutcome::{Found, Fresh, NotFound, NotModified};
        for (end, outcomes, words, class) in [
            (VisitEnd::Completed, vec![(NotFound, 18)], "no manifest found", ""),
            (VisitEnd::Completed, vec![(Found, 1), (NotFound, 18)], "1 document fetched", "ok"),
            (VisitEnd::Completed, vec![(Found, 2), (Fresh, 1)], "2 documents fetched, 1 unchanged", "ok"),
            (VisitEnd::Completed, vec![(NotModified, 1), (Fresh, 1)], "2 documents unchanged", "ok"),
            (VisitEnd::Unreachable, vec![], "no connection to any address", "error"),
            (VisitEnd::RobotsDenied, vec![], "robots.txt forbids all planned paths", "stale"),
        ] {
            let row = row(&visit(end, &outcomes), DateTime::<Utc>::UNIX_EPOCH);
            assert_eq!((row.outcome.as_str(), row.class), (words, class), "{outcomes:?}");
            assert_eq!(row.effort, "12 requests in 3.1 s");
        }
    }
}
