//! The page of numbers.

use askama::Template;
use chrono::{DateTime, Utc};

use super::frame::{Frame, Section};
use super::search::{Bar, bars};
use super::time::Moment;
use super::{links, words};
use crate::routes::stats::{Count, StatsAnswer};

struct Number {
    name: &'static str,
    text: String,
}

struct Chart {
    title: &'static str,
    rows: Vec<Bar>,
}

#[derive(Template)]
#[template(path = "stats.html")]
pub(crate) struct StatsPage {
    frame: Frame,
    last_visit: Option<Moment>,
    index_words: String,
    numbers: Vec<Number>,
    charts: Vec<Chart>,
}

pub(crate) fn page(answer: &StatsAnswer, now: DateTime<Utc>) -> StatsPage {
    StatsPage {
        frame: Frame::new("Stats", Section::Stats),
        last_visit: Moment::maybe(answer.last_visit_at, now),
        index_words: index_words(answer),
        numbers: numbers(answer),
        charts: charts(answer),
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
    vec![
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
