//! Counts the results of a crawl.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::{Format, Host, SiteName};
use policy::{FetchOutcome, VisitEnd, failed_host};
use serde::Serialize;
use store::{NextVisit, VisitRecord, VisitReport, VisitSaved};

use crate::events::Event;
use crate::seeds::SeedReport;

/// Maximum number of capabilities that a summary shows.
const SAMPLES_MAX: usize = 3;
/// Maximum number of sites that a summary names for each [`VisitEnd`].
const SITES_NAMED_MAX: usize = 3;

/// Ends of visits that got no response: their requests are attempts to connect.
pub(crate) const UNREACHED: [VisitEnd; 5] = [
    VisitEnd::DnsDead,
    VisitEnd::DnsFailed,
    VisitEnd::Unreachable,
    VisitEnd::AddressRefused,
    VisitEnd::TlsFailed,
];

/// An example of a capability that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sample {
    pub name: String,
    pub site: SiteName,
    pub format: Format,
}

/// A site, with the host that failed if its name differs from that of the site. The operator may have typed the name of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteAndHost {
    pub site: SiteName,
    pub host: Option<Host>,
}

impl SiteAndHost {
    /// The site of a visit, with the host whose failure explains its end.
    pub(crate) fn of_visit(
        site: &SiteName,
        end: VisitEnd,
        fetches: impl IntoIterator<Item = (Host, FetchOutcome)>,
    ) -> Self {
        let failed = failed_host(end, fetches);
        Self { site: site.clone(), host: failed.filter(|host| host.as_str() != site.as_str()) }
    }

    /// The site of a stored visit, with the host whose failure explains its end.
    pub(crate) fn of_report(site: &SiteName, visit: &VisitReport) -> Self {
        Self::of_visit(site, visit.end, visit.fetches.iter().map(|fetch| (fetch.url.host(), fetch.outcome)))
    }
}

impl fmt::Display for SiteAndHost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) => write!(out, "{host} of the site {}", self.site),
            None => write!(out, "{}", self.site),
        }
    }
}

/// A parked visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParkedSite {
    pub site: SiteName,
    pub resume_at: DateTime<Utc>,
    pub reason: String,
}

/// Counts of a crawl, while it runs or after its end.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    pub seeds: SeedReport,
    /// Visits that were saved.
    pub sites_visited: u64,
    pub requests: u64,
    pub bytes_in: u64,
    /// Number of visits by their end.
    pub ends: BTreeMap<&'static str, u64>,
    /// Number of fetches by their outcome.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Number of manifests that were read or confirmed, by format.
    pub manifests: BTreeMap<&'static str, u64>,
    pub manifests_added: u64,
    pub manifests_changed: u64,
    pub manifests_removed: u64,
    /// Capabilities of the sites that were visited.
    pub capabilities: u64,
    pub parked: Vec<ParkedSite>,
    /// When the next site is due, after a pass.
    pub next_due_at: Option<DateTime<Utc>>,
    /// Visits that ended because another process blocked their site, or took it over.
    pub dropped: u64,
    /// Visits that failed because of an error in this crawler.
    pub failed: u64,
    /// Whether the crawl was stopped before it was complete.
    pub interrupted: bool,
    pub seconds: f64,
    /// Whether this crawl resumed visits of an earlier start, so that some requests were sent before this start.
    #[serde(skip)]
    pub has_earlier_requests: bool,
    #[serde(skip)]
    pub samples: Vec<Sample>,
    /// The first sites whose visits ended in each way.
    #[serde(skip)]
    pub sites_by_end: BTreeMap<&'static str, Vec<SiteAndHost>>,
}

impl Summary {
    /// Whether there were visits, and none of them got a response.
    pub(crate) fn reached_no_site(&self) -> bool {
        let count: u64 = UNREACHED.iter().filter_map(|end| self.ends.get(end.as_str())).sum();
        count > 0 && count == self.sites_visited
    }

    /// Whether no site was due and no visit is parked.
    pub fn had_nothing_due(&self) -> bool {
        self.sites_visited == 0
            && self.dropped == 0
            && self.failed == 0
            && self.parked.is_empty()
            && !self.interrupted
    }

    /// Whether sites were visited, and none of the visits found a manifest or confirmed one.
    pub fn found_nothing(&self) -> bool {
        let mut present = FetchOutcome::ALL.iter().filter(|outcome| outcome.is_present());
        let has_visited = self.sites_visited > 0 || !self.interrupted;
        has_visited
            && !self.had_nothing_due()
            && !present.any(|outcome| self.outcomes.contains_key(outcome.as_str()))
    }

