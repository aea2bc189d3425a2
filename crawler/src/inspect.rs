//! Fetches one document of a site under the rules of visits: robots.txt, permits, caps, allowed addresses.
//!
//! Besides the document, only the parts that complete it are requested. The store records the site; if that is not wanted, pass a temporary
//! store.

use async_recursion::async_recursion as boxed;
use chrono::{DateTime, Utc};
use manifest::ManifestUrl;
use policy::VisitEnd;
use store::{FetchRecord, LeaseRequest, Seed, SeedOrigin, Store};
use tokio_util::task::TaskTracker;

use crate::config::{CrawlConfig, TextRecords};
use crate::events::Events;
use crate::groups::Groups;
use crate::visit::{Outcome, Scope, Stop, Tools, visit};
use crate::{CrawlError, clock};

/// The result of fetching one document.
#[derive(Debug)]
pub enum Inspection {
    /// The visit ended. The first of `fetches` is that of the document.
    Ended { end: VisitEnd, fetches: Vec<FetchRecord> },
    /// The site requires a longer wait than the configuration allows.
    Waits { until: DateTime<Utc>, reason: String },
    /// Another worker visits the site with the same store.
    Taken,
}

/// Fetches one document.
#[boxed]
pub async fn inspect(
    config: &CrawlConfig,
    store: &Store,
    url: &ManifestUrl,
) -> Result<Inspection, CrawlError> {
    let tracker = TaskTracker::new();
    // a manual request: no shared address groups, no events
    let own = (Groups::unshared(), Events::default());
    let tools = Tools::start(config, store, own, &tracker).await?;
    let tools = Tools { text_records: TextRecords::Ignored, ..tools };
    let inspected = inspect_with(&tools, config, url).await;
    drop(tools);
    tracker.close();
    tracker.wait().await;
    inspected
}

async fn inspect_with(
    tools: &Tools,
    config: &CrawlConfig,
    url: &ManifestUrl,
) -> Result<Inspection, CrawlError> {
    let (host, origin) = (url.host(), SeedOrigin::Submitted);
    let site = host.site();
    let seed = Seed { host, url: Some(url.clone()), rank: None, origin, revisit_now: true };
    tools.store.seeds_add(&[seed], clock::now()).await?;
    let park_wait = config.mode.park_wait();
    let wait_ends_at = clock::now() + park_wait;
    loop {
        let now = clock::now();
        let request = LeaseRequest {
            worker: config.worker.clone(),
            sites_max: 1,
            duration: config.lease,
            due_before: now,
            only: Some(vec![site.clone()]),
            groups: tools.groups.leasable(),
        };
        let Some(leased) = tools.store.sites_lease(&request, now).await?.pop() else {
            return Ok(Inspection::Taken);
        };
        let token = leased.token.clone();
        let scope = Scope::Document(url.clone());
        match visit(tools, Box::new(leased), scope, &Stop::default()).await?.outcome {
            Outcome::Ended(record) => {
                return Ok(Inspection::Ended { end: record.end, fetches: record.fetches });
            }
            Outcome::Dropped | Outcome::HandedOver(_) => return Ok(Inspection::Taken),
            Outcome::Parked(parked) if parked.resume_at > wait_ends_at => {
                return Ok(Inspection::Waits { until: parked.resume_at, reason: parked.reason });
            }
            Outcome::Parked(parked) => {
                tools.store.visit_park(&token, &parked, clock::now()).await?;
                clock::sleep_until(parked.resume_at).await;
            }
        }
    }
}
