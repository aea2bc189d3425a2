//! The log: lines of text or JSON on stderr, at a level that SIGHUP may change. Each line contains its spans. Spans are also sent to a
//! collector if the operator names one.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::panic::PanicHookInfo;
use std::sync::{Mutex, OnceLock, PoisonError};

use clap::ValueEnum;
use serde::Deserialize;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::TracesUrl;
use crate::escape;
pub use crate::lines::LogFormat;
use crate::lines::{self, Colours};
#[cfg(feature = "opentelemetry")]
use crate::spans::Exporter;
#[cfg(not(feature = "opentelemetry"))]
use crate::spans_left_out::Exporter;

/// The crates of agentdex, which log at the configured level. Other crates log at `warn`, unless the level is `trace`.
const OWN_CRATES: [&str; 6] = ["agentdex", "api", "crawler", "indexer", "settings", "store"];
/// The target of the line about a changed level.
const LEVEL: &str = "settings::level";
/// Lines about the progress of a crawl, about the end of an outage or of the failures of a task and about the level, which are wanted wherever warnings are.
const WANTED: &str = "crawler::progress=info,settings::level=info,store::outage=info,store::tasks=info";
/// Targets that are not logged. The MCP library warns only about mistakes of clients, which operators cannot correct; the tools log their
/// own failures. PostgreSQL's notices repeat the errors of statements without their context.
const SILENCED: &str = "rmcp=off,sqlx::postgres::notice=off";

type Reload = Box<dyn Fn(LogLevel) -> Result<(), String> + Send + Sync>;
/// The current level, and what changes it.
static RELOAD: OnceLock<(Mutex<LogLevel>, Reload)> = OnceLock::new();

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    /// The next more verbose level, or the same level if there is none.
    pub(crate) const fn next(self) -> Self {
        match self {
            Self::Error => Self::Warn,
            Self::Warn => Self::Info,
            Self::Info => Self::Debug,
            Self::Debug | Self::Trace => Self::Trace,
        }
    }

    fn filter(self) -> EnvFilter {
        let level = self.as_str();
        EnvFilter::new(match self {
            Self::Trace => level.to_owned(),
            Self::Error => format!("{level},{SILENCED}"),
            _ => OWN_CRATES
                .iter()
                .fold(format!("warn,{SILENCED},{WANTED}"), |all, own| format!("{all},{own}={level}")),
        })
    }
}

/// Writes the error that ends a program to stderr, in the format of its log.
pub fn report(program: &'static str, format: LogFormat, error: &str) {
    match format {
        // a closed stderr cannot report anything
        LogFormat::Text => {
            drop(writeln!(std::io::stderr().lock(), "{program}: {}", escape::lines(error)));
        }
        LogFormat::Json => {
            let _log = start(program, format, LogLevel::Error, None);
            tracing::error!("{error}");
        }
    }
}

/// Keeps the log open. Dropping it sends the remaining spans, so keep it until the program ends.
#[derive(Debug)]
#[must_use = "dropping it ends the sending of spans"]
pub struct Log {
    _exporter: Option<Exporter>,
}