    /// Counts a visit that was saved.
    pub(crate) fn count(&mut self, visit: &VisitCounts, saved: &VisitSaved) {
        self.sites_visited += 1;
        self.requests += u64::from(visit.requests);
        self.bytes_in += visit.bytes_in;
        *self.ends.entry(visit.end.as_str()).or_default() += 1;
        let named = self.sites_by_end.entry(visit.end.as_str()).or_default();
        if named.len() < SITES_NAMED_MAX && !named.contains(&visit.named) {
            named.push(visit.named.clone());
        }
        for outcome in &visit.outcomes {
            *self.outcomes.entry(outcome.as_str()).or_default() += 1;
        }
        for format in &visit.formats {
            *self.manifests.entry(format.as_str()).or_default() += 1;
        }
        self.manifests_added += u64::from(saved.manifests_added);
        self.manifests_changed += u64::from(saved.manifests_changed);
        self.manifests_removed += u64::from(saved.manifests_removed);
        self.capabilities += u64::from(saved.capabilities);
        let room = SAMPLES_MAX.saturating_sub(self.samples.len());
        self.samples.extend(visit.sample.iter().take(room).cloned());
    }

    pub(crate) fn end(&mut self, took: Duration) {
        self.seconds = (took.as_secs_f64() * 1_000.0).round() / 1_000.0;
    }
}

/// The counts of a visit, copied before the visit is passed to the store.
#[derive(Debug, Clone)]
pub(crate) struct VisitCounts {
    pub(crate) site: SiteName,
    named: SiteAndHost,
    pub(crate) end: VisitEnd,
    pub(crate) requests: u32,
    pub(crate) bytes_in: u64,
    pub(crate) outcomes: Vec<FetchOutcome>,
    formats: Vec<Format>,
    sample: Option<Sample>,
    next_visit: NextVisit,
}

impl VisitCounts {
    pub(crate) fn of(visit: &VisitRecord) -> Self {
        let manifests = || visit.fetches.iter().filter_map(|fetch| fetch.manifest.as_ref());
        let sample = manifests().find_map(|manifest| {
            let capability = manifest.capabilities.first()?;
            let name = capability.name.clone();
            Some(Sample { name, site: visit.site.clone(), format: manifest.format() })
        });
        Self {
            named: SiteAndHost::of_visit(
                &visit.site,
                visit.end,
                visit.fetches.iter().map(|fetch| (fetch.url.host(), fetch.outcome)),
            ),
            site: visit.site.clone(),
            end: visit.end,
            requests: visit.requests,
            bytes_in: visit.bytes_in,
            outcomes: visit.fetches.iter().map(|fetch| fetch.outcome).collect(),
            formats: manifests().map(|manifest| manifest.format()).collect(),
            sample,
            next_visit: visit.next_visit.clone(),
        }
    }

    pub(crate) fn as_event(&self, saved: &VisitSaved) -> Event<'_> {
        Event::VisitEnded {
            site: &self.site,
            end: self.end,
            requests: self.requests,
            bytes_in: self.bytes_in,
            manifests_added: saved.manifests_added,
            manifests_changed: saved.manifests_changed,
            manifests_removed: saved.manifests_removed,
            next_visit_at: self.next_visit.at,
            next_visit_reason: &self.next_visit.reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_without_a_manifest_found_nothing() {
        let found_nothing = |sites_visited, outcomes: &[&'static str]| {
            let outcomes = outcomes.iter().map(|outcome| (*outcome, 1)).collect();
            Summary { sites_visited, outcomes, ..Summary::default() }.found_nothing()
        };
        assert!(found_nothing(2, &["dns_failed", "not_found"]));
        assert!(!found_nothing(0, &[]), "nothing was due");
        for present in ["found", "not_modified", "fresh"] {
            assert!(!found_nothing(2, &["dns_failed", present]), "{present}");
        }
        let stopped = Summary { interrupted: true, ..Summary::default() };
        assert!(!stopped.found_nothing(), "it was stopped before a visit ended");
        assert!(Summary { sites_visited: 1, ..stopped }.found_nothing());
    }

    #[test]
    fn the_host_that_failed_is_named_with_its_site() {
        let site = SiteName::parse("shop.example").unwrap();
        let named = |fetches: &[(&str, FetchOutcome)]| {
            let fetches = fetches.iter().map(|(host, outcome)| (Host::parse(host).unwrap(), *outcome));
            SiteAndHost::of_visit(&site, VisitEnd::DnsDead, fetches).to_string()
        };
        for (fetches, text) in [
            (
                [("wwww.shop.example", FetchOutcome::DnsFailed)].as_slice(),
                "wwww.shop.example of the site shop.example",
            ),
            (&[("shop.example", FetchOutcome::DnsFailed)], "shop.example"),
            (
                &[
                    ("shop.example", FetchOutcome::NotFound),
                    ("mcp.shop.example", FetchOutcome::NotReached),
                    ("api.shop.example", FetchOutcome::RobotsUnreachable),
                ],
                "api.shop.example of the site shop.example",
            ),
            (&[("www.shop.example", FetchOutcome::Found)], "shop.example"),
            (
                &[
                    ("shop.example", FetchOutcome::RobotsUnreachable),
                    ("api.shop.example", FetchOutcome::DnsFailed),
                ],
                "api.shop.example of the site shop.example",
            ),
            (&[], "shop.example"),
        ] {
            assert_eq!(named(fetches), text, "{fetches:?}");
        }
    }
}
