//! The summary of a crawl, for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::duration;
use crate::summary::Summary;

/// Rejected lines and parked sites shown; the JSON has all that were kept.
const SHOWN_MAX: usize = 10;

/// Where the next command is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Terminal,
    Pipe,
}

/// What a crawl came to, in text, without hints at what to do next.
pub fn summary_text(summary: &Summary) -> String {
    text(summary, Audience::Pipe, "")
}

/// What a crawl came to, in text.
pub(crate) fn text(summary: &Summary, audience: Audience, next_command: &str) -> String {
    // writing into a string does not fail
    let mut text = body(summary).unwrap_or_default();
    if audience == Audience::Terminal && !summary.samples.is_empty() {
        let samples = summary
            .samples
            .iter()
            .map(|sample| format!("  {} ({}, {})", sample.name, sample.site, sample.format));
        let samples = samples.collect::<Vec<_>>().join("\n");
        text = format!("{text}\nFor example:\n{samples}\n\nNext:  {next_command}");
    }
    text.trim_end().to_owned()
}

fn body(summary: &Summary) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let out = &mut text;
    let took = duration::in_words(Duration::from_secs_f64(summary.seconds.max(0.0)));
    let stopped = if summary.interrupted { "Stopped. " } else { "" };
    let visited = summary.sites_visited;
    let sites = if visited == 1 { "site" } else { "sites" };
    writeln!(out, "{stopped}{visited} {sites} visited with {} requests in {took}.", summary.requests)?;
    if summary.seeds.read + summary.seeds.rejected_count > 0 {
        writeln!(
            out,
            "Seeds: {} read, {} duplicates, {} lines passed over",
            summary.seeds.read, summary.seeds.duplicates, summary.seeds.rejected_count
        )?;
        for rejected in summary.seeds.rejected.iter().take(SHOWN_MAX) {
            writeln!(out, "  {}, line {}: {}", rejected.source, rejected.line, rejected.reason)?;
        }
        if summary.seeds.sites_forgotten > 0 {
            writeln!(out, "  {} sites forgotten that no list names any more", summary.seeds.sites_forgotten)?;
        }
        more(out, summary.seeds.rejected_count, summary.seeds.rejected.len().min(SHOWN_MAX))?;
    }
    counts(out, "Visits", &summary.ends)?;
    counts(out, "Fetches", &summary.outcomes)?;
    counts(out, "Manifests read", &summary.manifests)?;
    writeln!(
        out,
        "Manifests: {} new, {} changed, {} gone; capabilities of the sites visited: {}",
        summary.manifests_added, summary.manifests_changed, summary.manifests_removed, summary.capabilities
    )?;
    if summary.failed > 0 {
        writeln!(out, "{} visits failed for a reason of ours; the log says why", summary.failed)?;
    }
    if !summary.parked.is_empty() {
        writeln!(out, "Parked, to go on with the next run:")?;
        for parked in summary.parked.iter().take(SHOWN_MAX) {
            let at = parked.resume_at.format("%Y-%m-%d %H:%M:%S UTC");
            writeln!(out, "  {} from {at}: {}", parked.site, parked.reason)?;
        }
        more(out, summary.parked.len() as u64, summary.parked.len().min(SHOWN_MAX))?;
    }
    Ok(text)
}

fn counts(out: &mut String, title: &str, counts: &BTreeMap<&'static str, u64>) -> std::fmt::Result {
    if counts.is_empty() {
        return Ok(());
    }
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let listed: Vec<String> = sorted.iter().map(|(word, count)| format!("{count} {word}")).collect();
    writeln!(out, "{title}: {}", listed.join(", "))
}

fn more(out: &mut String, all: u64, shown: usize) -> std::fmt::Result {
    let left = all.saturating_sub(shown as u64);
    if left > 0 { writeln!(out, "  and {left} more") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Sample;

    #[test]
    fn the_next_command_is_for_terminals() {
        let sample = Sample {
            name: "Book seat".to_owned(),
            site: manifest::SiteName::parse("skyhop.example").unwrap(),
            format: manifest::Format::Awp,
        };
        let summary = Summary { sites_visited: 1, requests: 20, samples: vec![sample], ..Summary::default() };
        let shown = text(&summary, Audience::Terminal, "indexer --once");
        assert!(
            shown.contains("Book seat (skyhop.example, awp)") && shown.ends_with("indexer --once"),
            "{shown}"
        );
        let piped = text(&summary, Audience::Pipe, "indexer --once");
        assert!(
            piped.starts_with("1 site visited with 20 requests") && !piped.contains("indexer"),
            "{piped}"
        );
    }
}
