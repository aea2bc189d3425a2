//! Calls of the engine's gRPC interface, with deadlines and retries.

use std::str::FromStr;
use std::time::Duration;

use http::Uri;
use http::uri::PathAndQuery;
use prost::Message;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use crate::interface::EngineError;
use crate::proto::{GetTopologyRequest, GetTopologyResponse, IndexTopology};

/// Largest response: a thousand documents of 32 KiB.
const RESPONSE_BYTES_MAX: usize = 32 << 20;
/// Largest request: the engine accepts batches of 32 MiB.
const REQUEST_BYTES_MAX: usize = 33 << 20;
/// Maximum time to connect.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// Interval of pings, and the maximum time for the answer to one, so that a cut network is noticed.
const PING_INTERVAL: Duration = Duration::from_secs(5);
const PING_MAX: Duration = Duration::from_secs(3);
/// First and longest delay before a call is repeated, with exponential backoff.
const RETRY_MIN: Duration = Duration::from_millis(5);
const RETRY_MAX: Duration = Duration::from_millis(500);

/// Maximum time of a call that manages indexes. Deleting one waits for its merges.
pub(crate) const MANAGE_MAX: Duration = Duration::from_mins(1);

/// The address of an engine: `http://host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterUrl(Uri);

impl FromStr for ClusterUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid =
            || format!("`{text}` is not the address of a search engine, such as http://broker:50051");
        let uri = Uri::from_str(text).map_err(|_| invalid())?;
        let is_origin = uri.scheme_str() == Some("http") && uri.port().is_some() && uri.path() == "/";
        if is_origin && uri.query().is_none() { Ok(Self(uri)) } else { Err(invalid()) }
    }
}

/// The path of a method, and what may be repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Method {
    path: &'static str,
    retry: Retry,
}

/// Which failures a call is repeated after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retry {
    /// The engine was busy and did nothing.
    Busy,
    /// The same, or the connection broke: once, for calls that only read.
    BusyOrBroken,
}

impl Method {
    pub(crate) const SEARCH: Self = Self::read("/summa.SearchService/Search");
    pub(crate) const TEXT_STATS: Self = Self::read("/summa.SearchService/GetTextStats");
    pub(crate) const LIST_INDEXES: Self = Self::read("/summa.IndexService/ListIndexes");
    pub(crate) const TOPOLOGY: Self = Self::read("/summa.broker.BrokerService/GetTopology");
    pub(crate) const BACKENDS: Self = Self::read("/summa.broker.BrokerService/GetBackends");
    pub(crate) const CREATE_INDEX: Self = Self::write("/summa.IndexService/CreateIndex");
    pub(crate) const DELETE_INDEX: Self = Self::write("/summa.IndexService/DeleteIndex");
    pub(crate) const UPSERT: Self = Self::write("/summa.IndexService/UpsertDocuments");
    pub(crate) const DELETE: Self = Self::write("/summa.IndexService/DeleteDocuments");
    pub(crate) const COMMIT: Self = Self::write("/summa.IndexService/Commit");

    const fn read(path: &'static str) -> Self {
        Self { path, retry: Retry::BusyOrBroken }
    }

    const fn write(path: &'static str) -> Self {
        Self { path, retry: Retry::Busy }
    }
}

/// A connection to a broker or to a single server. It is made at the first call, and made again when it breaks.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    channel: Channel,
    runtime: Handle,
    /// For errors.
    url: String,
}

impl Client {
    pub(crate) fn new(url: &ClusterUrl, runtime: Handle) -> Self {
        let endpoint = Endpoint::from(url.0.clone())
            .connect_timeout(CONNECT_MAX)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(PING_INTERVAL)
            .keep_alive_while_idle(true)
            .keep_alive_timeout(PING_MAX);
        let entered = runtime.enter();
        let channel = endpoint.connect_lazy();
        drop(entered);
        Self { channel, runtime, url: url.0.to_string() }
    }

