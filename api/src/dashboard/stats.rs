//! The page of statistics.

use askama::Template;
use chrono::{DateTime, Utc};
use store::{DialectUsage, NewSite};

use super::bars::{Bar, Number, bars, number};
use super::frame::{Frame, Section};
use super::time::Moment;
use super::{chart, labels, links};
use crate::answers::stats::{Count, StatsAnswer};

/// Maximum number of dialects in the conformance chart; the table has all.
const DIALECTS_DRAWN: usize = 16;

struct Chart {
    title: &'static str,
    rows: Vec<Bar>,
}

/// How well documents conform to one dialect.
struct ConformanceRow {
    dialect: &'static str,
    href: String,
    conforms: String,
    minor: String,
    major: String,
}

/// A site that is new in the index.
pub(crate) struct NewSiteRow {
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
    conformance: Vec<ConformanceRow>,
    newest: Vec<NewSiteRow>,
}

pub(crate) fn page(answer: &StatsAnswer, now: DateTime<Utc>) -> StatsPage {
    StatsPage {
        frame: Frame::new("Stats", Section::Stats),
        last_visit: Moment::maybe(answer.last_visit_at, now),
        index_words: index_words(answer),
        numbers: numbers(answer),
        charts: charts(answer),
        conformance_svg: conformance_chart(&answer.adoption),
        conformance: answer.adoption.iter().map(conformance_row).collect(),
        newest: newest(&answer.sites_newest, now),
    }
}

pub(crate) fn newest(sites: &[NewSite], now: DateTime<Utc>) -> Vec<NewSiteRow> {
    let new = |new: &NewSite| NewSiteRow {
        site: new.site.to_string(),
        since: Moment::new(new.since, now),
        capabilities: labels::counted(new.capabilities, "capability", "capabilities"),
    };
    sites.iter().map(new).collect()
}

/// A bar for each dialect: its manifests without deviations, with minor ones, and with major ones.
fn conformance_chart(adoption: &[DialectUsage]) -> Option<String> {
    let bars: Vec<(String, [u64; 3])> = adoption
        .iter()
        .take(DIALECTS_DRAWN)
        .map(|dialect| (dialect.format.label().to_owned(), [dialect.conforms, dialect.minor, dialect.major]))
        .collect();
    chart::stacked(&bars)
}

fn conformance_row(dialect: &DialectUsage) -> ConformanceRow {
    ConformanceRow {
        dialect: dialect.format.label(),
        href: links::search([("format", dialect.format.as_str())]),
        conforms: labels::grouped(dialect.conforms),
        minor: labels::grouped(dialect.minor),
        major: labels::grouped(dialect.major),
    }
}

fn index_words(answer: &StatsAnswer) -> String {
    match answer.index_position.map(|position| answer.feed_position - position) {
        None => "There is no index to search.".to_owned(),
        Some(behind) if behind > 0 => {
            let behind = u64::try_from(behind).unwrap_or(0);
            format!("The index is {} behind.", labels::counted(behind, "change", "changes"))
        }
        Some(_) => "The index is up to date.".to_owned(),
    }
}

fn numbers(answer: &StatsAnswer) -> Vec<Number> {
    vec![
        number("Capabilities", answer.capabilities),
        number("Manifests", answer.manifests),
        number("Sites", answer.sites),
        number("Visits", answer.visits),
        number("Due", answer.sites_due),
        number("Visits under way", answer.sites_leased),
        number("Parked", answer.sites_parked),
        number("Opted out", answer.sites_blocked),
        number("Documents", answer.documents),
        Number { name: "Their size", text: labels::bytes(answer.document_bytes) },
    ]
}

fn charts(answer: &StatsAnswer) -> Vec<Chart> {
    let rows = |counts: &[Count], text: fn(&str) -> String, href: fn(&str) -> String| {
        bars(counts.iter().map(|count| (text(count.value), href(count.value), count.count)))
    };
    let no_link: fn(&str) -> String = |_| String::new();
    let status_words =
        |slug: &str| slug.parse().map_or_else(|_| slug.to_owned(), |s| labels::status(s).to_owned());
    let end_words =
        |slug: &str| slug.parse().map_or_else(|_| slug.to_owned(), |e| labels::visit_end(e).to_owned());
    let outcome_words =
        |slug: &str| slug.parse().map_or_else(|_| slug.to_owned(), |o| labels::outcome(o).to_owned());
    let adopted = answer.adoption.iter().map(|dialect| {
        let slug = dialect.format.as_str();
        (labels::format_of_slug(slug), links::search([("format", slug)]), dialect.sites)
    });
    vec![
        Chart { title: "Sites by dialect", rows: bars(adopted) },
        Chart {
            title: "Manifests by dialect",
            rows: rows(&answer.manifests_by_format, labels::format_of_slug, |v| {
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
            title: "Results of fetches, last 24 hours",
            rows: rows(&answer.fetch_outcomes_last_day, outcome_words, no_link),
        },
    ]
}
