//! The client of Summa.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use tokio::runtime::{Handle, Runtime};

use crate::client::{Client, ClusterUrl, MANAGE_MAX, Method};
use crate::interface::{
    Engine, EngineError, EngineFields, EngineResults, EngineSearch, EngineStatistics, EngineTerm,
    EngineWriter,
};
use crate::proto::field_value::Value;
use crate::proto::{
    CreateIndexRequest, CreateIndexResponse, DeleteIndexRequest, DeleteIndexResponse, GetBackendsRequest,
    GetBackendsResponse, GetTextStatsRequest, GetTextStatsResponse, ListIndexesRequest, ListIndexesResponse,
    Query, SearchHit, SearchRequest, SearchResponse, TextStats,
};
use crate::schema::{MARKER, STORED, definition, kept};
use crate::writer::Writer;
use crate::{documents, query};

/// Maximum number of terms of one request for statistics: below the default of the engine for nodes of a query.
const STATISTICS_TERMS_MAX: usize = 200;
/// Maximum time until the broker knows a new index everywhere, and the interval of looking.
const ROUTABLE_MAX: Duration = Duration::from_secs(30);
const ROUTABLE_POLL: Duration = Duration::from_millis(50);
/// The names of all indexes of agentdex start with it, so that the placement rules of the broker apply to all of them.
const PREFIX: &str = "agentdex_";
/// Health of a copy that answers.
const HEALTHY: &str = "healthy";

/// A Summa broker, or a single server.
#[derive(Debug, Clone)]
pub struct Summa {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    fields: EngineFields,
    /// Runs the connection unless the caller does.
    runtime: Option<Runtime>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Summa {
    /// Connects at the first call. Calls must not be made on threads of the runtime.
    pub fn new(url: &ClusterUrl, fields: EngineFields, runtime: Handle) -> Self {
        Self { shared: Arc::new(Shared { client: Client::new(url, runtime), fields, runtime: None }) }
    }

    /// [`Self::new`] with a thread of its own for the connection.
    pub fn with_own_thread(url: &ClusterUrl, fields: EngineFields) -> std::io::Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("cluster").enable_all().build()?;
        let client = Client::new(url, runtime.handle().clone());
        Ok(Self { shared: Arc::new(Shared { client, fields, runtime: Some(runtime) }) })
    }

    /// The name of an index on the engine, where a hyphen is not allowed.
    fn name(index: &str) -> String {
        format!("{PREFIX}{}", index.replace('-', "_"))
    }

    fn client(&self) -> &Client {
        &self.shared.client
    }

    async fn statistics_of(
        &self,
        index: &str,
        terms: &[EngineTerm],
        time_max: Duration,
    ) -> Result<GetTextStatsResponse, EngineError> {
        let request =
            GetTextStatsRequest { index_name: index.to_owned(), query: Some(query::statistics(terms)) };
        self.client().call(Method::TEXT_STATS, &request, time_max).await
    }

    async fn run(
        &self,
        index: &str,
        search: &EngineSearch,
        time_max: Duration,
    ) -> Result<EngineResults, EngineError> {
        let facets = search.facets.iter().map(|_| None).collect();
        let nothing = EngineResults { total_is_exact: true, facets, ..EngineResults::default() };
        let (Some(best), Some(counted)) = (query::best(search), query::counted(search)) else {
            return Ok(nothing);
        };
        let limit = u32::try_from(search.limit).unwrap_or(u32::MAX);
        let found = async {
            if limit == 0 {
                return Ok(SearchResponse::default());
            }
            self.search_once(index, best, limit, None, time_max).await
        };
        // Scores are not needed to count, so the statistics that they need are not either.
        let count = self.search_once(index, counted, 1, Some(TextStats::default()), time_max);
        let (found, count) = tokio::try_join!(found, count)?;
        let missing = found.missing_partitions.max(count.missing_partitions);
        Ok(EngineResults {
            missing: self.missing(missing, time_max).await,
            stored: found.hits.into_iter().filter_map(stored).collect(),
            total: count.total_hits,
            ..nothing
        })
    }

    async fn search_once(
        &self,
        index: &str,
        query: Query,
        limit: u32,
        text_stats: Option<TextStats>,
        time_max: Duration,
    ) -> Result<SearchResponse, EngineError> {
        let fields_to_load = if text_stats.is_none() { vec![STORED.to_owned()] } else { Vec::new() };
        let request = SearchRequest {
            index_name: index.to_owned(),
            query: Some(query),
            limit,
            fields_to_load,
            text_stats,
            ..SearchRequest::default()
        };
        self.client().call(Method::SEARCH, &request, time_max).await
    }

