//! The configuration of a crawl, parsed and checked once, before the first request.

use std::cell::Cell;
use std::io::BufRead as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::{Host, ManifestUrl, SiteScope};
use store::{Retention, WorkerId};

use crate::database_lock::{DatabaseLock, LockError};
use crate::schedule::Schedules;
use crate::seeds::{SeedError, SeedReader, SeedReport};
use egress::EgressSettings;
use runtime::ReaderProgram;

/// Default number of concurrent visits: with a gap of 3 s they send about 80 requests per second.
pub const CONCURRENCY_DEFAULT: usize = 256;
/// Default limit of requests per second of one process. It is higher than 256 visits can reach.
pub const RATE_DEFAULT: NonZeroU32 = NonZeroU32::new(1_000).expect("not zero");
/// Default wait of a pass for parked visits.
pub const PARK_WAIT_DEFAULT: Duration = Duration::from_mins(1);

/// Maximum size of a list that is read when settings are checked: a million names.
const LIST_CHECKED_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Extensions of list files. A missing file with one of them is not mistaken for a domain.
const LIST_EXTENSIONS: [&str; 12] =
    ["txt", "csv", "tsv", "zip", "gz", "xml", "opml", "json", "jsonl", "md", "list", "dat"];

/// A crawl.
#[derive(Debug, Clone)]
pub struct CrawlConfig {
    pub egress: EgressSettings,
    pub seeds: Vec<SeedSource>,
    pub seed_lists: SeedLists,
    pub without_seeds: WithoutSeeds,
    /// When an earlier pass began to read the seeds. The crawl reads them again only if a file is newer.
    pub seeds_read_at: Option<DateTime<Utc>>,
    pub mode: Mode,
    /// Minimum delay between two requests to an authority; robots.txt may require more.
    pub delay: Duration,
    /// Requests per second of this process.
    pub rate: NonZeroU32,
    /// Maximum number of visits that are open at the same time.
    pub concurrency: usize,
    /// Makes sites due that were visited longer ago than this.
    pub revisit_older_than: Option<Duration>,
    /// The operator's own interval between visits to a site that answers; at least a day for sites outside the operator's networks.
    pub revisit_every: Option<Duration>,
    pub worker: WorkerId,
    /// The embedded database to lock. `None` for a database that a fleet shares.
    pub locked_database: Option<PathBuf>,
    /// The lock on it, once it is taken.
    pub lock: Option<Arc<DatabaseLock>>,
    /// Duration of a lease. A lease is renewed after a third of it, and expires if the process was killed.
    pub lease: Duration,
    /// Scheduled tasks of a daemon.
    pub schedules: Schedules,
    /// The age limits of housekeeping.
    pub retention: Retention,
    /// The file that events are appended to, one JSON object per line.
    pub events: Option<PathBuf>,
    /// Whether TXT records are queried for manifests.
    pub text_records: TextRecords,
    /// Whether the hosts of endpoints are checked every day.
    pub endpoint_checks: EndpointChecks,
    /// Reads a document in a separate process after its first reader crashed or hung.
    pub reader: Option<ReaderProgram>,
}

impl CrawlConfig {
    /// Locks the embedded database, if that was not done before. The lock is held as long as a copy of this configuration exists.
    ///
    /// # Errors
    ///
    /// If another crawler holds it, or the lock file cannot be written.
    pub fn locked(mut self) -> Result<Self, LockError> {
        if let (None, Some(database)) = (&self.lock, &self.locked_database) {
            self.lock = Some(Arc::new(DatabaseLock::take(database, &self.worker)?));
        }
        Ok(self)
    }

    /// The configuration for reading the seeds again. Standard input, pipes and devices are left out. In that case the lists only add
    /// sites, because the names from these sources are no longer known.
    pub(crate) fn for_reading_again(&self) -> Self {
        let can_be_read_again = |source: &&SeedSource| {
            let reason = source.file().and_then(not_readable_again);
            if let Some(reason) = reason {
                tracing::warn!(file = source.name(), reason, "a seed file cannot be read again");
            }
            reason.is_none() && **source != SeedSource::Stdin
        };
        let seeds: Vec<SeedSource> = self.seeds.iter().filter(can_be_read_again).cloned().collect();
        let seed_lists = if seeds.len() == self.seeds.len() { self.seed_lists } else { SeedLists::Added };
        Self { seeds, seed_lists, ..self.clone() }
    }
}

/// How to treat sites that the seed lists no longer name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SeedLists {
    /// They are kept: lists only add sites.
    #[default]
    Added,
    /// They are deleted, unless a client submitted them or a site links to them.
    Followed,
}

