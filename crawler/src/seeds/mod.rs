//! Seed lists: one site per line, in any common notation.
//!
//! A line is a domain, a URL, or `rank,domain` as in the Tranco list; `#` begins a comment. Names may be internationalised,
//! lines may end in CRLF, and a byte order mark is skipped. Any other line is reported with its number and
//! reason, and skipped. A URL adds its host, and a request for its path. `*.example.org` of a certificate is `example.org`.
//!
//! A plain line is a statement of the operator that the host belongs to its site. Lines with a rank or a wildcard, and all other kinds,
//! contain names that were collected from elsewhere; only the hosts of their URLs are used.
//!
//! The first bytes of a source and its name determine its kind. A zip archive (Tranco's) contains a list. gzip contains any of the other
//! kinds. XML is an OPML file or a sitemap; its hosts are used, like those of the links in Markdown. JSON is a dump of certificates. Common
//! Crawl writes names in reverse. Every source is read as a stream, up to a maximum number of names.

mod archive;
mod certificates;
mod gzip;
mod kind;
mod report;

use std::io::{self, BufRead};
use std::path::PathBuf;

use manifest::{Host, ManifestUrl, NameError, SiteScope};
use settings::escape::is_unsafe;
use store::{Seed, SeedOrigin, StoreError};

use self::kind::{Kind, split_rank};
pub(crate) use self::report::SeedsRead;
use self::report::is_mistyped;
pub use self::report::{Rejected, SeedReport, SourceReport};

/// Whether sources are read for the first time or again. Only at the first time may they be pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    First,
    /// The files did not change between two polls.
    Again,
}

/// Maximum length of a line; the longest URL that is stored has 8 KiB.
const LINE_BYTES_MAX: u64 = 16 * 1024;
/// Length of a line after which its source is not read further, because it is not a list.
const LINE_SKIPPED_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Maximum number of reported lines; a file with more bad lines is not a list of seeds.
const REJECTED_KEPT_MAX: usize = 1_000;
/// Maximum number of names of one source. Their fingerprints take 2 GB; Common Crawl lists about as many domains.
const NAMES_MAX: u64 = 100_000_000;
/// Maximum number of names of a list from the web: with `--follow-seeds`, two sets of fingerprints take 57 MiB of the 128 MiB
/// that the largest body may take. The usual lists have a million names.
const FETCHED_NAMES_MAX: u64 = 1_500_000;
/// Maximum number of lines, and of entries, of a list from the web, names or not: parsing each takes a microsecond or two.
const FETCHED_LINES_MAX: u64 = 2_000_000;
/// Maximum length of a list from the web after decompression.
const FETCHED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum length of an archive from the web; the cap of a fetched body.
const FETCHED_ARCHIVE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Maximum number of characters of a bad line that are shown.
const SHOWN_CHARS_MAX: usize = 80;
/// Maximum number of characters of a reason, which quotes the line.
const REASON_CHARS_MAX: usize = 200;

