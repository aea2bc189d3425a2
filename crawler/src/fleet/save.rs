//! One visit as a task: visit, then save; while the database is away, saving is tried again.

use std::time::Duration;

use manifest::SiteName;
use store::{LeaseToken, LeasedSite, ParkedVisit, StoreError, VisitRecord, VisitSaved};
use tokio_util::sync::CancellationToken;

use super::Cancel;
use crate::clock;
use crate::summary::{Counted, ParkedSite};
use crate::visit::{Outcome, Stop, Tools, visit};

/// First and longest pause between two attempts to save.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// What a visit came to.
#[derive(Debug)]
pub(super) enum Done {
    Saved { counted: Box<Counted>, saved: VisitSaved },
    Parked(ParkedSite),
    Dropped(SiteName),
    Failed { site: SiteName, error: StoreError },
}

impl Done {
    pub(super) fn site(&self) -> &SiteName {
        match self {
            Self::Saved { counted, .. } => &counted.site,
            Self::Parked(parked) => &parked.site,
            Self::Dropped(site) | Self::Failed { site, .. } => site,
        }
    }
}

/// Visits and saves. A visit that fails for a reason of ours keeps its lease until it ends, so that it is not tried again
/// at once.
pub(super) async fn visit_and_save(
    tools: Tools,
    leased: LeasedSite,
    cancel: Cancel,
    lost: CancellationToken,
) -> Done {
    let token = leased.token.clone();
    let stop = Stop { soft: cancel.soft, lost };
    let outcome = match visit(&tools, leased, &stop).await {
        Ok(outcome) => outcome,
        Err(error) => return Done::Failed { site: token.site, error },
    };
    let saved = match outcome {
        Outcome::Dropped => return Done::Dropped(token.site),
        Outcome::Ended(record) => save(&tools, &token, &record).await,
        Outcome::Parked(parked) => park(&tools, &token, &parked).await,
    };
    saved.unwrap_or_else(|error| match error {
        StoreError::LeaseLost { site } | StoreError::Blocked { site } => Done::Dropped(site),
        error => Done::Failed { site: token.site, error },
    })
}

async fn save(tools: &Tools, token: &LeaseToken, record: &VisitRecord) -> Result<Done, StoreError> {
    let counted = Box::new(Counted::of(record));
    let saved = patiently(|| tools.store.visit_save(token, record)).await?;
    Ok(Done::Saved { counted, saved })
}

async fn park(tools: &Tools, token: &LeaseToken, parked: &ParkedVisit) -> Result<Done, StoreError> {
    patiently(|| tools.store.visit_park(token, parked, clock::now())).await?;
    let (site, reason) = (token.site.clone(), parked.reason.clone());
    Ok(Done::Parked(ParkedSite { site, resume_at: parked.resume_at, reason }))
}

/// Tries again as long as the database is away; what was fetched is not thrown away for that.
async fn patiently<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut pause = PAUSE_FIRST;
    loop {
        match attempt().await {
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, pause_ms = pause.as_millis(), "a visit waits to be saved");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
            result => return result,
        }
    }
}