/// What a crawl does if none of its sources of seeds can be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WithoutSeeds {
    /// It fails.
    #[default]
    Fails,
    /// It visits the sites that it knows, if any site has a next visit.
    VisitsKnownSites,
}

/// Whether `_atp` and `_agent` TXT records are queried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TextRecords {
    #[default]
    Ignored,
    Queried,
}

/// Whether the hosts that endpoints name are checked by one TLS handshake a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EndpointChecks {
    #[default]
    Off,
    Daily,
}

/// When a crawl ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Ends when nothing is due. Waits for parked visits for at most `park_wait`. If the crawl goes on afterwards, sites that are added or
    /// become due during the pass are visited, too, and seed files are followed.
    Once { park_wait: Duration, goes_on: bool },
    /// Runs until it is stopped.
    Daemon,
}

impl Mode {
    /// How long a request outside a visit waits.
    pub(crate) const fn park_wait(self) -> Duration {
        match self {
            Self::Once { park_wait, .. } => park_wait,
            Self::Daemon => PARK_WAIT_DEFAULT,
        }
    }

    /// The same, for a crawl that goes on after its first pass.
    #[must_use]
    pub const fn going_on(self) -> Self {
        match self {
            Self::Once { park_wait, .. } => Self::Once { park_wait, goes_on: true },
            Self::Daemon => Self::Daemon,
        }
    }

    /// Whether the crawl runs until it is stopped.
    pub(crate) const fn keeps_running(self) -> bool {
        matches!(self, Self::Daemon | Self::Once { goes_on: true, .. })
    }
}

/// Where seeds come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeedSource {
    File(PathBuf),
    Stdin,
    /// A list on the web.
    Url(ManifestUrl),
    /// Another registry of agents, listed by ARD's `GET /agents` or searched by `POST /search`.
    Registry(ManifestUrl),
    /// A registry of MCP servers, listed by `GET /v0.1/servers`.
    McpRegistry(ManifestUrl),
    /// Built-in text, such as the demo's.
    Text {
        name: String,
        text: String,
    },
}

impl SeedSource {
    /// Checks that a file can be opened, before anything else is started.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is a directory; the error names the file.
    pub fn check_readable(&self) -> Result<(), SeedError> {
        let Self::File(path) = self else { return Ok(()) };
        let read = std::fs::metadata(path).and_then(|file| match () {
            () if file.is_dir() => Err(std::io::ErrorKind::IsADirectory.into()),
            () if file.is_file() => std::fs::File::open(path).map(drop),
            // do not open pipes: the writer of a pipe would not wait for a second reader
            () => Ok(()),
        });
        read.map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                SeedError::Missing { name: self.name(), path, advice: advice_for_missing(&self.name()) }
            }
            _ => SeedError::Unreadable { name: self.name(), source },
        })
    }

    /// Checks that a file names a seed, before anything is created: reads it to its first seed. Of stdin, only that it is not empty can be
    /// checked; pipes and lists on the web are not read.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or no line of it is a seed; the error says what to write.
    pub fn check_usable(&self, scope: SiteScope) -> Result<(), SeedError> {
        self.check_readable()?;
        let unreadable = |source| SeedError::Unreadable { name: self.name(), source };
        let is_found = Cell::new(false);
        let is_stopped = || is_found.get();
        let mut reader = SeedReader::new(scope, &is_stopped);
        match self {
            Self::File(path) if std::fs::metadata(path).is_ok_and(|file| file.is_file()) => {
                let file = std::fs::File::open(path).map_err(unreadable)?;
                let read = reader.read(&self.name(), file, |_| is_found.set(true));
                // after the first seed, reading ends with an error
                if is_found.get() { Ok(()) } else { read }
            }
            // the bytes stay in the buffer
            Self::Stdin if std::io::stdin().lock().fill_buf().map_err(unreadable)?.is_empty() => {
                reader.read(&self.name(), std::io::empty(), drop)
            }
            _ => Ok(()),
        }
    }

    /// Reads a file of at most 16 MiB, as a crawl would read it; other sources are not read.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or no line of it is a seed; the error names the file and a line. The report has the lines that are
    /// skipped.
    pub fn check_lines(&self, scope: SiteScope) -> Result<SeedReport, SeedError> {
        self.check_readable()?;
        let Self::File(path) = self else { return Ok(SeedReport::default()) };
        let is_small = |file: std::fs::Metadata| file.is_file() && file.len() <= LIST_CHECKED_BYTES_MAX;
        if !std::fs::metadata(path).is_ok_and(is_small) {
            return Ok(SeedReport::default());
        }
        let file = std::fs::File::open(path)
            .map_err(|source| SeedError::Unreadable { name: self.name(), source })?;
        let is_cancelled = || false;
        let mut reader = SeedReader::new(scope, &is_cancelled);
        reader.read(&self.name(), file, drop)?;
        Ok(reader.into_report())
    }

    /// The path of a file.
    pub(crate) fn file(&self) -> Option<&Path> {
        if let Self::File(path) = self { Some(path) } else { None }
    }

    /// Whether it is read by requests, which may have to wait.
    pub(crate) const fn is_on_web(&self) -> bool {
        match self {
            Self::Url(_) | Self::Registry(_) | Self::McpRegistry(_) => true,
            Self::File(_) | Self::Stdin | Self::Text { .. } => false,
        }
    }

    /// Name of the source in messages.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Stdin => "stdin".to_owned(),
            Self::Url(url) => url.to_string(),
            Self::Registry(url) => format!("ard:{url}"),
            Self::McpRegistry(url) => format!("mcp:{url}"),
            Self::Text { name, .. } => name.clone(),
        }
    }
}

