//! `--dry-run`: lists the requests of a pass, decided by the same code, without sending a packet or changing the store. Requests that
//! depend on links, redirects and responses are not known beforehand.

use async_recursion::async_recursion as boxed;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;

use chrono::{DateTime, Utc};
use manifest::{Discovery, Host, ManifestUrl, SiteName, SiteScope};
use policy::Status;
use policy::plan::{Priors, ROBOTS_PATH};
use policy::robots::CopyUse;
use serde::Serialize;
use store::{Hint, HostOrigin, HostState, PathSlots, RobotsRecord, Seed, SiteState, SitesRequest, Store};

use crate::clock;
use crate::config::{CrawlConfig, SeedSource};
use crate::error::CrawlError;
use crate::priors::PathPriors;
use crate::seeds::{SeedError, SeedReader, SeedReport};
use crate::visit;

/// Maximum number of sites that are listed; the rest are counted.
const SITES_MAX: usize = 10_000;
/// Sites per page that is read from the store.
const PAGE: u32 = 500;

/// The requests that a crawl would send.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DryRun {
    pub seeds: SeedReport,
    pub sites: Vec<DrySite>,
    pub sites_left_out: usize,
    /// Number of planned requests. Responses may end a visit early, and a visit that finds a manifest sends more.
    pub requests: usize,
}

/// One site of a dry run.
#[derive(Debug, Clone, Serialize)]
pub struct DrySite {
    pub site: SiteName,
    /// "now", or why the site is not visited now.
    pub when: String,
    pub requests: Vec<DryRequest>,
}

/// One request that would be sent, or would be avoided by a stored copy.
#[derive(Debug, Clone, Serialize)]
pub struct DryRequest {
    pub url: ManifestUrl,
    pub note: Option<String>,
    is_sent: bool,
}

/// Plans every due site and every seed. Without a store, only the seeds are planned. Does not fetch lists from the web.
#[boxed]
pub async fn dry_run(config: &CrawlConfig, store: Option<&Store>) -> Result<DryRun, CrawlError> {
    let now = clock::now();
    let (seeds, report) = read_seeds(&config.seeds, config.egress.own_networks.site_scope())?;
    let mut names: BTreeSet<SiteName> = seeds.iter().map(|seed| seed.host.site()).collect();
    let known = PathPriors::default();
    if let Some(store) = store {
        names.extend(due_sites(store, now).await?);
        known.re_estimate(store).await?;
    }
    let priors = known.now();
    let sites_left_out = names.len().saturating_sub(SITES_MAX);
    let mut plan = DryRun { seeds: report, sites_left_out, ..DryRun::default() };
    for name in names.into_iter().take(SITES_MAX) {
        let site = plan_site(store, name, &seeds, &priors, now).await?;
        plan.requests += site.requests.iter().filter(|request| request.is_sent).count();
        plan.sites.push(site);
    }
    Ok(plan)
}

/// Every site of the store that is due.
async fn due_sites(store: &Store, now: DateTime<Utc>) -> Result<Vec<SiteName>, CrawlError> {
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let request = SitesRequest { after: after.take(), max: PAGE, ..SitesRequest::default() };
        let page = store.sites_page(&request).await?;
        let Some(last) = page.last() else { return Ok(names) };
        after = Some(last.name.clone());
        let due = page.iter().filter(|site| site.next_visit_at.is_some_and(|at| at <= now));
        names.extend(due.map(|site| site.name.clone()));
    }
}

fn read_seeds(sources: &[SeedSource], scope: SiteScope) -> Result<(Vec<Seed>, SeedReport), SeedError> {
    let (mut reader, mut seeds) = (SeedReader::new(scope, &|| false), Vec::new());
    for source in sources {
        let name = source.name();
        let each = |seed| seeds.push(seed);
        match source {
            SeedSource::File(path) => {
                let file = File::open(path)
                    .map_err(|source| SeedError::Unreadable { name: name.clone(), source })?;
                reader.read(&name, file, each)?;
            }
            SeedSource::Stdin => reader.read(&name, io::stdin().lock(), each)?,
            SeedSource::Text { text, .. } => reader.read(&name, text.as_bytes(), each)?,
            SeedSource::Url(_) | SeedSource::Registry(_) | SeedSource::McpRegistry(_) => {
                tracing::warn!(source = name, "not fetched in a dry run");
            }
        }
    }
    Ok((seeds, reader.into_report()))
}