    /// Waits for a future on a thread that may block.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Calls a method, and repeats the call until a deadline while the engine is busy.
    pub(crate) async fn call<Q, A>(
        &self,
        method: Method,
        request: &Q,
        time_max: Duration,
    ) -> Result<A, EngineError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let deadline = Instant::now() + time_max;
        let mut delay = RETRY_MIN;
        let mut may_reconnect = method.retry == Retry::BusyOrBroken;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(EngineError::OutOfTime);
            }
            let answered = tokio::time::timeout(left, self.call_once(method, request.clone(), left)).await;
            let Ok(answered) = answered else { return Err(EngineError::OutOfTime) };
            let status = match answered {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            let is_broken = may_reconnect && status.code() == Code::Unavailable;
            may_reconnect &= !is_broken;
            let is_repeated = is_broken || status.code() == Code::ResourceExhausted;
            if !is_repeated || delay >= deadline.saturating_duration_since(Instant::now()) {
                return Err(error(&self.url, &status));
            }
            tokio::time::sleep(delay).await;
            delay = (delay * 2).min(RETRY_MAX);
        }
    }

    async fn call_once<Q, A>(&self, method: Method, message: Q, time_max: Duration) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.channel.clone())
            .max_decoding_message_size(RESPONSE_BYTES_MAX)
            .max_encoding_message_size(REQUEST_BYTES_MAX);
        grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let mut request = Request::new(message);
        request.set_timeout(time_max);
        let path = PathAndQuery::from_static(method.path);
        let codec = tonic_prost::ProstCodec::<Q, A>::default();
        Ok(grpc.unary(request, path, codec).await?.into_inner())
    }
}

/// The error of a status. What may succeed later is `Unavailable`.
fn error(url: &str, status: &Status) -> EngineError {
    match status.code() {
        Code::DeadlineExceeded => EngineError::OutOfTime,
        Code::InvalidArgument | Code::Unimplemented | Code::OutOfRange | Code::PermissionDenied => {
            EngineError::Rejected { reason: status.message().to_owned() }
        }
        _ => {
            let missing = shards_in(status.message());
            if missing.is_empty() {
                EngineError::Unavailable { reason: format!("{url} {}", status.message()) }
            } else {
                EngineError::MissingShards { missing }
            }
        }
    }
}

/// The shards that a message of the broker names: `partition on shard 'a': …` or `partition(s) [a, b] carry no healthy copy`.
fn shards_in(message: &str) -> Vec<String> {
    let between = |start: &str, end: char| {
        let (_, rest) = message.split_once(start)?;
        rest.split_once(end).map(|(found, _)| found)
    };
    let found = between("on shard '", '\'').or_else(|| between("partition(s) [", ']')).unwrap_or_default();
    found.split(", ").filter(|shard| !shard.is_empty()).map(str::to_owned).collect()
}

/// The shards of an index; `None` for a server without a broker.
pub(crate) async fn topology(
    client: &Client,
    index: &str,
    time_max: Duration,
) -> Result<Option<IndexTopology>, EngineError> {
    let request = GetTopologyRequest { index_name: index.to_owned() };
    match client.call::<_, GetTopologyResponse>(Method::TOPOLOGY, &request, time_max).await {
        Ok(topology) => Ok(topology.indexes.into_iter().next()),
        Err(EngineError::Rejected { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_origins_with_a_port() {
        assert!("http://broker:50051".parse::<ClusterUrl>().is_ok());
        for invalid in
            ["broker:50051", "https://broker:50051", "http://broker", "http://broker:1/x", "http://b:1?x", ""]
        {
            assert!(invalid.parse::<ClusterUrl>().is_err(), "{invalid}");
        }
    }

    #[test]
    fn names_the_shards_of_a_message() {
        assert_eq!(shards_in("index 'i' partition on shard 'a': tcp connect error"), ["a"]);
        let several = "index 'i' is partitioned over 3 shards but partition(s) [a, b] carry no healthy copy";
        assert_eq!(shards_in(several), ["a", "b"]);
        assert!(shards_in("transport error").is_empty());
    }

    #[test]
    fn only_failures_that_a_repetition_cannot_heal_are_rejections() {
        let error = |status| error("http://broker:50051/", &status);
        assert!(matches!(error(Status::invalid_argument("x")), EngineError::Rejected { .. }));
        assert!(matches!(error(Status::deadline_exceeded("x")), EngineError::OutOfTime));
        for code in
            [Code::Unavailable, Code::Internal, Code::NotFound, Code::ResourceExhausted, Code::Unknown]
        {
            assert!(matches!(error(Status::new(code, "x")), EngineError::Unavailable { .. }), "{code}");
        }
        let text = error(Status::unavailable("connection refused")).to_string();
        assert_eq!(text, "the search engine cannot be reached: http://broker:50051/ connection refused");
    }
}
