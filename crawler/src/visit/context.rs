//! What a visit is given, and why it may not go on.

use chrono::{DateTime, Utc};
use manifest::ManifestUrl;
use policy::VisitEnd;
use store::{Store, StoreError};
use tokio_util::sync::CancellationToken;

use crate::config::TextRecords;
use crate::egress::Egress;
use crate::events::Events;
use crate::groups::Groups;
use crate::pace::Pace;
use crate::priors::PathPriors;
use crate::reading::Reader;

/// What every visit of a process uses.
#[derive(Clone)]
pub(crate) struct Tools {
    pub(crate) egress: Egress,
    pub(crate) store: Store,
    pub(crate) pace: Pace,
    pub(crate) groups: Groups,
    pub(crate) events: Events,
    pub(crate) text_records: TextRecords,
    pub(crate) priors: PathPriors,
    pub(crate) reader: Reader,
}

/// How a visit is stopped from outside.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    /// After the request that is under way.
    pub(crate) soft: CancellationToken,
    /// The lease of the site is lost.
    pub(crate) lost: CancellationToken,
}

/// How much of a site a visit requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Known documents, planned paths, and what they link to.
    Site,
    /// One document, and the parts that complete it.
    Document(ManifestUrl),
}

/// Why a visit does not go on.
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

impl From<StoreError> for Interrupt {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::LeaseLost { .. } => Self::LeaseLost,
            StoreError::Blocked { .. } => Self::End(VisitEnd::OptedOut),
            error => Self::Store(error),
        }
    }
}
