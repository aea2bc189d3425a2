//! Computes every derived number of docs/SCALING.md from the measurements of docs/BENCHMARKS.md, and checks that the page states it.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::{fs, path::Path};

/// The planned number of sites, and the share of them that declares something.
const SITES: f64 = 300e6;
const DECLARING: f64 = 0.01;

/// Requests of the first visit to a site that declares something, seconds between two requests to a host, and requests per second
/// to one platform: limits of the crawler (docs/POLITENESS.md).
const REQUESTS_TO_DECLARING: f64 = 20.0;
const DELAY_SECONDS: f64 = 3.0;
const PLATFORM_REQUESTS: f64 = 20.0;

const DAY: f64 = 86_400.0;

#[test]
fn scaling_agrees_with_the_benchmarks() {
    let stated = words(&read("SCALING.md"));
    for sentence in sentences(&Measured::read(&read("BENCHMARKS.md"))) {
        assert!(stated.contains(&words(&sentence)), "docs/SCALING.md should contain:\n{sentence}");
    }
}

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)).unwrap()
}

/// The text on one line, so that line breaks do not matter.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The measurements in BENCHMARKS.md.
struct Measured {
    raw_milliseconds: f64,
    polite_milliseconds: f64,
    polite_sites_a_second: f64,
    polite_mebibytes: f64,
    requests_a_site: f64,
    seeded_bytes: [f64; 2],
    visited_bytes: [f64; 2],
    saved_without: f64,
    saved_with: f64,
    first_visit: f64,
    third_visit: f64,
    later_visit: f64,
}

impl Measured {
    fn read(text: &str) -> Self {
        let raw = row(text, "| raw | agentdex |");
        let polite = row(text, "| polite | agentdex |");
        let seeded = row(text, "| bytes per seeded site, with indexes |");
        let visited = row(text, "| bytes per visited site without a manifest |");
        let in_use = polite[3].split_once('(').expect("sites per second while all slots were in use").1;
        Self {
            raw_milliseconds: number(&raw[4]),
            polite_milliseconds: number(&polite[4]),
            polite_sites_a_second: number(in_use),
            polite_mebibytes: number(&polite[5]),
            requests_a_site: number(&polite[6]) / number(&polite[2]),
            seeded_bytes: [number(&seeded[1]), number(&seeded[2])],
            visited_bytes: [number(&visited[1]), number(&visited[2])],
            saved_without: number(&row(text, "| visits without a manifest per second, saved together |")[1]),
            saved_with: number(&row(text, "| visits with a new manifest per second, saved together |")[1]),
            first_visit: number(&row(text, "| first |")[1]),
            third_visit: number(&row(text, "| third |")[1]),
            later_visit: number(&row(text, "| later |")[1]),
        }
    }

    fn mean_first_visit(&self) -> f64 {
        (1.0 - DECLARING) * self.first_visit + DECLARING * REQUESTS_TO_DECLARING
    }

    fn milliseconds_a_request(&self) -> f64 {
        self.polite_milliseconds / self.requests_a_site
    }
}

/// The cells of the only table row with this start.
fn row(text: &str, start: &str) -> Vec<String> {
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with(start)).collect();
    assert_eq!(rows.len(), 1, "rows of BENCHMARKS.md that start with {start}");
    rows[0].trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// The number at the start of a cell, in which commas separate thousands.
fn number(cell: &str) -> f64 {
    let digits: String =
        cell.chars().take_while(|c| c.is_ascii_digit() || ".,".contains(*c)).filter(|c| *c != ',').collect();
    digits.parse().unwrap_or_else(|error| panic!("{cell:?}: {error}"))
}

/// Formats a number: two decimals below one, one below ten, none below a thousand, and three significant digits above, with commas between
/// thousands.
fn rounded(value: f64) -> String {
    match value {
        ..1.0 => format!("{value:.2}"),
        ..10.0 => format!("{value:.1}"),
        ..1_000.0 => format!("{value:.0}"),
        _ => {
            let three_digits: f64 = format!("{value:.2e}").parse().unwrap();
            let digits = format!("{three_digits:.0}").into_bytes();
            let groups: Vec<&[u8]> = digits.rchunks(3).rev().collect();
            String::from_utf8(groups.join(&b',')).unwrap()
        }
    }
}

