//! The results of the audit, as records and as a table.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;
use testweb::Hit;

/// Maximum violations in a printed report; the rest are counted.
const SHOWN_MAX: usize = 40;

/// A rule of politeness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The User-Agent names agentdex, its version and a page about it.
    UserAgent,
    /// The configured From header is sent.
    From,
    /// No Referer and no Cookie is sent.
    TrackingHeader,
    /// Only GET and HEAD are sent.
    Method,
    /// robots.txt is fetched before anything else.
    RobotsFirst,
    /// No robots.txt older than 24 hours is used.
    RobotsStale,
    /// Nothing is fetched that robots.txt disallows.
    Disallowed,
    /// Nothing is fetched while robots.txt is unavailable.
    RobotsUnreachable,
    /// One request at a time for each authority.
    InFlight,
    /// The delay between a response and the next request to the authority.
    AuthorityGap,
    /// The gap between requests to a site.
    SiteGap,
    /// The gap between requests to an address.
    AddressGap,
    /// Requests at a time for each site.
    SiteInFlight,
    /// Requests at a time for each address.
    AddressInFlight,
    /// The gap between requests below a private suffix.
    SuffixGap,
    /// Requests at a time below each private suffix.
    SuffixInFlight,
    /// No request until the end of Retry-After.
    RetryAfter,
    /// A stored copy is revalidated with its validators.
    Unconditional,
    /// A fresh copy is not requested.
    Fresh,
    /// A path is requested once in a pass.
    Duplicate,
    /// Requests for each authority in 24 hours.
    Budget,
}

/// A measured or required value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// A time in microseconds.
    Us(u64),
    /// A number of requests.
    Count(usize),
    /// Another value, as text.
    Text(String),
}

/// A hit in a violation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HitRef {
    /// Id of the hit in the log.
    pub id: u64,
    /// Host.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// Status.
    pub status: Option<u16>,
    /// Start.
    pub started_us: u64,
    /// End.
    pub ended_us: u64,
}

/// One request that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The earlier hit that the rule compares it with, if any.
    pub first: Option<HitRef>,
    /// The hit that breaks the rule.
    pub second: HitRef,
    /// What was measured.
    pub measured: Measure,
    /// What was required.
    pub required: Measure,
}

/// The result of an audit.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Number of checked requests.
    pub requests: usize,
    /// Number of requests to each authority.
    pub authorities: BTreeMap<String, usize>,
    /// Violations, in the order of their requests.
    pub violations: Vec<Violation>,
}

impl Measure {
    pub(super) fn us(us: u64) -> Self {
        Self::Us(us)
    }
}

impl From<&str> for Measure {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Violation {
    pub(super) fn at(rule: Rule, hit: &Hit, measured: Measure, required: Measure) -> Self {
        Self { rule, first: None, second: HitRef::of(hit), measured, required }
    }

    pub(super) fn between(
        rule: Rule,
        first: &Hit,
        second: &Hit,
        measured: Measure,
        required: Measure,
    ) -> Self {
        Self { rule, first: Some(HitRef::of(first)), second: HitRef::of(second), measured, required }
    }
}

impl HitRef {
    fn of(hit: &Hit) -> Self {
        Self {
            id: hit.id,
            host: hit.host.clone(),
            path: hit.path.clone(),
            status: hit.status,
            started_us: hit.started_us,
            ended_us: hit.ended_us,
        }
    }
}

impl Report {
    /// Violations of one rule.
    pub fn count(&self, rule: Rule) -> usize {
        self.violations.iter().filter(|violation| violation.rule == rule).count()
    }

    /// Violations by rule.
    pub fn counts(&self) -> BTreeMap<Rule, usize> {
        self.violations.iter().fold(BTreeMap::new(), |mut counts, violation| {
            *counts.entry(violation.rule).or_default() += 1;
            counts
        })
    }

    /// Whether the log has requests and no violation.
    pub fn is_clean(&self) -> bool {
        self.requests > 0 && self.violations.is_empty()
    }

    /// Fails with the whole report if there is a violation.
    ///
    /// # Panics
    ///
    /// If there is a violation, or no request to check.
    #[track_caller]
    pub fn assert_clean(&self) {
        assert!(self.is_clean(), "the crawl was not polite, or sent no request\n{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (requests, authorities) = (self.requests, self.authorities.len());
        writeln!(
            out,
            "{requests} requests to {authorities} authorities: {} violations",
            self.violations.len()
        )?;
        for (rule, count) in self.counts() {
            writeln!(out, "  {:<18} {count}", rule.to_string())?;
        }
        for violation in self.violations.iter().take(SHOWN_MAX) {
            writeln!(out, "{violation}")?;
        }
        match self.violations.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => writeln!(out, "… and {more} more"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = self.rule.to_string();
        write!(out, "{rule:<18} {}  measured {}, required {}", self.second, self.measured, self.required)?;
        match &self.first {
            Some(first) => write!(out, "\n{:<18} after {first}", ""),
            None => Ok(()),
        }
    }
}

impl fmt::Display for HitRef {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.map_or_else(|| "---".to_owned(), |status| status.to_string());
        let (Self { id, host, path, .. }, started, ended) =
            (self, Seconds(self.started_us), Seconds(self.ended_us));
        write!(out, "#{id} {host}{path} {status} [{started} to {ended}]")
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Us(us) => Seconds(*us).fmt(out),
            Self::Count(count) => count.fmt(out),
            Self::Text(text) => text.fmt(out),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(out)
    }
}

/// Microseconds, shown as seconds.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{:06} s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}
