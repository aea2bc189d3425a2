//! Progress on stderr: a bar on a terminal, a line every few seconds elsewhere, nothing with `-q`.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ::settings::escape;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::report::counted;
use super::settings::Verbosity;
use crate::fleet::Progress;
use crate::summary::Summary;

/// Interval of progress lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows a crawl's progress.
pub struct Watch {
    bar: Option<ProgressBar>,
    /// When the last line was written; short crawls need none.
    lines: Option<Mutex<Instant>>,
}

impl Watch {
    /// A bar on a terminal, lines elsewhere.
    pub fn new(verbosity: Verbosity) -> Self {
        if verbosity == Verbosity::Quiet {
            return Self { bar: None, lines: None };
        }
        if !std::io::stderr().is_terminal() {
            return Self { bar: None, lines: Some(Mutex::new(Instant::now())) };
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar: Some(bar), lines: None }
    }

    /// Shows one update.
    pub fn show(&self, update: &Progress<'_>) {
        match update {
            Progress::Seeding { seeds_read } => {
                self.tick(&format!("{} read", counted(*seeds_read, "seed")));
            }
            Progress::Seeded(summary) => self.say(&format!(
                "{} read, {} skipped",
                counted(summary.seeds.read, "seed"),
                counted(summary.seeds.rejected_count, "line")
            )),
            Progress::Scheduled { task, next } => {
                let times: Vec<String> =
                    next.iter().map(|at| at.format("%Y-%m-%d %H:%M UTC").to_string()).collect();
                self.say(&format!("{task}: next at {}", times.join(", ")));
            }
            Progress::Visited { summary, open, .. } => self.tick(&line_of(summary, *open)),
            Progress::Parked(parked) => {
                tracing::info!(site.name = %parked.site, reason = parked.reason, "parked");
            }
            Progress::Waiting { parked, until } => {
                self.tick(&format!(
                    "waiting for {parked} parked visits, until {}",
                    until.format("%H:%M:%S UTC")
                ));
            }
            Progress::Held { sites, until } => {
                self.tick(&format!(
                    "{sites} sites are held by another process, or by one that was killed: waiting until {} at most",
                    until.format("%H:%M:%S UTC")
                ));
            }
            Progress::Outage(error) => self.say(&format!("the crawl waits for the database: {error}")),
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn tick(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(text.to_owned());
        }
        let Some(last) = &self.lines else { return };
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= LINE_EVERY {
            *last = Instant::now();
            write_line(text);
        }
    }

    fn say(&self, text: &str) {
        match (&self.bar, &self.lines) {
            (Some(bar), _) => bar.println(escape::line(text)),
            (None, Some(_)) => write_line(text),
            (None, None) => {}
        }
    }
}

fn line_of(summary: &Summary, open: usize) -> String {
    let manifests: u64 = summary.manifests.values().sum();
    format!(
        "{} visited, {}, {}, {} open",
        counted(summary.sites_visited, "site"),
        counted(summary.requests, "request"),
        counted(manifests, "manifest"),
        counted(open as u64, "visit")
    )
}

/// Errors of writing a progress line are ignored.
fn write_line(text: &str) {
    drop(writeln!(std::io::stderr().lock(), "{}", escape::line(text)));
}
