//! Daily checks of the hosts that endpoints of stored capabilities name: whether the name resolves, and whether the host completes a TLS
//! handshake.
//!
//! Off by default. No request is sent: the connection is closed after the handshake. The store gives each host to one worker, at most once
//! on a day (UTC). A host is contacted only if its site is known and neither blocked nor suspended, and if the robots.txt that visits have
//! read permits it, under the limits of requests ([`StandaloneRequests`]).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::join_all;
use manifest::{Host, ManifestId, Publisher, SiteName};
use policy::delay::day_of;
use policy::liveness::HostCheckOutcome;
use store::{BackgroundTask, NamedHost, StoreError, StoredManifest, TaskFailure, TaskMonitor, WorkerId};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::retry::retry_while_unavailable;
use crate::seeds::fingerprint;
use crate::visit::{StandaloneError, StandaloneRequests, Stop, Tools, check_outcome_of};
use crate::{clock, metrics};

/// How often is checked whether a new day has begun.
const POLL_INTERVAL: Duration = Duration::from_mins(10);
/// Maximum number of manifests that are read at once.
const MANIFESTS_OF_PAGE: u32 = 100;
/// Maximum number of hosts of one manifest that are checked. Services name one or two.
const HOSTS_OF_MANIFEST_MAX: usize = 10;
/// How long a check waits for a visit, the check of another host of the site, or a delay.
const WAIT_MAX: TimeDelta = TimeDelta::minutes(2);
/// How long the checks of a single pass wait at least, so that those of two programs do not miss hosts of each other's sites.
const PASS_WAIT_MIN: TimeDelta = TimeDelta::seconds(10);
/// Maximum number of sites whose hosts are checked at the same time; those of one site are checked one after the other.
const SITES_AT_ONCE: usize = 8;

/// Checks every host once a day, until stopped.
pub(crate) async fn run(tools: Tools, worker: WorkerId, stop: CancellationToken) {
    let monitor = TaskMonitor::new(tools.store.clone(), BackgroundTask::HostChecks);
    let mut done_on = None;
    while !stop.is_cancelled() {
        let today = day_of(clock::now());
        if done_on != Some(today) {
            let began = Instant::now();
            let round =
                Round { tools: &tools, worker: &worker, stop: &stop, waits_until: DateTime::<Utc>::MAX_UTC };
            let checked = round.check_all().await;
            if checked.is_ok() {
                done_on = Some(today);
            }
            let result = checked.map(drop).map_err(|error| TaskFailure::of_store(&error, began));
            monitor.ended(result, clock::now()).await;
        }
        stop.run_until_cancelled(tokio::time::sleep(POLL_INTERVAL)).await;
    }
}

/// Checks the hosts that were not checked on this day, in a single pass. The checks wait for delays for at most `wait` together, and at
/// least for [`PASS_WAIT_MIN`]. Hosts that would have to wait longer are left to the next pass.
pub(crate) async fn check_in_pass(
    tools: &Tools,
    worker: &WorkerId,
    stop: &CancellationToken,
    wait: Duration,
) -> Result<(), StoreError> {
    let wait = TimeDelta::from_std(wait).unwrap_or(TimeDelta::MAX).max(PASS_WAIT_MIN);
    let waits_until = clock::now().checked_add_signed(wait).unwrap_or(DateTime::<Utc>::MAX_UTC);
    let left = Round { tools, worker, stop, waits_until }.check_all().await?;
    if left > 0 {
        tracing::warn!(
            left,
            "hosts of endpoints were not checked, because they have to wait longer than --park-wait: the next pass checks them"
        );
    }
    Ok(())
}

/// One round of checks.
struct Round<'a> {
    tools: &'a Tools,
    worker: &'a WorkerId,
    stop: &'a CancellationToken,
    /// After this time, no check waits for a delay.
    waits_until: DateTime<Utc>,
}

/// How a check ended.
enum CheckEnd {
    Found(HostCheckOutcome),
    /// The host was not contacted. A later round of the same day checks it.
    Left,
}

/// The first hosts that the endpoints of a manifest name, each once.
fn hosts_of(stored: &StoredManifest) -> BTreeSet<NamedHost> {
    let manifest = &stored.manifest;
    let mut hosts: BTreeSet<Host> = BTreeSet::new();
    for capability in &manifest.capabilities {
        if hosts.len() == HOSTS_OF_MANIFEST_MAX {
            break;
        }
        hosts.extend(manifest.endpoint_host(capability));
    }
    let serving = manifest.url.host();
    // a customer's document may name hundreds of hosts below its own; they say nothing about the site
    let is_by_site = stored.is_of_site() && stored.publisher == Publisher::Site;
    let is_own = |host: &Host| is_by_site && stored.publisher.may_use_name_of(&serving, host);
    hosts.into_iter().map(|host| NamedHost { is_own: is_own(&host), host }).collect()
}

