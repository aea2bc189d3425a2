//! The checks. Each verdict is a function of values, so it can be tested without a database.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use indexer::cli::Settings;
use indexer::{IndexConfig, IndexError, Searcher};
use manifest::Host;
use store::{DatabaseUrl, Store, StoreError};
use tokio::time::{Instant, timeout};

use super::machine::{self, OpenFiles};
use super::{CrawlContext, Finding, Subject};
use crate::size;

/// Timeout of the database: a crawler queries it several times in a visit.
const DATABASE_WAIT: Duration = Duration::from_secs(10);
/// Time limit of the check of all pages of a file. Larger files are checked in part.
const PAGES_WAIT: Duration = Duration::from_secs(20);
/// Maximum round-trip time without a warning; a longer one slows down every visit.
const ROUND_TRIP_FAIR: Duration = Duration::from_millis(50);
/// Clock differences above which the check warns, or fails. Delays and leases are wrong by the difference, and a lease lasts three minutes.
const CLOCK_APART_FAIR: TimeDelta = TimeDelta::seconds(2);
const CLOCK_APART_MAX: TimeDelta = TimeDelta::seconds(30);
/// If the current time is before this, the clock is not set.
const CLOCK_MIN: DateTime<Utc> =
    DateTime::from_timestamp(1_767_225_600, 0).expect("the first of January 2026");
/// A name that always exists.
const NAME_KNOWN: &str = "iana.org";
const NAME_WAIT: Duration = Duration::from_secs(12);
/// Limits of open files below which the check warns, or fails. 256 visits have at most one connection each; the database and the index need
/// a few dozen files.
const OPEN_FILES_FAIR: u64 = 4_096;
const OPEN_FILES_MIN: u64 = 1_024;
/// Free space below which the check warns, or fails. A rebuild of the index temporarily needs its size again, and the logs need space.
const FREE_BYTES_FAIR: u64 = 5 * 1024 * 1024 * 1024;
const FREE_BYTES_MIN: u64 = 512 * 1024 * 1024;
/// Maximum number of changes by which an index may lag; the indexer reads thousands a second.
const LAG_FAIR: i64 = 10_000;

pub(super) async fn all(
    settings: &Settings,
    crawl: &CrawlContext,
    is_wanted: impl Fn(Subject) -> bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let needs_store = [Subject::Database, Subject::Clock, Subject::Index].into_iter().any(&is_wanted);
    let store = if needs_store { open(settings, &crawl.command, &mut findings).await } else { None };
    if is_wanted(Subject::Clock) {
        findings.push(clock(store.as_ref()).await);
    }
    if is_wanted(Subject::Dns) {
        findings.push(dns(&crawl.name_servers).await);
    }
    if is_wanted(Subject::Files) {
        findings.push(files(machine::open_files()));
    }
    if is_wanted(Subject::Disk) {
        findings.push(disk(&settings.data_dir, machine::free_bytes(&settings.data_dir)));
    }
    if is_wanted(Subject::Index) {
        findings.push(index(&settings.index, store.as_ref(), &crawl.command).await);
    }
    if let Some(store) = store {
        store.close().await;
    }
    findings
}

/// Valid settings. `obstacles` are reasons why a crawl cannot start.
pub(super) fn settings(obstacles: &[String]) -> Finding {
    if obstacles.is_empty() {
        return Finding::good(Subject::Settings, "valid for every program");
    }
    let found = format!("valid, but a crawl cannot start: {}", obstacles.join("; "));
    Finding::doubtful(Subject::Settings, found, "correct this, unless this machine does not crawl")
}

async fn open(settings: &Settings, crawl_command: &str, findings: &mut Vec<Finding>) -> Option<Store> {
    let url = &settings.store.url;
    match timeout(DATABASE_WAIT, Store::open_existing(&settings.store)).await {
        Err(_) => {
            let found = format!("{url} does not answer within {} s", DATABASE_WAIT.as_secs());
            findings.push(Finding::bad(Subject::Database, found, database_advice(url)));
        }
        Ok(Err(error)) if error.is_missing() => {
            let advice =
                format!("the first crawl creates it: `{crawl_command}`, or crawler with the same flags");
            let found = format!("{url} has no data of agentdex yet");
            findings.push(Finding::doubtful(Subject::Database, found, advice));
        }
        Ok(Err(error)) => findings.push(unusable_database(url, &error)),
        Ok(Ok(store)) => {
            let start = Instant::now();
            match store.ping().await {
                Ok(()) => {
                    let took = start.elapsed();
                    findings.push(match store.damage(PAGES_WAIT).await {
                        // a check that is not complete found no damage
                        Ok(None) | Err(StoreError::Interrupted { .. }) => round_trip(url, took),
                        Ok(Some(damage)) => damaged(url, &damage),
                        Err(error) => unusable_database(url, &error),
                    });
                }
                Err(error) => findings.push(unusable_database(url, &error)),
            }
            return Some(store);
        }
    }
    None
}

