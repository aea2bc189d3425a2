//! Progress on stderr: a bar on a terminal, a line of the log every ten seconds elsewhere, with more fields in JSON, nothing with `-q`.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ::settings::escape;
use ::settings::log::LogFormat;
use indicatif::{ProgressBar, ProgressStyle};
use store::OUTAGE;
use tokio::time::Instant;

use super::progress::{Rate, Shown, sites};
use super::report::counted;
use super::settings::{SharedSettings, Verbosity};
use crate::config::Mode;
use crate::seeds::SeedReport;
use crate::worker::Progress;

/// The target of log lines about progress, which are shown wherever warnings are.
const PROGRESS: &str = "crawler::progress";
/// Interval of progress lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// How often the bar is drawn; its spinner shows that the program runs.
const TICK: Duration = Duration::from_millis(250);
/// Maximum number of skipped lines of the seed lists that are shown at the start.
const SKIPPED_MAX: usize = 3;
/// How long the bar shows the cause for which the whole crawl waits.
const NOTE_SHOWN: Duration = Duration::from_secs(3);
/// The bar before the sites are counted.
const SPINNER: &str = "{spinner} {elapsed_precise} {msg}";
/// The bar. It has two lines, so that the first fits into 80 columns.
const BAR: &str = "{spinner} {elapsed_precise} [{bar:20}] {pos} of {len} {prefix}\n  {msg}";

/// Shows a crawl's progress.
pub struct Watch {
    output: Output,
    /// Whether the crawl goes on after its pass.
    follows_pass: bool,
    state: Mutex<State>,
}

/// Where progress is shown.
enum Output {
    Bar(ProgressBar),
    Lines,
    Json,
    Nowhere,
}

/// State kept between two updates.
struct State {
    rate: Rate,
    /// When the last line was written. Initially the start, so that short crawls write none.
    written_at: Instant,
    /// The last line without its changing parts, if no visit was open. A line is not written if these are equal.
    written: Option<String>,
    /// The cause for which the whole crawl waits, and the start of the wait.
    note: Option<(String, Instant)>,
}

impl Watch {
    /// A bar on a terminal, lines elsewhere.
    pub fn new(settings: &SharedSettings) -> Self {
        let output = match (settings.verbosity, settings.log_format) {
            (Verbosity::Quiet, _) => Output::Nowhere,
            (_, LogFormat::Json) => Output::Json,
            (_, LogFormat::Text) if std::io::stderr().is_terminal() => Output::Bar(new_bar()),
            (_, LogFormat::Text) => Output::Lines,
        };
        Self::on(output)
    }

    /// Lines on a terminal too, for a crawl that goes on after its pass and is mostly idle.
    pub fn after_pass(settings: &SharedSettings) -> Self {
        let output = match (settings.verbosity, settings.log_format) {
            (Verbosity::Quiet, _) => Output::Nowhere,
            (_, LogFormat::Json) => Output::Json,
            (_, LogFormat::Text) => Output::Lines,
        };
        Self { follows_pass: true, ..Self::on(output) }
    }

    fn on(output: Output) -> Self {
        let (rate, written_at) = (Rate::default(), Instant::now());
        let state = State { rate, written_at, written: None, note: None };
        Self { output, follows_pass: false, state: Mutex::new(state) }
    }

    /// Shows one update.
    pub fn show(&self, update: &Progress<'_>) {
        match update {
            Progress::Seeding { seeds_read } => {
                if let Output::Bar(bar) = &self.output {
                    bar.set_message(format!("{} read", counted(*seeds_read, "seed")));
                }
            }
            Progress::Seeded { summary, mode } => {
                for line in &seeded(&summary.seeds, *mode) {
                    self.print(line);
                }
            }
            Progress::Scheduled { task, next } => {
                let times: Vec<String> =
                    next.iter().map(|at| at.format("%Y-%m-%d %H:%M UTC").to_string()).collect();
                self.print(&format!("{task}: next at {}", times.join(", ")));
            }
            Progress::State(state) => {
                let shown = self.lock().rate.shown(state, Instant::now());
                let shown = if OUTAGE.is_on() { shown.in_outage() } else { shown };
                self.draw(&if self.follows_pass { shown.since_pass() } else { shown });
            }
            Progress::Parked(parked) => {
                tracing::info!(site.name = %parked.site, reason = parked.reason, "parked");
            }
            Progress::Waiting { parked, next_at, until } => {
                self.note(format!(
                    "waiting for {}, the next at {}, until {} at most",
                    counted(*parked as u64, "parked visit"),
                    next_at.format("%H:%M:%S"),
                    until.format("%H:%M:%S UTC")
                ));
            }
            Progress::Held { sites, until } => {
                self.note(format!(
                    "{} held by another process, or by one that was killed: waiting until {} at most",
                    counted(*sites, "site"),
                    until.format("%H:%M:%S UTC")
                ));
            }
        }
    }

    /// Hides the bar while `print` writes to the terminal.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.output {
            Output::Bar(bar) => bar.suspend(print),
            Output::Lines | Output::Json | Output::Nowhere => print(),
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Output::Bar(bar) = &self.output {
            bar.finish_and_clear();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, text: String) {
        self.lock().note = Some((text, Instant::now()));
    }

