//! Daily checks of the hosts that endpoints of stored capabilities name: whether the name resolves, and whether the host completes a TLS
//! handshake.
//!
//! Off by default. No request is sent: the connection is closed after the handshake. The store gives each host to one worker, at most once
//! on a day (UTC). A host is contacted only if its site is known and neither blocked nor suspended, and if the robots.txt that visits have
//! read permits it, under the limits of requests ([`StandaloneRequests`]).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::TimeDelta;
use futures::future::join_all;
use manifest::{Host, ManifestId, SiteName};
use policy::delay::day_of;
use policy::liveness::HostCheckOutcome;
use store::{BackgroundTask, NamedHost, StoreError, StoredManifest, TaskFailure, TaskMonitor, WorkerId};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::retry::retry_while_unavailable;
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
            let checked = check_all(&tools, &worker, &stop).await;
            if checked.is_ok() {
                done_on = Some(today);
            }
            let result = checked.map_err(|error| TaskFailure::of_store(&error, began));
            monitor.ended(result, clock::now()).await;
        }
        stop.run_until_cancelled(tokio::time::sleep(POLL_INTERVAL)).await;
    }
}

/// Checks the hosts that were not checked on this day.
pub(crate) async fn check_all(
    tools: &Tools,
    worker: &WorkerId,
    stop: &CancellationToken,
) -> Result<(), StoreError> {
    let store = &tools.store;
    let mut after: Option<ManifestId> = None;
    while !stop.is_cancelled() {
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
            if stop.is_cancelled() {
                return Ok(());
            }
            let checks = sites.iter().map(|hosts| check_site(tools, worker, stop, hosts));
            join_all(checks).await.into_iter().collect::<Result<(), StoreError>>()?;
        }
    }
    Ok(())
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
    let is_own = |host: &Host| stored.is_of_site() && stored.publisher.may_use_name_of(&serving, host);
    hosts.into_iter().map(|host| NamedHost { is_own: is_own(&host), host }).collect()
}

/// Checks the hosts of one site that were not checked on this day. A check begins when the one before has ended, so that a stop loses none.
async fn check_site(
    tools: &Tools,
    worker: &WorkerId,
    stop: &CancellationToken,
    hosts: &BTreeSet<NamedHost>,
) -> Result<(), StoreError> {
    for named in hosts {
        if stop.is_cancelled() {
            break;
        }
        let (only, now) = (std::slice::from_ref(named), clock::now());
        let begin = || tools.store.host_checks_begin(only, now);
        if !retry_while_unavailable("begin check of a host", begin).await?.is_empty() {
            check(tools, worker, stop, &named.host).await?;
        }
    }
    Ok(())
}

async fn check(
    tools: &Tools,
    worker: &WorkerId,
    stop: &CancellationToken,
    host: &Host,
) -> Result<(), StoreError> {
    let (store, began_at) = (&tools.store, clock::now());
    let Some(outcome) = Box::pin(outcome_of(tools, worker, stop, host)).await? else {
        let abandon = || store.host_check_abandon(host, began_at);
        return retry_while_unavailable("abandon check of a host", abandon).await;
    };
    metrics::host_checked(outcome);
    tracing::debug!(%host, %outcome, "host of an endpoint checked");
    let now = clock::now();
    retry_while_unavailable("end check of a host", || store.host_check_end(host, outcome, now)).await
}

/// What a check finds; `None` if the program stops before the host is contacted.
async fn outcome_of(
    tools: &Tools,
    worker: &WorkerId,
    stop: &CancellationToken,
    host: &Host,
) -> Result<Option<HostCheckOutcome>, StoreError> {
    let site = host.site();
    if let Err(failure) = tools.egress.session(site.clone()).resolve(host).await {
        return Ok(Some(check_outcome_of(&failure)));
    }
    let store = &tools.store;
    if retry_while_unavailable("find site", || store.site_summary(&site)).await?.is_none() {
        return Ok(Some(HostCheckOutcome::NotContacted));
    }
    let soft = Stop { soft: stop.clone(), ..Stop::default() };
    let requests = StandaloneRequests::new(tools, worker.clone(), Duration::ZERO, soft);
    let waits_until = clock::now() + WAIT_MAX;
    loop {
        match requests.handshake(host).await {
            Ok(outcome) => return Ok(Some(outcome)),
            Err(StandaloneError::Store(error)) => return Err(error),
            Err(_) if stop.is_cancelled() => return Ok(None),
            // a visit or the check of another host holds the site, or its delay has not passed
            Err(StandaloneError::Waits { until, .. }) if until <= waits_until => {
                let wait = (until - clock::now()).to_std().unwrap_or_default();
                stop.run_until_cancelled(tokio::time::sleep(wait)).await;
            }
            Err(reason) => {
                tracing::debug!(%host, %reason, "host of an endpoint not contacted");
                return Ok(Some(HostCheckOutcome::NotContacted));
            }
        }
    }
}
