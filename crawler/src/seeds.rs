//! Seed lists: one site a line, in every spelling that people keep such lists in.
//!
//! A line is a domain, a URL, or `rank,domain` as in the Tranco list; `#` begins a comment. Names may be internationalised,
//! lines may end in CRLF, a byte order mark is passed over. A line that is none of these is reported with its number and
//! reason, and the rest is read. A URL means its host, and that this path is asked for too.

use std::collections::HashSet;
use std::io::{self, BufRead};

use manifest::{Host, ManifestUrl, NameError, SiteName};
use serde::Serialize;
use store::{Seed, SeedOrigin};

/// Longest line that is looked at; the longest URL that is kept has 8 KiB.
const LINE_BYTES_MAX: u64 = 16 * 1024;
/// Reasons that are kept word for word; a file with more bad lines is not a list of seeds.
const REJECTED_KEPT_MAX: usize = 1_000;
/// Bytes of a bad line that are repeated.
const SHOWN_CHARS_MAX: usize = 80;

/// A line that was passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejected {
    pub source: String,
    pub line: u64,
    pub text: String,
    pub reason: String,
}

/// What reading seeds came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SeedReport {
    /// Distinct seeds.
    pub read: u64,
    pub duplicates: u64,
    pub rejected_count: u64,
    /// The first of those rejected.
    pub rejected: Vec<Rejected>,
}

/// Why a source cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    #[error("cannot read the seed file {name}: {source}; check the path and its permissions")]
    Unreadable {
        name: String,
        #[source]
        source: io::Error,
    },
    #[error("{name} holds no seed: write one domain a line, like example.org")]
    Empty { name: String },
    #[error("none of the {lines} lines of {name} is a domain or a URL; the first: line {line}: {reason}")]
    AllRejected { name: String, lines: u64, line: u64, reason: String },
}

/// Reads seeds from any number of sources, each seed once.
#[derive(Debug, Default)]
pub struct SeedReader {
    seen: HashSet<u64>,
    report: SeedReport,
}

impl SeedReader {
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads one source, handing over each new seed.
    pub fn read(
        &mut self,
        name: &str,
        source: impl io::Read,
        mut each: impl FnMut(Seed),
    ) -> Result<(), SeedError> {
        let mut lines = Lines::new(io::BufReader::new(source));
        let (mut used, mut rejected) = (0_u64, 0_u64);
        let mut first_rejected = None;
        loop {
            let line =
                lines.next().map_err(|source| SeedError::Unreadable { name: name.to_owned(), source })?;
            let Some((number, text)) = line else { break };
            match parse_line(&text) {
                Ok(None) => {}
                Ok(Some(seed)) => {
                    used += 1;
                    self.take(seed, &mut each);
                }
                Err(reason) => {
                    rejected += 1;
                    first_rejected.get_or_insert_with(|| (number, reason.clone()));
                    self.reject(name, number, &text, reason);
                }
            }
        }
        match first_rejected {
            _ if used > 0 => Ok(()),
            Some((line, reason)) => {
                Err(SeedError::AllRejected { name: name.to_owned(), lines: rejected, line, reason })
            }
            None => Err(SeedError::Empty { name: name.to_owned() }),
        }
    }

    /// What all sources came to.
    pub fn into_report(self) -> SeedReport {
        self.report
    }

    fn take(&mut self, seed: Seed, each: &mut impl FnMut(Seed)) {
        let key = seed.url.as_ref().map_or_else(|| seed.host.as_str(), ManifestUrl::as_str);
        if self.seen.insert(fingerprint(key)) {
            self.report.read += 1;
            each(seed);
        } else {
            self.report.duplicates += 1;
        }
    }

    fn reject(&mut self, source: &str, line: u64, text: &str, reason: String) {
        self.report.rejected_count += 1;
        if self.report.rejected.len() < REJECTED_KEPT_MAX {
            let text = text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect();
            self.report.rejected.push(Rejected { source: source.to_owned(), line, text, reason });
        }
    }
}

/// Eight bytes stand for a name, so that a list of a hundred million stays within memory; of as many names, one in
/// several hundred lists would lose one to a collision.
fn fingerprint(key: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// Lines with their numbers; an overlong one is cut, so that a binary file costs no memory.
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
            self.source.skip_until(b'\n')?;
        }
        self.number += 1;
        let text = String::from_utf8_lossy(&line);
        let text = if self.number == 1 { text.trim_start_matches('\u{feff}') } else { &text };
        Ok(Some((self.number, text.trim().to_owned())))
    }
}

fn parse_line(line: &str) -> Result<Option<Seed>, String> {
    let content = line.split('#').next().unwrap_or_default().trim();
    // the fragment of a URL is no comment, but says nothing about what to fetch either
    if content.is_empty() {
        return Ok(None);
    }
    let (rank, name) = split_rank(content);
    let seed = if name.contains("://") { parse_url(name) } else { parse_host(name) };
    seed.map(|seed| Some(Seed { rank, ..seed })).map_err(|error| error.to_string())
}

