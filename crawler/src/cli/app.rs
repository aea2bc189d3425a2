//! The program: parses, resolves and dispatches commands, and reports errors in one sentence.
//!
//! Exits with 0 when the pass is complete, regardless of the sites' responses; 1 on an error of the crawler; 2 on wrong usage.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use ::settings::SharedFlags;
use anyhow::Context;
use store::Store;
use tokio_util::task::TaskTracker;

use super::flags::Command;
use super::report::{self, Audience};
use super::settings::{Settings, Verbosity, log_level, resolve};
use super::watch::Watch;
use super::{commands, explain, paths, shown, status};
use crate::fleet::{Cancel, STOP_MAX};
use crate::output::{self, OutputFormat};
use crate::{CrawlError, UsageError};

/// The file in the data directory from which `api` serves the key directory.
const KEY_DIRECTORY: &str = "bot-keys.json";

/// Runs the program with its command line.
pub fn main() -> ExitCode {
    let flags = shown::parse();
    if matches!(flags.command, Some(Command::ReadDocument)) {
        return runtime::read_from_stdin();
    }
    match resolve(&flags.shared, &flags.crawl) {
        Ok(settings) => match work(flags.command, settings, flags.shared) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(&error),
        },
        Err(error) => complain(&error.into()),
    }
}

fn complain(error: &anyhow::Error) -> ExitCode {
    // a closed stderr cannot report anything
    drop(writeln!(std::io::stderr().lock(), "crawler: {}", ::settings::escape::line(&error.to_string())));
    let is_usage =
        error.is::<UsageError>() || error.downcast_ref::<CrawlError>().is_some_and(CrawlError::is_usage);
    ExitCode::from(if is_usage { 2 } else { 1 })
}

fn work(command: Option<Command>, settings: Settings, flags: SharedFlags) -> anyhow::Result<()> {
    let _log = settings.shared.start_logging("agentdex-crawler");
    let (runtime, _watchdog) = runtime::start()?;
    runtime.block_on(dispatch(command, settings, flags))
}

async fn dispatch(command: Option<Command>, settings: Settings, flags: SharedFlags) -> anyhow::Result<()> {
    if command.as_ref().is_some_and(Command::only_reads) {
        settings.shared.store.url.existing().map_err(|error| UsageError(error.to_string()))?;
    }
    if command.is_none() && !settings.dry_run {
        return crawl(settings, flags).await;
    }
    let store = Store::open(&settings.shared.store).await?;
    let done = match command {
        None => commands::dry_run(&settings, &store).await,
        Some(Command::Explain { domain, visits }) => {
            explain::run(&store, &domain, visits, settings.output).await
        }
        Some(Command::Check { domain }) => commands::check(settings, store.clone(), &domain).await,
        Some(Command::Block { domains, reason }) => commands::block(&store, &domains, &reason).await,
        Some(Command::Unblock { domains }) => commands::unblock(&store, &domains).await,
        Some(Command::Status) => status::run(&store, settings.output).await,
        Some(Command::Paths) => paths::run(&store, settings.output).await,
        Some(Command::Keys) => commands::keys(&settings),
        // this command needs neither settings nor a database: see `main`
        Some(Command::ReadDocument) => Ok(()),
    };
    store.close().await;
    done
}

/// Opens the database, waiting while it is unavailable, and crawls until the pass is complete or a signal arrives.
async fn crawl(settings: Settings, flags: SharedFlags) -> anyhow::Result<()> {
    warn_without_contact(&settings);
    let cancel = Cancel::on_signals(STOP_MAX)?;
    let tracker = TaskTracker::new();
    tracker.spawn(::settings::log::reload_on_hangup(move || log_level(&flags)));
    let opening = Store::open_when_available(&settings.shared.store);
    let Some(opened) = cancel.soft.run_until_cancelled(opening).await else { return Ok(()) };
    let store = opened?;
    let crawled = crawl_with(settings, &store, cancel, &tracker).await;
    store.close().await;
    crawled
}

async fn crawl_with(
    settings: Settings,
    store: &Store,
    cancel: Cancel,
    tracker: &TaskTracker,
) -> anyhow::Result<()> {
    if let Some(address) = settings.metrics {
        crate::serve_metrics(address, tracker, cancel.hard.clone()).map_err(UsageError)?;
    }
    if let Some(signer) = &settings.crawl.egress.signer {
        let path = settings.shared.data_dir.join(KEY_DIRECTORY);
        std::fs::create_dir_all(&settings.shared.data_dir)?;
        std::fs::write(&path, signer.directory().to_string())
            .with_context(|| format!("cannot write the key directory to {}", path.display()))?;
    }
    let watch = Watch::new(settings.shared.verbosity);
    let output = settings.output;
    let data_dir = settings.shared.data_dir.display().to_string();
    let ran = crate::run(settings.crawl, store.clone(), cancel, |update| watch.show(&update)).await;
    watch.finish();
    let summary = ran?;
    match output {
        OutputFormat::Json => output::json(&summary)?,
        OutputFormat::Text => {
            let audience = if std::io::stdout().is_terminal() { Audience::Terminal } else { Audience::Pipe };
            let next = format!("indexer --once --data-dir {data_dir} && api --data-dir {data_dir}");
            output::text(&report::text(&summary, audience, &next))?;
        }
    }
    anyhow::ensure!(
        summary.failed == 0,
        "{} visits failed because of an error in this crawler; the log has the reason",
        summary.failed
    );
    Ok(())
}

fn warn_without_contact(settings: &Settings) {
    if settings.contact.is_missing() && settings.shared.verbosity != Verbosity::Quiet {
        tracing::warn!("site owners cannot reach you: add --contact-url or --contact-email");
    }
}
