//! Crawler, indexer and interface in one process: the pass over the seeds in the foreground, the index following the feed,
//! and the interface answering from the first moment on.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use api::{ApiConfig, ApiSettings, App};
use crawler::cli::{CrawlFlags, Settings, SharedFlags, UsageError, Watch};
use crawler::{Cancel, CrawlConfig, Mode, STOP_MAX};
use indexer::follow::IndexConfig;
use indexer::{Embedder, Searcher};
use runtime::RuntimeHealth;
use settings::log::LogLevel;
use store::Store;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cli::ServeFlags;
use crate::configuration::shared_arguments;

/// How often is looked whether the index has caught up with the pass.
const CATCH_UP_POLL: Duration = Duration::from_millis(50);

/// What the crawler does after the pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// Nothing; the next start goes on.
    Rest,
    /// Visits sites as they fall due.
    FollowDueSites,
}

/// Where the interface will answer. Opened before anything else is done: whoever finds the port taken should not have to
/// wait for a crawl to hear so.
pub(crate) struct Door {
    listener: TcpListener,
    config: ApiConfig,
    embedder: Option<Arc<dyn Embedder>>,
}

impl Door {
    /// Takes the port, with everything that the interface will answer from.
    pub(crate) async fn open(
        shared: &SharedFlags,
        serve: &ServeFlags,
        data_dir: &Path,
        runtime_health: RuntimeHealth,
    ) -> anyhow::Result<Self> {
        let (config, embedder) = api_config(shared, serve, data_dir)?;
        let config = ApiConfig { runtime_health, ..config };
        Ok(Self { listener: api::bind(&config).await?, config, embedder })
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
    let door = Door::open(shared, serve, &resolved.shared.data_dir, health).await?;
    behind(door, resolved, shared, serve, Afterwards::Rest).await
}

/// The same behind a door that is open.
pub(crate) async fn behind(
    door: Door,
    resolved: Settings,
    shared: &SharedFlags,
    serve: &ServeFlags,
    afterwards: Afterwards,
) -> anyhow::Result<ExitCode> {
    let _log = resolved.shared.start_logging("agentdex");
    let Door { listener, config, embedder } = door;
    let url = format!("http://{}", listener.local_addr()?);
    if resolved.dry_run {
        let why = "--dry-run is for crawler alone: here everything else would still be done";
        return Err(UsageError(why.to_owned()).into());
    }
    if resolved.metrics.is_some() {
        let why = "--metrics is for crawler alone: here the interface serves all of them under /metrics";
        return Err(UsageError(why.to_owned()).into());
    }
    let cancel = Cancel::on_signals(STOP_MAX)?;
    let mut signals = JoinSet::new();
    let opening = Store::open_when_available(&resolved.shared.store);
    let Some(opened) = cancel.soft.run_until_cancelled(opening).await else { return Ok(ExitCode::SUCCESS) };
    let store = opened?;
    let index = IndexConfig { dir: config.index_dir.clone() };
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
        services.spawn(async move {
            indexer::vectors::keep_current(dir, embedder, until).await;
            Ok(())
        });
    }
    let app = App::with_store(config, store.clone());
    let (flags, typed, limited) = (shared.clone(), serve.clone(), app.clone());
    signals.spawn(async move {
        match settings::log::reload_on_hangup(|| reload(&flags, &typed, &limited)).await {}
    });
    let until = stop.clone();
    services.spawn(async move { api::serve(listener, app, until).await.context("the interface stopped") });

    say(&format!("Dashboard and API: {url}, filling while the crawl goes on."))?;
    let data_dir = resolved.shared.data_dir.display().to_string();
    let node = Node { store: store.clone(), index, url, data_dir, open: serve.open };
    let worked = tokio::select! {
        worked = node.work(resolved.crawl, &cancel, Watch::new(resolved.shared.verbosity), afterwards) => worked,
        Some(ended) = services.join_next() => ended.context("a part of agentdex broke off").flatten(),
    };
    stop.cancel();
    while let Some(ended) = services.join_next().await {
        ended.context("a part of agentdex broke off").flatten()?;
    }
    store.close().await;
    worked.map(|()| ExitCode::SUCCESS)
}

/// Reads the settings again; only where all of them can be used, those that may change meanwhile do.
fn reload(flags: &SharedFlags, serve: &ServeFlags, app: &App) -> anyhow::Result<LogLevel> {
    let level = crawler::cli::log_level(flags)?;
    let config = api_settings(flags, serve)?
        .resolve(reader_settings(flags, flags.data_dir.as_deref())?)
        .map_err(usage)?;
    app.set_limits(config.limits);
    Ok(level)
}

/// The interface's settings; the index lies where the indexer would put it. The model is read once for both.
fn api_config(
    flags: &SharedFlags,
    serve: &ServeFlags,
    data_dir: &Path,
) -> anyhow::Result<(ApiConfig, Option<Arc<dyn Embedder>>)> {
    let settings = reader_settings(flags, Some(data_dir))?;
    let embedder = open_embedder(&settings, serve)?;
    let config = api_settings(flags, serve)?.resolve(settings).map_err(usage)?;
    Ok((ApiConfig { embedder: embedder.clone(), ..config }, embedder))
}

