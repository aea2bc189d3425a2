//! The program `api`.

use std::process::ExitCode;
use std::sync::OnceLock;

use anyhow::Context;
use indexer::cli::ReaderFlags;
use runtime::{ReaderProgram, Shutdown};
use settings::command_line::with_flags;
use settings::log::{Log, LogLevel};
use settings::{SharedFlags, exit};
use store::DatabaseUrl;
use tokio_util::sync::CancellationToken;

use crate::cli::{Arguments, Command};
use crate::state::App;
use crate::{ApiConfig, ApiSettings};

/// Runs the program with its command line.
pub fn main() -> ExitCode {
    let arguments: Arguments = settings::command_line::parse();
    if matches!(arguments.command, Some(Command::ReadDocument)) {
        return runtime::read_from_stdin();
    }
    let flags = &arguments.reader.shared;
    let (config, _log) = match configured(&arguments) {
        Ok(configured) => configured,
        Err(error) => return failed(&error, flags, exit::USAGE),
    };
    match run(config, &arguments.reader) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, flags, exit::FAILURE),
    }
}

fn failed(error: &anyhow::Error, flags: &SharedFlags, code: u8) -> ExitCode {
    let message = with_flags(&error.to_string(), &flags.location(store::url_to_type));
    settings::log::report("api", flags.log_format.unwrap_or_default(), &message);
    ExitCode::from(code)
}

fn configured(arguments: &Arguments) -> anyhow::Result<(ApiConfig, Log)> {
    let mut shared = arguments.reader.settings()?;
    let log = shared.start_logging("agentdex-api");
    let embedder = shared.open_embedder()?;
    shared.open_cluster()?;
    let typed = ApiSettings {
        listen: arguments.listen.clone(),
        public_url: arguments.public_url.clone(),
        primary_url: arguments.primary_url.clone(),
        index_from: arguments.index_from.clone(),
        trusted_proxies: arguments.trusted_proxies.clone(),
        admin_tokens: arguments.admin_tokens.clone(),
        feedback: arguments.feedback,
        ..ApiSettings::default()
    };
    let config = typed.or_file(arguments.reader.shared.config.as_deref())?.resolve(shared)?;
    check_database_of_replica(&config)?;
    let reader = Some(ReaderProgram::this_program()?);
    Ok((ApiConfig { embedder, reader, ..config }, log))
}

/// A replica reads the database of the indexer whose snapshots it serves: an empty one would have another feed.
fn check_database_of_replica(config: &ApiConfig) -> anyhow::Result<()> {
    match &config.database.url {
        DatabaseUrl::Sqlite(path) if config.index_from.is_some() && !path.exists() => anyhow::bail!(
            "there is no database at {}: with --index-from, name the database of the indexer that publishes the snapshots with \
             --database-url, DATABASE_URL or database_url_file",
            path.display()
        ),
        DatabaseUrl::Sqlite(_) | DatabaseUrl::Postgres(_) => Ok(()),
    }
}

fn run(config: ApiConfig, flags: &ReaderFlags) -> anyhow::Result<()> {
    let shutdown = Shutdown::on_signals(crate::STOP_MAX).context("signal handlers cannot be installed")?;
    let (runtime, watchdog) = runtime::start().context("the threads of the API could not be started")?;
    let config = ApiConfig { runtime_health: watchdog.health(), ..config };
    let opened = OnceLock::new();
    runtime.block_on(async {
        tokio::select! {
            served = serve(config, &opened, shutdown.soft) => served,
            never = settings::log::reload_on_hangup(|| reload(flags, opened.get())) => match never {},
        }
    })
}

/// Reloads the settings that can change at run time; invalid settings change nothing.
fn reload(flags: &ReaderFlags, app: Option<&App>) -> anyhow::Result<LogLevel> {
    let shared = flags.settings()?;
    let level = shared.log_level;
    let config = ApiSettings::default().or_file(flags.shared.config.as_deref())?.resolve(shared)?;
    if let Some(app) = app {
        app.set_limits(config.limits);
    }
    Ok(level)
}

async fn serve(config: ApiConfig, opened: &OnceLock<App>, stop: CancellationToken) -> anyhow::Result<()> {
    let (listener, config) = crate::bind(config).await?;
    indexer::cli::announce_new_database(&config.database.url);
    let app = tokio::select! {
        opened = App::open(config) => opened?,
        () = stop.cancelled() => {
            tracing::info!("stopped before the database could be opened");
            return Ok(());
        }
    };
    let app = opened.get_or_init(|| app).clone();
    tracing::info!("serving on http://{}", app.config.listen);
    Ok(crate::serve(listener, app, stop).await?)
}