/// A file with damaged pages. `damage` is the first line of SQLite's report.
fn damaged(url: &DatabaseUrl, damage: &str) -> Finding {
    let damage = damage.lines().find(|line| !line.starts_with("***")).unwrap_or(damage);
    let found = format!("{url} is damaged: {damage}");
    Finding::bad(Subject::Database, found, "restore a backup, or move the file away to begin again")
}

/// A database that cannot be used, with a single piece of advice: from the error if it has one.
fn unusable_database(url: &DatabaseUrl, error: &StoreError) -> Finding {
    let bad = |found: String, advice: &str| Finding::bad(Subject::Database, found, advice);
    match error {
        StoreError::Rejected { reason, .. } => bad(
            format!("{url} refused the connection: {reason}"),
            "correct --database-url, DATABASE_URL or database_url_file",
        ),
        StoreError::Unreachable { reason, .. } => {
            bad(format!("{url} cannot be reached: {reason}"), database_advice(url))
        }
        StoreError::NotADatabase { .. } => {
            bad(format!("{url} is not a SQLite database"), "move the file away, or name another --data-dir")
        }
        StoreError::Damaged { .. } | StoreError::DamagedPage { .. } => {
            bad(format!("{url} is damaged"), "restore a backup, or move the file away to begin again")
        }
        StoreError::DirIsFile { dir } => {
            bad(format!("the data directory {} is a file", dir.display()), "choose another with --data-dir")
        }
        StoreError::NotWritable { reason, .. } => {
            bad(format!("{url} cannot be written: {reason}"), database_advice(url))
        }
        StoreError::NoSpace { reason, .. } => {
            bad(format!("{url}: no file can be written beside it: {reason}"), "free some space on its disk")
        }
        StoreError::FileIsDir { .. } => bad(format!("{url} is a directory"), "name a file in it"),
        StoreError::NotReadable { reason } => bad(
            format!("the user of {url} may not read its tables: {reason}"),
            "connect as the user of the crawl, or grant this one the rights to read",
        ),
        StoreError::NotSearchable { reason, .. } => {
            bad(format!("{url} cannot be looked for: {reason}"), database_advice(url))
        }
        StoreError::NotOwner { reason } => bad(
            format!("the user of {url} may not create tables: {reason}"),
            "make it the owner of the database, as in ALTER DATABASE agentdex OWNER TO agentdex",
        ),
        StoreError::SchemaOlder { found, needed } => bad(
            format!("{url} has schema {found}, this program needs {needed}, and the connection is read-only"),
            "run any agentdex program once against the primary to migrate it",
        ),
        StoreError::SchemaNewer { found, known } => bad(
            format!("{url} has schema {found}, which programs of schema {known} cannot use"),
            "use the newer program, or restore a backup from before its first start",
        ),
        StoreError::DiskFull { operation } => bad(
            format!("{url}: the disk is full, {operation} was rolled back"),
            "free some space on its disk",
        ),
        error => bad(format!("{url}: {error}"), database_advice(url)),
    }
}

/// Advice for a database that cannot be used. For a file, there is no server to start.
const fn database_advice(url: &DatabaseUrl) -> &'static str {
    match url {
        DatabaseUrl::Postgres(_) => {
            "start it, or give its address with --database-url, DATABASE_URL or database_url_file"
        }
        DatabaseUrl::Sqlite(_) => {
            "run this as the user that wrote the file, let this user read and write it and its directory, or name another --data-dir"
        }
    }
}

fn round_trip(url: &DatabaseUrl, took: Duration) -> Finding {
    let found = format!("{} at {url} answers within {:.1} ms", url.backend(), took.as_secs_f64() * 1_000.0);
    if took <= ROUND_TRIP_FAIR {
        return Finding::good(Subject::Database, found);
    }
    let advice = "every visit queries it several times: move it nearer, or check its load";
    Finding::doubtful(Subject::Database, found, advice)
}

