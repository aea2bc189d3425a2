//! Daily checks of the hosts that endpoints of stored capabilities name: whether the name resolves, and whether the host completes a TLS
//! handshake.
//!
//! Off by default. No request is sent: the connection is closed after the handshake. The store gives each host to one worker, at most once
//! on a day (UTC). A host is contacted only if its site is known and neither blocked nor suspended, and if the robots.txt that visits have
//! read permits it, under the limits of requests ([`StandaloneRequests`]).

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::TimeDelta;
use futures::future::join_all;
use manifest::{Host, ManifestId};
use policy::delay::day_of;
use policy::liveness::HostCheckOutcome;
use store::{StoreError, StoredManifest, WorkerId};
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
/// Maximum number of concurrent checks.
const CHECKS_AT_ONCE: usize = 8;

/// Checks every host once a day, until stopped.
pub(crate) async fn run(tools: Tools, worker: WorkerId, stop: CancellationToken) {
    let mut done_on = None;
    while !stop.is_cancelled() {
        let today = day_of(clock::now());
        if done_on != Some(today) {
            match check_all(&tools, &worker, &stop).await {
                Ok(()) => done_on = Some(today),
                Err(error) => tracing::warn!(%error, "hosts of endpoints were not all checked; tried again"),
            }
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
        let hosts: Vec<Host> = page.iter().flat_map(hosts_of).collect();
        drop(page);
        let now = clock::now();
        let begun =
            retry_while_unavailable("begin checks of hosts", || store.host_checks_begin(&hosts, now)).await?;
        for hosts in begun.chunks(CHECKS_AT_ONCE) {
            let checks = hosts.iter().map(|host| check(tools, worker, stop, host));
            join_all(checks).await.into_iter().collect::<Result<(), StoreError>>()?;
        }
    }
    Ok(())
}

/// The first hosts that the endpoints of a manifest name, each once.
fn hosts_of(stored: &StoredManifest) -> BTreeSet<Host> {
    let manifest = &stored.manifest;
    let mut hosts = BTreeSet::new();
    for capability in &manifest.capabilities {
        if hosts.len() == HOSTS_OF_MANIFEST_MAX {
            break;
        }
        hosts.extend(manifest.endpoint_host(capability));
    }
    hosts
}

async fn check(
    tools: &Tools,
    worker: &WorkerId,
    stop: &CancellationToken,
    host: &Host,
) -> Result<(), StoreError> {
    let outcome = Box::pin(outcome_of(tools, worker, stop, host)).await?;
    metrics::host_checked(outcome);
    tracing::debug!(%host, %outcome, "host of an endpoint checked");
    let (store, now) = (&tools.store, clock::now());
    retry_while_unavailable("end check of a host", || store.host_check_end(host, outcome, now)).await
}

async fn outcome_of(
    tools: &Tools,
    worker: &WorkerId,
    stop: &CancellationToken,
    host: &Host,
) -> Result<HostCheckOutcome, StoreError> {
    let site = host.site();
    if let Err(failure) = tools.egress.session(site.clone()).resolve(host).await {
        return Ok(check_outcome_of(&failure));
    }
    let store = &tools.store;
    if retry_while_unavailable("find site", || store.site_summary(&site)).await?.is_none() {
        return Ok(HostCheckOutcome::NotContacted);
    }
    let soft = Stop { soft: stop.clone(), ..Stop::default() };
    let requests = StandaloneRequests::new(tools, worker.clone(), Duration::ZERO, soft);
    let waits_until = clock::now() + WAIT_MAX;
    loop {
        match requests.handshake(host).await {
            Ok(outcome) => return Ok(outcome),
            Err(StandaloneError::Store(error)) => return Err(error),
            // a visit or the check of another host holds the site, or its delay has not passed
            Err(StandaloneError::Waits { until, .. }) if until <= waits_until && !stop.is_cancelled() => {
                let wait = (until - clock::now()).to_std().unwrap_or_default();
                stop.run_until_cancelled(tokio::time::sleep(wait)).await;
            }
            Err(reason) => {
                tracing::debug!(%host, %reason, "host of an endpoint not contacted");
                return Ok(HostCheckOutcome::NotContacted);
            }
        }
    }
}
