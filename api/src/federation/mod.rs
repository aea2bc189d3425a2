//! Queries other registries as part of a search (ARD 0.91 §5.4, `federation: "auto"`).
//!
//! Only the peers that the operator configured are queried, all at the same time and within one time budget, and each at most once per
//! request. A peer that fails repeatedly, or that requested a delay, is skipped for a time. Responses are untrusted: they are parsed within
//! limits into [`ListedEntry`]. Lookups, facets and lists query no peer.

mod breaker;
mod fuse;
mod path;
mod peer;
mod report;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use egress::Egress;
use futures::future::join_all;
use manifest::ListedEntry;
use store::{Store, StoreError};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::Instant;

pub(crate) use fuse::{Fused, Place, fuse};
use path::InstanceId;
pub(crate) use path::{Forwarding, forwarding};
use peer::Peer;
pub(crate) use report::{PEERS, report};
pub use settings::{FederationConfig, FederationError, FederationSettings};

/// Maximum number of responses that are parsed concurrently, on other threads. Parsing one takes milliseconds and up to
/// [`peer::TREE_BYTES_MAX`] of memory.
const READ_AT_ONCE: usize = 2;

/// The peers of this instance with their state.
pub(crate) struct Federation {
    peers: Vec<Peer>,
    egress: Option<Egress>,
    budget: Duration,
    reading: Arc<Semaphore>,
    own_id: OnceCell<InstanceId>,
}

/// The request to the peers.
pub(crate) struct Question {
    /// The body of `POST /search`.
    pub(crate) body: String,
    /// The instances that have passed the search on.
    pub(crate) headers: HeaderMap,
    /// Maximum number of results of each peer that are used.
    pub(crate) results_max: usize,
}

/// What one peer contributed.
#[derive(Debug)]
pub(crate) struct PeerAnswer {
    /// The address of the registry, as configured.
    pub(crate) source: String,
    pub(crate) outcome: Outcome,
    pub(crate) took: Duration,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Answered(Vec<ListedEntry>),
    /// No answer within the time budget.
    Late,
    Failed(Fault),
    /// It was not queried.
    Skipped(Skip),
}

/// Why an answer is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No address, or one that is not permitted.
    Name,
    Connection,
    Tls,
    /// Not HTTP, or beyond the limits of a response.
    Protocol,
    TooLarge,
    /// Another status than 200.
    Status(u16),
    /// It requested a delay: 429 or 503.
    Busy,
    /// Not a page of results.
    Content,
    /// This machine could not send the request.
    Own,
}

/// Why a peer was not queried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Skip {
    /// It failed repeatedly a short time ago.
    LeftOut,
    /// It requested a delay.
    Waits,
    /// The maximum number of searches already wait for it.
    Busy,
    /// The client has used up its limit of searches that query peers.
    ClientLimit,
}

impl Outcome {
    pub(crate) const fn as_str(&self) -> &'static str {
        match self {
            Self::Answered(_) => "answered",
            Self::Late => "late",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }
}

impl Federation {
    pub(crate) fn new(config: &FederationConfig) -> Self {
        Self {
            peers: config.peers.iter().cloned().map(Peer::new).collect(),
            egress: config.egress.clone(),
            budget: config.budget,
            reading: Arc::new(Semaphore::new(READ_AT_ONCE)),
            own_id: OnceCell::new(),
        }
    }

    pub(crate) fn has_peers(&self) -> bool {
        !self.peers.is_empty()
    }

    /// The id of this installation, which is read from the database once.
    pub(crate) async fn own_id(&self, store: &Store) -> Result<&InstanceId, StoreError> {
        self.own_id.get_or_try_init(async || Ok(InstanceId::of(&store.feed_id().await?))).await
    }

    /// Asks all peers at the same time. Returns within the time budget, in the order of the configuration.
    pub(crate) async fn ask(&self, question: &Question) -> Vec<PeerAnswer> {
        let Some(egress) = &self.egress else { return Vec::new() };
        let deadline = Instant::now() + self.budget;
        let ask = |peer| Peer::ask(peer, egress, question, &self.reading, deadline);
        join_all(self.peers.iter().map(ask)).await
    }

    /// The result for each peer if none is queried, for this reason.
    pub(crate) fn skipped(&self, why: Skip) -> Vec<PeerAnswer> {
        self.peers.iter().map(|peer| peer.skipped(why)).collect()
    }
}