async fn clock(store: Option<&Store>) -> Finding {
    let database = match store {
        Some(store) => store.server_time().await.ok().flatten(),
        None => None,
    };
    clocks(machine::now(), database)
}

/// The database returns whole seconds, so a difference of up to one second is ignored.
fn clocks(local: DateTime<Utc>, database: Option<DateTime<Utc>>) -> Finding {
    let advice = "synchronise the clocks with a time server (systemd-timesyncd, chrony): delays and leases depend on them";
    if local < CLOCK_MIN {
        return Finding::bad(Subject::Clock, format!("it is set to {}", local.format("%Y-%m-%d")), advice);
    }
    let Some(database) = database else {
        return Finding::good(Subject::Clock, "plausible; there is no database clock to compare it with");
    };
    let apart = (local - database).abs();
    let found = format!("{} s from the database's clock", apart.num_seconds());
    match apart {
        apart if apart > CLOCK_APART_MAX => Finding::bad(Subject::Clock, found, advice),
        apart if apart > CLOCK_APART_FAIR => Finding::doubtful(Subject::Clock, found, advice),
        _ => Finding::good(Subject::Clock, found),
    }
}

async fn dns(name_servers: &[SocketAddr]) -> Finding {
    let advice = if name_servers.is_empty() {
        "the crawler queries the name servers of /etc/resolv.conf directly: check them and the route to port 53, or name others with \
         --name-servers"
    } else {
        "the crawler queries the servers of --name-servers or of the file: check them and the route to their port"
    };
    let Ok(host) = Host::parse(NAME_KNOWN) else {
        return Finding::bad(Subject::Dns, format!("{NAME_KNOWN} is not a name"), advice);
    };
    match timeout(NAME_WAIT, crawler::egress::name_servers_know(name_servers, &host)).await {
        Ok(Ok(())) => Finding::good(Subject::Dns, "the name servers resolve public names"),
        Ok(Err(reason)) => Finding::bad(Subject::Dns, reason, advice),
        Err(_) => Finding::bad(Subject::Dns, "the name servers do not answer", advice),
    }
}

fn files(limit: OpenFiles) -> Finding {
    let advice =
        "raise the hard limit: LimitNOFILE=65536 in the unit, or in /etc/security/limits.conf for your user";
    match limit {
        OpenFiles::Unknown => Finding::good(Subject::Files, "this system does not report a limit"),
        OpenFiles::Unlimited => Finding::good(Subject::Files, "no limit"),
        OpenFiles::AtMost(count) => {
            let found = format!("{count} may be open at the same time");
            match count {
                ..OPEN_FILES_MIN => Finding::bad(Subject::Files, found, advice),
                OPEN_FILES_MIN..OPEN_FILES_FAIR => Finding::doubtful(Subject::Files, found, advice),
                _ => Finding::good(Subject::Files, found),
            }
        }
    }
}

fn disk(dir: &Path, room: std::io::Result<u64>) -> Finding {
    let advice =
        "free some space, or choose another disk with --data-dir; the index can be removed and rebuilt";
    let free = match room {
        Ok(free) => free,
        Err(_) if dir.is_file() => {
            return Finding::bad(
                Subject::Disk,
                format!("{} is a file", dir.display()),
                "name another --data-dir",
            );
        }
        Err(error) => {
            let advice = "create the directory, or make it writable for the user that runs agentdex";
            return Finding::bad(Subject::Disk, format!("{}: {error}", dir.display()), advice);
        }
    };
    let found = format!("{} free for {}", size::in_words(free), dir.display());
    match free {
        ..FREE_BYTES_MIN => Finding::bad(Subject::Disk, found, advice),
        FREE_BYTES_MIN..FREE_BYTES_FAIR => Finding::doubtful(Subject::Disk, found, advice),
        _ => Finding::good(Subject::Disk, found),
    }
}

/// How to replace an index. A running indexer holds its lock.
const REBUILD: &str = "stop the indexer or agentdex that writes it, and run `indexer rebuild`: it makes a new one from the database, and an API continues to answer";

