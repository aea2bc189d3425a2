//! The inputs of a visit, and the reasons why it stops.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use manifest::ManifestUrl;
use policy::VisitEnd;
use runtime::ReadError;
use store::{Store, StoreError};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::activity::Activity;
use crate::clock;
use crate::config::{CrawlConfig, TextRecords};
use crate::error::CrawlError;
use crate::events::Events;
use crate::groups::{Groups, Lifetimes};
use crate::pace::Pace;
use crate::priors::PathPriors;
use crate::reading::{Reader, ReadingError};
use crate::sources_on_web::SourcesOnWeb;
use egress::Egress;

/// How long a visit waits if this machine has no capacity for it: no free thread, memory for a body, or file descriptor.
const BUSY_DELAY: TimeDelta = TimeDelta::minutes(1);

/// State that all visits of a process share.
#[derive(Clone)]
pub(crate) struct Tools {
    pub(crate) activity: Activity,
    pub(crate) egress: Egress,
    pub(crate) store: Store,
    pub(crate) pace: Pace,
    pub(crate) groups: Groups,
    pub(crate) events: Events,
    pub(crate) text_records: TextRecords,
    /// The operator's own interval between visits.
    pub(crate) revisit_every: Option<Duration>,
    pub(crate) priors: PathPriors,
    pub(crate) reader: Reader,
    pub(crate) sources_on_web: Arc<SourcesOnWeb>,
}

impl Tools {
    /// Starts the tasks that visits use. They end when the last clone is dropped.
    pub(crate) async fn start(
        config: &CrawlConfig,
        store: &Store,
        (groups, events): (Groups, Events),
        tracker: &TaskTracker,
    ) -> Result<Self, CrawlError> {
        let egress = Egress::new(config.egress.clone(), clock::now)?;
        let priors = PathPriors::default();
        priors.re_estimate(store).await?;
        let lifetimes = Lifetimes::of(config.lease);
        Ok(Self {
            activity: Activity::default(),
            egress,
            pace: Pace::start(store.clone(), config.delay, config.rate, lifetimes, tracker),
            groups,
            events,
            text_records: config.text_records,
            revisit_every: config.revisit_every,
            priors,
            reader: Reader::start(store.clone(), config.reader.clone(), tracker),
            sources_on_web: Arc::default(),
            store: store.clone(),
        })
    }
}

/// Signals that stop a visit from outside.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    /// Stops the visit after the request in flight.
    pub(crate) soft: CancellationToken,
    /// Stops the visit immediately, because the lease of the site is lost.
    pub(crate) lost: CancellationToken,
}

/// What a visit requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Known documents, planned paths, and the URLs to which these link.
    Site,
    /// One document, and the parts that complete it.
    Document(ManifestUrl),
}

/// Why a visit stops.
#[derive(Debug)]
pub(super) enum Interrupt {
    Park {
        until: DateTime<Utc>,
        reason: String,
    },
    End(VisitEnd),
    /// Another worker owns the next address.
    HandOver {
        group: u16,
    },
    LeaseLost,
    Store(StoreError),
}

/// Reason of a parked visit that waits for memory.
pub(super) const NO_MEMORY: &str = "documents of other sites occupy the memory of the crawler";

impl Interrupt {
    /// Parks the visit because this machine is busy. Nothing that was fetched is lost.
    pub(super) fn busy(reason: impl Into<String>) -> Self {
        Self::Park { until: clock::now() + BUSY_DELAY, reason: reason.into() }
    }
}

/// The value that was read; `None` if the input could not be read.
pub(super) fn unless_busy<T>(read: Result<T, ReadError>) -> Result<Option<T>, Interrupt> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_caused_by_document() => Ok(None),
        Err(error) => Err(Interrupt::busy(error.to_string())),
    }
}

impl From<ReadingError> for Interrupt {
    fn from(error: ReadingError) -> Self {
        match error {
            ReadingError::Busy(reason) => Self::busy(reason),
            ReadingError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for Interrupt {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::LeaseLost { .. } => Self::LeaseLost,
            StoreError::Blocked { .. } => Self::End(VisitEnd::OptedOut),
            error => Self::Store(error),
        }
    }
}