/// Why a source cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    #[error("cannot read the seed file {name}: {source}; {}", unreadable_advice(source))]
    Unreadable {
        name: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot read the seed file {name}: there is no file at {}; {advice}", path.display())]
    Missing {
        name: String,
        /// The absolute path that was tried.
        path: PathBuf,
        advice: String,
    },
    #[error("{name} holds no seed: {advice}")]
    Empty { name: String, advice: &'static str },
    #[error("no line of {name} is a domain or a URL ({lines} read); line {line}: {reason}; {advice}")]
    AllRejected { name: String, lines: u64, line: u64, reason: String, advice: &'static str },
    #[error("cannot read {name}: {reason}")]
    Damaged { name: String, reason: String },
    #[error("cannot fetch {name}: {reason}; {advice}")]
    Unfetched { name: String, reason: String, advice: &'static str },
    /// The registry does not offer the list.
    #[error("cannot fetch {name}: {reason}; {advice}")]
    NotOffered { name: String, reason: String, advice: &'static str },
    #[error("cannot store the entries of {name}: {source}")]
    Unstored {
        name: String,
        #[source]
        source: StoreError,
    },
}

fn unreadable_advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::IsADirectory => "name the files in it",
        _ => "check the path and its permissions",
    }
}

/// Why a web page is no source.
const NO_LIST: &str =
    "it is a web page, not a list; to crawl a site, write its name into a file, or visit it with `check`";

/// Limits on reading one source.
#[derive(Debug, Clone, Copy)]
struct SourceLimits {
    names: u64,
    /// Lines of a list, and entries of any source.
    lines: u64,
    /// Bytes after decompression.
    bytes: u64,
    archive_bytes: u64,
    /// What to do if the source names nothing.
    advice: &'static str,
}

/// Files and pipes of the operator.
const LOCAL: SourceLimits = SourceLimits {
    names: NAMES_MAX,
    lines: u64::MAX,
    bytes: u64::MAX,
    archive_bytes: archive::ARCHIVE_BYTES_MAX,
    advice: "write one domain a line, like example.org",
};

/// Lists from the web.
const FETCHED: SourceLimits = SourceLimits {
    names: FETCHED_NAMES_MAX,
    lines: FETCHED_LINES_MAX,
    bytes: FETCHED_BYTES_MAX,
    archive_bytes: FETCHED_ARCHIVE_BYTES_MAX,
    advice: "check that the URL is that of a list, not of a web page",
};

/// Reads seeds from any number of sources, each seed once.
pub struct SeedReader<'a> {
    scope: SiteScope,
    read: SeedsRead,
    is_stopped: &'a dyn Fn() -> bool,
}

impl<'a> SeedReader<'a> {
    /// Accepts names within `scope` and rejects lines with other names. Reading ends with an error as soon as `is_stopped` returns true.
    pub fn new(scope: SiteScope, is_stopped: &'a dyn Fn() -> bool) -> Self {
        Self::resuming(SeedsRead::default(), scope, is_stopped)
    }

    /// Continues after other sources were read.
    pub(crate) fn resuming(read: SeedsRead, scope: SiteScope, is_stopped: &'a dyn Fn() -> bool) -> Self {
        Self { scope, read, is_stopped }
    }

    /// Reads one source of the operator, and passes each new seed to `each`.
    pub fn read(
        &mut self,
        name: &str,
        source: impl io::Read,
        each: impl FnMut(Seed),
    ) -> Result<(), SeedError> {
        self.read_within(&LOCAL, name, source, each)
    }

    /// Reads a list from the web, with lower limits.
    pub(crate) fn read_fetched(
        &mut self,
        name: &str,
        source: impl io::Read,
        each: impl FnMut(Seed),
    ) -> Result<(), SeedError> {
        self.read_within(&FETCHED, name, source, each)
    }

    fn read_within(
        &mut self,
        limits: &SourceLimits,
        name: &str,
        source: impl io::Read,
        mut each: impl FnMut(Seed),
    ) -> Result<(), SeedError> {
        let is_stopped = self.is_stopped;
        let mut source = io::BufReader::new(Guarded { source, left: limits.bytes, is_stopped });
        let is_gzip = gzip::is_gzip(source.fill_buf().map_err(|error| unreadable(name, error))?);
        let mut tally = Tally::within(*limits);
        let kind = if is_gzip {
            let uncompressed = name.strip_suffix(".gz").unwrap_or(name);
            let list = Guarded { source: gzip::list(source), left: limits.bytes, is_stopped };
            let list = io::BufReader::new(list);
            self.read_content(name, Kind::of_source(list, uncompressed), &mut tally, &mut each)?
        } else {
            self.read_content(name, Kind::of_source(source, name), &mut tally, &mut each)?
        };
        tally.check(name)?;
        self.count_source(name, kind.as_str(), &tally);
        Ok(())
    }

    /// Takes the seeds of a registry, which are already parsed.
    pub(crate) fn take_all(&mut self, name: &str, seeds: Vec<Seed>, mut each: impl FnMut(Seed)) {
        let tally = Tally { used: seeds.len() as u64, ..Tally::within(LOCAL) };
        self.count_source(name, "registry", &tally);
        for seed in seeds {
            self.take(seed, &mut each);
        }
    }

    fn count_source(&mut self, name: &str, kind: &'static str, tally: &Tally) {
        let (source, is_cut) = (name.to_owned(), tally.is_cut);
        self.read.report.sources.push(SourceReport { source, kind, names: tally.used, is_cut });
    }

    fn read_content(
        &mut self,
        name: &str,
        source: io::Result<(Kind, impl BufRead)>,
        tally: &mut Tally,
        each: &mut impl FnMut(Seed),
    ) -> Result<Kind, SeedError> {
        let (kind, source) = source.map_err(|error| unreadable(name, error))?;
        match kind {
            Kind::Archive => {
                let limits = tally.limits;
                let mut archive =
                    archive::open(source, limits.archive_bytes).map_err(|reason| damaged(name, reason))?;
                let list = archive::list(&mut archive).map_err(|reason| damaged(name, reason))?;
                let list = Guarded { source: list, left: limits.bytes, is_stopped: self.is_stopped };
                self.read_lines(name, Kind::Lines, io::BufReader::new(list), tally, each)?;
            }
            Kind::Xml => {
                let hosts = |text: &str| self.line(name, kind, 0, text, tally, each);
                manifest::web::each_url(source, hosts).map_err(|reason| damaged(name, reason))?;
            }
            Kind::Certificates => {
                let names = |text: &str| self.line(name, kind, 0, text, tally, each);
                certificates::each_name(source, names).map_err(|error| unreadable(name, error))?;
            }
            Kind::WebPage => return Err(damaged(name, NO_LIST.to_owned())),
            Kind::Utf16 => return Err(damaged(name, "its text is UTF-16: save it as UTF-8".to_owned())),
            Kind::Lines | Kind::CommonCrawl | Kind::Markdown => {
                self.read_lines(name, kind, source, tally, each)?;
            }
        }
        Ok(kind)
    }

    fn read_lines(
        &mut self,
        name: &str,
        kind: Kind,
        source: impl BufRead,
        tally: &mut Tally,
        each: &mut impl FnMut(Seed),
    ) -> Result<(), SeedError> {
        let mut lines = Lines::new(source);
        while !tally.is_cut {
            let Some((number, text)) = lines.next().map_err(|error| unreadable(name, error))? else { break };
            if number > tally.limits.lines {
                tally.is_cut = true;
            }
            for text in kind.names(&text) {
                self.line(name, kind, number, &text, tally, each);
            }
        }
        Ok(())
    }

    /// Processes one line, or one name of a file without lines.
    fn line(
        &mut self,
        name: &str,
        kind: Kind,
        number: u64,
        text: &str,
        tally: &mut Tally,
        each: &mut impl FnMut(Seed),
    ) {
        tally.entries += 1;
        tally.is_cut |= tally.entries > tally.limits.lines;
        // sources without lines are read to their end
        if tally.is_cut {
            return;
        }
        match parse_line(text, self.scope) {
            Ok(None) => {}
            Ok(Some(_)) if tally.used == tally.limits.names => tally.is_cut = true,
            Ok(Some(seed)) => {
                tally.used += 1;
                let seed =
                    if kind.is_collected() || is_collected(text, &seed) { collected(seed) } else { seed };
                self.take(seed, each);
            }
            Err(error) => {
                tally.rejected += 1;
                let is_written = matches!(kind, Kind::Lines) && number > 1 && split_rank(text).0.is_none();
                self.read.report.mistyped += u64::from(is_written && is_mistyped(&error));
                let reason = shown(&error.to_string(), REASON_CHARS_MAX);
                tally.first_rejected.get_or_insert_with(|| (number, reason.clone()));
                self.reject(name, number, text, reason);
            }
        }
    }

    /// The result for all sources.
    pub fn into_report(self) -> SeedReport {
        self.read.report
    }

    /// The result for all sources, to read other sources later.
    pub(crate) fn into_read(self) -> SeedsRead {
        self.read
    }

    fn take(&mut self, seed: Seed, each: &mut impl FnMut(Seed)) {
        let key = fingerprint(seed.url.as_ref().map_or_else(|| seed.host.as_str(), ManifestUrl::as_str));
        // a name that the operator wrote is passed on even if another list has already named it
        let SeedsRead { seen, report } = &mut self.read;
        let (is_known, is_new) = match seed.origin {
            SeedOrigin::File => (seen.contains(&!key), seen.insert(key)),
            _ if seen.contains(&key) => (true, false),
            _ => (false, seen.insert(!key)),
        };
        let is_first = is_new && !is_known;
        report.read += u64::from(is_first);
        report.duplicates += u64::from(!is_first);
        if is_new {
            each(seed);
        }
    }

    fn reject(&mut self, source: &str, line: u64, text: &str, reason: String) {
        let report = &mut self.read.report;
        report.rejected_count += 1;
        if report.rejected.len() < REJECTED_KEPT_MAX {
            let text = shown(text, SHOWN_CHARS_MAX);
            report.rejected.push(Rejected { source: source.to_owned(), line, text, reason });
        }
    }
}

/// The result for the lines of one source.
#[derive(Debug)]
struct Tally {
    limits: SourceLimits,
    /// Names, duplicates, rejected ones and empty lines.
    entries: u64,
    used: u64,
    rejected: u64,
    /// Whether there are more names or lines than the limits of one source allow.
    is_cut: bool,
    first_rejected: Option<(u64, String)>,
}

impl Tally {
    const fn within(limits: SourceLimits) -> Self {
        Self { limits, entries: 0, used: 0, rejected: 0, is_cut: false, first_rejected: None }
    }

    fn check(&self, name: &str) -> Result<(), SeedError> {
        let (name, lines, advice) = (name.to_owned(), self.rejected, self.limits.advice);
        match self.first_rejected.clone() {
            _ if self.used > 0 => Ok(()),
            Some((line, reason)) => Err(SeedError::AllRejected { name, lines, line, reason, advice }),
            None => Err(SeedError::Empty { name, advice }),
        }
    }
}

/// A source that returns an error after a maximum number of bytes, or when its reader is stopped.
struct Guarded<'a, R> {
    source: R,
    left: u64,
    is_stopped: &'a dyn Fn() -> bool,
}

