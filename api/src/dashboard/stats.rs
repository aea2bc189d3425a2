//! The page of statistics.

use askama::Template;
use policy::{FetchOutcome, Status};
use store::DialectUsage;

use super::bars::{Bar, Number, bars, number};
use super::frame::{Frame, Section};
use super::time::Moment;
use super::{chart, labels, links};
use crate::answers::stats::{Count, StatsAnswer};
use crate::page_context::PageContext;

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
}

pub(crate) fn page(answer: &StatsAnswer, context: &PageContext) -> StatsPage {
    let now = context.now;
    StatsPage {
        frame: Frame::new("Statistics", Section::Stats)
            .at(context, "/stats")
            .described("How many sites use which format, how well they follow it, and what the index holds."),
        last_visit: Moment::maybe(answer.last_visit_at, now),
        index_words: index_words(answer),
        numbers: numbers(answer),
        charts: charts(answer),
        conformance_svg: conformance_chart(&answer.adoption),
        conformance: answer
            .adoption
            .iter()
            .filter(|dialect| dialect.format.is_indexable())
            .map(conformance_row)
            .collect(),
    }
}

/// A bar for each dialect: its manifests without deviations, with minor ones, and with major ones.
fn conformance_chart(adoption: &[DialectUsage]) -> Option<String> {
    let bars: Vec<(String, [u64; 3])> = adoption
        .iter()
        .filter(|dialect| dialect.format.is_indexable())
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
        number("Documents", answer.documents),
        Number { name: "Their size", text: labels::bytes(answer.document_bytes) },
    ]
}

fn charts(answer: &StatsAnswer) -> Vec<Chart> {
    let rows = |counts: &[Count], text: fn(&str) -> String, href: fn(&str) -> String| {
        bars(counts.iter().map(|count| (text(count.value), href(count.value), count.count)))
    };
    let no_link: fn(&str) -> String = |_| String::new();
    let status_words = |slug: &str| {
        slug.parse().map_or_else(|_| slug.to_owned(), |status: Status| labels::status(status).to_owned())
    };
    let outcome_words =
        |slug: &str| slug.parse().map_or_else(|_| slug.to_owned(), |o: FetchOutcome| o.label().to_owned());
    // what cannot be read is in no dialect
    let adopted = answer.adoption.iter().filter(|dialect| dialect.format.is_indexable()).map(|dialect| {
        let slug = dialect.format.as_str();
        (labels::format_of_slug(slug), links::search([("format", slug)]), dialect.sites)
    });
    vec![
        Chart { title: "Sites by format", rows: bars(adopted) },
        Chart {
            title: "Sites by status",
            rows: rows(&answer.sites_by_status, status_words, |v| {
                links::with_query("/sites", [("status", v)])
            }),
        },
        Chart {
            title: "Results of fetches, last 24 hours",
            rows: rows(&answer.fetch_outcomes_last_day, outcome_words, no_link),
        },
    ]
}