/// Starts the log of a program, and the sending of its spans if there is a collector. Later calls in the same process have
/// no effect.
pub fn start(program: &'static str, format: LogFormat, level: LogLevel, traces: Option<&TracesUrl>) -> Log {
    let (filter, handle) = tracing_subscriber::reload::Layer::new(level.filter());
    let colours = colours(std::io::stderr().is_terminal(), std::env::var_os("NO_COLOR"));
    let lines = lines::layer(format, std::io::stderr, colours, level >= LogLevel::Debug).with_filter(filter);
    let (exporter, failure) = match traces.map(|url| Exporter::start(program, url)) {
        Some(Ok(exporter)) => (Some(exporter), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    // the HTTP client of the exporter also creates spans, which must not be exported
    let own_crates = || Targets::new().with_targets(OWN_CRATES.map(|name| (name, Level::DEBUG)));
    let spans = exporter.as_ref().map(|exporter| exporter.layer().with_filter(own_crates()));
    match tracing_subscriber::registry().with(lines).with(spans).try_init() {
        Ok(()) => {
            let reload: Reload =
                Box::new(move |level| handle.reload(level.filter()).map_err(|error| error.to_string()));
            drop(RELOAD.set((Mutex::new(level), reload)));
        }
        Err(error) => tracing::debug!(%error, "logging was started before"),
    }
    if let Some(error) = failure {
        tracing::error!(error, "spans cannot be sent");
    }
    std::panic::set_hook(Box::new(log_panic));
    Log { _exporter: exporter }
}

/// Logs a panic as one line. The default hook does not escape messages, which may quote documents.
fn log_panic(info: &PanicHookInfo<'_>) {
    let message = info.payload_as_str().unwrap_or("the panic has no message");
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed");
    tracing::error!(
        panic.message = message,
        panic.location = location,
        thread.name = name,
        "a thread panicked"
    );
}

/// Colours are used on terminals, unless `NO_COLOR` has a value that is not empty (no-color.org).
fn colours(is_terminal: bool, no_color: Option<OsString>) -> Colours {
    let is_allowed = no_color.is_none_or(|value| value.is_empty());
    if is_terminal && is_allowed { Colours::Shown } else { Colours::Hidden }
}

/// Changes the level of the running program.
fn set_level(level: LogLevel) {
    let Some((current, reload)) = RELOAD.get() else { return };
    let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
    if *current == level {
        tracing::info!(target: LEVEL, "the settings were read again; the log level has not changed");
        return;
    }
    match reload(level) {
        Ok(()) => {
            *current = level;
            tracing::info!(target: LEVEL, level = level.as_str(), "the log level is set");
        }
        Err(error) => tracing::error!(error, "the log level cannot be changed"),
    }
}

/// The reaction of a program to SIGHUP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hangup {
    /// The terminal of the program was closed, so the program stops as after SIGTERM.
    Stop,
    /// A service manager requests that the program reads the settings again.
    Reload,
}

impl Hangup {
    /// A program that was started in a terminal stops when the terminal is closed.
    const fn of(is_stdin_terminal: bool, is_stderr_terminal: bool) -> Self {
        if is_stdin_terminal || is_stderr_terminal { Self::Stop } else { Self::Reload }
    }
}

/// Reads the settings at every SIGHUP and sets the level from them. Invalid settings change nothing. Changes of other settings need a
/// restart. A program that was started in a terminal stops instead: it receives the signal when the terminal is closed.
pub async fn reload_on_hangup<E: std::fmt::Display>(read: impl Fn() -> Result<LogLevel, E>) -> Infallible {
    use tokio::signal::unix::{SignalKind, signal};
    // check this at the start, because a closed terminal is no longer recognised as one
    let asks = Hangup::of(std::io::stdin().is_terminal(), std::io::stderr().is_terminal());
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return std::future::pending().await };
    while hangup.recv().await.is_some() {
        if asks == Hangup::Stop {
            // raise SIGTERM, which all programs that call this function handle
            drop(signal_hook::low_level::raise(signal_hook::consts::SIGTERM));
            continue;
        }
        match read() {
            Ok(level) => set_level(level),
            Err(error) => tracing::error!(%error, "the settings are invalid; nothing was changed"),
        }
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_colours_on_terminals_without_no_color() {
        for (is_terminal, no_color, coloured) in
            [(true, None, true), (true, Some(""), true), (true, Some("1"), false), (false, None, false)]
        {
            let colours = colours(is_terminal, no_color.map(OsString::from));
            assert_eq!(colours == Colours::Shown, coloured, "{no_color:?}");
        }
    }

    #[test]
    fn a_hangup_stops_programs_of_a_terminal_and_reloads_services() {
        assert_eq!(Hangup::of(false, false), Hangup::Reload);
        for (stdin, stderr) in [(true, true), (true, false), (false, true)] {
            assert_eq!(Hangup::of(stdin, stderr), Hangup::Stop, "{stdin} {stderr}");
        }
    }

    #[test]
    fn libraries_log_warnings_only_below_trace() {
        assert!(LogLevel::Error.filter().to_string().contains("error"));
        assert_eq!(LogLevel::Trace.filter().to_string(), "trace");
        let debug = LogLevel::Debug.filter().to_string();
        assert!(debug.contains("crawler=debug") && debug.contains("warn"), "{debug}");
        for level in [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug] {
            for silenced in ["rmcp=off", "sqlx::postgres::notice=off"] {
                assert!(level.filter().to_string().contains(silenced), "{level:?}");
            }
        }
    }
}
