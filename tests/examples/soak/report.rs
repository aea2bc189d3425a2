//! The result of a soak test as Markdown.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use agentdex_tests::audit;
use serde_json::Value;

use crate::checks::{Changes, ShopCheck};
use crate::fleet::Stopped;
use crate::load::Answers;
use crate::measure::{Growth, Measurements, Series};

/// Maximum number of different warnings that are listed.
const WARNINGS_MAX: usize = 25;
/// Maximum number of examples of a failure.
const EXAMPLES_MAX: usize = 5;

pub(crate) struct Report {
    pub(crate) duration: Duration,
    pub(crate) sites: usize,
    pub(crate) audit: audit::Report,
    pub(crate) answers: Answers,
    pub(crate) measurements: Measurements,
    pub(crate) stopped: Stopped,
    pub(crate) found: ShopCheck,
    pub(crate) changes: Changes,
}

impl Report {
    pub(crate) fn is_good(&self) -> bool {
        self.verdicts().iter().all(|(_, is_good)| *is_good)
    }

    fn verdicts(&self) -> [(String, bool); 6] {
        let violations = self.audit.violations.len();
        let failures = self.answers.failures.len();
        let leaks: Vec<&str> = self.measurements.processes.values().flat_map(Series::leaks).collect();
        let (wrong, unexpected_exits) = (self.found.wrong.len(), self.stopped.unexpected_exits.len());
        let doubled = self.changes.doubled;
        [
            (
                format!("{violations} politeness violations in {} requests", self.audit.requests),
                self.audit.is_clean(),
            ),
            (format!("{failures} of {} searches failed", self.answers.took.len() + failures), failures == 0),
            (format!("{} leaks in memory or descriptors", leaks.len()), leaks.is_empty()),
            (
                format!(
                    "{wrong} of {} shops missing, duplicated or out of date at the end, on any API process",
                    self.found.shops
                ),
                wrong == 0,
            ),
            (
                format!("{doubled} of {} entries of the change feed duplicated", self.changes.entries),
                doubled == 0,
            ),
            (
                format!("{unexpected_exits} processes exited on their own or with an error"),
                unexpected_exits == 0,
            ),
        ]
    }

    /// Counts of log messages of level warning and above, most frequent first.
    fn warnings(&self) -> Vec<(String, usize)> {
        let mut counts = BTreeMap::new();
        for line in &self.stopped.log {
            let (name, text) = line.split_once('\t').unwrap_or(("?", line));
            let kind = match serde_json::from_str::<Value>(text) {
                Ok(entry) if matches!(entry["level"].as_str(), Some("WARN" | "ERROR")) => {
                    let message = entry["fields"]["message"].as_str().unwrap_or_default();
                    format!("{} {name}: {message}", entry["level"].as_str().unwrap_or_default())
                }
                Ok(_) => continue,
                Err(_) => format!("{name}: {text}"),
            };
            *counts.entry(kind).or_insert(0) += 1;
        }
        let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = self.duration.as_secs_f64() / 60.0;
        writeln!(out, "# Soak: {minutes:.0} minutes, {} sites\n", self.sites)?;
        writeln!(out, "| what | verdict |\n|---|---|")?;
        for (text, is_good) in self.verdicts() {
            writeln!(out, "| {text} | {} |", if is_good { "good" } else { "**BAD**" })?;
        }
        self.happened(out)?;
        self.measured(out)?;
        self.logged(out)?;
        self.examples(out)
    }
}

impl Report {
    fn happened(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut answers = Answers { took: self.answers.took.clone(), failures: Vec::new() };
        let (median, late) = (answers.percentile(50), answers.percentile(99));
        let Stopped { passes, kills, indexer_kills, restarts, database_breaks, .. } = &self.stopped;
        writeln!(out, "\n## What happened\n\n| | |\n|---|---|")?;
        writeln!(out, "| passes over all sites, started by a second crawler | {passes} |")?;
        writeln!(out, "| crawlers killed (SIGKILL) | {kills} |")?;
        writeln!(out, "| indexers killed (SIGKILL) | {indexer_kills} |")?;
        writeln!(out, "| API processes restarted (SIGTERM) under load | {restarts} |")?;
        writeln!(out, "| times that every connection to the database was closed | {database_breaks} |")?;
        writeln!(out, "| searches completed | {} |", self.answers.took.len())?;
        writeln!(out, "| median and 99th percentile of a search | {median:.1?}, {late:.1?} |")?;
        writeln!(
            out,
            "| shops that the last fetched robots.txt disallows, expected to be absent | {} |",
            self.found.closed
        )?;
        writeln!(
            out,
            "| time until every API process returned the current content | {:.0} s |",
            self.found.took.as_secs_f64()
        )?;
        let counts: Vec<String> =
            self.audit.counts().iter().map(|(rule, count)| format!("{rule} {count}")).collect();
        if !counts.is_empty() {
            writeln!(out, "| violations by rule | {} |", counts.join(", "))?;
        }
        Ok(())
    }

    fn measured(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "\n## Processes that ran from start to end\n")?;
        writeln!(out, "Medians of the second and of the last third of the run, and the maximum.\n")?;
        writeln!(
            out,
            "| process | MiB, second third | MiB, last third | MiB, maximum | descriptors, second third | last third | maximum |"
        )?;
        writeln!(out, "|---|---|---|---|---|---|---|")?;
        for (name, series) in &self.measurements.processes {
            let (memory, files) = (Growth::of(&series.resident_mib), Growth::of(&series.open_files));
            let leaks = series.leaks().join(", ");
            let name = if leaks.is_empty() { (*name).to_owned() } else { format!("{name}: {leaks}") };
            let row = [memory.middle, memory.end, memory.max, files.middle, files.end, files.max];
            let row: Vec<String> = row.iter().map(ToString::to_string).collect();
            writeln!(out, "| {name} | {} |", row.join(" | "))?;
        }
        writeln!(out, "\n| metric | at the end | maximum |\n|---|---|---|")?;
        for (name, values) in &self.measurements.metrics {
            let (last, most) =
                (values.last().copied().unwrap_or_default(), values.iter().copied().fold(0.0, f64::max));
            writeln!(out, "| `{name}` | {last:.0} | {most:.0} |")?;
        }
        Ok(())
    }

    fn logged(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "\n## Warnings and errors in the logs\n\n| line | times |\n|---|---|")?;
        let warnings = self.warnings();
        for (kind, count) in warnings.iter().take(WARNINGS_MAX) {
            writeln!(out, "| {} | {count} |", kind.replace('|', "\\|"))?;
        }
        let more = warnings.len().saturating_sub(WARNINGS_MAX);
        if more > 0 { writeln!(out, "| {more} other lines | |") } else { Ok(()) }
    }

    fn examples(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let violations = self.audit.violations.iter().map(ToString::to_string);
        let failures = self.answers.failures.iter().cloned();
        let rest = self.found.wrong.iter().chain(&self.stopped.unexpected_exits).cloned();
        for (title, examples) in [
            ("Violations", violations.take(EXAMPLES_MAX).collect::<Vec<_>>()),
            ("Searches that failed", failures.take(EXAMPLES_MAX).collect()),
            ("Missing, duplicated, exited", rest.take(EXAMPLES_MAX).collect()),
            ("Output of `crawler explain` for missing shops", self.found.explained.clone()),
        ] {
            if !examples.is_empty() {
                writeln!(out, "\n## {title}\n\n```\n{}\n```", examples.join("\n"))?;
            }
        }
        Ok(())
    }
}