/// A name of this process that is unique among all running processes.
pub fn worker_id() -> WorkerId {
    WorkerId::new(&format!("{}/{}", store::machine(), std::process::id()))
}

/// Why a file cannot be read a second time; `None` if it can, or is missing or a directory for now, which reading it reports.
fn not_readable_again(path: &Path) -> Option<&'static str> {
    let metadata = std::fs::metadata(path).ok()?;
    (!metadata.is_file() && !metadata.is_dir()).then_some("it is not a regular file")
}

/// Advice for a seed file that does not exist: the name may be a domain, or a mistyped `starter`.
fn advice_for_missing(name: &str) -> String {
    let is_domain = |name: &str| {
        let extension = name.rsplit_once('.').map(|(_, extension)| extension);
        extension.is_some_and(|extension| !LIST_EXTENSIONS.contains(&extension)) && Host::parse(name).is_ok()
    };
    if name.split(',').all(is_domain) {
        let first = name.split(',').next().unwrap_or_default();
        return format!(
            "--seeds takes files; write the domains into one, one a line, or visit one site with `check {first}`"
        );
    }
    if name.contains(['.', '/']) {
        return "check the path".to_owned();
    }
    "check the path, or write `--seeds starter` for the list that ships".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advises_on_missing_seed_files_by_their_names() {
        for (name, advice) in [
            ("example.org", "visit one site with `check example.org`"),
            ("example.org,example.net", "visit one site with `check example.org`"),
            ("domains.txt", "check the path"),
            ("lists/example.org", "check the path"),
            ("staretr", "write `--seeds starter`"),
        ] {
            let error = SeedSource::File(name.into()).check_lines(SiteScope::Public).unwrap_err().to_string();
            let absolute = std::env::current_dir().unwrap().join(name);
            let start =
                format!("cannot read the seed file {name}: there is no file at {}; ", absolute.display());
            assert!(error.starts_with(&start) && error.contains(advice), "{error}");
            assert_eq!(error.contains("--seeds takes files"), advice.contains("one site"), "{error}");
        }
    }

    #[test]
    fn a_list_without_a_seed_is_refused_with_what_to_write() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("domains.txt");
        let check = |text: &str| {
            std::fs::write(&list, text).unwrap();
            SeedSource::File(list.clone()).check_usable(SiteScope::Public)
        };
        for text in ["", "\n\n", "# nothing yet\n", "not a name\nlocalhost\n"] {
            let error = check(text).unwrap_err().to_string();
            assert!(
                error.contains("domains.txt") && error.ends_with("one domain a line, like example.org"),
                "{error}"
            );
        }
        for text in ["a.example\n", "# mine\nnot a name\nhttps://a.example/agent.json\n"] {
            check(text).unwrap();
        }
        check(&format!("{}a.example\n", "b.example\n".repeat(100_000))).unwrap();
    }

    #[test]
    fn only_regular_files_are_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("list");
        assert_eq!(not_readable_again(&list), None, "it is missing for now");
        std::fs::write(&list, "a.example\n").unwrap();
        assert_eq!(not_readable_again(&list), None);
        assert!(not_readable_again(Path::new("/dev/zero")).is_some());
        assert_eq!(not_readable_again(dir.path()), None, "reading it fails, and is reported as such");
    }
}
