//! What the crawl has been doing lately.

use chrono::{DateTime, Utc};
use policy::VisitEnd;
use serde::{Deserialize, Serialize};

use super::WorkerId;

/// Visits that ended in the same way within the same hour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitsOfHour {
    /// When the hour began.
    pub hour: DateTime<Utc>,
    /// How they ended.
    pub end: VisitEnd,
    /// How many.
    pub count: u64,
}

/// A worker and what it is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerLoad {
    /// The worker.
    pub worker: WorkerId,
    /// Sites that it holds.
    pub sites: u64,
}
