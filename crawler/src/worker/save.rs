//! The task of one visit: visits the site, then saves the result. Saving is retried while the database is unavailable.

use chrono::TimeDelta;
use manifest::SiteName;
use store::{HandOver, LeaseToken, LeasedSite, ParkedVisit, StoreError, VisitRecord, VisitSaved};

use super::hand_overs::HandOverAnswer;
use super::leases::HeldLease;
use super::{Cancel, HandOverWriter, VisitWriter};
use crate::batcher::Batcher;
use crate::clock;
use crate::retry::retry_while_unavailable;
use crate::summary::{ParkedSite, VisitCounts};
use crate::visit::{Outcome, Scope, Stop, Tools, Visited, visit};

/// The result of a visit.
#[derive(Debug)]
pub(super) enum Done {
    Saved {
        counted: Box<VisitCounts>,
        saved: VisitSaved,
    },
    Parked(ParkedSite),
    /// The worker that owns the next address resumes the visit.
    HandedOver {
        site: SiteName,
        group: u16,
    },
    Dropped(SiteName),
    Failed {
        site: SiteName,
        error: StoreError,
    },
}

/// Delay before a visit is retried that failed because of this crawler: a full disk or a bad row is not fixed immediately.
const RETRY_OWN_FAILURE: TimeDelta = TimeDelta::hours(1);

/// Visits and saves. The span has the highest level, so that every log line within it names the visit.
#[tracing::instrument(
    name = "visit",
    level = "error",
    skip_all,
    fields(site.name = %leased.token.site, lease.fence = leased.token.fence, visit.end)
)]
pub(super) async fn visit_and_save(
    tools: Tools,
    (writer, hand_overs): (VisitWriter, Batcher<HandOverWriter>),
    leased: Box<LeasedSite>,
    cancel: Cancel,
    held: HeldLease,
) -> Done {
    let token = leased.token.clone();
    let stop = Stop { soft: cancel.soft, lost: held.lost.clone() };
    let Visited { outcome, token, memory } = match visit(&tools, leased, Scope::Site, &stop).await {
        Ok(visited) => visited,
        Err(error) => return Box::pin(fail(&tools, token, error)).await,
    };
    let saved = match outcome {
        Outcome::Dropped => return Done::Dropped(token.site),
        Outcome::Ended(record) => Box::pin(save(&writer, &token, *record)).await,
        Outcome::Parked(parked) => Box::pin(park(&tools, &token, &parked)).await,
        Outcome::HandedOver(hand_over) => Box::pin(hand_over_visit(&hand_overs, &token, *hand_over)).await,
    };
    drop(memory);
    match saved {
        Ok(done) => done,
        Err(StoreError::LeaseLost { site } | StoreError::Blocked { site }) => Done::Dropped(site),
        Err(error) => Box::pin(fail(&tools, token, error)).await,
    }
}

/// Parks the visit for later. If that fails too, the lease expires.
async fn fail(tools: &Tools, token: LeaseToken, error: StoreError) -> Done {
    let resume_at = clock::now() + RETRY_OWN_FAILURE;
    let reason = "the visit failed because of an error in the crawler".to_owned();
    let parked = ParkedVisit { resume_at, reason, progress: serde_json::Value::Null, claim: None };
    if let Err(error) = tools.store.visit_park(&token, &parked, clock::now()).await {
        tracing::debug!(site.name = %token.site, %error, "the lease is left to expire");
    }
    Done::Failed { site: token.site, error }
}

async fn save(writer: &VisitWriter, token: &LeaseToken, record: VisitRecord) -> Result<Done, StoreError> {
    tracing::Span::current().record("visit.end", record.end.as_str());
    let counted = Box::new(VisitCounts::of(&record));
    let saved = writer.save(token.clone(), record).await?;
    Ok(Done::Saved { counted, saved })
}

async fn hand_over_visit(
    hand_overs: &Batcher<HandOverWriter>,
    token: &LeaseToken,
    hand_over: HandOver,
) -> Result<Done, StoreError> {
    let (site, group) = (token.site.clone(), token.address_group.unwrap_or_default());
    Ok(match hand_overs.write((token.clone(), hand_over)).await? {
        HandOverAnswer::HandedOver => Done::HandedOver { site, group },
        HandOverAnswer::LeaseLost => Done::Dropped(site),
    })
}

async fn park(tools: &Tools, token: &LeaseToken, parked: &ParkedVisit) -> Result<Done, StoreError> {
    retry_while_unavailable("save visit", || tools.store.visit_park(token, parked, clock::now())).await?;
    tracing::Span::current().record("visit.end", "parked");
    let (site, reason) = (token.site.clone(), parked.reason.clone());
    Ok(Done::Parked(ParkedSite { site, resume_at: parked.resume_at, reason }))
}
