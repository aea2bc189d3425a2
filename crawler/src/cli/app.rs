//! The program: parses, resolves and dispatches commands, and reports errors in one sentence.
//!
//! `settings::exit` defines the exit codes.

use std::io::IsTerminal;
use std::process::ExitCode;

use ::settings::command_line::with_flags;
use ::settings::log::LogFormat;
use ::settings::{SharedFlags, exit};
use anyhow::Context;
use store::{Store, StoreError};
use tokio_util::task::TaskTracker;

use super::flags::{Command, DatabaseUse};
use super::report::{self, Audience};
use super::settings::{Settings, log_level, resolve};
use super::watch::Watch;
use super::{check, commands, explain, paths, reader_keys, shown, status};
use crate::config::Mode;
use crate::output::{self, OutputFormat};
use crate::worker::{Cancel, STOP_MAX};
use crate::{CrawlError, UsageError};

/// The file in the data directory from which `api` serves the key directory.
const KEY_DIRECTORY: &str = "bot-keys.json";

/// Runs the program with its command line.
pub fn main() -> ExitCode {
    let flags = shown::parse();
    if matches!(flags.command, Some(Command::ReadDocument)) {
        return runtime::read_from_stdin();
    }
    let mut format = flags.shared.log_format.unwrap_or_default();
    let resolved = resolve(&flags.shared, &flags.crawl).map_err(anyhow::Error::from);
    let note = flags.shared.variable_note();
    let location = flags.shared.location(store::url_to_type);
    let done = resolved.and_then(|settings| {
        format = settings.shared.log_format;
        work(flags.command, settings, flags.shared)
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => report_error(&error, note, format, &location),
    }
}

/// Reports the error that ends the program. `note` is added to the hint about a missing database, and `location` to commands.
fn report_error(error: &anyhow::Error, note: Option<&str>, format: LogFormat, location: &str) -> ExitCode {
    let is_missing = error.downcast_ref::<StoreError>().is_some_and(StoreError::is_missing);
    let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
    let hint = if is_missing {
        format!(": `crawler --seeds FILE --contact-email YOU`{note}")
    } else {
        String::new()
    };
    ::settings::log::report("crawler", format, &with_flags(&format!("{error}{hint}"), location));
    ExitCode::from(if is_usage(error) { exit::USAGE } else { exit::FAILURE })
}

/// Whether the reader of standard output, such as `head`, has stopped reading.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Whether the command line or the settings are wrong, for example because they name a database that does not exist.
pub fn is_usage(error: &anyhow::Error) -> bool {
    error.is::<UsageError>()
        || error.downcast_ref::<CrawlError>().is_some_and(CrawlError::is_usage)
        || error.downcast_ref::<StoreError>().is_some_and(StoreError::is_missing)
}

fn work(command: Option<Command>, settings: Settings, flags: SharedFlags) -> anyhow::Result<()> {
    let _log = settings.shared.start_logging("agentdex-crawler");
    let (runtime, _watchdog) = runtime::start()?;
    runtime.block_on(dispatch(command, settings, flags))
}

async fn dispatch(command: Option<Command>, settings: Settings, flags: SharedFlags) -> anyhow::Result<()> {
    if let Some(command) = command {
        return perform(command, settings).await;
    }
    let settings = if settings.crawl.mode == Mode::Daemon { settings } else { settings.single_pass()? };
    if settings.dry_run { commands::dry_run(&settings).await } else { crawl(settings, flags).await }
}

/// Performs a subcommand.
///
/// # Errors
///
/// If the arguments are wrong, the database cannot be used, or the subcommand fails.
pub async fn perform(command: Command, settings: Settings) -> anyhow::Result<()> {
    commands::check_names(&command, &settings)?;
    let config = &settings.shared.store;
    let store = match command.database() {
        DatabaseUse::None => return without_database(&command, &settings),
        DatabaseUse::Existing => Store::open_existing(config).await?,
        DatabaseUse::New => Store::open(config).await?,
    };
    let (database, output) = (config.url.absolute(), settings.output);
    let location = settings.shared.location.clone();
    let done = match command {
        Command::Explain { domain, visits } => explain::run(&store, &domain, visits, output).await,
        Command::Check { domain } => check::check(settings, store.clone(), &domain).await,
        Command::Block { domains, reason } => commands::block(&store, &database, &domains, &reason).await,
        Command::Unblock { domains } => commands::unblock(&store, &database, &domains, &location).await,
        Command::Suspend { domains, reason, note, places } => {
            commands::suspend(&store, &database, &domains, (reason, &note, places)).await
        }
        Command::Unsuspend { domains } => commands::unsuspend(&store, &database, &domains, &location).await,
        Command::Status => status::run(&store, &database, output).await,
        Command::Paths => paths::run(&store, output).await,
        Command::Keys { command: Some(command) } => {
            reader_keys::run(&store, &command, output, &location).await
        }
        Command::Keys { command: None } | Command::ReadDocument => Ok(()),
    };
    store.close().await;
    done
}

fn without_database(command: &Command, settings: &Settings) -> anyhow::Result<()> {
    // `main` handles `ReadDocument` before the settings are parsed
    if matches!(command, Command::Keys { command: None }) { commands::keys(settings) } else { Ok(()) }
}

/// Opens the database, waiting while it is unavailable, and crawls until the pass is complete or a signal arrives.
async fn crawl(settings: Settings, flags: SharedFlags) -> anyhow::Result<()> {
    check_seeds(&settings).await?;
    settings.warn_about_contact();
    let cancel = Cancel::on_signals(STOP_MAX)?;
    let tracker = TaskTracker::new();
    tracker.spawn(::settings::log::reload_on_hangup(move || log_level(&flags)));
    let opening = Store::open_when_available(&settings.shared.store);
    let Some(opened) = cancel.soft.run_until_cancelled(opening).await else {
        tracing::warn!("stopped before the database could be opened");
        return Ok(());
    };
    let store = opened?;
    let crawled = crawl_with(settings, &store, cancel, &tracker).await;
    store.close().await;
    crawled
}

/// Checks each source of seeds before anything is created or listed.
pub(super) fn check_sources(settings: &Settings) -> Result<(), CrawlError> {
    let scope = settings.crawl.egress.own_networks.site_scope();
    Ok(settings.crawl.seeds.iter().try_for_each(|source| source.check_usable(scope))?)
}

/// Checks that there are seeds before anything is created. Without seeds, only the sites of an earlier crawl can be visited.
async fn check_seeds(settings: &Settings) -> Result<(), CrawlError> {
    check_sources(settings)?;
    if settings.crawl.seeds.is_empty() {
        let schema = Store::existing_schema(&settings.shared.store).await;
        if schema.is_err_and(|error| error.is_missing()) {
            return Err(CrawlError::NoSites);
        }
    }
    Ok(())
}

async fn crawl_with(
    settings: Settings,
    store: &Store,
    cancel: Cancel,
    tracker: &TaskTracker,
) -> anyhow::Result<()> {
    if let Some(address) = settings.metrics {
        crate::metrics::serve(address, tracker, cancel.hard.clone())
            .map_err(|error| UsageError(error.to_string()))?;
    }
    if let Some(signer) = &settings.crawl.egress.signer {
        let path = settings.shared.data_dir.join(KEY_DIRECTORY);
        std::fs::create_dir_all(&settings.shared.data_dir)?;
        std::fs::write(&path, signer.directory().to_string())
            .with_context(|| format!("cannot write the key directory to {}", path.display()))?;
    }
    let watch = Watch::new(&settings.shared);
    let output = settings.output;
    let location = settings.shared.location.clone();
    let ran = crate::run(settings.crawl, store.clone(), cancel, &|update| watch.show(&update)).await;
    watch.finish();
    let summary = ran?;
    match output {
        OutputFormat::Json => output::json(&summary)?,
        OutputFormat::Text => {
            let audience = if std::io::stdout().is_terminal() { Audience::Terminal } else { Audience::Pipe };
            let next = format!("indexer --once{location} && api{location}");
            output::text(&with_flags(&report::text(&summary, audience, &next), &location))?;
        }
    }
    anyhow::ensure!(
        summary.failed == 0,
        "{} visits failed because of an error in this crawler; the log has the reason",
        summary.failed
    );
    Ok(())
}
