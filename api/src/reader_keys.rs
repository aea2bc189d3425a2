//! API keys of clients (*readers* in the names of this code): each key has its own limits, and gives access to an instance that requires a
//! key for reads.
//!
//! A key is sent as a bearer token, or, by a browser, as the password of HTTP Basic authentication (RFC 7617). Its hash is compared;
//! logs and metrics contain the name of the key, never the key itself.

use std::collections::HashMap;
use std::convert::Infallible;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use data_encoding::BASE64;
use governor::Quota;
use policy::key::{KeyHash, KeyKind};
use serde::{Deserialize, Serialize};
use store::{ReaderKey, Store};
use tokio::time::{Instant, timeout};
use utoipa::ToSchema;

use crate::client::Client;
use crate::limits::{self, Buckets, Exhausted};
use crate::metrics;
use crate::problem::Problem;
use crate::quota::RemainingQuota;

/// How long the table of keys is cached. A revoked key is accepted for this time.
const CACHED_FOR: Duration = Duration::from_secs(5);
/// How long the table of keys is cached for requests with an unknown key. It is shorter, so that a new key is accepted soon.
const CACHED_FOR_UNKNOWN: Duration = Duration::from_secs(1);
/// How long a request waits for the table. Together with [`CACHED_FOR`], a revoked key is rejected within ten seconds.
const READ_MAX: Duration = Duration::from_secs(2);
/// Size of a burst, in seconds of the sustained rate.
const BURST: NonZeroU32 = NonZeroU32::new(4).unwrap();
/// Maximum length of a header with a key: a name, a colon and a key in Base64.
const HEADER_BYTES_MAX: usize = 512;

/// Who may read; `reads` in the table `[api]` of the configuration file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reads {
    /// Everyone, within the limits of clients.
    #[default]
    Public,
    /// Clients with an API key, and programs on this machine.
    Keys,
}

/// Routes that need no key even if reads need one: health checks, routes with their own credentials, the contact for
/// reports of vulnerabilities, and the keys that verify signatures of this instance.
const OPEN: [&str; 15] = [
    "/healthz",
    "/readyz",
    "/metrics",
    "/robots.txt",
    "/.well-known/security.txt",
    "/favicon.ico",
    "/assets/{name}",
    "/.well-known/http-message-signatures-directory",
    "/.well-known/jwks.json",
    "/sites/{domain}/opt-out",
    "/sites/{domain}/searches",
    "/sites/{domain}/objection",
    "/watches/{id}",
    "/watches/{id}/rotate",
    "/watches/{id}/challenge",
];
/// Routes of operators, which need an admin token.
const OF_OPERATORS: &str = "/admin/";

impl Reads {
    /// Whether a request without a key is allowed.
    pub(crate) fn admit_without_key(self, client: Client, route: Option<&str>) -> bool {
        self == Self::Public
            || client.is_local
            || route.is_some_and(|route| OPEN.contains(&route) || route.starts_with(OF_OPERATORS))
    }
}

/// An API key, and its bucket of requests.
pub(crate) struct Reader {
    name: String,
    hash: KeyHash,
    reads_per_second: NonZeroU32,
    bucket: Buckets<()>,
    requests: AtomicU64,
    refused: AtomicU64,
}

/// The requests with one key since this process started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ReaderUsage {
    name: String,
    #[schema(value_type = u32)]
    reads_per_second: NonZeroU32,
    /// Requests, with those that were refused.
    requests: u64,
    /// Requests beyond the limit.
    refused: u64,
}

