//! Where log lines go: to stderr, as text or JSON, at a level that SIGHUP may change while the program runs. Where spans
//! go: into the lines that are written within them, and to a collector where the operator names one.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::panic::PanicHookInfo;
use std::sync::OnceLock;

use clap::ValueEnum;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use serde::Deserialize;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::TracesUrl;
use crate::lines::{self, Colours};

/// Our own crates, which speak at the level that was asked for; others at `warn` unless everything was.
const OUR_CRATES: [&str; 6] = ["agentdex", "api", "crawler", "indexer", "settings", "store"];
/// The MCP server warns about every mistake of a client, and about nothing that an operator could mend. What fails on our
/// side is logged by the tools.
const SILENCED: &str = "rmcp=off";

type Reload = Box<dyn Fn(LogLevel) -> Result<(), String> + Send + Sync>;
static RELOAD: OnceLock<Reload> = OnceLock::new();

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// How much is said.
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

    fn filter(self) -> EnvFilter {
        let level = self.as_str();
        EnvFilter::new(match self {
            Self::Trace => level.to_owned(),
            Self::Error => format!("{level},{SILENCED}"),
            _ => OUR_CRATES
                .iter()
                .fold(format!("warn,{SILENCED}"), |all, ours| format!("{all},{ours}={level}")),
        })
    }
}

/// What a program that ends has still to send. Keep it until then.
#[derive(Debug)]
#[must_use = "spans that were not sent are lost when it is dropped"]
pub struct Log(Option<SdkTracerProvider>);

impl Drop for Log {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.0.as_ref().map(SdkTracerProvider::shutdown) {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}

/// Starts the log of a program, and the sending of its spans where there is a collector; a second call in one process
/// changes nothing.
pub fn start(program: &'static str, format: LogFormat, level: LogLevel, traces: Option<&TracesUrl>) -> Log {
    let (filter, handle) = tracing_subscriber::reload::Layer::new(level.filter());
    let colours = colours(std::io::stderr().is_terminal(), std::env::var_os("NO_COLOR"));
    let lines = lines::layer(format, std::io::stderr, colours, level >= LogLevel::Debug).with_filter(filter);
    let (provider, failure) = match traces.map(|url| crate::traces::provider(program, url)) {
        Some(Ok(provider)) => (Some(provider), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    // the exporter's own client has spans too, which must not be sent in turn
    let ours = || Targets::new().with_targets(OUR_CRATES.map(|name| (name, Level::DEBUG)));
    let spans = provider.as_ref().map(|provider| {
        tracing_opentelemetry::layer().with_tracer(provider.tracer(program)).with_filter(ours())
    });
    match tracing_subscriber::registry().with(lines).with(spans).try_init() {
        Ok(()) => {
            let reload: Reload =
                Box::new(move |level| handle.reload(level.filter()).map_err(|error| error.to_string()));
            drop(RELOAD.set(reload));
        }
        Err(error) => tracing::debug!(%error, "logging was started before"),
    }
    if let Some(error) = failure {
        tracing::error!(error, "spans cannot be sent");
    }
    std::panic::set_hook(Box::new(log_panic));
    Log(provider)
}

/// Logs a panic as one line like any other. The hook of the standard library prints the message as it stands, and messages
/// quote what was read: line ends and escapes of terminals included.
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

/// Colours are for terminals, and for those who did not set `NO_COLOR` (no-color.org: any value but an empty one).
fn colours(is_terminal: bool, no_color: Option<OsString>) -> Colours {
    let is_wanted = no_color.is_none_or(|value| value.is_empty());
    if is_terminal && is_wanted { Colours::Shown } else { Colours::Left }
}

/// Changes how much is said from now on.
pub fn set_level(level: LogLevel) {
    let Some(reload) = RELOAD.get() else { return };
    match reload(level) {
        Ok(()) => tracing::warn!(level = level.as_str(), "the log level is set"),
        Err(error) => tracing::error!(error, "the log level cannot be changed"),
    }
}

/// Reads the settings again at every SIGHUP and takes the level from them; what is wrong then changes nothing. Other
/// settings wait for the next start.
pub async fn reload_on_hangup<E: std::fmt::Display>(read: impl Fn() -> Result<LogLevel, E>) -> Infallible {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return std::future::pending().await };
    while hangup.recv().await.is_some() {
        match read() {
            Ok(level) => set_level(level),
            Err(error) => tracing::error!(%error, "the settings cannot be used; everything stays as it is"),
        }
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        for (is_terminal, no_color, coloured) in
            [(true, None, true), (true, Some(""), true), (true, Some("1"), false), (false, None, false)]
        {
            let colours = colours(is_terminal, no_color.map(OsString::from));
            assert_eq!(colours == Colours::Shown, coloured, "{no_color:?}");
        }
    }

    #[test]
    fn libraries_stay_quiet_until_everything_is_asked_for() {
        assert!(LogLevel::Error.filter().to_string().contains("error"));
        assert_eq!(LogLevel::Trace.filter().to_string(), "trace");
        let debug = LogLevel::Debug.filter().to_string();
        assert!(debug.contains("crawler=debug") && debug.contains("warn"), "{debug}");
        for level in [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug] {
            assert!(level.filter().to_string().contains("rmcp=off"), "{level:?}");
        }
    }
}