/// The model that was typed, or that the file names.
pub(crate) fn open_embedder(
    settings: &indexer::cli::Settings,
    serve: &ServeFlags,
) -> anyhow::Result<Option<Arc<dyn Embedder>>> {
    let dir = serve.embedder.as_ref().or(settings.embedder.as_ref());
    let opened = dir.map(|dir| indexer::vectors::open_embedder(dir)).transpose();
    Ok(opened.map_err(usage)?)
}

/// Where database and index lie.
pub(crate) fn reader_settings(
    flags: &SharedFlags,
    data_dir: Option<&Path>,
) -> anyhow::Result<indexer::cli::Settings> {
    let mut shared = shared_arguments(flags);
    shared.data_dir = data_dir.map(ToOwned::to_owned);
    Ok(shared.settings().map_err(usage)?)
}

/// What was typed of the interface, or stands in the file.
pub(crate) fn api_settings(flags: &SharedFlags, serve: &ServeFlags) -> anyhow::Result<ApiSettings> {
    let typed = ApiSettings {
        listen: serve.listen.clone(),
        public_url: serve.public_url.clone(),
        admin_tokens: serve.admin_tokens.clone(),
        feedback: serve.feedback,
        ..ApiSettings::default()
    };
    Ok(typed.or_file(flags.config.as_deref()).map_err(usage)?)
}

/// What is wrong with settings is a mistake of the one who wrote them, wherever it is found.
pub(crate) fn usage(error: impl std::fmt::Display) -> UsageError {
    UsageError(error.to_string())
}

/// What the foreground needs.
struct Node {
    store: Store,
    index: IndexConfig,
    url: String,
    data_dir: String,
    open: bool,
}

impl Node {
    async fn work(
        &self,
        config: CrawlConfig,
        cancel: &Cancel,
        watch: Watch,
        afterwards: Afterwards,
    ) -> anyhow::Result<()> {
        if config.mode == Mode::Daemon {
            crawler::run(config, self.store.clone(), cancel.clone(), |news| watch.show(&news)).await?;
            watch.finish();
            return Ok(());
        }
        let again =
            CrawlConfig { mode: Mode::Daemon, seeds: Vec::new(), revisit_older_than: None, ..config.clone() };
        let crawled =
            crawler::run(config, self.store.clone(), cancel.clone(), |news| watch.show(&news)).await;
        watch.finish();
        say(&crawler::cli::summary_text(&crawled?))?;
        if cancel.soft.is_cancelled() {
            return Ok(());
        }
        self.caught_up().await?;
        self.announce()?;
        match afterwards {
            Afterwards::Rest => cancel.soft.cancelled().await,
            Afterwards::FollowDueSites => {
                crawler::run(again, self.store.clone(), cancel.clone(), |_| ()).await?;
            }
        }
        Ok(())
    }

    /// Waits until the index shows everything that the pass found.
    async fn caught_up(&self) -> anyhow::Result<()> {
        let head = self.store.feed_head().await?;
        loop {
            let dir = self.index.dir.clone();
            let opened = tokio::task::spawn_blocking(move || Searcher::open(&dir)).await?;
            if opened.is_ok_and(|searcher| searcher.generation().position >= head) {
                return Ok(());
            }
            tokio::time::sleep(CATCH_UP_POLL).await;
        }
    }

    fn announce(&self) -> anyhow::Result<()> {
        let typed = std::env::args_os().next().unwrap_or_else(|| env!("CARGO_BIN_NAME").into());
        say(&last_words(&self.url, &typed.to_string_lossy(), &self.data_dir))?;
        if self.open {
            open::that(&self.url)
                .with_context(|| format!("cannot open a browser; the dashboard is at {}", self.url))?;
        }
        Ok(())
    }
}

/// What the reader can do next. This program is named as it was when it was started, so that it can be typed as it stands.
fn last_words(url: &str, program: &str, data_dir: &str) -> String {
    let (program, data_dir) = (word(program), word(data_dir));
    format!(
        "\nEverything found is in the index. Open {url} or try\n  curl '{url}/search?q=book+flight'\n\
         How the crawl stands is shown on {url}/crawl. Look further, now or later, with\n  \
         {program} db status --data-dir {data_dir}\n  {program} doctor --data-dir {data_dir}\n\
         Ctrl-C ends it; everything is kept."
    )
}

/// A word as a shell reads it back.
fn word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+:@,=".contains(letter);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// A line for whoever started the program.
pub(crate) fn say(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    #[test]
    fn the_last_words_can_be_typed_as_they_stand() {
        let words = last_words("http://127.0.0.1:8080", "target/release/agentdex", "agentdex-data/demo");
        let mut commands = 0;
        for line in words.lines().filter_map(|line| line.strip_prefix("  target/release/")) {
            cli::command().try_get_matches_from(line.split(' ')).unwrap();
            commands += 1;
        }
        assert_eq!(commands, 2, "{words}");
        let words = last_words("http://127.0.0.1:8080", "./agentdex", "Ann's data");
        assert!(words.contains(r"  ./agentdex doctor --data-dir 'Ann'\''s data'"), "{words}");
    }
}
