//! Where log lines go: to stderr, as text or JSON, at a level that SIGHUP may change while the program runs.

use std::convert::Infallible;
use std::sync::OnceLock;

use clap::ValueEnum;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Our own crates, which speak at the level that was asked for; others at `warn` unless everything was.
const OUR_CRATES: [&str; 6] = ["agentdex", "api", "crawler", "indexer", "settings", "store"];

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
            Self::Error | Self::Trace => level.to_owned(),
            _ => OUR_CRATES.iter().fold("warn".to_owned(), |all, ours| format!("{all},{ours}={level}")),
        })
    }
}

/// Starts the log; a second call in one process changes nothing.
pub fn start(format: LogFormat, level: LogLevel) {
    let (filter, handle) = tracing_subscriber::reload::Layer::new(level.filter());
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(level >= LogLevel::Debug);
    let registry = tracing_subscriber::registry().with(filter);
    let started = match format {
        LogFormat::Text => registry.with(lines).try_init(),
        LogFormat::Json => registry.with(lines.json()).try_init(),
    };
    match started {
        Ok(()) => {
            let reload: Reload =
                Box::new(move |level| handle.reload(level.filter()).map_err(|error| error.to_string()));
            drop(RELOAD.set(reload));
        }
        Err(error) => tracing::debug!(%error, "logging was started before"),
    }
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
    fn libraries_stay_quiet_until_everything_is_asked_for() {
        assert_eq!(LogLevel::Error.filter().to_string(), "error");
        assert_eq!(LogLevel::Trace.filter().to_string(), "trace");
        let debug = LogLevel::Debug.filter().to_string();
        assert!(debug.contains("crawler=debug") && debug.contains("warn"), "{debug}");
    }
}