impl Reader {
    fn new(key: &ReaderKey) -> Self {
        let burst = key.reads_per_second.saturating_mul(BURST);
        Self {
            name: key.name.clone(),
            hash: key.hash.clone(),
            reads_per_second: key.reads_per_second,
            bucket: limits::buckets(Quota::per_second(key.reads_per_second).allow_burst(burst)),
            requests: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Takes one request from the rate of the key.
    pub(crate) fn take(&self) -> Result<RemainingQuota, Exhausted> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let taken = limits::take(&self.bucket, &());
        if taken.is_err() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        metrics::reader_request(&self.name, taken.is_ok());
        taken
    }

    fn usage(&self) -> ReaderUsage {
        ReaderUsage {
            name: self.name.clone(),
            reads_per_second: self.reads_per_second,
            requests: self.requests.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}

/// The key with which a request was admitted, if any. Stored as an extension of the request. Responses that last longer than the key is
/// cached end when it is revoked.
#[derive(Clone, Default)]
pub(crate) struct Admission(Option<Arc<Reader>>);

impl Admission {
    /// Whether the request would still be admitted, as of the last seconds.
    pub(crate) async fn is_valid(&self, keys: &ReaderKeys, store: &Store) -> bool {
        let Some(reader) = &self.0 else { return true };
        keys.readers(store, CACHED_FOR).await.is_ok_and(|readers| readers.contains_key(&reader.hash))
    }
}

impl From<Option<Arc<Reader>>> for Admission {
    fn from(reader: Option<Arc<Reader>>) -> Self {
        Self(reader)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Admission {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

type Readers = HashMap<KeyHash, Arc<Reader>>;

/// All API keys, and when the table was read.
#[derive(Clone)]
struct ReaderTable {
    read_at: Instant,
    readers: Arc<Readers>,
}

/// All API keys, as of the last seconds.
#[derive(Default)]
pub(crate) struct ReaderKeys {
    /// Locked only while it is copied.
    table: Mutex<Option<ReaderTable>>,
    /// Held by the request that reads the table again.
    refresh: tokio::sync::Mutex<()>,
}

impl ReaderKeys {
    /// The API key that a request has; `None` if it has none.
    ///
    /// # Errors
    ///
    /// If the key is unknown or revoked, or the keys cannot be read.
    pub(crate) async fn admit(
        &self,
        store: &Store,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<Reader>>, Problem> {
        let Some(key) = headers.get(header::AUTHORIZATION).and_then(|value| key_in(value.to_str().ok()?))
        else {
            return Ok(None);
        };
        let unknown =
            || Problem::unauthenticated("this reader key is unknown: it is mistyped, or it was revoked");
        let hash = KeyHash::of_key(KeyKind::Reader, &key).ok_or_else(unknown)?;
        if let Some(reader) = self.readers(store, CACHED_FOR).await?.get(&hash) {
            return Ok(Some(Arc::clone(reader)));
        }
        // the key may have been created a moment ago
        let readers = self.readers(store, CACHED_FOR_UNKNOWN).await?;
        readers.get(&hash).cloned().map(Some).ok_or_else(unknown)
    }

    /// All API keys by name, with their requests.
    pub(crate) async fn usage(&self, store: &Store) -> Result<Vec<ReaderUsage>, Problem> {
        let readers = self.readers(store, CACHED_FOR).await?;
        let mut usage: Vec<ReaderUsage> = readers.values().map(|reader| reader.usage()).collect();
        usage.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(usage)
    }

    /// All API keys. After `age`, one request reads the table again, while the others briefly use the previous table. While the
    /// database is unavailable, all requests use the previous table. Without one, requests wait for the table, at most [`READ_MAX`].
    async fn readers(&self, store: &Store, age: Duration) -> Result<Arc<Readers>, Problem> {
        let last = self.last();
        let is_younger = |than: Duration| last.as_ref().filter(|last| last.read_at.elapsed() < than);
        if let Some(last) = is_younger(age) {
            return Ok(Arc::clone(&last.readers));
        }
        if let Some(last) = is_younger(age + READ_MAX)
            && self.refresh.try_lock().is_err()
        {
            return Ok(Arc::clone(&last.readers));
        }
        let refreshed = timeout(READ_MAX, self.refreshed(store, age)).await;
        if let Ok(Ok(readers)) = refreshed {
            return Ok(readers);
        }
        match (self.keep_last(), refreshed) {
            (Some(last), _) => Ok(last),
            (None, Ok(refreshed)) => refreshed,
            (None, Err(_)) => Err(Problem::unavailable("the reader keys cannot be read at the moment")),
        }
    }

    /// Reads the table, unless another request has just done so.
    async fn refreshed(&self, store: &Store, age: Duration) -> Result<Arc<Readers>, Problem> {
        let _refresh = self.refresh.lock().await;
        let last = self.last();
        if let Some(last) = last.as_ref().filter(|last| last.read_at.elapsed() < age) {
            return Ok(Arc::clone(&last.readers));
        }
        let before = last.map(|last| last.readers).unwrap_or_default();
        let readers = Arc::new(renewed(&store.reader_keys().await?, &before));
        *self.locked() = Some(ReaderTable { read_at: Instant::now(), readers: Arc::clone(&readers) });
        Ok(readers)
    }

    fn last(&self) -> Option<ReaderTable> {
        self.locked().clone()
    }

    /// Extends the previous table by another [`CACHED_FOR`]. `None` if no table was read before.
    fn keep_last(&self) -> Option<Arc<Readers>> {
        let mut table = self.locked();
        let table = table.as_mut()?;
        table.read_at = Instant::now();
        Some(Arc::clone(&table.readers))
    }

    fn locked(&self) -> MutexGuard<'_, Option<ReaderTable>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The table of these keys. A key that was in the previous table keeps its bucket and its counts.
fn renewed(keys: &[ReaderKey], before: &Readers) -> Readers {
    let reader = |key: &ReaderKey| {
        let known = before.get(&key.hash).filter(|known| known.reads_per_second == key.reads_per_second);
        known.cloned().unwrap_or_else(|| Arc::new(Reader::new(key)))
    };
    keys.iter().map(|key| (key.hash.clone(), reader(key))).collect()
}

/// The API key in the value of `Authorization`; `None` if the value is anything else, such as an owner key.
fn key_in(authorization: &str) -> Option<String> {
    if authorization.len() > HEADER_BYTES_MAX {
        return None;
    }
    let (scheme, value) = authorization.split_once(' ')?;
    let key = if scheme.eq_ignore_ascii_case("bearer") {
        value.trim().to_owned()
    } else if scheme.eq_ignore_ascii_case("basic") {
        let decoded = String::from_utf8(BASE64.decode(value.trim().as_bytes()).ok()?).ok()?;
        decoded.split_once(':')?.1.to_owned()
    } else {
        return None;
    };
    key.starts_with(KeyKind::Reader.prefix()).then_some(key)
}

#[cfg(test)]
#[path = "reader_keys_tests.rs"]
mod tests;
