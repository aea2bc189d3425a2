//! Logs, to stderr: what a person should know by default, everything with `-vv`.

use tracing_subscriber::EnvFilter;

use super::flags::LogFormat;
use super::settings::Verbosity;

/// Starts logging; a second call in one process changes nothing.
pub fn start(format: LogFormat, verbosity: Verbosity) {
    let filter = match verbosity {
        Verbosity::Quiet => "error",
        Verbosity::Normal => "warn",
        Verbosity::Verbose => "info,sqlx=warn,hyper=warn,reqwest=warn",
        Verbosity::Everything => "debug,sqlx=warn,hyper=info,rustls=info,h2=info",
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_target(verbosity == Verbosity::Everything);
    let started = match format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().try_init(),
    };
    if let Err(error) = started {
        tracing::debug!(%error, "logging was started before");
    }
}
