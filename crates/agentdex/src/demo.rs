//! `agentdex demo`: starts a small web on this machine, crawls it, and serves the results.
//!
//! The crawl is a normal one. The demo only sets the addresses of its hosts, their certificate authority, a delay of 50 ms and an interval
//! of ten minutes between visits, which are allowed because the addresses belong to the demo.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use crawler::cli::{CrawlFlags, Settings};
use crawler::{CrawlConfig, CrawlError, LockError, UsageError};
use runtime::RuntimeHealth;
use settings::SharedFlags;
use store::DatabaseUrl;

use crate::announce::Announcement;
use crate::serve::{self, AfterPass, Endpoint, ServeFlags};

/// The directory of the demo below the default data directory.
pub(crate) const DIR_NAME: &str = "demo";
/// Delay between two requests to a host of the demo.
pub(crate) const DELAY: &str = "50ms";
/// Interval between visits to a site of the demo, short enough to watch repeated visits.
pub(crate) const REVISIT_EVERY: &str = "10m";
/// How long the first pass over the demo waits for parked visits.
pub(crate) const PARK_WAIT: &str = "0s";
/// The contact page that the demo's crawler names in its requests.
const CONTACT_URL: &str = "https://agentdex.example/about-the-crawler";

/// Starts the demo's web, crawls it, and serves until Ctrl-C.
pub(crate) async fn run(
    shared: &SharedFlags,
    crawl: &CrawlFlags,
    serve: &ServeFlags,
    health: RuntimeHealth,
) -> anyhow::Result<ExitCode> {
    let dir = data_dir(shared);
    let shared = &own_flags(shared, &dir);
    let seeds_file = dir.join("seeds.txt");
    // nothing is written before the directory is locked, so that the files of a running demo are not changed
    let crawl = of_own_networks(crawl);
    let settings = crawler::cli::resolve(shared, &crawl)?;
    serve::refuse_unsupported(&settings, shared)?;
    refuse_other_crawl(shared, &dir, &seeds_file)?;
    serve::create_data_dir(&dir)?;
    let _files = lock_files(&settings.crawl, &dir, &seeds_file)?;
    let lock = serve::locked(settings)?.crawl.lock;
    let endpoint = Endpoint::bind(shared, serve, &dir, health).await?;
    let web = testweb::demo::web().start().await.context("the demo's web cannot start")?;
    let seeds = testweb::demo::seeds();
    let announcement = Announcement::Demo {
        sites: seeds.len(),
        address: format!("127.0.0.1:{}", web.port()),
        data_dir: dir.display().to_string(),
    };
    std::fs::write(&seeds_file, seeds.join("\n") + "\n")
        .with_context(|| format!("cannot write {}", seeds_file.display()))?;
    let files = web.write_files(&dir)?;
    let crawl =
        CrawlFlags { seeds: vec![seeds_file], hosts: Some(files.hosts), ca_file: Some(files.ca), ..crawl };
    let resolved = crawler::cli::resolve(shared, &crawl)?.continuous()?;
    announcement.print(resolved.output)?;
    let resolved = Settings { crawl: CrawlConfig { lock, ..resolved.crawl }, ..resolved };
    let served = serve::run_on(endpoint, resolved, shared, serve, AfterPass::GoOn).await;
    web.stop().await;
    served
}

/// Refuses a directory with the database of another crawl, whose sites do not exist in the demo's web.
fn refuse_other_crawl(shared: &SharedFlags, dir: &Path, seeds_file: &Path) -> Result<(), UsageError> {
    let DatabaseUrl::Sqlite(database) = DatabaseUrl::in_data_dir(dir) else { return Ok(()) };
    let is_used = shared.database_url.as_deref() == Some(&DatabaseUrl::in_data_dir(dir).to_string());
    if is_used && database.exists() && !seeds_file.exists() {
        return Err(UsageError(format!(
            "{} has a crawl of other sites: name another --data-dir for the demo",
            dir.display()
        )));
    }
    Ok(())
}

/// A separate directory for the demo, so that its sites do not mix with real ones.
fn data_dir(shared: &SharedFlags) -> PathBuf {
    shared.data_dir.clone().unwrap_or_else(|| Path::new("agentdex-data").join(DIR_NAME))
}

