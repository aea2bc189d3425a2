//! Seeds into the store: every source is read once, and added batch by batch while the next batch is read.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::PathBuf;

use manifest::{SiteName, SiteScope};
use store::{Seed, Store, StoreError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::config::{CrawlConfig, SeedLists, SeedSource};
use crate::error::CrawlError;
use crate::fleet::Progress;
use crate::mcp_registry::list_mcp_registry;
use crate::remote_seeds::{Incomplete, fetch_list, search_registry};
use crate::seeds::{SeedError, SeedReader, SeedReport, fingerprint};
use crate::visit::{StandaloneRequests, Stop, Tools};

/// Seeds added by one call to the store.
const SEED_BATCH: usize = 20_000;
/// Listed sites that are compared at a time.
const LISTED_PAGE: u32 = 20_000;

/// Reads every source and adds its seeds in batches. Lists on the web are fetched first.
pub(crate) async fn seed(
    config: &CrawlConfig,
    tools: &Tools,
    stop: &CancellationToken,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<SeedReport, CrawlError> {
    if config.seeds.is_empty() {
        return Ok(SeedReport::default());
    }
    let store = &tools.store;
    let stop = Stop { soft: stop.clone(), ..Stop::default() };
    let mut requests = StandaloneRequests::new(tools, config.worker.clone(), config.mode.park_wait(), stop);
    let incomplete = match config.seed_lists {
        SeedLists::Added => Incomplete::Used,
        SeedLists::Followed => Incomplete::Refused,
    };
    let mut sources = Vec::with_capacity(config.seeds.len());
    for source in &config.seeds {
        let content = match source {
            SeedSource::Url(url) => SourceContent::Bytes(fetch_list(&mut requests, url).await?),
            SeedSource::Registry(url) => {
                SourceContent::Seeds(search_registry(&mut requests, url, incomplete).await?)
            }
            SeedSource::McpRegistry(url) => {
                SourceContent::Seeds(list_mcp_registry(&mut requests, url, incomplete).await?)
            }
            SeedSource::File(path) => SourceContent::File(path.clone()),
            SeedSource::Stdin => SourceContent::Stdin,
            SeedSource::Text { text, .. } => SourceContent::Bytes(text.clone().into_bytes()),
        };
        sources.push((source.name(), content));
    }
    // each seed is taken once: what the operator lists counts before what a registry links to
    sources.sort_by_key(|(_, content)| matches!(content, SourceContent::Seeds(_)));
    let (sender, mut batches) = mpsc::channel::<Vec<Seed>>(2);
    let scope = config.egress.own_networks.site_scope();
    let reading = tokio::task::spawn_blocking(move || read_sources(sources, scope, &sender));
    let (mut seeds_read, mut refused) = (0, 0);
    let mut named = HashSet::new();
    while let Some(batch) = batches.recv().await {
        seeds_read += batch.len() as u64;
        let added = match config.seed_lists {
            SeedLists::Added => store.seeds_add(&batch, clock::now()).await?,
            SeedLists::Followed => {
                named.extend(batch.iter().map(|seed| fingerprint(seed.host.site().as_str())));
                store.seeds_relist(&batch, clock::now()).await?
            }
        };
        refused += added.refused;
        progress(Progress::Seeding { seeds_read });
    }
    let mut report = reading.await.unwrap_or_else(|error| {
        Err(SeedError::Unreadable { name: "seeds".to_owned(), source: io::Error::other(error) })
    })?;
    report.refused = refused;
    if let Some(cut) = report.sources.iter().find(|source| source.is_cut) {
        tracing::warn!(
            source = cut.source,
            names = cut.names,
            "a source has more names than are read of one"
        );
    } else if config.seed_lists == SeedLists::Followed {
        report.sites_forgotten = delete_unlisted(store, &named).await?;
    }
    Ok(report)
}

/// Deletes the sites that only lists named and that none names any more. Called only after every list was read to its end.
async fn delete_unlisted(store: &Store, named: &HashSet<u64>) -> Result<u64, StoreError> {
    let mut forgotten = 0;
    let mut after = None;
    loop {
        let page = store.sites_listed(after.as_ref(), LISTED_PAGE).await?;
        let Some(last) = page.last().cloned() else { return Ok(forgotten) };
        let gone: Vec<SiteName> =
            page.into_iter().filter(|site| !named.contains(&fingerprint(site.as_str()))).collect();
        forgotten += store.sites_unlist(&gone, clock::now()).await?;
        after = Some(last);
    }
}

/// The content of a source.
enum SourceContent {
    File(PathBuf),
    Stdin,
    Bytes(Vec<u8>),
    Seeds(Vec<Seed>),
}

fn read_sources(
    sources: Vec<(String, SourceContent)>,
    scope: SiteScope,
    sender: &mpsc::Sender<Vec<Seed>>,
) -> Result<SeedReport, SeedError> {
    let mut reader = SeedReader::new(scope);
    for (name, content) in sources {
        let mut batch = Vec::with_capacity(SEED_BATCH);
        let mut add = |seed| {
            batch.push(seed);
            if batch.len() == SEED_BATCH {
                // a closed receiver has its own error
                drop(sender.blocking_send(std::mem::take(&mut batch)));
            }
        };
        match content {
            SourceContent::File(path) => {
                let file = File::open(path)
                    .map_err(|source| SeedError::Unreadable { name: name.clone(), source })?;
                reader.read(&name, file, &mut add)?;
            }
            SourceContent::Stdin => reader.read(&name, io::stdin().lock(), &mut add)?,
            SourceContent::Bytes(bytes) => reader.read(&name, bytes.as_slice(), &mut add)?,
            SourceContent::Seeds(seeds) => reader.take_all(&name, seeds, &mut add),
        }
        drop(sender.blocking_send(batch));
    }
    Ok(reader.into_report())
}
