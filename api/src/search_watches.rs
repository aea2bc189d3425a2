//! Compares the changes of the feed with the searches that are watched, and stores messages with the results.
//!
//! The index answers each watched search as `GET /search` does, in the order of the last change. Of its relevant results, those are
//! delivered whose manifest was added or changed since the watch was compared last. Results that disappear are not delivered. Nothing is
//! sent here: the crawler sends the messages. An API whose database is a read-only replica without a primary compares nothing.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use axum::http::StatusCode;
use chrono::{DateTime, SecondsFormat, Utc};
use data_encoding::HEXLOWER;
use indexer::{Grouping, Hit, SearchRequest, Sort};
use manifest::{ManifestId, SiteName};
use serde_json::{Value, json};
use store::{
    BackgroundTask, FeedChange, FeedEntry, FeedPosition, NewDelivery, SearchWatch, Store, StoreError,
    TaskFailure, TaskMonitor,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::answers::search::{search_now, search_problem};
use crate::answers::search_parameters::LIMIT_MAX;
use crate::answers::{TEXT_IS, watch};
use crate::client::Client;
use crate::clock;
use crate::problem::Problem;
use crate::state::App;

/// How often changes are compared with watched searches.
const ROUND_INTERVAL: Duration = Duration::from_secs(30);
/// Time after which a round begins no further comparison, so that searches of clients have most of the processor. The watches that are
/// furthest behind are compared first in the next round.
const ROUND_MAX: Duration = Duration::from_secs(5);
/// Maximum number of watches that a round compares.
const WATCHES_OF_ROUND: u32 = 100;
/// Maximum number of changes with which a watch is compared at once: about 1 MB.
const CHANGES_MAX: usize = 10_000;
/// Entries of one statement.
const ENTRIES_MAX: u32 = 1_000;
const ID_BYTES: usize = 16;

/// Compares until stopped.
pub(crate) async fn run(app: App, stop: CancellationToken) {
    let monitor = TaskMonitor::new(app.store.clone(), BackgroundTask::SearchWatches);
    while stop.run_until_cancelled(tokio::time::sleep(ROUND_INTERVAL)).await.is_some() {
        let began = Instant::now();
        let compared = app.compare_search_watches().await;
        let result = compared.map_err(|error| TaskFailure::of_store(&error, began));
        monitor.ended(result, clock::now()).await;
    }
}

impl App {
    /// Compares the changes that the index has with the watched searches; `serve` does this every half minute.
    pub async fn compare_search_watches(&self) -> Result<(), StoreError> {
        let ends_at = Instant::now() + ROUND_MAX;
        let Ok(searcher) = self.index.searcher() else { return Ok(()) };
        let up_to = searcher.generation().position;
        let watches = self.store.watches_of_searches(up_to, WATCHES_OF_ROUND).await?;
        if watches.is_empty() || self.store.is_read_only().await? {
            return Ok(());
        }
        let first = self.store.feed_first().await?;
        // Watches come in the order of their positions, and most are at the same one.
        let mut window: Option<(FeedPosition, Changes)> = None;
        for search_watch in watches {
            if Instant::now() >= ends_at {
                break;
            }
            let position = search_watch.position;
            let changes = match window.take().filter(|(of, _)| *of == position) {
                Some((_, changes)) => changes,
                None => Changes::read(&self.store, position, first, up_to).await?,
            };
            if compare(self, &search_watch, &changes).await? == Comparison::Postponed {
                break;
            }
            window = Some((position, changes));
        }
        Ok(())
    }
}

/// The changes after a position.
struct Changes {
    /// The last addition or change of each manifest.
    of_manifests: HashMap<ManifestId, FeedEntry>,
    first_at: Option<DateTime<Utc>>,
    read_to: FeedPosition,
    /// Whether retention deleted entries after the position.
    is_outrun: bool,
}

impl Changes {
    async fn read(
        store: &Store,
        after: FeedPosition,
        first: FeedPosition,
        up_to: FeedPosition,
    ) -> Result<Self, StoreError> {
        let is_outrun = after.0 + 1 < first.0;
        let mut read_to = if is_outrun { FeedPosition(first.0 - 1) } else { after };
        let mut changes = Self { of_manifests: HashMap::new(), first_at: None, read_to, is_outrun };
        let mut read = 0;
        while read < CHANGES_MAX && read_to < up_to {
            let page = store.feed_page(read_to, ENTRIES_MAX).await?;
            if page.read_to == read_to {
                break;
            }
            read += page.entries.len();
            read_to = page.read_to.min(up_to);
            let known = page.entries.into_iter().take_while(|entry| entry.position <= up_to);
            for entry in known.filter(|entry| matches!(entry.change, FeedChange::Added | FeedChange::Changed))
            {
                changes.first_at = Some(changes.first_at.map_or(entry.at, |first| first.min(entry.at)));
                changes.of_manifests.insert(entry.manifest_id.clone(), entry);
            }
        }
        changes.read_to = read_to;
        Ok(changes)
    }
}

/// What became of a comparison.
#[derive(Debug, PartialEq, Eq)]
enum Comparison {
    /// The watch has moved to the end of the changes.
    Ended,
    /// There was no capacity for the search: the next round compares the watch with the same changes.
    Postponed,
}

/// Stores a message with the results of a watched search that have changed, if there are any, and moves the watch.
async fn compare(app: &App, watch: &SearchWatch, changes: &Changes) -> Result<Comparison, StoreError> {
    let found = match results(app, &watch.query, changes).await {
        Ok(found) => found,
        Err(NotFound::WithoutCapacity(problem)) => {
            tracing::debug!(
                watch = watch.id,
                reason = problem.body().detail,
                "a watched search is postponed"
            );
            return Ok(Comparison::Postponed);
        }
        // without a message, a search that takes too long would be compared again first in each round
        Err(NotFound::Failed(problem)) if problem.body().status.is_server_error() => {
            tracing::debug!(watch = watch.id, reason = problem.body().detail, "a watched search failed");
            Found::none(changes, false)
        }
        Err(NotFound::Failed(problem)) => {
            let reason = &problem.body().detail;
            tracing::warn!(watch = watch.id, reason, "a watched search is no longer valid");
            Found::none(changes, true)
        }
    };
    if found.results.is_empty() && found.is_complete && !changes.is_outrun {
        app.store.watch_advance(&watch.id, watch.position, changes.read_to).await?;
        return Ok(Comparison::Ended);
    }
    let at = clock::now();
    let timestamp = at.to_rfc3339_opts(SecondsFormat::Millis, true);
    let data = json!({
        "watch": watch.id,
        "search": watch.query,
        "complete": found.is_complete && !changes.is_outrun,
        "text_is": TEXT_IS,
        "results": found.results,
    });
    let delivery = NewDelivery {
        id: format!("msg_{}", HEXLOWER.encode(&rand::random::<[u8; ID_BYTES]>())),
        watch_id: watch.id.clone(),
        after: watch.position,
        first: found.first,
        last: changes.read_to,
        body: json!({"type": "agentdex.search", "timestamp": timestamp, "data": data}).to_string(),
        sites: found.sites.into_iter().collect(),
        at,
    };
    app.store.delivery_add(&delivery).await?;
    Ok(Comparison::Ended)
}

/// Results that changed.
struct Found {
    results: Vec<Value>,
    sites: BTreeSet<SiteName>,
    /// Position of the first change that a result has.
    first: FeedPosition,
    /// Whether these are all results that changed.
    is_complete: bool,
}

impl Found {
    const fn none(changes: &Changes, is_complete: bool) -> Self {
        Self { results: Vec::new(), sites: BTreeSet::new(), first: changes.read_to, is_complete }
    }
}

/// Why a watched search has no results.
enum NotFound {
    /// The search did not run.
    WithoutCapacity(Problem),
    Failed(Problem),
}

impl NotFound {
    /// A search that did not end. One that panicked would do so in each round, and no later watch would be compared.
    fn of_run(problem: Problem) -> Self {
        if problem.body().status == StatusCode::SERVICE_UNAVAILABLE {
            Self::WithoutCapacity(problem)
        } else {
            Self::Failed(problem)
        }
    }
}

async fn results(app: &App, query: &str, changes: &Changes) -> Result<Found, NotFound> {
    let mut found = Found::none(changes, true);
    let Some(first_at) = changes.first_at else { return Ok(found) };
    let parameters = watch::search_of(query).map_err(NotFound::Failed)?;
    let request = SearchRequest {
        is_relevant_only: !parameters.request.phrasings.is_empty(),
        sort: Sort::Updated,
        group_by: Grouping::None,
        limit: usize::try_from(LIMIT_MAX).unwrap_or(usize::MAX),
        ..parameters.request
    };
    let searched = search_now(&app.index, Client::on_this_machine(), request).await;
    let searched = searched.map_err(NotFound::of_run)?;
    let answer = searched.map_err(|error| NotFound::Failed(search_problem(&error)))?.answer;
    let is_cut = answer.next_cursor.is_some();
    found.is_complete = !is_cut || answer.hits.last().is_some_and(|last| last.updated_at < first_at);
    let base = app.base_url();
    for hit in &answer.hits {
        if let Some(entry) = changes.of_manifests.get(&hit.manifest_id) {
            found.first = found.first.min(entry.position);
            found.results.push(result(&base, hit, entry));
            found.sites.insert(hit.site.clone());
        }
    }
    Ok(found)
}

fn result(base: &str, hit: &Hit, entry: &FeedEntry) -> Value {
    json!({
        "position": entry.position,
        "at": entry.at,
        "change": entry.change,
        "site": hit.site,
        "manifest_id": hit.manifest_id,
        "capability_id": hit.id,
        "name": hit.name,
        "addresses_reader": hit.addresses_reader,
        "url": format!("{base}/capabilities/{}", hit.id),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::LimitsConfig;
    use crate::test_app::{app, hold_all_searches};
    use crate::timeouts::ClientTimeouts;

    #[tokio::test]
    async fn a_watched_search_without_capacity_is_compared_again() {
        let (app, _dir) = app(LimitsConfig::default(), ClientTimeouts::default()).await;
        let watch =
            SearchWatch { id: "w_1".to_owned(), query: "q=flight".to_owned(), position: FeedPosition(0) };
        let changes = Changes {
            of_manifests: HashMap::new(),
            first_at: Some(DateTime::UNIX_EPOCH),
            read_to: FeedPosition(7),
            is_outrun: false,
        };
        let held = hold_all_searches(&app).await;
        assert_eq!(compare(&app, &watch, &changes).await.unwrap(), Comparison::Postponed);
        held.release().await;
        assert_eq!(compare(&app, &watch, &changes).await.unwrap(), Comparison::Ended);
    }

    #[test]
    fn a_watched_search_that_panicked_is_not_postponed() {
        assert!(matches!(
            NotFound::of_run(Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR)),
            NotFound::Failed(_)
        ));
        let busy = Problem::unavailable("busy");
        assert!(matches!(NotFound::of_run(busy), NotFound::WithoutCapacity(_)));
    }
}