impl Round<'_> {
    /// Checks the hosts that were not checked on this day. Returns how many were left for a later round.
    async fn check_all(&self) -> Result<u64, StoreError> {
        let store = &self.tools.store;
        // fingerprints: several pages may name a host
        let mut left: HashSet<u64> = HashSet::new();
        let mut after: Option<ManifestId> = None;
        while !self.stop.is_cancelled() {
            let page = retry_while_unavailable("read manifests", || {
                store.manifests_page(after.as_ref(), MANIFESTS_OF_PAGE)
            })
            .await?;
            let Some(last) = page.last() else { break };
            after = Some(last.manifest.id.clone());
            let mut sites: BTreeMap<SiteName, BTreeSet<NamedHost>> = BTreeMap::new();
            for named in page.iter().flat_map(hosts_of) {
                sites.entry(named.host.site()).or_default().insert(named);
            }
            drop(page);
            let sites: Vec<BTreeSet<NamedHost>> = sites.into_values().collect();
            for sites in sites.chunks(SITES_AT_ONCE) {
                let checks = sites.iter().map(|hosts| self.check_site(hosts));
                for of_site in join_all(checks).await {
                    left.extend(of_site?);
                }
            }
        }
        Ok(left.len() as u64)
    }

    /// Checks the hosts of one site that were not checked on this day. A check begins when the one before has ended, so that a stop loses
    /// none. Returns the fingerprints of those that were left.
    async fn check_site(&self, hosts: &BTreeSet<NamedHost>) -> Result<Vec<u64>, StoreError> {
        let mut left = Vec::new();
        for named in hosts {
            if self.stop.is_cancelled() {
                break;
            }
            let (only, now) = (std::slice::from_ref(named), clock::now());
            let begin = || self.tools.store.host_checks_begin(only, now);
            let is_begun = !retry_while_unavailable("begin check of a host", begin).await?.is_empty();
            if is_begun && matches!(self.check(&named.host).await?, CheckEnd::Left) {
                left.push(fingerprint(named.host.as_str()));
            }
        }
        Ok(left)
    }

    async fn check(&self, host: &Host) -> Result<CheckEnd, StoreError> {
        let (store, began_at) = (&self.tools.store, clock::now());
        let end = Box::pin(self.end_of(host)).await?;
        if let CheckEnd::Found(outcome) = end {
            metrics::host_checked(outcome);
            tracing::debug!(%host, %outcome, "host of an endpoint checked");
            let now = clock::now();
            let store_end = || store.host_check_end(host, outcome, now);
            retry_while_unavailable("end check of a host", store_end).await?;
        } else {
            let abandon = || store.host_check_abandon(host, began_at);
            retry_while_unavailable("abandon check of a host", abandon).await?;
        }
        Ok(end)
    }

    async fn end_of(&self, host: &Host) -> Result<CheckEnd, StoreError> {
        let Self { tools, stop, .. } = self;
        let site = host.site();
        if let Err(failure) = tools.egress.session(site.clone()).resolve(host).await {
            return Ok(CheckEnd::Found(check_outcome_of(&failure)));
        }
        let store = &tools.store;
        if retry_while_unavailable("find site", || store.site_summary(&site)).await?.is_none() {
            return Ok(CheckEnd::Found(HostCheckOutcome::NotContacted));
        }
        let soft = Stop { soft: (*stop).clone(), ..Stop::default() };
        let requests = StandaloneRequests::new(tools, self.worker.clone(), Duration::ZERO, soft);
        let waits_until = clock::now() + WAIT_MAX;
        loop {
            match requests.handshake(host).await {
                Ok(outcome) => return Ok(CheckEnd::Found(outcome)),
                Err(StandaloneError::Store(error)) => return Err(error),
                Err(_) if stop.is_cancelled() => return Ok(CheckEnd::Left),
                // a visit or the check of another host holds the site, or its delay has not passed
                Err(StandaloneError::Waits { until, .. }) if until <= waits_until => {
                    if until > self.waits_until {
                        return Ok(CheckEnd::Left);
                    }
                    let wait = (until - clock::now()).to_std().unwrap_or_default();
                    stop.run_until_cancelled(tokio::time::sleep(wait)).await;
                }
                Err(reason) => {
                    tracing::debug!(%host, %reason, "host of an endpoint not contacted");
                    return Ok(CheckEnd::Found(HostCheckOutcome::NotContacted));
                }
            }
        }
    }
}