    fn draw(&self, shown: &Shown) {
        let mut state = self.lock();
        let note =
            state.note.as_ref().filter(|(_, at)| at.elapsed() < NOTE_SHOWN).map(|(text, _)| text.clone());
        let details = note.map_or_else(|| shown.details(), |note| vec![note]);
        if let Output::Bar(bar) = &self.output {
            drop(state);
            if let (Some(known), Ok(style)) = (shown.sites_known, ProgressStyle::with_template(BAR)) {
                if bar.length() != Some(known) {
                    bar.set_style(style.progress_chars("=> "));
                    bar.set_length(known);
                }
                bar.set_position(shown.sites_done);
                bar.set_prefix(format!("{}, {}", sites(known), shown.pace()));
            }
            // lines that are longer than the terminal wrap
            let lines: Vec<_> = details.iter().map(|line| escape::line(line)).collect();
            bar.set_message(lines.join("\n  "));
            return;
        }
        let details = details.join("; ");
        if state.written_at.elapsed() < LINE_EVERY || !shown.has_begun() {
            return;
        }
        state.written_at = Instant::now();
        let news = shown.news(&details);
        let is_repeated = news.is_some() && state.written == news;
        state.written = news;
        if is_repeated {
            return;
        }
        drop(state);
        let line = format!("{}; {details}", shown.head());
        match &self.output {
            Output::Lines => tracing::info!(target: PROGRESS, "{line}"),
            Output::Json => tracing::info!(
                target: PROGRESS,
                sites_done = shown.sites_done,
                sites_known = shown.sites_known,
                requests_per_second = (shown.requests_per_second * 10.0).round() / 10.0,
                seconds_left = shown.time_left.map(|left| left.as_secs()),
                manifests = shown.manifests,
                ended = shown.ends,
                waiting = details,
                "crawling"
            ),
            Output::Bar(_) | Output::Nowhere => {}
        }
    }

    fn print(&self, text: &str) {
        match &self.output {
            Output::Bar(bar) => bar.println(escape::line(text)),
            Output::Lines | Output::Json => tracing::info!(target: PROGRESS, "{text}"),
            Output::Nowhere => {}
        }
    }
}

/// How many seeds were read. The summary of a pass lists the skipped lines. A daemon has no summary until it is stopped, so it lists the
/// first skipped lines at the start.
fn seeded(report: &SeedReport, mode: Mode) -> Vec<String> {
    let counts = report.counts();
    if mode != Mode::Daemon {
        let note = if report.rejected_count > 0 { "; the summary lists them" } else { "" };
        return vec![format!("{counts}{note}")];
    }
    let mut lines = vec![counts];
    lines.extend(report.rejected.iter().take(SKIPPED_MAX).map(|rejected| format!("  {rejected}")));
    let left = report.rejected_count.saturating_sub(lines.len() as u64 - 1);
    lines.extend((left > 0).then(|| format!("  and {left} more")));
    lines.extend(report.earlier_lists().map(|earlier| format!("  {earlier}")));
    lines
}

fn new_bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template(SPINNER) {
        bar.set_style(style);
    }
    bar.set_message("starting");
    bar.enable_steady_tick(TICK);
    bar
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;
    use crate::seeds::Rejected;
    use crate::worker::STATE_EVERY;

    #[test]
    fn shows_the_first_skipped_lines_at_the_start() {
        let rejected = |line| Rejected {
            source: "domains.txt".to_owned(),
            line,
            text: "not a domain".to_owned(),
            reason: "it is not a host name".to_owned(),
        };
        let report = SeedReport {
            read: 6,
            rejected_count: 5,
            rejected: (1..=5).map(rejected).collect(),
            ..SeedReport::default()
        };
        let lines = seeded(&report, Mode::Daemon);
        assert_eq!(
            lines[..2],
            ["6 seeds read, 5 lines skipped", "  domains.txt, line 1: it is not a host name"]
        );
        assert_eq!((lines.len(), lines[4].as_str()), (5, "  and 2 more"));
        let pass = Mode::Once { park_wait: Duration::ZERO, goes_on: false };
        assert_eq!(seeded(&report, pass), ["6 seeds read, 5 lines skipped; the summary lists them"]);
        let earlier = SeedReport { read: 1, sites_of_earlier_lists: 60, ..SeedReport::default() };
        assert_eq!(seeded(&earlier, pass), ["1 seed read"]);
        let note = "  60 sites of earlier lists are visited too; a crawl with --follow-seeds deletes what no list names";
        assert_eq!(seeded(&earlier, Mode::Daemon), ["1 seed read", note]);
    }

    /// A terminal that counts how often it is drawn.
    #[derive(Debug, Clone, Default)]
    struct CountingTerminal(Arc<AtomicUsize>);

    impl TermLike for CountingTerminal {
        fn width(&self) -> u16 {
            80
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, _: &str) -> io::Result<()> {
            Ok(())
        }

        fn write_str(&self, _: &str) -> io::Result<()> {
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    /// Without any news, too. Each second of the crawl brings a new state.
    #[tokio::test]
    async fn the_bar_moves_at_least_once_a_second() {
        let terminal = CountingTerminal::default();
        let bar = new_bar();
        bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(terminal.clone())));
        for second in 0..3 {
            let before = terminal.0.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(terminal.0.load(Ordering::Relaxed) > before, "it stands still in second {second}");
        }
        bar.finish_and_clear();
        assert!(TICK < STATE_EVERY && STATE_EVERY <= Duration::from_secs(1));
    }

    #[test]
    fn the_templates_of_the_bar_are_valid() {
        for template in [SPINNER, BAR] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