async fn index(config: &IndexConfig, store: Option<&Store>, crawl_command: &str) -> Finding {
    let opened = tokio::task::spawn_blocking({
        let config = config.clone();
        move || Searcher::of(&config)
    });
    let searcher = match opened.await {
        Ok(Ok(searcher)) => searcher,
        Ok(Err(IndexError::Missing { dir })) if store.is_none() => {
            let found = format!("there is no index in {} yet", dir.display());
            return Finding::doubtful(Subject::Index, found, "see database");
        }
        Ok(Err(error)) => return unusable(&error, crawl_command),
        Err(error) => return Finding::bad(Subject::Index, error.to_string(), "report this as a bug"),
    };
    let Some(store) = store else {
        return Finding::good(
            Subject::Index,
            format!("opens, with {} capabilities", searcher.capabilities()),
        );
    };
    let advice = REBUILD;
    match (store.feed_id().await, store.feed_head().await) {
        (Ok(feed), Ok(head)) => match searcher.check_feed(&feed) {
            Ok(()) => lag(searcher.capabilities(), head.0 - searcher.generation().position.0),
            Err(error) => Finding::bad(Subject::Index, error.without_advice(), advice),
        },
        (Err(error), _) | (_, Err(error)) => Finding::bad(Subject::Index, error.to_string(), "see database"),
    }
}

fn unusable(error: &IndexError, crawl_command: &str) -> Finding {
    match error {
        IndexError::Missing { dir } => Finding::doubtful(
            Subject::Index,
            format!("there is no index in {} yet", dir.display()),
            format!(
                "`indexer rebuild` builds it from the database; `{crawl_command}` does so while it crawls"
            ),
        ),
        IndexError::NotReadable { dir, source } => Finding::bad(
            Subject::Index,
            format!("the index in {} cannot be opened: {source}", dir.display()),
            "run this as the user that wrote it, or let this user read and write its files",
        ),
        _ => Finding::bad(Subject::Index, error.without_advice(), REBUILD),
    }
}

fn lag(capabilities: u64, behind: i64) -> Finding {
    let found = format!("{capabilities} capabilities, {behind} changes behind the database");
    if behind <= LAG_FAIR {
        return Finding::good(Subject::Index, found);
    }
    Finding::doubtful(Subject::Index, found, "check whether the indexer runs, and its log")
}

#[cfg(test)]
mod tests {
    use super::super::Health;
    use super::*;

    const COMMAND: &str = "agentdex --seeds FILE --contact-email YOU";