/// The rows and sentences of SCALING.md that follow from the measurements.
fn sentences(measured: &Measured) -> Vec<String> {
    let mut sentences = costs(measured);
    sentences.extend(first_pass(measured));
    sentences.extend(after_the_first_pass(measured));
    sentences
}

fn costs(measured: &Measured) -> Vec<String> {
    vec![
        format!(
            "| processor time for a request | {:.1} ms, storing included ({} to {} ms for a site of {} requests) |",
            measured.milliseconds_a_request(),
            measured.raw_milliseconds,
            measured.polite_milliseconds,
            measured.requests_a_site,
        ),
        format!(
            "{} in {} MiB on one core, met by five of seven runs",
            measured.polite_sites_a_second, measured.polite_mebibytes
        ),
        format!(
            "| a compacted site | {} bytes with its indexes on PostgreSQL, {} on SQLite;",
            measured.visited_bytes[0], measured.visited_bytes[1]
        ),
        format!(
            "| a site that was seeded and not visited yet | {} bytes with its indexes on PostgreSQL, {} on SQLite |",
            measured.seeded_bytes[0], measured.seeded_bytes[1]
        ),
        format!(
            "| visits saved a second | {} without content, {} with a new manifest, on two busy cores |",
            rounded(measured.saved_without),
            rounded(measured.saved_with)
        ),
        format!(
            "| a first visit | {} requests to a site with nothing, {REQUESTS_TO_DECLARING} to one with a manifest, \
             {DELAY_SECONDS} s apart, thus about {:.0} s |",
            measured.first_visit,
            measured.first_visit * DELAY_SECONDS
        ),
        format!(
            "thus about {:.0} s; the third visit to a site with nothing {} |",
            measured.later_visit * DELAY_SECONDS,
            measured.third_visit
        ),
    ]
}

fn first_pass(measured: &Measured) -> Vec<String> {
    let requests = measured.mean_first_visit();
    let seconds = requests * DELAY_SECONDS;
    let milliseconds = requests * measured.milliseconds_a_request();
    let mut sentences = vec![format!(
        "A visit of the first pass has {} requests ({requests:.1} on average, with the sites that have a manifest), and takes \
         {milliseconds:.1} ms of processor time and {seconds:.0} s:",
        measured.first_visit
    )];
    for (name, days) in [("30 days", 30.0), ("7 days", 7.0), ("1 day", 1.0)] {
        let visits = SITES / (days * DAY);
        sentences.push(format!(
            "| {name} | {} | {} | {} | {} |",
            rounded(visits),
            rounded(visits * requests),
            rounded(visits * seconds),
            rounded(visits * milliseconds / 1_000.0)
        ));
    }
    sentences
}

fn after_the_first_pass(measured: &Measured) -> Vec<String> {
    let [daily, monthly, dead] = [3e6 / DAY, 250e6 / 60.0 / DAY, 47e6 / 120.0 / DAY].map(f64::round);
    let visits = daily + monthly + dead;
    let platform = |requests: f64| 5e6 * requests / PLATFORM_REQUESTS / DAY;
    vec![
        format!(
            "That is {daily:.0} + {monthly:.0} + {dead:.0} = {visits:.0} visits a second with about {:.0} requests a second",
            (visits * measured.later_visit / 10.0).round() * 10.0
        ),
        format!(
            "300 million compacted sites of {} bytes are {:.0} GB",
            measured.visited_bytes[0],
            SITES * measured.visited_bytes[0] / 1e9
        ),
        format!(
            "5 million sites behind one platform at {PLATFORM_REQUESTS} requests a second take {:.0} days with {} requests each, and \
             {:.0} days with {}",
            platform(measured.first_visit),
            measured.first_visit,
            platform(measured.later_visit),
            measured.later_visit
        ),
    ]
}
