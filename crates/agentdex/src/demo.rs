//! `agentdex demo`: a small web on this machine, and everything that agentdex does with a web.
//!
//! The demo changes nothing about how is crawled: it only says where the names of its web lead, which certificate
//! authority signed for them, and that a pause of 50 ms is enough, since the addresses are its own.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use crawler::cli::{CrawlFlags, SharedFlags};
use runtime::RuntimeHealth;

use crate::cli::ServeFlags;
use crate::serve::{self, Afterwards, Door};

/// Pause between two requests to one of the demo's hosts.
const DELAY: &str = "50ms";
/// Where site owners of the demo's web would complain.
const CONTACT_URL: &str = "https://agentdex.example/about-the-crawler";

/// Starts the demo's web, crawls it, and serves until Ctrl-C.
pub(crate) async fn run(
    shared: &SharedFlags,
    crawl: &CrawlFlags,
    serve: &ServeFlags,
    health: RuntimeHealth,
) -> anyhow::Result<ExitCode> {
    let dir = data_dir(shared);
    let door = Door::open(shared, serve, &dir, health).await?;
    std::fs::create_dir_all(&dir).with_context(|| {
        format!("the data directory {} cannot be written; choose another with --data-dir", dir.display())
    })?;
    let web = testweb::demo::web().start().await.context("the demo's web cannot start")?;
    let seeds = testweb::demo::seeds();
    serve::say(&format!(
        "A small web of {} sites is up on 127.0.0.1:{}; what is learned goes to {}.",
        seeds.len(),
        web.port(),
        dir.display()
    ))?;
    let seeds_file = dir.join("seeds.txt");
    std::fs::write(&seeds_file, seeds.join("\n"))
        .with_context(|| format!("cannot write {}", seeds_file.display()))?;
    let crawl = reach(&web, &dir, seeds_file, crawl)?;
    let shared = SharedFlags { data_dir: Some(dir), ..shared.clone() };
    let resolved = crawler::cli::resolve(&shared, &crawl)?;
    let served = serve::behind(door, resolved, &shared, serve, Afterwards::FollowDueSites).await;
    web.stop().await;
    served
}

/// The demo's own directory, so that its sites never mix with those of the real web.
fn data_dir(shared: &SharedFlags) -> PathBuf {
    shared.data_dir.clone().unwrap_or_else(|| Path::new("agentdex-data").join("demo"))
}

/// The flags that lead to the demo's web; what was typed about pace is kept.
fn reach(
    web: &testweb::Web,
    dir: &Path,
    seeds_file: PathBuf,
    typed: &CrawlFlags,
) -> anyhow::Result<CrawlFlags> {
    let files = web.write_files(dir)?;
    Ok(CrawlFlags {
        seeds: vec![seeds_file],
        hosts: Some(files.hosts),
        ca_file: Some(files.ca),
        allow_addresses: vec!["127.0.0.0/8".to_owned()],
        delay: typed.delay.clone().or_else(|| Some(DELAY.to_owned())),
        revisit: typed.revisit.clone().or_else(|| Some("0s".to_owned())),
        park_wait: typed.park_wait.clone().or_else(|| Some("0s".to_owned())),
        contact_url: typed.contact_url.clone().or_else(|| Some(CONTACT_URL.to_owned())),
        ..typed.clone()
    })
}
