//! Crawler, indexer and API in one process: the crawl runs in the foreground, the index follows the feed, and the API
//! responds from the start.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use api::{ApiConfig, ApiSettings, App};
use chrono::Utc;
use clap::Args;
use crawler::cli::{CrawlFlags, Settings, SharedSettings, UsageError, Watch};
use crawler::config::WithoutSeeds;
use crawler::output::OutputFormat;
use crawler::{Cancel, CrawlConfig, CrawlError, Mode, Progress, STOP_MAX, Summary};
use indexer::cli::ReaderFlags;
use indexer::follow::IndexConfig;
use indexer::{Embedder, Searcher};
use runtime::{ReaderProgram, RuntimeHealth};
use settings::SharedFlags;
use settings::log::LogLevel;
use store::{BackgroundTask, DatabaseUrl, OUTAGE, Stats, Store, StoreError, TaskMonitor};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::announce::{Announcement, ReadingFlags, Results};

/// Flags of serving.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Serving")]
pub(crate) struct ServeFlags {
    /// Address of the dashboard and the API [default: 127.0.0.1:8080]
    #[arg(long, global = true, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// URL under which clients reach the API, if it differs from --listen
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// File with the token hashes of /admin; without it /admin is disabled
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) admin_tokens: Option<PathBuf>,
    /// Store the feedback of clients (POST /feedback)
    #[arg(long, global = true)]
    pub(crate) feedback: bool,
    /// Directory of a sentence model, to search by meaning too (needs the feature `embedder`)
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) embedder: Option<PathBuf>,
    /// Open the dashboard in a browser
    #[arg(long, global = true)]
    pub(crate) open: bool,
}

/// Poll interval while the index catches up with the crawl.
const CATCH_UP_POLL: Duration = Duration::from_millis(50);

/// What the program does after the pass over the seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterPass {
    /// Ends as soon as the index has the results.
    End,
    /// Visits sites when they are due, and reads seed files again when they change.
    GoOn,
}

/// The bound port and the settings of the API. Bound first, so that a port in use is reported
/// before the crawl.
pub(crate) struct Endpoint {
    listener: TcpListener,
    config: ApiConfig,
    embedder: Option<Arc<dyn Embedder>>,
}

impl Endpoint {
    pub(crate) async fn bind(
        shared: &SharedFlags,
        serve: &ServeFlags,
        data_dir: &Path,
        runtime_health: RuntimeHealth,
    ) -> anyhow::Result<Self> {
        let (config, embedder) = api_config(shared, serve, data_dir)?;
        let reader = Some(ReaderProgram::this_program()?);
        let config = ApiConfig { runtime_health, reader, ..config };
        let (listener, config) = api::bind(config).await?;
        Ok(Self { listener, config, embedder })
    }
}

/// Crawls, indexes and serves until Ctrl-C.
pub(crate) async fn run(
    shared: &SharedFlags,
    crawl: &CrawlFlags,
    serve: &ServeFlags,
    health: RuntimeHealth,
) -> anyhow::Result<ExitCode> {
    let resolved = crawler::cli::resolve(shared, crawl)?;
    refuse_unsupported(&resolved, shared)?;
    let scope = resolved.crawl.egress.own_networks.site_scope();
    for source in &resolved.crawl.seeds {
        source.check_usable(scope).map_err(usage)?;
    }
    let after_pass = if crawl.once { AfterPass::End } else { AfterPass::GoOn };
    let resolved = match after_pass {
        AfterPass::GoOn => {
            let mut resolved = resolved.continuous()?;
            resolved.crawl.without_seeds = WithoutSeeds::VisitsKnownSites;
            resolved
        }
        AfterPass::End => resolved.single_pass()?,
    };
    let resolved = locked(resolved)?;
    let endpoint = Endpoint::bind(shared, serve, &resolved.shared.data_dir, health).await?;
    run_on(endpoint, resolved, shared, serve, after_pass).await
}