fn split_rank(content: &str) -> (Option<u32>, &str) {
    let ranked = content
        .split_once([',', '\t', ';'])
        .and_then(|(rank, name)| Some((rank.trim().parse().ok()?, name.trim())));
    ranked.map_or((None, content), |(rank, name)| (Some(rank), name))
}

fn parse_host(name: &str) -> Result<Seed, NameError> {
    if name.contains('/') {
        return parse_url(&format!("https://{name}"));
    }
    let host = Host::parse(name)?;
    check_site(&host)?;
    Ok(Seed::of_host(host))
}

/// `http` is read as `https`: lists are older than certificates, and only https is visited.
fn parse_url(text: &str) -> Result<Seed, NameError> {
    let https = text.strip_prefix("http://").map(|rest| format!("https://{rest}"));
    let url = ManifestUrl::parse(https.as_deref().unwrap_or(text))?;
    if url.port() != 443 {
        return Err(NameError::Url(text.to_owned(), "only port 443 is visited".to_owned()));
    }
    let host = url.host();
    check_site(&host)?;
    let names_a_path = url.path_and_query() != "/";
    let url = names_a_path.then_some(url);
    Ok(Seed { host, url, rank: None, origin: SeedOrigin::File, revisit_now: false })
}

fn check_site(host: &Host) -> Result<(), NameError> {
    let is_suffix = psl::domain_str(host.as_str()).is_none();
    let site = SiteName::of(host);
    if is_suffix && site.as_str() == host.as_str() {
        Err(NameError::PublicSuffix(host.to_string()))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> (Vec<Seed>, SeedReport) {
        let mut seeds = Vec::new();
        let mut reader = SeedReader::new();
        reader.read("list", text, |seed| seeds.push(seed)).unwrap();
        (seeds, reader.into_report())
    }

    #[test]
    fn every_spelling_is_read() {
        let text = "\u{feff}example.org\r\n# comment\r\n\r\n1,tranco.example\nBÜCHER.example  # books\n\
                    https://api.shop.example/agents.json\nhttp://old.example\nshop.example/agent.json\n";
        let (seeds, report) = read(text.as_bytes());
        let hosts: Vec<&str> = seeds.iter().map(|seed| seed.host.as_str()).collect();
        assert_eq!(
            hosts,
            [
                "example.org",
                "tranco.example",
                "xn--bcher-kva.example",
                "api.shop.example",
                "old.example",
                "shop.example"
            ]
        );
        assert_eq!(seeds[1].rank, Some(1));
        assert_eq!(seeds[3].url.as_ref().unwrap().as_str(), "https://api.shop.example/agents.json");
        assert_eq!(seeds[4].url, None);
        assert_eq!(seeds[5].url.as_ref().unwrap().path(), "/agent.json");
        assert_eq!((report.read, report.rejected_count), (6, 0));
    }

    #[test]
    fn bad_lines_are_reported_with_their_number_and_passed_over() {
        let (seeds, report) = read(b"a.example\nnot a domain\n10.0.0.1\nftp://a.example/x\na.example:8443\nco.uk\nb.example\xff\nb.example\n");
        assert_eq!(seeds.len(), 2);
        let lines: Vec<u64> = report.rejected.iter().map(|rejected| rejected.line).collect();
        assert_eq!(lines, [2, 3, 4, 5, 6, 7]);
        assert!(report.rejected[1].reason.contains("IP address"), "{}", report.rejected[1].reason);
        assert!(report.rejected[4].reason.contains("public suffix"), "{}", report.rejected[4].reason);
    }

    #[test]
    fn duplicates_count_once_across_sources() {
        let mut reader = SeedReader::new();
        let mut hosts = Vec::new();
        reader.read("one", &b"a.example\nA.EXAMPLE.\n"[..], |seed| hosts.push(seed.host)).unwrap();
        reader.read("two", &b"a.example\nb.example"[..], |seed| hosts.push(seed.host)).unwrap();
        let report = reader.into_report();
        assert_eq!((hosts.len(), report.read, report.duplicates), (2, 2, 2));
    }

    #[test]
    fn sources_without_any_seed_are_an_error_that_says_so() {
        let empty = SeedReader::new().read("list", &b"# nothing\n\n"[..], |_| {}).unwrap_err().to_string();
        assert!(empty.contains("list holds no seed"), "{empty}");
        let wrong = SeedReader::new().read("list", &b"{\n}\n"[..], |_| {}).unwrap_err().to_string();
        assert!(wrong.contains("none of the 2 lines") && wrong.contains("line 1"), "{wrong}");
    }

    #[test]
    fn an_endless_line_costs_one_line() {
        let mut text = vec![b'x'; 1 << 20];
        text.extend_from_slice(b"\na.example\n");
        let (seeds, report) = read(&text);
        assert_eq!((seeds.len(), report.rejected[0].line), (1, 1));
    }
}