/// The flags with the demo's directory. The sites of the demo are invented, so the database of the environment or of a configuration file
/// is used only if it is given on the command line.
fn own_flags(shared: &SharedFlags, dir: &Path) -> SharedFlags {
    let own = || DatabaseUrl::in_data_dir(dir).to_string();
    SharedFlags {
        data_dir: Some(dir.to_owned()),
        database_url: Some(shared.database_url.clone().unwrap_or_else(own)),
        ..shared.clone()
    }
}

/// Locks the demo's files, which are in its directory regardless of the database.
fn lock_files(crawl: &CrawlConfig, dir: &Path, seeds_file: &Path) -> anyhow::Result<CrawlConfig> {
    let files = CrawlConfig { locked_database: Some(seeds_file.to_owned()), lock: None, ..crawl.clone() };
    files.locked().map_err(|error| match error {
        LockError::Taken { holder, .. } => {
            anyhow::anyhow!(
                "a demo ({holder}) runs in {}: stop it, or name another --data-dir",
                dir.display()
            )
        }
        error @ LockError::Unusable { .. } => CrawlError::from(error).into(),
    })
}

/// The flags for crawling the demo's web, without its files. Its addresses allow short delays and intervals; typed ones are kept.
fn of_own_networks(typed: &CrawlFlags) -> CrawlFlags {
    let or = |typed: &Option<String>, own: &str| typed.clone().or_else(|| Some(own.to_owned()));
    CrawlFlags {
        allow_addresses: vec!["127.0.0.0/8".to_owned()],
        delay: or(&typed.delay, DELAY),
        revisit: or(&typed.revisit, "0s"),
        revisit_every: or(&typed.revisit_every, REVISIT_EVERY),
        park_wait: or(&typed.park_wait, PARK_WAIT),
        contact_url: or(&typed.contact_url, CONTACT_URL),
        ..typed.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_with_another_crawl_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (database, seeds) = (dir.path().join("agentdex.db"), dir.path().join("seeds.txt"));
        let refused = |url: Option<&str>| {
            let typed = SharedFlags { database_url: url.map(str::to_owned), ..SharedFlags::default() };
            refuse_other_crawl(&own_flags(&typed, dir.path()), dir.path(), &seeds).is_err()
        };
        assert!(!refused(None), "an empty directory");
        std::fs::write(&database, "").unwrap();
        assert!(refused(None));
        assert!(!refused(Some("postgres://host/demo")), "the file is not used");
        std::fs::write(&seeds, "skyhop.example\n").unwrap();
        assert!(!refused(None), "an earlier demo");
    }

    #[test]
    fn short_delays_and_intervals_may_be_typed() {
        let typed = CrawlFlags {
            delay: Some("7ms".to_owned()),
            revisit_every: Some("1m".to_owned()),
            ..CrawlFlags::default()
        };
        let settings = crawler::cli::resolve(&SharedFlags::default(), &of_own_networks(&typed)).unwrap();
        assert_eq!(settings.crawl.delay, std::time::Duration::from_millis(7));
        assert_eq!(settings.crawl.revisit_every, Some(std::time::Duration::from_mins(1)));
        let untyped = of_own_networks(&CrawlFlags::default());
        assert_eq!((untyped.delay.as_deref(), untyped.park_wait.as_deref()), (Some(DELAY), Some(PARK_WAIT)));
        assert_eq!(untyped.revisit_every.as_deref(), Some(REVISIT_EVERY));
    }

    #[test]
    fn the_database_is_in_its_directory_unless_another_is_typed() {
        let dir = Path::new("agentdex-data/demo");
        let typed = |url: Option<&str>| SharedFlags {
            database_url: url.map(str::to_owned),
            ..SharedFlags::default()
        };
        let url = |flags: &SharedFlags| own_flags(flags, dir).database_url.unwrap_or_default();
        assert_eq!(url(&typed(None)), "sqlite:agentdex-data/demo/agentdex.db");
        assert_eq!(url(&typed(Some("postgres://host/db"))), "postgres://host/db");
    }
}