/// Refuses flags and settings that belong to `crawler` alone, before anything is opened.
pub(crate) fn refuse_unsupported(resolved: &Settings, shared: &SharedFlags) -> anyhow::Result<()> {
    if resolved.dry_run {
        let why =
            "--dry-run belongs to `crawler`: crawler --seeds FILE --dry-run lists what would be requested";
        return Err(UsageError(why.to_owned()).into());
    }
    let indexer_metrics = reader_settings(shared, Some(&resolved.shared.data_dir))?.metrics;
    if resolved.metrics.or(indexer_metrics).is_some() {
        let why = "--metrics belongs to `crawler`: here the API serves all metrics under /metrics";
        return Err(UsageError(why.to_owned()).into());
    }
    Ok(())
}

/// Locks the embedded database before anything is announced, so that a second instance on the same data fails with an error that names the
/// first.
pub(crate) fn locked(resolved: Settings) -> anyhow::Result<Settings> {
    let database = resolved.crawl.locked_database.as_deref();
    if let Some(dir) = database.and_then(Path::parent) {
        create_data_dir(dir)?;
    }
    let crawl = resolved.crawl.locked().map_err(CrawlError::from)?;
    Ok(Settings { crawl, ..resolved })
}

pub(crate) fn create_data_dir(dir: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(
        !dir.is_file(),
        "the data directory {} is a file; choose another with --data-dir",
        dir.display()
    );
    std::fs::create_dir_all(dir).with_context(|| {
        format!("the data directory {} cannot be written; choose another with --data-dir", dir.display())
    })
}

/// Crawls, indexes and serves on a bound port until Ctrl-C.
pub(crate) async fn run_on(
    endpoint: Endpoint,
    resolved: Settings,
    shared: &SharedFlags,
    serve: &ServeFlags,
    after_pass: AfterPass,
) -> anyhow::Result<ExitCode> {
    let _log = resolved.shared.start_logging("agentdex");
    resolved.warn_about_contact();
    let Endpoint { listener, config, embedder } = endpoint;
    let url = reachable_url(config.listen);
    let cancel = Cancel::on_signals(STOP_MAX)?;
    let mut signals = JoinSet::new();
    let opening = Store::open_when_available(&resolved.shared.store);
    let Some(opened) = cancel.soft.run_until_cancelled(opening).await else {
        settings::log::report(
            "agentdex",
            resolved.shared.log_format,
            "stopped before the database could be opened",
        );
        return Ok(ExitCode::SUCCESS);
    };
    let store = opened?;
    let index = config.index.clone();
    let stop = CancellationToken::new();
    let mut services = JoinSet::new();
    let (feed, following) = (store.clone(), index.clone());
    let until = stop.clone();
    services.spawn(async move {
        let followed = indexer::follow::run(feed, following, until, indexer::follow::Mode::Follow).await;
        followed.map(drop).context("the index cannot follow the crawl")
    });
    if let Some(embedder) = embedder {
        let (dir, until) = (index.dir.clone(), stop.clone());
        let monitor = Arc::new(TaskMonitor::new(store.clone(), BackgroundTask::Vectors));
        services.spawn(async move {
            indexer::vectors::keep_current(dir, embedder, monitor, until).await;
            Ok(())
        });
    }
    let app = App::with_store(config, store.clone());
    let (flags, serve_flags, reloaded) = (shared.clone(), serve.clone(), app.clone());
    signals.spawn(async move {
        match settings::log::reload_on_hangup(|| reload(&flags, &serve_flags, &reloaded)).await {}
    });
    let until = stop.clone();
    services.spawn(async move { api::serve(listener, app, until).await.context("the API stopped") });

    let output = resolved.output;
    let data_dir = resolved.shared.data_dir.display().to_string();
    let reading = reading_flags(shared, &resolved.shared)?;
    let node = Node { store: store.clone(), index, url, data_dir, reading, output, open: serve.open };
    let worked = tokio::select! {
        worked = node.work(resolved.crawl, &cancel, &resolved.shared, after_pass) => worked,
        Some(ended) = services.join_next() => ended.context("a task of agentdex failed").flatten(),
    };
    stop.cancel();
    while let Some(ended) = services.join_next().await {
        ended.context("a task of agentdex failed").flatten()?;
    }
    store.close().await;
    worked.map(|()| ExitCode::SUCCESS)
}

