//! One document of a site, asked for as a visit asks: robots.txt first, in its turn, capped, from an address that is allowed.
//!
//! Nothing else of the site is asked but the parts that complete the document. The store only carries the visit: pass one
//! that is thrown away, unless the site shall be known from then on.

use chrono::{DateTime, Utc};
use manifest::ManifestUrl;
use policy::VisitEnd;
use store::{FetchRecord, LeaseRequest, Seed, SeedOrigin, Store};
use tokio_util::task::TaskTracker;

use crate::config::{CrawlConfig, TextRecords};
use crate::egress::Egress;
use crate::events::Events;
use crate::groups::{self, Groups};
use crate::pace::Pace;
use crate::priors::PathPriors;
use crate::reading::Reader;
use crate::visit::{Outcome, Scope, Stop, Tools, visit};
use crate::{CrawlError, clock};

/// What looking at one document came to.
#[derive(Debug)]
pub enum Look {
    /// The visit ended; what was asked for, the document first.
    Ended { end: VisitEnd, fetches: Vec<FetchRecord> },
    /// The site asks for a longer wait than the configuration allows.
    Waits { until: DateTime<Utc>, reason: String },
    /// Somebody else visits the site with the same store.
    Taken,
}

/// Asks for one document.
pub async fn look(config: &CrawlConfig, store: &Store, url: &ManifestUrl) -> Result<Look, CrawlError> {
    let egress = Egress::new(config.egress.clone())?;
    let tracker = TaskTracker::new();
    let pace = Pace::start(store.clone(), config.delay, config.rate, groups::life(config.lease), &tracker);
    let (events, text_records) = (Events::default(), TextRecords::Ignored);
    let priors = PathPriors::default();
    // a request made by hand, on the store of whoever asks: as one that has it alone
    let groups = Groups::sole();
    let reader = Reader::start(store.clone(), config.reader.clone(), &tracker);
    let tools = Tools { egress, store: store.clone(), pace, groups, events, text_records, priors, reader };
    let looked = look_with(&tools, config, url).await;
    drop(tools);
    tracker.close();
    tracker.wait().await;
    looked
}

async fn look_with(tools: &Tools, config: &CrawlConfig, url: &ManifestUrl) -> Result<Look, CrawlError> {
    let (host, origin) = (url.host(), SeedOrigin::Submitted);
    let site = host.site();
    let seed = Seed { host, url: Some(url.clone()), rank: None, origin, revisit_now: true };
    tools.store.seeds_add(&[seed], clock::now()).await?;
    let park_wait = config.mode.park_wait();
    let patience_ends_at = clock::now() + park_wait;
    loop {
        let now = clock::now();
        let request = LeaseRequest {
            worker: config.worker.clone(),
            sites_max: 1,
            duration: config.lease,
            due_before: now,
            only: Some(vec![site.clone()]),
            groups: tools.groups.to_lease(),
        };
        let Some(leased) = tools.store.sites_lease(&request, now).await?.pop() else {
            return Ok(Look::Taken);
        };
        let token = leased.token.clone();
        let scope = Scope::Document(url.clone());
        match visit(tools, Box::new(leased), scope, &Stop::default()).await?.outcome {
            Outcome::Ended(record) => return Ok(Look::Ended { end: record.end, fetches: record.fetches }),
            Outcome::Dropped | Outcome::HandedOver(_) => return Ok(Look::Taken),
            Outcome::Parked(parked) if parked.resume_at > patience_ends_at => {
                return Ok(Look::Waits { until: parked.resume_at, reason: parked.reason });
            }
            Outcome::Parked(parked) => {
                tools.store.visit_park(&token, &parked, clock::now()).await?;
                clock::sleep_until(parked.resume_at).await;
            }
        }
    }
}
