//! One visit as a task: visit, then save; while the database is away, saving is tried again.

use chrono::TimeDelta;
use manifest::SiteName;
use store::{HandOver, LeaseToken, LeasedSite, ParkedVisit, StoreError, VisitRecord, VisitSaved};
use tokio_util::sync::CancellationToken;

use super::passing::Passed;
use super::{Cancel, Passing, VisitWriter};
use crate::clock;
use crate::gather::Gatherer;
use crate::patience::patiently;
use crate::summary::{Counted, ParkedSite};
use crate::visit::{Outcome, Scope, Stop, Tools, Visited, visit};

/// What a visit came to.
#[derive(Debug)]
pub(super) enum Done {
    Saved {
        counted: Box<Counted>,
        saved: VisitSaved,
    },
    Parked(ParkedSite),
    /// Another worker goes on with the visit, since the next address is that one's.
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

impl Done {
    pub(super) fn site(&self) -> &SiteName {
        match self {
            Self::Saved { counted, .. } => &counted.site,
            Self::Parked(parked) => &parked.site,
            Self::Dropped(site) | Self::Failed { site, .. } | Self::HandedOver { site, .. } => site,
        }
    }
}

/// A visit that failed for a reason of ours is tried again after this: a full disk or a bad row is not mended at once.
const RETRY_OWN_FAILURE: TimeDelta = TimeDelta::hours(1);

/// Visits and saves. The span is of the highest level, so that every line written within it names the visit.
#[tracing::instrument(
    name = "visit",
    level = "error",
    skip_all,
    fields(site.name = %leased.token.site, lease.fence = leased.token.fence, visit.end)
)]
pub(super) async fn visit_and_save(
    tools: Tools,
    (writer, passing): (VisitWriter, Gatherer<Passing>),
    leased: Box<LeasedSite>,
    cancel: Cancel,
    lost: CancellationToken,
) -> Done {
    let token = leased.token.clone();
    let stop = Stop { soft: cancel.soft, lost };
    let Visited { outcome, token, memory } = match visit(&tools, leased, Scope::Site, &stop).await {
        Ok(visited) => visited,
        Err(error) => return Box::pin(fail(&tools, token, error)).await,
    };
    let saved = match outcome {
        Outcome::Dropped => return Done::Dropped(token.site),
        Outcome::Ended(record) => Box::pin(save(&writer, &token, *record)).await,
        Outcome::Parked(parked) => Box::pin(park(&tools, &token, &parked)).await,
        Outcome::HandedOver(hand_over) => Box::pin(pass_on(&passing, &token, *hand_over)).await,
    };
    drop(memory);
    match saved {
        Ok(done) => done,
        Err(StoreError::LeaseLost { site } | StoreError::Blocked { site }) => Done::Dropped(site),
        Err(error) => Box::pin(fail(&tools, token, error)).await,
    }
}

/// Gives the site back for later; if even that fails, its lease ends by itself.
async fn fail(tools: &Tools, token: LeaseToken, error: StoreError) -> Done {
    let resume_at = clock::now() + RETRY_OWN_FAILURE;
    let reason = "the visit failed for a reason of ours".to_owned();
    let parked = ParkedVisit { resume_at, reason, progress: serde_json::Value::Null };
    if let Err(error) = tools.store.visit_park(&token, &parked, clock::now()).await {
        tracing::debug!(site.name = %token.site, %error, "the lease ends by itself");
    }
    Done::Failed { site: token.site, error }
}

async fn save(writer: &VisitWriter, token: &LeaseToken, record: VisitRecord) -> Result<Done, StoreError> {
    tracing::Span::current().record("visit.end", record.end.as_str());
    let counted = Box::new(Counted::of(&record));
    let saved = writer.save(token.clone(), record).await?;
    Ok(Done::Saved { counted, saved })
}

async fn pass_on(
    passing: &Gatherer<Passing>,
    token: &LeaseToken,
    hand_over: HandOver,
) -> Result<Done, StoreError> {
    let (site, group) = (token.site.clone(), token.address_group.unwrap_or_default());
    Ok(match passing.write((token.clone(), hand_over)).await? {
        Passed::On => Done::HandedOver { site, group },
        Passed::Lost => Done::Dropped(site),
    })
}

async fn park(tools: &Tools, token: &LeaseToken, parked: &ParkedVisit) -> Result<Done, StoreError> {
    patiently("a visit to be saved", || tools.store.visit_park(token, parked, clock::now())).await?;
    tracing::Span::current().record("visit.end", "parked");
    let (site, reason) = (token.site.clone(), parked.reason.clone());
    Ok(Done::Parked(ParkedSite { site, resume_at: parked.resume_at, reason }))
}
