//! Adds seeds to the store. Each source is read once, and a batch is added while the next one is read. Requests for sources on the web obey
//! the rate limits of their hosts. So these sources are read after the local ones, and visits can start before they are read.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use manifest::{SiteName, SiteScope};
use store::{Seed, Store, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::ard_registry::read_ard_registry;
use crate::clock;
use crate::config::{CrawlConfig, Mode, SeedLists, SeedSource, WithoutSeeds};
use crate::error::CrawlError;
use crate::harvest::{Harvest, Incomplete};
use crate::mcp_registry::list_mcp_registry;
use crate::remote_seeds::fetch_list;
use crate::retry::retry_while_unavailable;
use crate::seed_files::{self, FileState};
use crate::seeds::{Reading, SeedError, SeedReader, SeedReport, SeedsRead, fingerprint};
use crate::visit::{StandaloneRequests, Stop, Tools};
use crate::worker::Progress;

/// Maximum number of seeds added by one call to the store.
const SEED_BATCH: usize = 20_000;
/// Bytes of URLs after which a batch is complete. Four batches are in memory at a time.
const SEED_BATCH_BYTES: usize = 4 * 1_024 * 1_024;
/// Page size when listed sites are read from the store to compare them with the seeds.
const LISTED_PAGE: u32 = 20_000;

/// Reads every source and adds its seeds in batches: first local sources, then those on the web.
///
/// # Errors
///
/// If the store fails, a local source cannot be read at the first reading, or no source can be read and there is nothing else to visit.
pub(crate) async fn seed(
    config: &CrawlConfig,
    tools: &Tools,
    reading: Reading,
    stop: &CancellationToken,
) -> Result<SeedReport, CrawlError> {
    let mut seeding = Seeding::new(config.clone(), tools.clone(), reading, stop.clone());
    seeding.read_local(&|_| ()).await?;
    seeding.read_web(&|_| ()).await?;
    seeding.finish().await
}

/// One reading of all sources. A source that fails does not affect the others. Exception: at the first reading, a local source that fails
/// ends the reading with an error.
pub(crate) struct Seeding {
    config: CrawlConfig,
    tools: Tools,
    reading: Reading,
    stop: CancellationToken,
    read: SeedsRead,
    seeds_read: u64,
    /// Number of seeds that were not added.
    refused: u64,
    /// Fingerprints of the sites that the sources name: of all sites with `--follow-seeds`, otherwise of about the first [`LISTED_PAGE`]
    /// seeds.
    named: HashSet<u64>,
    files_before: Vec<Option<FileState>>,
    may_be_incomplete: bool,
}

impl Seeding {
    pub(crate) fn new(config: CrawlConfig, tools: Tools, reading: Reading, stop: CancellationToken) -> Self {
        let files_before = seed_files::states(&config.seeds);
        let may_be_incomplete = reading == Reading::First
            && config.mode == Mode::Daemon
            && seed_files::are_recent(&files_before, clock::now());
        let (read, named) = (SeedsRead::default(), HashSet::new());
        Self {
            config,
            tools,
            reading,
            stop,
            read,
            seeds_read: 0,
            refused: 0,
            named,
            files_before,
            may_be_incomplete,
        }
    }

    /// Whether visits may begin before the sources on the web are read. They may in a daemon that has such sources and something else to
    /// visit: local sources, or sites of an earlier crawl. A single pass visits each site once, so it reads all sources first.
    pub(crate) async fn may_read_web_later(&self) -> Result<bool, StoreError> {
        if self.config.mode != Mode::Daemon {
            return Ok(false);
        }
        let on_web = self.config.seeds.iter().filter(|source| source.is_on_web()).count();
        let has_local = on_web < self.config.seeds.len();
        let visits_known = self.config.without_seeds == WithoutSeeds::VisitsKnownSites;
        Ok(on_web > 0 && (has_local || visits_known && self.tools.store.next_due_at().await?.is_some()))
    }

    /// Reads files, pipes and built-in lists.
    pub(crate) async fn read_local(
        &mut self,
        progress: &(dyn Fn(Progress<'_>) + Sync),
    ) -> Result<(), CrawlError> {
        let local = self.config.seeds.iter().filter_map(|source| {
            let content = match source {
                SeedSource::File(path) => SourceContent::File(path.clone()),
                SeedSource::Stdin => SourceContent::Stdin,
                SeedSource::Text { text, .. } => SourceContent::Text(text.clone()),
                SeedSource::Url(_) | SeedSource::Registry(_) | SeedSource::McpRegistry(_) => return None,
            };
            Some((source.name(), content))
        });
        self.add(local.collect(), progress, &self.stop()).await
    }

    /// Requests the lists and registries on the web, one after the other. Each seed is added once, so lists are read first: they take
    /// precedence over links of a registry.
    pub(crate) async fn read_web(
        &mut self,
        progress: &(dyn Fn(Progress<'_>) + Sync),
    ) -> Result<(), CrawlError> {
        let is_list = |source: &&SeedSource| matches!(source, SeedSource::Url(_));
        let on_web = self.config.seeds.iter().filter(|source| source.is_on_web()).cloned();
        let mut on_web: Vec<SeedSource> = on_web.collect();
        if on_web.is_empty() {
            return Ok(());
        }
        on_web.sort_by_key(|source| !is_list(&source));
        let (sources, stop) = (Arc::clone(&self.tools.sources_on_web), self.stop.clone());
        let Some(_reading) = stop.run_until_cancelled(sources.lock()).await else { return Ok(()) };
        let local_failures = self.read.report.failed.len();
        let soft = Stop { soft: self.stop.clone(), ..Stop::default() };
        let (worker, wait_max) = (self.config.worker.clone(), self.config.mode.park_wait());
        let requests = StandaloneRequests::new(&self.tools, worker, wait_max, soft);
        let mut requests = requests.for_sources(self.reading, self.config.mode);
        for source in on_web {
            let content = self.fetch(&source, &mut requests).await;
            let is_read = matches!(content, Ok(SourceContent::Seeds(_)));
            if self.stop.is_cancelled() && !is_read {
                break;
            }
            match content {
                // the position of a registry is stored with each page, so the next start does not read these seeds again
                Ok(content) if is_read => {
                    self.add(vec![(source.name(), content)], progress, &CancellationToken::new()).await?;
                }
                Ok(content) => self.add(vec![(source.name(), content)], progress, &stop).await?,
                Err(SeedError::Unstored { source, .. }) => return Err(source.into()),
                Err(error) if is_list(&&source) => self.read.report.failed.push(error.to_string()),
                // the error names a URL below that of the registry
                Err(error) => self.read.report.failed.push(format!("{}: {error}", source.name())),
            }
        }
        if !self.stop.is_cancelled() {
            sources.read(self.read.report.failed.iter().skip(local_failures).cloned().collect());
        }
        Ok(())
    }

    async fn fetch(
        &self,
        source: &SeedSource,
        requests: &mut StandaloneRequests,
    ) -> Result<SourceContent, SeedError> {
        let store = &self.tools.store;
        let incomplete = match self.config.seed_lists {
            SeedLists::Added => Incomplete::Used,
            SeedLists::Followed => Incomplete::Refused,
        };
        Ok(match source {
            SeedSource::Url(url) => SourceContent::Fetched(fetch_list(requests, url).await?),
            SeedSource::Registry(url) => {
                SourceContent::Seeds(read_ard_registry(requests, store, url, incomplete).await?)
            }
            SeedSource::McpRegistry(url) => {
                let harvest = Harvest::of_changes(store, url, incomplete).await?;
                SourceContent::Seeds(list_mcp_registry(requests, url, incomplete, harvest).await?)
            }
            SeedSource::File(_) | SeedSource::Stdin | SeedSource::Text { .. } => {
                SourceContent::Seeds(Vec::new())
            }
        })
    }

    /// Reads sources on a thread and adds their seeds, until `stop`. If the database is unavailable, tries again until the crawl is
    /// stopped.
    async fn add(
        &mut self,
        sources: Vec<(String, SourceContent)>,
        progress: &(dyn Fn(Progress<'_>) + Sync),
        stop: &CancellationToken,
    ) -> Result<(), CrawlError> {
        let (config, store) = (&self.config, &self.tools.store);
        let scope = config.egress.own_networks.site_scope();
        let (mut batches, report) =
            read_on_thread(sources, std::mem::take(&mut self.read), scope, self.reading)?;
        loop {
            let Some(received) = stop.run_until_cancelled(batches.recv()).await else {
                // Returning drops the receiver, which ends the thread at its next read.
                return Ok(());
            };
            let Some(batch) = received else { break };
            self.seeds_read += batch.len() as u64;
            // unless lists are followed, only a short list is compared with the sites of earlier lists
            if config.seed_lists == SeedLists::Followed || self.seeds_read <= u64::from(LISTED_PAGE) {
                self.named.extend(batch.iter().map(|seed| fingerprint(seed.host.site().as_str())));
            }
            let add = || async {
                match config.seed_lists {
                    SeedLists::Added => store.seeds_add(&batch, clock::now()).await,
                    SeedLists::Followed => store.seeds_relist(&batch, clock::now()).await,
                }
            };
            let added = match self.stop.run_until_cancelled(retry_while_unavailable("add seeds", add)).await {
                Some(added) => added?,
                None => match add().await {
                    Err(error) if error.is_transient() => return Ok(()),
                    added => added?,
                },
            };
            self.refused += added.refused;
            progress(Progress::Seeding { seeds_read: self.seeds_read });
        }
        self.read = report.await.unwrap_or_else(|error| {
            Err(SeedError::Unreadable { name: "seeds".to_owned(), source: io::Error::other(error) })
        })?;
        Ok(())
    }

    /// The token that stops this reading.
    pub(crate) fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// What was read so far.
    pub(crate) fn report(&self) -> SeedReport {
        if self.stop.is_cancelled() {
            return SeedReport { read: self.seeds_read, ..SeedReport::default() };
        }
        SeedReport { refused: self.refused, ..self.read.report.clone() }
    }

    /// The result after all sources were read. If the lists are followed, deletes the sites that none of them names.
    pub(crate) async fn finish(self) -> Result<SeedReport, CrawlError> {
        let (config, store) = (&self.config, &self.tools.store);
        let mut report = self.report();
        if self.stop.is_cancelled() {
            return Ok(report);
        }
        if report.failed.len() == config.seeds.len()
            && let Some(failures) = report.failures()
            && (config.without_seeds == WithoutSeeds::Fails || store.next_due_at().await?.is_none())
        {
            return Err(CrawlError::NoSource(failures));
        }
        if let Some(cut) = report.sources.iter().find(|source| source.is_cut) {
            tracing::warn!(
                source = cut.source,
                names = cut.names,
                "a source has too many names or lines: the rest is not read"
            );
        } else if config.seed_lists == SeedLists::Followed {
            if !report.failed.is_empty() {
                tracing::info!("a source was not read: no site is deleted before all of them are read");
            } else if report.mistyped > 0 {
                tracing::warn!(
                    lines = report.mistyped,
                    "a line of the lists is not a name, maybe of a known site: no site is deleted before it is corrected"
                );
            } else if self.may_be_incomplete || seed_files::states(&config.seeds) != self.files_before {
                tracing::info!("a seed file is being written: no site is deleted before it is complete");
            } else {
                report.sites_forgotten = delete_unlisted(store, &self.named).await?;
            }
        } else if report.failed.is_empty() {
            report.sites_of_earlier_lists = sites_of_earlier_lists(store, &self.named).await?;
        }
        Ok(report)
    }
}

type ReadResultReceiver = oneshot::Receiver<Result<SeedsRead, SeedError>>;

/// Reads sources on a separate thread, which ends when the receiver of the batches is dropped. Reading a terminal or a pipe may block
/// forever, so a shutdown does not wait for this thread.
fn read_on_thread(
    sources: Vec<(String, SourceContent)>,
    before: SeedsRead,
    scope: SiteScope,
    reading: Reading,
) -> Result<(mpsc::Receiver<Vec<Seed>>, ReadResultReceiver), SeedError> {
    let (sender, batches) = mpsc::channel::<Vec<Seed>>(2);
    let (report_sender, report) = oneshot::channel();
    let read = move || {
        let read = read_sources(sources, before, (scope, reading), &sender);
        drop(sender);
        // Without a receiver, nobody needs the report.
        drop(report_sender.send(read));
    };
    let started = std::thread::Builder::new().name("seeds".to_owned()).spawn(read);
    started.map_err(|source| SeedError::Unreadable { name: "seeds".to_owned(), source })?;
    Ok((batches, report))
}

/// Deletes the sites that only lists named and that no list names any more. Called only after every list was read completely.
async fn delete_unlisted(store: &Store, named: &HashSet<u64>) -> Result<u64, StoreError> {
    let mut deleted = 0;
    let mut after = None;
    loop {
        let page = store.sites_listed(after.as_ref(), LISTED_PAGE).await?;
        let Some(last) = page.last().cloned() else { return Ok(deleted) };
        let gone: Vec<SiteName> =
            page.into_iter().filter(|site| !named.contains(&fingerprint(site.as_str()))).collect();
        deleted += store.sites_unlist(&gone, clock::now()).await?;
        after = Some(last);
    }
}

/// The number of listed sites that are not among these; 0 if there are more listed sites than one page has.
async fn sites_of_earlier_lists(store: &Store, named: &HashSet<u64>) -> Result<u64, StoreError> {
    let listed = store.sites_listed(None, LISTED_PAGE).await?;
    if listed.len() >= LISTED_PAGE as usize {
        return Ok(0);
    }
    Ok(listed.iter().filter(|site| !named.contains(&fingerprint(site.as_str()))).count() as u64)
}

/// The content of a source.
enum SourceContent {
    File(PathBuf),
    Stdin,
    Text(String),
    Fetched(Vec<u8>),
    Seeds(Vec<Seed>),
}

fn read_sources(
    sources: Vec<(String, SourceContent)>,
    before: SeedsRead,
    (scope, reading): (SiteScope, Reading),
    sender: &mpsc::Sender<Vec<Seed>>,
) -> Result<SeedsRead, SeedError> {
    // a shutdown drops the receiver of the seeds
    let is_stopped = || sender.is_closed();
    let (mut reader, mut failed) = (SeedReader::resuming(before, scope, &is_stopped), Vec::new());
    for (name, content) in sources {
        let (mut batch, mut batch_bytes) = (Vec::new(), 0);
        let mut add = |seed: Seed| {
            batch_bytes += seed.url.as_ref().map_or(0, |url| url.as_str().len());
            batch.push(seed);
            if batch.len() == SEED_BATCH || batch_bytes >= SEED_BATCH_BYTES {
                batch_bytes = 0;
                // a closed receiver ends the read
                drop(sender.blocking_send(std::mem::take(&mut batch)));
            }
        };
        let is_remote = matches!(content, SourceContent::Fetched(_) | SourceContent::Seeds(_));
        let read = read_source(&mut reader, &name, content, reading, &mut add);
        drop(sender.blocking_send(batch));
        match read {
            Err(error) if !sender.is_closed() && (is_remote || reading == Reading::Again) => {
                failed.push(error.to_string());
            }
            read => read?,
        }
    }
    let mut read = reader.into_read();
    read.report.failed.extend(failed);
    Ok(read)
}

fn read_source(
    reader: &mut SeedReader<'_>,
    name: &str,
    content: SourceContent,
    reading: Reading,
    add: impl FnMut(Seed),
) -> Result<(), SeedError> {
    match content {
        SourceContent::File(path) => {
            let opened = match reading {
                Reading::First => File::open(&path),
                Reading::Again => seed_files::open_again(&path),
            };
            let source = opened.map_err(|source| match (source.kind(), reading) {
                (io::ErrorKind::NotFound, Reading::Again) => seed_files::missing(&path),
                _ => SeedError::Unreadable { name: name.to_owned(), source },
            })?;
            reader.read(name, source, add)
        }
        SourceContent::Stdin => reader.read(name, io::stdin().lock(), add),
        SourceContent::Text(text) => reader.read(name, text.as_bytes(), add),
        SourceContent::Fetched(bytes) => reader.read_fetched(name, bytes.as_slice(), add),
        SourceContent::Seeds(seeds) => {
            reader.take_all(name, seeds, add);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: (SiteScope, Reading) = (SiteScope::Public, Reading::First);

    #[test]
    fn reading_ends_when_the_receiver_of_the_seeds_is_dropped() {
        let (sender, batches) = mpsc::channel(2);
        drop(batches);
        let fetched = SourceContent::Fetched(b"a.example\n".repeat(100_000));
        for content in [SourceContent::File("/dev/zero".into()), fetched] {
            let sources = vec![("list".to_owned(), content)];
            let read = read_sources(sources, SeedsRead::default(), FIRST, &sender);
            let Err(SeedError::Unreadable { source, .. }) = read else { panic!("it was read") };
            assert_eq!(source.to_string(), "reading was stopped");
        }
    }

    /// The receiver is dropped while a list is decompressed, after the bytes of its archive were read.
    #[test]
    fn reading_ends_inside_an_archive_and_a_compressed_file() {
        use std::io::Write as _;
        let list = (0..200_000).map(|line| format!("{line}.example\n")).collect::<Vec<_>>().concat();
        let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        zip.start_file("list.csv", zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(list.as_bytes()).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(list.as_bytes()).unwrap();
        for bytes in [zip.finish().unwrap().into_inner(), gzip.finish().unwrap()] {
            let (sender, mut batches) = mpsc::channel::<Vec<Seed>>(2);
            let receiver = std::thread::spawn(move || batches.blocking_recv().map(|batch| batch.len()));
            let sources = vec![("list".to_owned(), SourceContent::Fetched(bytes))];
            let read = read_sources(sources, SeedsRead::default(), FIRST, &sender);
            let Err(SeedError::Unreadable { source, .. }) = read else { panic!("it was read") };
            assert_eq!(source.to_string(), "reading was stopped");
            assert_eq!(receiver.join().unwrap(), Some(SEED_BATCH));
        }
    }

    #[test]
    fn a_batch_of_long_urls_is_short() {
        let path = "x".repeat(8_000);
        let list =
            (0..2_000).map(|line| format!("https://a.example/{line}/{path}\n")).collect::<Vec<_>>().concat();
        let (sender, mut batches) = mpsc::channel::<Vec<Seed>>(10);
        let sources = vec![("list".to_owned(), SourceContent::Fetched(list.into_bytes()))];
        read_sources(sources, SeedsRead::default(), FIRST, &sender).unwrap();
        drop(sender);
        let lengths: Vec<usize> =
            std::iter::from_fn(|| batches.blocking_recv()).map(|batch| batch.len()).collect();
        assert_eq!(lengths.iter().sum::<usize>(), 2_000);
        assert!(lengths.iter().all(|seeds| seeds * 8_000 <= SEED_BATCH_BYTES + 16_384), "{lengths:?}");
    }

    #[tokio::test]
    async fn a_pipe_without_a_writer_does_not_delay_shutdown() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let sources = vec![("pipe".to_owned(), SourceContent::File(pipe.clone()))];
        // The first time, opening the pipe blocks until there is a writer, but the runtime does not wait for that thread.
        let (_batches, mut report) =
            read_on_thread(sources, SeedsRead::default(), SiteScope::Public, Reading::First).unwrap();
        assert!(report.try_recv().is_err());
        let again = vec![("pipe".to_owned(), SourceContent::File(pipe))];
        let (_batches, report) =
            read_on_thread(again, SeedsRead::default(), SiteScope::Public, Reading::Again).unwrap();
        let failed = report.await.unwrap().unwrap().report.failed;
        assert!(failed.len() == 1 && failed[0].contains("pipe"), "{failed:?}");
    }
}
