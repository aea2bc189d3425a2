//! Background tasks and their failures.

use chrono::{DateTime, Utc};
use manifest::string_enum;
use serde::Serialize;

string_enum! {
    /// A task that a program runs again and again beside its main work.
    BackgroundTask, "background task" {
        /// The crawler reads the seeds, at its start and again.
        Seeds = "seeds",
        /// The crawler deletes expired data and ranks the paths.
        Housekeeping = "housekeeping",
        /// The crawler logs the state of the crawl.
        Report = "report",
        /// The crawler checks the hosts of endpoints.
        HostChecks = "host_checks",
        /// The crawler sends changes to webhooks.
        Deliveries = "deliveries",
        /// The indexer publishes snapshots.
        PublishSnapshots = "publish_snapshots",
        /// The API fetches snapshots.
        FetchSnapshots = "fetch_snapshots",
        /// The indexer or the API computes vectors.
        Vectors = "vectors",
        /// The API opens the index and its newest commits.
        OpenIndex = "open_index",
        /// The API writes the counts of searches and reads the owners of sites.
        SearchCounts = "search_counts",
        /// The API compares changes with the searches that are watched.
        SearchWatches = "search_watches",
    }
}

impl BackgroundTask {
    /// The task in words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Seeds => "reading the seeds",
            Self::Housekeeping => "housekeeping",
            Self::Report => "the report",
            Self::HostChecks => "checking hosts of endpoints",
            Self::Deliveries => "delivering changes to webhooks",
            Self::PublishSnapshots => "publishing snapshots",
            Self::FetchSnapshots => "fetching snapshots",
            Self::Vectors => "computing vectors",
            Self::OpenIndex => "opening the index",
            Self::SearchCounts => "writing the counts of searches",
            Self::SearchWatches => "comparing changes with watched searches",
        }
    }
}

/// A task that has failed since its last success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailingTask {
    pub task: BackgroundTask,
    /// The name of the machine.
    pub machine: String,
    pub since: DateTime<Utc>,
    pub last_at: DateTime<Utc>,
    pub failures: u32,
    /// Why it failed last, and what to do.
    pub reason: String,
}
