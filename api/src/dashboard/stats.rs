//! The page of numbers.

use askama::Template;
use chrono::{DateTime, Utc};
use store::{DialectUsage, NewSite};

use super::frame::{Frame, Section};
use super::search::{Bar, bars};
use super::time::Moment;
use super::{chart, links, words};
use crate::routes::stats::{Count, StatsAnswer};

/// Dialects that the chart of conformance has room for; its table has all.
const DIALECTS_DRAWN: usize = 16;

struct Number {
    name: &'static str,
    text: String,
}

struct Chart {
    title: &'static str,
    rows: Vec<Bar>,
}

/// How well one dialect is kept to.
struct Kept {
    dialect: &'static str,
    href: String,
    conforms: String,
    minor: String,
    major: String,
}

/// A site that is new in the index.
pub(crate) struct New {
    pub(crate) site: String,
    pub(crate) since: Moment,
    pub(crate) capabilities: String,
}

#[derive(Template)]
#[template(path = "stats.html")]
pub(crate) struct StatsPage {
    frame: Frame,
    last_visit: Option<Moment>,
    index_words: String,
    numbers: Vec<Number>,
    charts: Vec<Chart>,
    conformance_svg: Option<String>,
    conformance: Vec<Kept>,
    newest: Vec<New>,
}

pub(crate) fn page(answer: &StatsAnswer, now: DateTime<Utc>) -> StatsPage {
    StatsPage {
        frame: Frame::new("Stats", Section::Stats),
        last_visit: Moment::maybe(answer.last_visit_at, now),
        index_words: index_words(answer),
        numbers: numbers(answer),
        charts: charts(answer),
        conformance_svg: conformance_chart(&answer.adoption),
        conformance: answer.adoption.iter().map(kept).collect(),
        newest: newest(&answer.sites_newest, now),
    }
}

/// New sites in words.
pub(crate) fn newest(sites: &[NewSite], now: DateTime<Utc>) -> Vec<New> {
    let new = |new: &NewSite| New {
        site: new.site.to_string(),
        since: Moment::new(new.since, now),
        capabilities: words::counted(new.capabilities, "capability", "capabilities"),
    };
    sites.iter().map(new).collect()
}

/// A bar for each dialect: its manifests without a fault, with small ones, with grave ones.
fn conformance_chart(adoption: &[DialectUsage]) -> Option<String> {
    let bars: Vec<(String, [u64; 3])> = adoption
        .iter()
        .take(DIALECTS_DRAWN)
        .map(|dialect| (dialect.format.label().to_owned(), [dialect.conforms, dialect.minor, dialect.major]))
        .collect();
    chart::stacked(&bars)
}

fn kept(dialect: &DialectUsage) -> Kept {
    Kept {
        dialect: dialect.format.label(),
        href: links::search([("format", dialect.format.as_str())]),
        conforms: words::grouped(dialect.conforms),
        minor: words::grouped(dialect.minor),
        major: words::grouped(dialect.major),
    }
}

fn index_words(answer: &StatsAnswer) -> String {
    match answer.index_position.map(|position| answer.feed_position - position) {
        None => "There is no index to search.".to_owned(),
        Some(behind) if behind > 0 => {
            let behind = u64::try_from(behind).unwrap_or(0);
            format!("The index is {} behind.", words::counted(behind, "change", "changes"))
        }
        Some(_) => "The index is up to date.".to_owned(),
    }
}

fn numbers(answer: &StatsAnswer) -> Vec<Number> {
    let of = |name, count| Number { name, text: words::grouped(count) };
    vec![
        of("Capabilities", answer.capabilities),
        of("Manifests", answer.manifests),
        of("Sites", answer.sites),
        of("Visits", answer.visits),
        of("Due now", answer.sites_due),
        of("Being visited", answer.sites_leased),
        of("Waiting to go on", answer.sites_parked),
        of("Opted out", answer.sites_blocked),
        of("Documents", answer.documents),
        Number { name: "Their size", text: words::bytes(answer.document_bytes) },
    ]
}

fn charts(answer: &StatsAnswer) -> Vec<Chart> {
    let rows = |counts: &[Count], text: fn(&str) -> String, href: fn(&str) -> String| {
        bars(counts.iter().map(|count| (text(count.value), href(count.value), count.count)))
    };
    let no_link: fn(&str) -> String = |_| String::new();
    let status_words =
        |slug: &str| slug.parse().map_or_else(|_| slug.to_owned(), |s| words::status(s).to_owned());
    let end_words =
        |slug: &str| slug.parse().map_or_else(|_| slug.to_owned(), |e| words::visit_end(e).to_owned());
    let outcome_words =
        |slug: &str| slug.parse().map_or_else(|_| slug.to_owned(), |o| words::outcome(o).to_owned());
    let adopted = answer.adoption.iter().map(|dialect| {
        let slug = dialect.format.as_str();
        (words::format_of_slug(slug), links::search([("format", slug)]), dialect.sites)
    });
    vec![
        Chart { title: "Sites by dialect", rows: bars(adopted) },
        Chart {
            title: "Manifests by dialect",
            rows: rows(&answer.manifests_by_format, words::format_of_slug, |v| {
                links::search([("format", v)])
            }),
        },
        Chart {
            title: "Sites by status",
            rows: rows(&answer.sites_by_status, status_words, |v| {
                links::with_query("/sites", [("status", v)])
            }),
        },
        Chart {
            title: "How visits ended, last 24 hours",
            rows: rows(&answer.visit_ends_last_day, end_words, no_link),
        },
        Chart {
            title: "What fetches came to, last 24 hours",
            rows: rows(&answer.fetch_outcomes_last_day, outcome_words, no_link),
        },
    ]
}
