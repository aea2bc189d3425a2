//! The program `api`: flags in, the interface out.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use api::{ApiConfig, ApiSettings, App};
use clap::{ArgAction, Parser, ValueEnum};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// Serves search, sites and manifests as JSON and as pages.
#[derive(Debug, Parser)]
#[command(name = "api", version)]
struct Arguments {
    /// Where the data lives [default: ./agentdex-data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The database [default: SQLite in the data directory]
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,
    /// A configuration file in TOML; flags win over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How logs are written, to standard error
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// Fewer logs: errors only
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// More logs; twice for even more
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
    /// Where to listen [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// How the world reaches this interface, when that differs from --listen
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// The index [default: index in the data directory]
    #[arg(long, value_name = "DIR")]
    index_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    logs_to_stderr(&arguments);
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "the last word of a program that could not do its work")]
fn report(error: &anyhow::Error) {
    eprintln!("api: {error:#}");
}

fn logs_to_stderr(arguments: &Arguments) {
    let level = match (arguments.quiet, arguments.verbose) {
        (true, _) => "error",
        (false, 0) => "info",
        (false, 1) => "info,api=debug,indexer=debug,store=debug,tower_http=debug",
        (false, _) => "debug",
    };
    let logs = tracing_subscriber::fmt().with_env_filter(EnvFilter::new(level)).with_writer(std::io::stderr);
    match arguments.log_format {
        LogFormat::Text => logs.init(),
        LogFormat::Json => logs.json().init(),
    }
}

fn configured(arguments: Arguments) -> Result<ApiConfig, api::ConfigError> {
    let typed = ApiSettings {
        data_dir: arguments.data_dir,
        database_url: arguments.database_url,
        listen: arguments.listen,
        public_url: arguments.public_url,
        index_dir: arguments.index_dir,
    };
    match arguments.config {
        Some(path) => typed.or_file(&path)?.resolve(),
        None => typed.resolve(),
    }
}

fn run(arguments: Arguments) -> anyhow::Result<()> {
    let config = configured(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the threads of the interface could not be started")?;
    runtime.block_on(serve(config))
}

async fn serve(config: ApiConfig) -> anyhow::Result<()> {
    let listener = api::bind(&config).await?;
    let app = App::open(config).await?;
    let address = listener.local_addr().context("the address that was bound is not known")?;
    tracing::info!(%address, "serving");
    let cancel = CancellationToken::new();
    let serving = api::serve(listener, app, cancel.clone());
    tokio::pin!(serving);
    tokio::select! {
        served = &mut serving => return Ok(served?),
        () = asked_to_stop() => tracing::info!("stopping"),
    }
    cancel.cancel();
    Ok(serving.await?)
}

/// Ctrl-C, or SIGTERM as service managers send it.
async fn asked_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return tokio::signal::ctrl_c().await.unwrap_or_default();
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
