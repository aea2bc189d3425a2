//! The page of statistics.

use askama::Template;
use policy::{FetchOutcome, Status};
use store::DialectUsage;

use super::bars::{Bar, Number, bars, number};
use super::frame::{Frame, Section};
use super::sites::FRESH;
use super::time::Moment;
use super::{labels, links};
use crate::answers::stats::{Count, StatsAnswer};
use crate::page_context::PageContext;

struct Chart {
    title: &'static str,
    rows: Vec<Bar>,
}

/// How well documents conform to one dialect.
struct ConformanceRow {
    dialect: &'static str,
    href: String,
    /// Number of manifests that conform, have minor findings only, or have major findings.
    parts: [u64; 3],
    all: u64,
    sites: u64,
    /// Number of manifests of the most common dialect: the length of the longest bar.
    most: u64,
}

#[derive(Template)]
#[template(path = "stats.html")]
pub(crate) struct StatsPage {
    frame: Frame,
    last_visit: Option<Moment>,
    index_words: String,
    numbers: Vec<Number>,
    charts: Vec<Chart>,
    /// A sentence about the sites whose document cannot be read.
    unreadable: Option<String>,
    conformance: Vec<ConformanceRow>,
}

pub(crate) fn page(answer: &StatsAnswer, context: &PageContext) -> StatsPage {
    let now = context.now;
    StatsPage {
        frame: Frame::new("Statistics", Section::Stats).at(context, "/stats").described(
            "How many sites use each format, how well they conform to it, and the size of the index.",
        ),
        last_visit: Moment::maybe(answer.last_visit_at, now),
        index_words: index_words(answer),
        numbers: numbers(answer),
        charts: charts(answer),
        unreadable: unreadable(&answer.adoption),
        conformance: conformance(&answer.adoption),
    }
}

/// How well documents conform to each dialect. An unreadable document has none.
fn conformance(adoption: &[DialectUsage]) -> Vec<ConformanceRow> {
    let parts = |dialect: &DialectUsage| [dialect.conforms, dialect.minor, dialect.major];
    let readable = || adoption.iter().filter(|dialect| dialect.format.is_indexable());
    let most = readable().map(|dialect| parts(dialect).iter().sum()).max().unwrap_or(1).max(1);
    let row = |dialect: &DialectUsage| ConformanceRow {
        dialect: dialect.format.label(),
        href: links::search([("format", dialect.format.as_str())]),
        parts: parts(dialect),
        all: parts(dialect).iter().sum(),
        sites: dialect.sites,
        most,
    };
    readable().map(row).collect()
}

/// A sentence about sites with a document that cannot be read. They may have other documents.
fn unreadable(adoption: &[DialectUsage]) -> Option<String> {
    let unreadable = adoption.iter().filter(|dialect| labels::is_unreadable_as(dialect.format));
    let sites: u64 = unreadable.map(|dialect| dialect.sites).sum();
    let have = labels::counted(sites, "site has", "sites have");
    (sites > 0).then(|| format!("{have} a document that cannot be read."))
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

/// Manifests without the documents that cannot be read.
fn readable_manifests(answer: &StatsAnswer) -> u64 {
    let readable = answer.adoption.iter().filter(|dialect| dialect.format.is_indexable());
    readable.map(|dialect| dialect.manifests).sum()
}

fn numbers(answer: &StatsAnswer) -> Vec<Number> {
    vec![
        number("Capabilities", answer.capabilities),
        number("Manifests", readable_manifests(answer)),
        number("Sites", answer.sites),
        number("Visits", answer.visits),
        Number { name: "Size of all documents", text: labels::bytes(answer.document_bytes) },
    ]
}

/// Text, link and count of each status. Fresh sites whose documents cannot be read are counted as not readable.
fn by_status(answer: &StatsAnswer) -> Vec<(String, String, u64)> {
    let unreadable = answer.sites_unreadable;
    let row = |counted: &Count| {
        let status = counted.value.parse::<Status>().ok();
        let text = status.map_or(counted.value, labels::status).to_owned();
        let (filters, count) = if status == Some(Status::Fresh) {
            (FRESH.to_vec(), counted.count.saturating_sub(unreadable))
        } else {
            (vec![("status", counted.value)], counted.count)
        };
        (text, links::with_query("/sites", filters), count)
    };
    let mut rows: Vec<(String, String, u64)> = answer.sites_by_status.iter().map(row).collect();
    if unreadable > 0 {
        let filters = [("status", Status::Fresh.as_str()), ("readable", "false")];
        let text = Status::Invalid.label().to_owned();
        rows.push((text, links::with_query("/sites", filters), unreadable));
    }
    rows.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
    rows
}

fn charts(answer: &StatsAnswer) -> Vec<Chart> {
    let rows = |counts: &[Count], text: fn(&str) -> String, href: fn(&str) -> String| {
        bars(counts.iter().map(|count| (text(count.value), href(count.value), count.count)))
    };
    let no_link: fn(&str) -> String = |_| String::new();
    let outcome_words = |slug: &str| {
        slug.parse().map_or_else(|_| slug.to_owned(), |outcome| labels::fetches_with(outcome).to_owned())
    };
    // most of the usual paths have no document
    let is_there = |counted: &&Count| counted.value != FetchOutcome::NotFound.as_str();
    let outcomes: Vec<Count> = answer.fetch_outcomes_last_day.iter().filter(is_there).cloned().collect();
    vec![
        Chart { title: "Sites by status", rows: bars(by_status(answer)) },
        Chart {
            title: "What sites answered in the last 24 hours, except \u{201c}not there\u{201d}",
            rows: rows(&outcomes, outcome_words, no_link),
        },
    ]
}
