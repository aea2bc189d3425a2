//! Statistics of the store, and the position of the index in its feed.

use std::time::Duration;

use chrono::{DateTime, Utc};
use policy::Status;
use serde::Serialize;
use store::{DialectUsage, NewSite, SitesRequest, Stats, Store, StoreError};
use utoipa::ToSchema;

use crate::index::IndexHandle;
use crate::problem::Problem;

/// Maximum number of new sites in the answer.
const NEWEST_MAX: u32 = 10;
/// Time limit for counting the sites that cannot be read.
const TIME_MAX: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatsAnswer {
    pub(crate) sites: u64,
    pub(crate) sites_due: u64,
    pub(crate) sites_leased: u64,
    pub(crate) sites_parked: u64,
    pub(crate) sites_blocked: u64,
    pub(crate) visits: u64,
    pub(crate) manifests: u64,
    pub(crate) capabilities: u64,
    pub(crate) documents: u64,
    pub(crate) document_bytes: u64,
    pub(crate) manifests_by_format: Vec<Count>,
    /// How widely and how well each dialect is used, the most widely used first.
    #[schema(value_type = Vec<crate::openapi::schemas::Adoption>)]
    pub(crate) adoption: Vec<DialectUsage>,
    /// Sites that were added to the index last, newest first.
    #[schema(value_type = Vec<crate::openapi::schemas::NewSite>)]
    pub(crate) sites_newest: Vec<NewSite>,
    pub(crate) sites_by_status: Vec<Count>,
    /// Fresh sites whose documents cannot be read. 0 if there are too many sites to count them.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) sites_unreadable: u64,
    pub(crate) visit_ends_last_day: Vec<Count>,
    pub(crate) fetch_outcomes_last_day: Vec<Count>,
    pub(crate) oldest_due_at: Option<DateTime<Utc>>,
    pub(crate) last_visit_at: Option<DateTime<Utc>>,
    pub(crate) feed_position: i64,
    /// What the index has read of the feed; absent where there is no index.
    pub(crate) index_position: Option<i64>,
}

/// A value and how often it occurs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Count {
    pub(crate) value: &'static str,
    pub(crate) count: u64,
}

pub(super) fn counts<T: Into<&'static str>>(pairs: Vec<(T, u64)>) -> Vec<Count> {
    pairs.into_iter().map(|(value, count)| Count { value: value.into(), count }).collect()
}

pub(crate) async fn stats(
    store: &Store,
    index: &IndexHandle,
    now: DateTime<Utc>,
) -> Result<StatsAnswer, Problem> {
    let stats = store.stats(now).await?;
    let index_position = index.searcher().ok().map(|searcher| searcher.generation().position.0);
    let adoption = store.dialect_usage().await?;
    let sites_newest = store.sites_newest(NEWEST_MAX).await?;
    let sites_unreadable = sites_unreadable(store).await?;
    Ok(StatsAnswer { adoption, sites_newest, sites_unreadable, ..answer(stats, index_position) })
}

async fn sites_unreadable(store: &Store) -> Result<u64, StoreError> {
    let request = SitesRequest {
        status: Some(Status::Fresh),
        readable: Some(false),
        time_max: Some(TIME_MAX),
        ..SitesRequest::default()
    };
    match store.sites_count(&request).await {
        Err(StoreError::Interrupted { .. }) => Ok(0),
        counted => counted,
    }
}

fn answer(stats: Stats, index_position: Option<i64>) -> StatsAnswer {
    StatsAnswer {
        adoption: Vec::new(),
        sites_newest: Vec::new(),
        sites_unreadable: 0,
        sites: stats.sites,
        sites_due: stats.sites_due,
        sites_leased: stats.sites_leased,
        sites_parked: stats.sites_parked,
        sites_blocked: stats.sites_blocked,
        visits: stats.visits,
        manifests: stats.manifests,
        capabilities: stats.capabilities,
        documents: stats.documents,
        document_bytes: stats.document_bytes,
        manifests_by_format: counts(stats.manifests_by_format),
        sites_by_status: counts(stats.sites_by_status),
        visit_ends_last_day: counts(stats.ends_last_day),
        fetch_outcomes_last_day: counts(stats.outcomes_last_day),
        oldest_due_at: stats.oldest_due_at,
        last_visit_at: stats.last_visit_at,
        feed_position: stats.feed_head.0,
        index_position,
    }
}
