//! Concurrency limits of this process, for all clients and for each client.

use std::sync::Arc;

use runtime::Shares;

use crate::buffers::BUFFERED_BYTES_MAX;
use crate::limits::{LimitsConfig, per_process_limit};

/// Maximum number of concurrent connections: at 50 kB each, at most a hundred megabytes. Further ones wait in the kernel's queue.
pub(crate) const CONNECTIONS_MAX: usize = 2_000;
/// Maximum number of concurrent requests. A search takes milliseconds and a few run at a time, so the last in this queue still waits less
/// than a second.
pub(crate) const REQUESTS_MAX: usize = 512;
/// Maximum number of concurrent event streams: each costs a connection and one statement per second.
const STREAMS_MAX: usize = 100;
/// Maximum number of concurrent event streams of one client.
const STREAMS_OF_CLIENT_MAX: usize = 25;
/// Maximum number of concurrent exports: each reads the whole database, and keeps a page of manifests in memory. Seven greedy clients can
/// use them all.
const EXPORTS_MAX: usize = 8;
/// Maximum number of concurrent exports of one client.
const EXPORTS_OF_CLIENT_MAX: usize = 2;

/// Resources in use by clients.
pub(crate) struct Capacity {
    pub(crate) connections: Arc<Shares>,
    pub(crate) requests: Arc<Shares>,
    /// Bytes kept in memory for clients.
    pub(crate) buffered_bytes: Arc<Shares>,
    pub(crate) streams: Arc<Shares>,
    pub(crate) exports: Arc<Shares>,
}

impl Capacity {
    pub(crate) fn new(limits: &LimitsConfig) -> Self {
        Self {
            connections: Shares::shrinking(CONNECTIONS_MAX, per_process_limit(limits.connections_per_client)),
            requests: Shares::shrinking(REQUESTS_MAX, per_process_limit(limits.requests_per_client)),
            buffered_bytes: Shares::shrinking(BUFFERED_BYTES_MAX, limits.buffered_bytes_per_client()),
            streams: Shares::shrinking(STREAMS_MAX, STREAMS_OF_CLIENT_MAX),
            exports: Shares::shrinking(EXPORTS_MAX, EXPORTS_OF_CLIENT_MAX),
        }
    }

    /// Changes the limits of each client, from the next request on.
    pub(crate) fn set_limits(&self, limits: &LimitsConfig) {
        self.connections.set_client_max(per_process_limit(limits.connections_per_client));
        self.requests.set_client_max(per_process_limit(limits.requests_per_client));
        self.buffered_bytes.set_client_max(limits.buffered_bytes_per_client());
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use runtime::Share;

    use super::*;

    #[test]
    fn greedy_clients_leave_memory_for_pages() {
        let capacity = Capacity::new(&LimitsConfig::default());
        let client = |number: u8| IpAddr::V4(Ipv4Addr::new(192, 0, 2, number));
        for piece in [64 * 1024, 256 * 1024, 4 * 1024 * 1024] {
            let take = |number: u8| capacity.buffered_bytes.take(client(number), piece);
            let greedy: Vec<Share> =
                (1..=20).flat_map(|number| std::iter::from_fn(move || take(number).ok())).collect();
            let page = capacity.buffered_bytes.take(client(200), 64 * 1024);
            assert!(page.is_ok(), "{} bytes are held in pieces of {piece}", capacity.buffered_bytes.taken());
            drop(greedy);
        }
    }

    #[test]
    fn greedy_clients_leave_connections_requests_and_streams() {
        let capacity = Capacity::new(&LimitsConfig::default());
        for shares in [&capacity.connections, &capacity.requests, &capacity.streams] {
            let take = |number: u8| shares.take(IpAddr::V4(Ipv4Addr::new(192, 0, 2, number)), 1);
            // with a fixed limit of a quarter, four clients would hold everything
            let greedy: Vec<Share> =
                (1..=8).flat_map(|number| std::iter::from_fn(move || take(number).ok())).collect();
            let others: Vec<Share> = (9..=12).map(|number| take(number).unwrap()).collect();
            assert!(!shares.is_exhausted());
            drop((greedy, others));
        }
    }

    #[test]
    fn a_few_greedy_clients_leave_exports() {
        let exports = Capacity::new(&LimitsConfig::default()).exports;
        let take = |number: u8| exports.take(IpAddr::V4(Ipv4Addr::new(192, 0, 2, number)), 1);
        let greedy: Vec<Share> =
            (1..=6).flat_map(|number| std::iter::from_fn(move || take(number).ok())).collect();
        assert_eq!(greedy.len(), 7, "the first has two, and each further one has one");
        assert!(take(7).is_ok());
    }
}
