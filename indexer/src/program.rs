//! The program `indexer`: parses the command line, runs, and prints the error if it fails.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use runtime::Shutdown;
use settings::command_line::with_flags;
use settings::{SharedFlags, exit};
use store::{BackgroundTask, Store, TaskMonitor};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cli::{Arguments, Command, Settings};
use crate::examples::Examples;
use crate::follow::{self, Mode, Summary};
use crate::metrics;
use crate::snapshot::{self, PublishOutcome, SnapshotStorage};
use crate::vectors::{self, Embedder};

/// Maximum time from the first signal to the exit, for the current commit and the last snapshot.
const STOP_MAX: Duration = Duration::from_secs(50);

/// Runs the program with its command line.
pub fn main() -> ExitCode {
    let arguments: Arguments = settings::command_line::parse();
    let flags = &arguments.reader.shared;
    let mut settings = match arguments.reader.settings() {
        Ok(settings) => settings,
        Err(error) => return fail(&error, flags, exit::USAGE),
    };
    let _log = settings.start_logging("agentdex-indexer");
    let embedder = match settings.open_embedder() {
        Ok(embedder) => embedder,
        Err(error) => return fail(&error, flags, exit::USAGE),
    };
    if let Err(error) = settings.open_cluster() {
        return fail(&error, flags, exit::USAGE);
    }
    let publishes = arguments.publish.is_some() || settings.publish.is_some();
    if publishes && let Err(error) = settings.refuse_cluster_with_snapshots() {
        return fail(&error, flags, exit::USAGE);
    }
    if let Some(file) = arguments.examples.as_ref().or(settings.examples.as_ref()) {
        match Examples::read(file) {
            Ok(examples) => settings.index.examples = Arc::new(examples),
            Err(error) => return fail(&error, flags, exit::USAGE),
        }
    }
    let started = Shutdown::on_signals(STOP_MAX).and_then(|shutdown| Ok((shutdown, runtime::start()?)));
    let outcome = started.context("cannot start").and_then(|(shutdown, (runtime, _watchdog))| {
        runtime.block_on(async {
            tokio::select! {
                done = run(&arguments, settings, embedder, &shutdown) => done,
                never = settings::log::reload_on_hangup(|| arguments.reader.log_level()) => match never {},
            }
        })
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error.as_ref(), flags, exit::FAILURE),
    }
}

fn fail(error: &dyn std::error::Error, flags: &SharedFlags, code: u8) -> ExitCode {
    let message = with_flags(&error.to_string(), &flags.location(store::url_to_type));
    settings::log::report("indexer", flags.log_format.unwrap_or_default(), &message);
    ExitCode::from(code)
}

/// Runs until the work is done or a signal stops it, and ends the tasks that it started: their calls need the async runtime.
async fn run(
    arguments: &Arguments,
    settings: Settings,
    embedder: Option<Arc<dyn Embedder>>,
    shutdown: &Shutdown,
) -> anyhow::Result<()> {
    let background = TaskTracker::new();
    let calls = CancellationToken::new();
    let done = index(arguments, settings, embedder, shutdown, &background, &calls).await;
    shutdown.soft.cancel();
    calls.cancel();
    background.close();
    background.wait().await;
    done
}

/// `calls` ends the calls to the storage of snapshots.
async fn index(
    arguments: &Arguments,
    settings: Settings,
    embedder: Option<Arc<dyn Embedder>>,
    Shutdown { soft: cancel, hard }: &Shutdown,
    background: &TaskTracker,
    calls: &CancellationToken,
) -> anyhow::Result<()> {
    let publish_to = arguments.publish.clone().or_else(|| settings.publish.clone());
    // The last snapshot is published after the signal, which does not cancel its calls.
    let publish_to = publish_to.map(|location| location.open(calls.clone())).transpose()?;
    let publish_to: Option<Arc<dyn SnapshotStorage>> = publish_to.map(Arc::from);
    let index_dir = settings.index.dir.clone();
    if let Some(address) = arguments.metrics.or(settings.metrics) {
        metrics::serve(address, background, cancel.clone())?;
    }
    crate::cli::announce_new_database(&settings.store.url);
    let store = tokio::select! {
        opened = Store::open_when_available(&settings.store) => opened?,
        () = cancel.cancelled() => {
            tracing::info!("stopped before the database could be opened");
            return Ok(());
        }
    };
    let monitor = |task| Arc::new(TaskMonitor::new(store.clone(), task));
    let (publishing, embedding) =
        (monitor(BackgroundTask::PublishSnapshots), monitor(BackgroundTask::Vectors));
    let work = async {
        match arguments.command {
            Some(Command::Rebuild) => follow::rebuild(store, settings.index).await,
            None => follow::run(store, settings.index, cancel.clone(), arguments.mode()).await,
        }
    };
    let is_following = arguments.command.is_none() && matches!(arguments.mode(), Mode::Follow);
    if let (Some(to), true) = (&publish_to, is_following) {
        let (to, monitor) = (Arc::clone(to), Arc::clone(&publishing));
        background.spawn(snapshot::keep_publishing(index_dir.clone(), to, monitor, cancel.clone()));
    }
    if let (Some(embedder), true) = (&embedder, is_following) {
        let embedder = Arc::clone(embedder);
        background.spawn(vectors::keep_current(index_dir.clone(), embedder, embedding, cancel.clone()));
    }
    background.close();
    tokio::pin!(work);
    let summary = tokio::select! {
        summary = &mut work => summary?,
        () = cancel.cancelled(), if arguments.command.is_some() => {
            anyhow::bail!("stopped before the new index was complete; the old one is still served")
        }
        // A second signal does not wait for the commit, which the next run repeats.
        () = hard.cancelled() => return Ok(()),
    };
    report(summary);
    let attempt = match publish_to {
        Some(to) => Some(snapshot::publish_logged(index_dir.clone(), to, &publishing).await),
        None => None,
    };
    // Snapshots contain no vectors, so vectors may be computed after the snapshot is published.
    if let (Some(embedder), false) = (embedder, is_following) {
        embed_once(index_dir, embedder, cancel).await?;
    }
    cancel.cancel();
    background.wait().await;
    // With `Follow` the next run publishes.
    anyhow::ensure!(
        is_following || attempt != Some(PublishOutcome::Failed),
        "the index is up to date, but its snapshot was not published: see the log"
    );
    Ok(())
}

/// Embeds the texts without vectors, until a signal; the next run continues.
async fn embed_once(
    index_dir: PathBuf,
    embedder: Arc<dyn Embedder>,
    cancel: &CancellationToken,
) -> anyhow::Result<()> {
    let until = cancel.clone();
    let pass = tokio::task::spawn_blocking(move || vectors::catch_up(&index_dir, &*embedder, &until));
    pass.await.context("embedding panicked")??;
    Ok(())
}

fn report(summary: Summary) {
    tracing::info!(
        manifests.updated = summary.manifests,
        capabilities.indexed = summary.capabilities,
        feed.position = summary.position.0,
        rebuilt = summary.was_rebuilt,
        "index is up to date"
    );
}