/// The URL of the dashboard on this machine. Replaces the unspecified address (0.0.0.0), which not every system can open.
fn reachable_url(mut bound: SocketAddr) -> String {
    if bound.ip().is_unspecified() {
        bound.set_ip(if bound.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    format!("http://{bound}")
}

/// Reads the settings again and applies those that may change at run time, if all of them are valid.
fn reload(flags: &SharedFlags, serve: &ServeFlags, app: &App) -> anyhow::Result<LogLevel> {
    let level = crawler::cli::log_level(flags)?;
    let config = api_settings(flags, serve)?
        .resolve(reader_settings(flags, flags.data_dir.as_deref())?)
        .map_err(usage)?;
    app.set_limits(config.limits);
    Ok(level)
}

/// The settings of the API, and the sentence model, which indexer and API share.
fn api_config(
    flags: &SharedFlags,
    serve: &ServeFlags,
    data_dir: &Path,
) -> anyhow::Result<(ApiConfig, Option<Arc<dyn Embedder>>)> {
    let settings = searcher_settings(flags, serve, Some(data_dir))?;
    let embedder = settings.open_embedder().map_err(usage)?;
    let config = api_settings(flags, serve)?.resolve(settings).map_err(usage)?;
    Ok((ApiConfig { embedder: embedder.clone(), ..config }, embedder))
}

/// The settings for searching, with the model of the flags or the file, and with the cluster of the file, opened.
pub(crate) fn searcher_settings(
    flags: &SharedFlags,
    serve: &ServeFlags,
    data_dir: Option<&Path>,
) -> anyhow::Result<indexer::cli::Settings> {
    let mut settings = reader_settings(flags, data_dir)?;
    settings.embedder = serve.embedder.clone().or(settings.embedder);
    settings.open_cluster().map_err(usage)?;
    Ok(settings)
}

/// The settings for reading the database and the index.
pub(crate) fn reader_settings(
    flags: &SharedFlags,
    data_dir: Option<&Path>,
) -> anyhow::Result<indexer::cli::Settings> {
    let shared = SharedFlags { data_dir: data_dir.map(ToOwned::to_owned), ..flags.clone() };
    Ok(ReaderFlags { shared, ..ReaderFlags::default() }.settings().map_err(usage)?)
}

/// The flags with which other commands in this terminal find the same database. A password is left out.
fn reading_flags(typed: &SharedFlags, shared: &SharedSettings) -> anyhow::Result<ReadingFlags> {
    let mut words = Vec::new();
    let only_file = SharedFlags { config: typed.config.clone(), ..SharedFlags::default() };
    if typed.config.is_none() || reader_settings(&only_file, None)?.data_dir != shared.data_dir {
        words.extend(["--data-dir".to_owned(), shared.data_dir.display().to_string()]);
    }
    if let Some(file) = &typed.config {
        words.extend(["--config".to_owned(), file.display().to_string()]);
    }
    let untyped = SharedFlags { database_url: None, ..typed.clone() };
    let url = &shared.store.url;
    if reader_settings(&untyped, Some(&shared.data_dir))?.store.url != *url {
        words.extend(["--database-url".to_owned(), url.to_type()]);
    }
    Ok(ReadingFlags(words))
}

/// The settings of the API from the flags and the file.
pub(crate) fn api_settings(flags: &SharedFlags, serve: &ServeFlags) -> anyhow::Result<ApiSettings> {
    let settings = ApiSettings {
        listen: serve.listen.clone(),
        public_url: serve.public_url.clone(),
        admin_tokens: serve.admin_tokens.clone(),
        feedback: serve.feedback,
        ..ApiSettings::default()
    };
    Ok(settings.or_file(flags.config.as_deref()).map_err(usage)?)
}

/// Invalid settings are usage errors.
pub(crate) fn usage(error: impl std::fmt::Display) -> UsageError {
    UsageError(error.to_string())
}

/// The state of the foreground task.
struct Node {
    store: Store,
    index: IndexConfig,
    url: String,
    data_dir: String,
    reading: ReadingFlags,
    output: OutputFormat,
    open: bool,
}

impl Node {
    async fn work(
        &self,
        mut config: CrawlConfig,
        cancel: &Cancel,
        shared: &SharedSettings,
        after_pass: AfterPass,
    ) -> anyhow::Result<()> {
        if after_pass == AfterPass::GoOn {
            config.mode = config.mode.going_on();
        }
        let watch = Watch::new(shared);
        let is_daemon = config.mode == Mode::Daemon;
        let again = continuous(&config);
        let unprinted = OnceLock::new();
        let show = |news: Progress<'_>| {
            // only after the seeds were read; if that fails, nothing is served
            if matches!(news, Progress::Seeded { .. })
                && let Err(error) = watch.suspend(|| self.announce_serving(shared, after_pass))
            {
                drop(unprinted.set(error));
                cancel.soft.cancel();
            }
            watch.show(&news);
        };
        let crawled = crawler::run(config, self.store.clone(), cancel.clone(), &show).await;
        watch.finish();
        let summary = crawled?;
        if let Some(error) = unprinted.into_inner() {
            return Err(error);
        }
        if is_daemon {
            return self.announce_stop(shared);
        }
        Announcement::Crawled { summary: &summary, reading: &self.reading }.print(self.output)?;
        if cancel.soft.is_cancelled() && OUTAGE.is_on() {
            return self.announce_stop(shared);
        }
        if cancel.soft.is_cancelled() {
            return self.announce_end(after_pass, &summary).await;
        }
        self.wait_for_index().await?;
        if after_pass == AfterPass::End {
            return self.announce_end(after_pass, &summary).await;
        }
        self.announce(&summary).await?;
        let next_due_at = self.store.next_due_at().await?;
        Announcement::GoingOn { next_due_at }.print(self.output)?;
        // submissions, changed seed files and due sites: one line for each event, between the lines of the log
        let watch = Watch::after_pass(shared);
        let show = |news: Progress<'_>| {
            if !matches!(news, Progress::Seeded { .. } | Progress::Scheduled { .. }) {
                watch.show(&news);
            }
        };
        crawler::run(again, self.store.clone(), cancel.clone(), &show).await?;
        self.announce_stop(shared)
    }

    /// Says that everything is kept, unless the database was removed while its files were open.
    fn announce_stop(&self, shared: &SharedSettings) -> anyhow::Result<()> {
        if let DatabaseUrl::Sqlite(path) = &shared.store.url {
            anyhow::ensure!(
                path.exists(),
                "the database {} was removed while the crawl ran: nothing is kept",
                path.display()
            );
        }
        Announcement::Stopped.print(self.output)
    }

    fn announce_serving(&self, shared: &SharedSettings, after_pass: AfterPass) -> anyhow::Result<()> {
        let database = shared.store.url.to_string();
        let is_single_pass = after_pass == AfterPass::End;
        Announcement::Serving { url: &self.url, database, is_single_pass }.print(self.output)
    }

    /// Waits until the index contains all results of the crawl.
    async fn wait_for_index(&self) -> anyhow::Result<()> {
        let head = self.store.feed_head().await?;
        loop {
            let config = self.index.clone();
            let opened = tokio::task::spawn_blocking(move || Searcher::of(&config)).await?;
            if opened.is_ok_and(|searcher| searcher.generation().position >= head) {
                return Ok(());
            }
            tokio::time::sleep(CATCH_UP_POLL).await;
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the last day ends when a person reads it")]
    async fn stats(&self) -> Result<Stats, StoreError> {
        self.store.stats(Utc::now()).await
    }

    /// Why the visits of the last day found nothing.
    async fn reasons(&self) -> anyhow::Result<Vec<String>> {
        let ends = self.stats().await?.ends_last_day;
        let visits: u64 = ends.iter().map(|(_, count)| count).sum();
        let noun = if visits == 1 { "visit" } else { "visits" };
        Ok(crawler::cli::failure_reasons(ends, &format!("{visits} {noun} of the last day")))
    }

    /// What there is to search after a pass.
    async fn results(&self, summary: &Summary) -> anyhow::Result<Results> {
        Ok(match (has_manifests(&self.store).await?, summary.found_nothing()) {
            (false, _) => Results::Nothing,
            (true, false) => Results::Some,
            (true, true) => Results::OfEarlierVisits(self.stats().await?.manifests),
        })
    }

    /// Prints how to see the results and how to continue, after the last pass.
    async fn announce_end(&self, after_pass: AfterPass, summary: &Summary) -> anyhow::Result<()> {
        match self.output {
            OutputFormat::Text => {
                let is_single_pass = after_pass == AfterPass::End;
                let results = self.results(summary).await?;
                let reading = &self.reading;
                let is_unexplained = results == Results::Nothing && summary.had_nothing_due();
                let reasons = if is_unexplained { self.reasons().await? } else { Vec::new() };
                Announcement::Ended { program: program(), is_single_pass, results, reading, reasons }
                    .print(self.output)
            }
            OutputFormat::Json => Ok(()),
        }
    }

    /// Prints the next steps. They depend on the stored manifests, because this pass may have had nothing to visit.
    async fn announce(&self, summary: &Summary) -> anyhow::Result<()> {
        let program = program();
        let (url, data_dir, reading) = (self.url.as_str(), self.data_dir.as_str(), &self.reading);
        let manifests_kept = match self.results(summary).await? {
            Results::Some => None,
            Results::Nothing => Some(0),
            Results::OfEarlierVisits(manifests) => Some(manifests),
        };
        let announcement = if let Some(manifests_kept) = manifests_kept {
            let are_shown = !summary.had_nothing_due();
            let reasons =
                if are_shown { crawler::cli::pass_reasons(summary) } else { self.reasons().await? };
            Announcement::NothingFound { url, program, data_dir, reading, reasons, manifests_kept, are_shown }
        } else {
            Announcement::Indexed { url, program, data_dir, reading }
        };
        announcement.print(self.output)?;
        if self.open {
            open::that(&self.url)
                .with_context(|| format!("cannot open a browser; the dashboard is at {}", self.url))?;
        }
        Ok(())
    }
}

/// This program as it was started, for commands that can be copied.
fn program() -> String {
    let program = std::env::args_os().next().unwrap_or_else(|| env!("CARGO_BIN_NAME").into());
    program.to_string_lossy().into_owned()
}

/// Whether a manifest is in the index, or will be when the indexer has read it.
pub(crate) async fn has_manifests(store: &Store) -> Result<bool, StoreError> {
    Ok(!store.manifest_sizes_after(None, 1).await?.is_empty())
}

/// The configuration of the crawl after its first pass. It reads only seed files that change from now on.
#[expect(clippy::disallowed_methods, reason = "the times of files are compared with this machine's clock")]
fn continuous(pass: &CrawlConfig) -> CrawlConfig {
    CrawlConfig {
        mode: Mode::Daemon,
        seeds_read_at: Some(Utc::now()),
        revisit_older_than: None,
        ..pass.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announced_address_can_be_opened_on_this_machine() {
        for (bound, url) in [
            ("0.0.0.0:8080", "http://127.0.0.1:8080"),
            ("[::]:8080", "http://[::1]:8080"),
            ("192.0.2.1:80", "http://192.0.2.1:80"),
        ] {
            assert_eq!(reachable_url(bound.parse().unwrap()), url);
        }
    }

    #[test]
    fn the_flags_for_reading_name_the_database_that_other_commands_would_not_find() {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = dir.path().join("data").display().to_string();
        let config = dir.path().join("agentdex.toml");
        std::fs::write(&config, "").unwrap();
        let words = |database_url: Option<&str>, config: Option<&PathBuf>| {
            let typed = SharedFlags {
                data_dir: Some(data_dir.clone().into()),
                database_url: database_url.map(str::to_owned),
                config: config.cloned(),
                ..SharedFlags::default()
            };
            let resolved = crawler::cli::resolve(&typed, &CrawlFlags::default()).unwrap();
            reading_flags(&typed, &resolved.shared).unwrap().0
        };
        let plain = ["--data-dir", &data_dir];
        assert_eq!(words(Some(&format!("sqlite:{data_dir}/agentdex.db")), None), plain);
        let file = config.display().to_string();
        assert_eq!(
            words(Some(&format!("sqlite:{data_dir}/agentdex.db")), Some(&config))[2..],
            ["--config", &file]
        );
        let elsewhere = words(Some("postgres://me:word@host/db"), None);
        assert_eq!(elsewhere[2..], ["--database-url", "postgres://me:PASSWORD@host/db"]);
        std::fs::write(&config, format!("data_dir = {data_dir:?}\n")).unwrap();
        assert_eq!(words(None, Some(&config)), ["--config", &file], "the file names the directory");
    }
}
