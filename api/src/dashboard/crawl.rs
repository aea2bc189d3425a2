//! The health of the crawl: the queue, the results of visits by hour, and the sites that fail.

use askama::Template;
use policy::VisitEnd;

use super::bars::{Bar, Number, bars, number};
use super::frame::{Frame, Section};
use super::time::Moment;
use super::{chart, labels};
use crate::answers::crawl::CrawlAnswer;
use crate::page_context::PageContext;

struct Hour {
    label: String,
    visits: String,
    troubled: String,
}

struct Host {
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
    chart_svg: Option<String>,
    hours: Vec<Hour>,
    ends: Vec<Bar>,
    workers: Vec<Host>,
    slowest: Vec<Host>,
    failing: Vec<Host>,
}

pub(crate) fn page(answer: &CrawlAnswer, context: &PageContext) -> CrawlPage {
    let now = context.now;
    let column = |hour: &crate::answers::crawl::Hour| chart::Column {
        label: hour.at.format("%H:%M").to_string(),
        value: hour.visits,
        troubled: hour.troubled,
    };
    let series: Vec<chart::Column> = answer.hours.iter().map(column).collect();
    let hour = |hour: &crate::answers::crawl::Hour| Hour {
        label: hour.at.format("%Y-%m-%d %H:%M UTC").to_string(),
        visits: labels::grouped(hour.visits),
        troubled: labels::grouped(hour.troubled),
    };
    let end = |slug: &str| {
        slug.parse().map_or_else(|_| slug.to_owned(), |end: VisitEnd| end.description().to_owned())
    };
    CrawlPage {
        frame: Frame::new("The crawl", Section::Crawl)
            .at(context, "/crawl")
            .described("What the crawler does at this moment: visits, the queue, and sites in trouble."),
        sites: answer.sites,
        up_to_date: answer.sites.saturating_sub(answer.queue.due + answer.queue.leased),
        progress_words: progress_words(answer),
        rate: rate(answer.requests_last_day),
        oldest_due: Moment::maybe(answer.queue.oldest_due_at, now),
        numbers: numbers(answer),
        chart_svg: chart::columns(&series),
        hours: answer.hours.iter().rev().filter(|hour| hour.visits > 0).map(hour).collect(),
        ends: bars(
            answer.visit_ends_last_day.iter().map(|count| (end(count.value), String::new(), count.count)),
        ),
        workers: answer
            .workers
            .iter()
            .map(|worker| Host { site: worker.worker.to_string(), text: load(worker) })
            .collect(),
        slowest: answer
            .slowest
            .iter()
            .map(|slow| Host {
                site: slow.site.to_string(),
                text: format!("{} ms to the first byte", slow.first_byte_ms),
            })
            .collect(),
        failing: answer.failing.iter().map(failing).collect(),
    }
}

fn load(worker: &store::WorkerLoad) -> String {
    let sites = labels::counted(worker.sites, "site", "sites");
    match worker.groups {
        0 => sites,
        groups => format!("{sites}, {}", labels::counted(groups, "address group", "address groups")),
    }
}

fn failing(site: &store::FailingSite) -> Host {
    let times = labels::counted(u64::from(site.failures_in_row), "visit", "visits in a row");
    let end = site.last_end.map(|end| format!("; the last: {}", end.description())).unwrap_or_default();
    Host { site: site.site.to_string(), text: format!("{times}{end}") }
}

fn numbers(answer: &CrawlAnswer) -> Vec<Number> {
    let queue = &answer.queue;
    vec![
        number("Due", queue.due),
        number("Visits under way", queue.leased),
        number("Parked", queue.parked),
        number("Opted out", queue.blocked),
        number("Visits, last 24 hours", answer.hours.iter().map(|hour| hour.visits).sum()),
        Number { name: "Behind by", text: lag(queue.lag_s) },
    ]
}

fn progress_words(answer: &CrawlAnswer) -> String {
    let open = answer.queue.due + answer.queue.leased;
    match open {
        0 => "Every site was visited as recently as it should be.".to_owned(),
        _ => format!(
            "{} of {} up to date; {} to visit.",
            labels::grouped(answer.sites.saturating_sub(open)),
            labels::counted(answer.sites, "site", "sites"),
            labels::grouped(open)
        ),
    }
}

/// Requests of the last day, as a rate.
fn rate(requests: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with two decimals")]
    let per_second = requests as f64 / 86_400.0;
    format!(
        "{} requests in the last 24 hours, {per_second:.2} a second on average.",
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