    /// Configures a server address without a listener. The name servers of the system must not be queried.
    #[tokio::test]
    async fn queries_the_configured_name_servers() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let server = socket.local_addr().unwrap();
        let asked = tokio::task::spawn_blocking(move || socket.recv(&mut [0; 512]).unwrap());
        let mut checked = tokio::task::JoinSet::new();
        checked.spawn(async move { dns(&[server]).await });
        assert!(timeout(NAME_WAIT, asked).await.unwrap().unwrap() > 0);
    }

    #[tokio::test]
    async fn name_servers_that_resolve_no_name_are_a_problem() {
        // nothing answers at a port that is closed
        let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let finding = dns(&[closed]).await;
        assert_eq!(finding.health, Health::Bad, "{finding:?}");
    }

    #[test]
    fn a_data_directory_that_is_a_file_is_named_as_such() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let finding = disk(file.path(), machine::free_bytes(file.path()));
        assert!(finding.health == Health::Bad && finding.found.ends_with(" is a file"), "{finding:?}");
    }

    #[test]
    fn verdicts_depend_on_thresholds() {
        let now = DateTime::from_timestamp(1_780_000_000, 0).unwrap();
        let at = |seconds| Some(now + TimeDelta::seconds(seconds));
        let url = DatabaseUrl::parse("postgres://me:word@host/db").unwrap();
        let dir = Path::new("/data");
        for (finding, health) in [
            (clocks(now, at(1)), Health::Good),
            (clocks(now, at(-10)), Health::Doubtful),
            (clocks(now, at(60)), Health::Bad),
            (clocks(now, None), Health::Good),
            (clocks(DateTime::UNIX_EPOCH, None), Health::Bad),
            (round_trip(&url, Duration::from_millis(1)), Health::Good),
            (round_trip(&url, Duration::from_millis(200)), Health::Doubtful),
            (files(OpenFiles::AtMost(65_536)), Health::Good),
            (files(OpenFiles::AtMost(1_024)), Health::Doubtful),
            (files(OpenFiles::AtMost(256)), Health::Bad),
            (files(OpenFiles::Unlimited), Health::Good),
            (disk(dir, Ok(FREE_BYTES_FAIR)), Health::Good),
            (disk(dir, Ok(FREE_BYTES_MIN)), Health::Doubtful),
            (disk(dir, Ok(0)), Health::Bad),
            (disk(dir, Err(std::io::ErrorKind::PermissionDenied.into())), Health::Bad),
            (settings(&[]), Health::Good),
            (settings(&["there are no seeds".to_owned()]), Health::Doubtful),
            (lag(10, 0), Health::Good),
            (lag(10, 1_000_000), Health::Doubtful),
        ] {
            assert_eq!(finding.health, health, "{finding:?}");
            assert_eq!(finding.advice.is_none(), health == Health::Good, "{finding:?}");
            assert!(!finding.found.contains("word"), "{finding:?}");
        }
    }

    #[test]
    fn an_index_of_another_user_needs_permission_instead_of_a_rebuild() {
        let source = std::io::ErrorKind::PermissionDenied.into();
        let finding = unusable(&IndexError::NotReadable { dir: "/data/index".into(), source }, COMMAND);
        assert_eq!(finding.health, Health::Bad);
        assert_eq!(finding.found, "the index in /data/index cannot be opened: permission denied");
        assert!(finding.advice.is_some_and(|advice| advice.contains("the user that wrote it")));
    }

    #[tokio::test]
    async fn does_not_advise_to_start_a_server_for_a_file_that_is_not_a_database() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("agentdex.db"), "this is no database\n".repeat(100)).unwrap();
        let shared = ::settings::SharedFlags {
            data_dir: Some(dir.path().to_owned()),
            ..::settings::SharedFlags::default()
        };
        let flags = indexer::cli::ReaderFlags { shared, ..indexer::cli::ReaderFlags::default() };
        let mut findings = Vec::new();
        assert!(open(&flags.settings().unwrap(), COMMAND, &mut findings).await.is_none());
        let url = DatabaseUrl::in_data_dir(dir.path());
        assert_eq!(findings[0].found, format!("{url} is not a SQLite database"));
        assert_eq!(findings[0].advice.as_deref(), Some("move the file away, or name another --data-dir"));
    }

    /// If a server refuses a role, the advice must not be to start it.
    #[test]
    fn a_database_that_cannot_be_used_is_named_once_and_has_one_piece_of_advice() {
        let url = DatabaseUrl::parse("postgres://me:word@host/db").unwrap();
        let (shown, reason) = (url.to_string(), || "role \"me\" does not exist".to_owned());
        for (error, advice) in [
            (StoreError::Rejected { url: shown.clone(), reason: reason() }, "correct --database-url"),
            (StoreError::Unreachable { url: shown, reason: reason() }, "start it, or give its address"),
            (StoreError::NotOwner { reason: reason() }, "make it the owner"),
            (StoreError::NotReadable { reason: reason() }, "connect as the user of the crawl"),
            (StoreError::DamagedPage { operation: "stats" }, "restore a backup"),
            (StoreError::NoSpace { path: "d".into(), reason: reason() }, "free some space"),
            (StoreError::SchemaNewer { found: 9, known: 8 }, "use the newer program"),
            (StoreError::SchemaOlder { found: 8, needed: 9 }, "run any agentdex program once"),
        ] {
            let finding = unusable_database(&url, &error);
            assert_eq!(finding.found.matches("postgres://").count(), 1, "{finding:?}");
            assert!(!finding.found.contains("; ") && !finding.found.contains("word"), "{finding:?}");
            assert!(finding.advice.as_deref().is_some_and(|given| given.starts_with(advice)), "{finding:?}");
        }
    }

    #[tokio::test]
    async fn an_index_is_doubtful_if_missing_and_bad_for_another_feed() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_in_data_dir(dir.path()).await.unwrap();
        let config = IndexConfig::at(dir.path().join("index"));
        let missing = index(&config, Some(&store), COMMAND).await;
        assert_eq!(missing.health, Health::Doubtful, "{missing:?}");
        assert!(missing.advice.is_some_and(|advice| advice.starts_with("`indexer rebuild` builds it")));
        assert!(!missing.found.contains("indexer"), "{}", missing.found);
        let without_database = index(&config, None, COMMAND).await;
        assert_eq!(without_database.advice.as_deref(), Some("see database"));
        indexer::follow::rebuild(store.clone(), config.clone()).await.unwrap();
        assert_eq!(index(&config, Some(&store), COMMAND).await.health, Health::Good);
        let other = tempfile::tempdir().unwrap();
        let other = Store::open_in_data_dir(other.path()).await.unwrap();
        let finding = index(&config, Some(&other), COMMAND).await;
        assert_eq!(finding.health, Health::Bad, "{finding:?}");
        assert!(clock(Some(&store)).await.found.contains("from the database's clock"));
    }
}