async fn plan_site(
    store: Option<&Store>,
    name: SiteName,
    seeds: &[Seed],
    priors: &Priors,
    now: DateTime<Utc>,
) -> Result<DrySite, CrawlError> {
    let known = match store {
        Some(store) => store.site_report(&name, 0).await?,
        None => None,
    };
    let waits = known.as_ref().and_then(|report| {
        let later = |at: DateTime<Utc>| at.format("%Y-%m-%d %H:%M:%S UTC").to_string();
        let parked = report.state.parked.as_ref().filter(|parked| parked.resume_at > now);
        let never = report.blocked.as_ref().map(|_| "never: it is blocked");
        let never = never.or_else(|| report.suspended.as_ref().map(|_| "never: it is suspended"));
        match (never, parked, report.summary.next_visit_at) {
            (Some(never), ..) => Some(never.to_owned()),
            (None, Some(parked), _) => {
                Some(format!("resumes at {}: {}", later(parked.resume_at), parked.reason))
            }
            (None, None, Some(at)) if at > now => Some(format!("not before {}", later(at))),
            _ => None,
        }
    });
    if let Some(when) = waits {
        return Ok(DrySite { site: name, when, requests: Vec::new() });
    }
    let mut state = known.map_or_else(|| unknown(name.clone()), |report| report.state);
    for seed in seeds.iter().filter(|seed| seed.host.site() == name) {
        if !state.hosts.iter().any(|host| host.host == seed.host) {
            state.hosts.push(seeded(seed.host.clone()));
        }
        let is_new = |url: &ManifestUrl| !state.resources.iter().any(|known| known.url == *url);
        let hint = seed.url.clone().filter(is_new).map(|url| Hint {
            url,
            linked_from: None,
            discovery: Discovery::Listed,
        });
        state.hints.extend(hint);
    }
    Ok(DrySite { site: name, when: "now".to_owned(), requests: requests(&state, priors, now) })
}

fn requests(state: &SiteState, priors: &Priors, now: DateTime<Utc>) -> Vec<DryRequest> {
    let mut requests = Vec::new();
    let mut hosts: BTreeSet<Host> = BTreeSet::new();
    for url in visit::planned_urls(state, priors, now) {
        let host = url.host();
        if hosts.insert(host.clone())
            && let Ok(robots) = ManifestUrl::on_host(&host, ROBOTS_PATH)
        {
            let record =
                state.hosts.iter().find(|known| known.host == host).and_then(|known| known.robots.as_ref());
            let is_used = |record: &&RobotsRecord| {
                CopyUse::at(record.expires_at, now) == CopyUse::Current
                    && !visit::is_without_evidence(state, record, now)
            };
            let copy = record.filter(is_used);
            let note = copy.map(|record| {
                format!(
                    "not sent: its copy is good until {}",
                    record.expires_at.format("%Y-%m-%d %H:%M:%S UTC")
                )
            });
            requests.push(DryRequest { url: robots, is_sent: note.is_none(), note });
        }
        let known = state.resources.iter().find(|known| known.url == url);
        let fresh = known.and_then(|known| known.fresh_until);
        let fresh = fresh.filter(|until| !state.is_checked && now < *until);
        let note = match (fresh, known) {
            (Some(until), _) => {
                Some(format!("not sent: fresh until {}", until.format("%Y-%m-%d %H:%M:%S UTC")))
            }
            (None, Some(known)) if known.content_hash.is_some() => Some("conditional".to_owned()),
            _ => None,
        };
        requests.push(DryRequest { url, is_sent: fresh.is_none(), note });
    }
    requests
}

/// The state of a site that is not in the store.
pub(crate) fn unknown(name: SiteName) -> SiteState {
    SiteState {
        name,
        status: Status::Pending,
        hosts: Vec::new(),
        resources: Vec::new(),
        visits: 0,
        changes: 0,
        first_visit_at: None,
        last_visit_at: None,
        last_end: None,
        failures_in_row: 0,
        negatives_in_row: 0,
        outdated: BTreeSet::new(),
        paths_checked: PathSlots::default(),
        parked: None,
        interrupted: None,
        hints: Vec::new(),
        not_before: None,
        is_submitted: false,
        is_checked: false,
        claim: None,
    }
}

fn seeded(host: Host) -> HostState {
    HostState {
        host,
        origin: HostOrigin::Listed,
        robots: None,
        next_ok_at: None,
        requests_today: 0,
        requests_day: 0,
    }
}