impl<R: io::Read> io::Read for Guarded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.is_stopped)() {
            return Err(io::Error::other("reading was stopped"));
        }
        let read = self.source.read(buffer)?;
        let left = self.left.checked_sub(read as u64);
        self.left = left.ok_or_else(|| {
            io::Error::other(format!("the list is longer than {} MiB", FETCHED_BYTES_MAX >> 20))
        })?;
        Ok(read)
    }
}

/// Makes an untrusted text safe for a terminal: short, and without control characters.
fn shown(text: &str, chars_max: usize) -> String {
    text.chars().filter(|letter| !is_unsafe(*letter)).take(chars_max).collect()
}

fn unreadable(name: &str, source: io::Error) -> SeedError {
    SeedError::Unreadable { name: name.to_owned(), source }
}

fn damaged(name: &str, reason: String) -> SeedError {
    SeedError::Damaged { name: name.to_owned(), reason }
}

/// An 8-byte fingerprint of a name, so that a list of a hundred million fits in memory; among several hundred lists of that size, about one
/// would lose a name because of a collision.
pub(crate) fn fingerprint(key: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// Lines with their numbers. Overlong lines are truncated, so that a binary file does not fill the memory.
struct Lines<R> {
    source: R,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    const fn new(source: R) -> Self {
        Self { source, number: 0 }
    }

    fn next(&mut self) -> io::Result<Option<(u64, String)>> {
        let mut line = Vec::new();
        io::Read::take(&mut self.source, LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            self.skip_line()?;
        }
        self.number += 1;
        let text = String::from_utf8_lossy(&line);
        let text = if self.number == 1 { text.trim_start_matches('\u{feff}') } else { &text };
        Ok(Some((self.number, text.trim().to_owned())))
    }

    /// Skips the rest of a line.
    fn skip_line(&mut self) -> io::Result<()> {
        let mut rest = io::Read::take(&mut self.source, LINE_SKIPPED_BYTES_MAX);
        if rest.skip_until(b'\n')? as u64 == LINE_SKIPPED_BYTES_MAX {
            let reason = format!("line {} has more than {LINE_SKIPPED_BYTES_MAX} bytes", self.number + 1);
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        Ok(())
    }
}

fn parse_line(line: &str, scope: SiteScope) -> Result<Option<Seed>, NameError> {
    let content = line.split('#').next().unwrap_or_default().trim();
    // the fragment of a URL is not a comment, but does not affect the request either
    if content.is_empty() {
        return Ok(None);
    }
    let (rank, name) = split_rank(content);
    let seed = if name.contains("://") { parse_url(name, scope) } else { parse_host(name, scope) };
    seed.map(|seed| Some(Seed { rank, ..seed })).map_err(|error| error.quoting(name))
}

/// Whether a line of a plain list shows that it is from a ranking or from certificates.
fn is_collected(line: &str, seed: &Seed) -> bool {
    seed.rank.is_some() || line.starts_with("*.")
}

/// Turns a seed into a collected one: keeps its host, and drops its URL.
fn collected(seed: Seed) -> Seed {
    Seed { url: None, origin: SeedOrigin::Collected, ..seed }
}

fn parse_host(name: &str, scope: SiteScope) -> Result<Seed, NameError> {
    if name.contains('/') {
        return parse_url(&format!("https://{name}"), scope);
    }
    let host = Host::parse(name.strip_prefix("*.").unwrap_or(name))?;
    scope.check_host(&host)?;
    Ok(Seed::of_host(host))
}

/// `http` is read as `https`, because many lists still contain `http` URLs and only `https` is visited.
fn parse_url(text: &str, scope: SiteScope) -> Result<Seed, NameError> {
    let https = text.strip_prefix("http://").map(|rest| format!("https://{rest}"));
    let url = ManifestUrl::parse(https.as_deref().unwrap_or(text))?;
    scope.check_url(&url)?;
    let host = url.host();
    let names_a_path = url.path_and_query() != "/";
    let url = names_a_path.then_some(url);
    Ok(Seed { host, url, rank: None, origin: SeedOrigin::File, revisit_now: false })
}

#[cfg(test)]
mod tests;