    /// The names of shards that did not answer, as far as the broker knows them.
    async fn missing(&self, count: u32, time_max: Duration) -> Vec<String> {
        if count == 0 {
            return Vec::new();
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let request = GetBackendsRequest {};
        let backends: Result<GetBackendsResponse, _> =
            self.client().call(Method::BACKENDS, &request, time_max).await;
        let backends = backends.unwrap_or_default().backends;
        let shards: BTreeSet<&str> = backends.iter().map(|backend| backend.shard_id.as_str()).collect();
        let is_away = |shard: &&str| {
            backends.iter().all(|backend| backend.shard_id != *shard || backend.health != HEALTHY)
        };
        let mut missing: Vec<String> = shards.into_iter().filter(is_away).map(str::to_owned).collect();
        missing.truncate(count);
        // A shard that broke a moment ago still counts as healthy.
        missing.resize(count, "unknown".to_owned());
        missing
    }

    async fn create_named(&self, index: &str) -> Result<(), EngineError> {
        if self.list().await?.iter().any(|known| known == index) {
            self.delete(index).await?;
        }
        let schema = definition(index, &self.shared.fields);
        let request = CreateIndexRequest { index_name: index.to_owned(), schema };
        let _: CreateIndexResponse = self.client().call(Method::CREATE_INDEX, &request, MANAGE_MAX).await?;
        self.wait_until_routable(index).await
    }

    /// Waits until the broker knows the index on every shard.
    async fn wait_until_routable(&self, index: &str) -> Result<(), EngineError> {
        let began = tokio::time::Instant::now();
        loop {
            let failed = match self.statistics_of(index, &[], MANAGE_MAX).await {
                Ok(GetTextStatsResponse { missing_partitions: 0, .. }) => return Ok(()),
                Ok(_) => {
                    EngineError::Unavailable { reason: "a shard does not have the new index".to_owned() }
                }
                Err(error) => error,
            };
            if began.elapsed() > ROUTABLE_MAX {
                return Err(failed);
            }
            tokio::time::sleep(ROUTABLE_POLL).await;
        }
    }

    async fn list(&self) -> Result<Vec<String>, EngineError> {
        let listed: ListIndexesResponse =
            self.client().call(Method::LIST_INDEXES, &ListIndexesRequest {}, MANAGE_MAX).await?;
        Ok(listed.index_names)
    }

    async fn delete(&self, index: &str) -> Result<(), EngineError> {
        let request = DeleteIndexRequest { index_name: index.to_owned() };
        let _: DeleteIndexResponse = self.client().call(Method::DELETE_INDEX, &request, MANAGE_MAX).await?;
        Ok(())
    }
}

/// The bytes that were stored with a document.
fn stored(mut hit: SearchHit) -> Option<Vec<u8>> {
    let values = hit.fields.remove(STORED)?.values;
    match values.into_iter().next()?.value? {
        Value::BytesValue(bytes) => Some(bytes),
        Value::Text(_) | Value::U64(_) | Value::I64(_) => None,
    }
}

/// The number of documents that have a term.
fn frequency(stats: &TextStats, field: &str, term: &str) -> u64 {
    let of_field = stats.fields.iter().filter(|found| found.field == field);
    let found = of_field.flat_map(|found| &found.terms).find(|found| found.term == term.as_bytes());
    found.map_or(0, |found| found.doc_freq)
}

fn mean_length(stats: &TextStats, field: &str) -> f32 {
    stats.fields.iter().find(|found| found.field == field).map_or(0.0, |found| found.avg_len)
}

impl Engine for Summa {
    fn statistics(
        &self,
        index: &str,
        terms: &[EngineTerm],
        time_max: Duration,
    ) -> Result<EngineStatistics, EngineError> {
        let index = &Self::name(index);
        // Without terms, the number of documents is still asked for.
        let parts: Vec<&[EngineTerm]> =
            if terms.is_empty() { vec![&[]] } else { terms.chunks(STATISTICS_TERMS_MAX).collect() };
        self.client().wait(async {
            let calls = parts.iter().map(|part| self.statistics_of(index, part, time_max));
            let answers = try_join_all(calls).await?;
            let mut statistics = EngineStatistics::default();
            let mut missing = 0;
            for (part, answer) in parts.iter().zip(answers) {
                let stats = answer.stats.unwrap_or_default();
                missing = missing.max(answer.missing_partitions);
                let markers = frequency(&stats, MARKER, documents::IS_MARKER);
                statistics.documents = stats.total_docs.saturating_sub(markers);
                statistics.all_length = mean_length(&stats, "all");
                statistics.bigram_length = mean_length(&stats, "bigram");
                let of_term = |term: &EngineTerm| {
                    kept(&term.text).map_or(0, |kept| frequency(&stats, term.field, &kept))
                };
                statistics.frequencies.extend(part.iter().map(of_term));
            }
            statistics.missing = self.missing(missing, time_max).await;
            Ok(statistics)
        })
    }

    fn search(
        &self,
        index: &str,
        searches: &[EngineSearch],
        time_max: Duration,
    ) -> Result<Vec<EngineResults>, EngineError> {
        let index = &Self::name(index);
        self.client().wait(try_join_all(searches.iter().map(|search| self.run(index, search, time_max))))
    }

    fn writer(&self, index: &str) -> Result<Box<dyn EngineWriter>, EngineError> {
        let writer = self.client().wait(Writer::open(self.client().clone(), Self::name(index)))?;
        Ok(Box::new(writer))
    }

    fn create(&self, index: &str) -> Result<Box<dyn EngineWriter>, EngineError> {
        self.client().wait(self.create_named(&Self::name(index)))?;
        self.writer(index)
    }

    fn remove_others(&self, index: &str) -> Result<(), EngineError> {
        let kept = Self::name(index);
        self.client().wait(async {
            let ours = self.list().await?.into_iter().filter(|name| name.starts_with(PREFIX));
            for other in ours.filter(|name| *name != kept) {
                self.delete(&other).await?;
            }
            Ok(())
        })
    }
}
