//! Names to addresses, through the system's name servers.
//!
//! A bounded cache keeps responses for their TTL, within bounds, including negative ones. Equal concurrent queries
//! are sent once. The hosts file of the machine is not read: the index shows what the public sees.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RData;
use hickory_resolver::{ResolverBuilder, TokioResolver};
use manifest::Host;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::failure::{Cause, Failure, is_out_of_files};

/// Minimum and maximum TTL of a record: a minute and a day.
const TTL_MIN: Duration = Duration::from_mins(1);
const TTL_MAX: Duration = Duration::from_hours(24);
/// TTL of negative responses, from the SOA's minimum (RFC 2308) within these bounds.
const NEGATIVE_TTL_MIN: Duration = Duration::from_mins(5);
const NEGATIVE_TTL_MAX: Duration = Duration::from_hours(3);
/// Number of cached names, least recently used ones are evicted; about 200 MB when full, which only fleets reach.
const CACHED_NAMES_MAX: u64 = 500_000;
/// Timeout of a query; there is one retry.
const QUERY_TIME_MAX: Duration = Duration::from_secs(5);
const QUERY_TRIES: usize = 2;
/// Timeout of both tries, for any number of servers.
const LOOKUP_TIME_MAX: Duration = Duration::from_secs(10);
/// TXT records of one name that are read; the formats use one.
const TEXTS_MAX: usize = 10;
/// Concurrent queries; local recursive resolvers start to drop beyond a thousand.
const IN_FLIGHT_MAX: usize = 500;

type Answer = Result<Arc<[IpAddr]>, Failure>;
type Flight = Shared<BoxFuture<'static, Answer>>;

/// The resolver of a process.
pub(crate) struct Dns {
    resolver: Arc<TokioResolver>,
    slots: Arc<Semaphore>,
    flights: Mutex<HashMap<Host, Flight>>,
}

impl Dns {
    /// Reads the system's configuration.
    pub(crate) fn from_system() -> Result<Self, NetError> {
        Self::build(TokioResolver::builder_tokio()?)
    }

    /// Uses these servers, over UDP and, for long responses, TCP.
    pub(crate) fn of_servers(servers: &[SocketAddr]) -> Result<Self, NetError> {
        let of = |server: &SocketAddr| {
            let (mut udp, mut tcp) = (ConnectionConfig::udp(), ConnectionConfig::tcp());
            (udp.port, tcp.port) = (server.port(), server.port());
            NameServerConfig::new(server.ip(), true, vec![udp, tcp])
        };
        let config = ResolverConfig::from_name_servers(servers.iter().map(of).collect());
        Self::build(TokioResolver::builder_with_config(config, TokioRuntimeProvider::default()))
    }

    fn build(mut builder: ResolverBuilder<TokioRuntimeProvider>) -> Result<Self, NetError> {
        let options = builder.options_mut();
        options.timeout = QUERY_TIME_MAX;
        options.attempts = QUERY_TRIES;
        options.cache_size = CACHED_NAMES_MAX;
        options.use_hosts_file = ResolveHosts::Never;
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.positive_min_ttl = Some(TTL_MIN);
        options.positive_max_ttl = Some(TTL_MAX);
        options.negative_min_ttl = Some(NEGATIVE_TTL_MIN);
        options.negative_max_ttl = Some(NEGATIVE_TTL_MAX);
        let slots = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
        Ok(Self { resolver: Arc::new(builder.build()?), slots, flights: Mutex::default() })
    }

    /// The addresses of a name; joins a query in flight.
    pub(crate) async fn lookup(&self, host: &Host) -> Answer {
        let flight = self.flight(host);
        let answer = flight.clone().await;
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        if flights.get(host).is_some_and(|current| current.ptr_eq(&flight)) {
            flights.remove(host);
        }
        answer
    }

    /// The TXT records of a name; empty after a failure.
    pub(crate) async fn texts(&self, name: &str) -> Vec<String> {
        let _slot = self.slots.acquire().await;
        let asked = timeout(LOOKUP_TIME_MAX, self.resolver.txt_lookup(format!("{name}."))).await;
        let Ok(Ok(found)) = asked else { return Vec::new() };
        let texts = found.answers().iter().filter_map(|record| match &record.data {
            RData::TXT(text) => Some(text.to_string()),
            _ => None,
        });
        texts.take(TEXTS_MAX).collect()
    }

    fn flight(&self, host: &Host) -> Flight {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let (resolver, slots) = (Arc::clone(&self.resolver), Arc::clone(&self.slots));
            // the final dot keeps search domains out
            let name = format!("{host}.");
            async move { ask(&resolver, &slots, name).await }.boxed().shared()
        };
        flights.entry(host.clone()).or_insert_with(start).clone()
    }
}

async fn ask(resolver: &TokioResolver, slots: &Semaphore, name: String) -> Answer {
    // the semaphore is never closed
    let _slot = slots.acquire().await;
    let Ok(answer) = timeout(LOOKUP_TIME_MAX, resolver.lookup_ip(name)).await else {
        return Err(failure_of(&NetError::Timeout));
    };
    match answer {
        Ok(found) => {
            let addresses: Arc<[IpAddr]> = found.iter().collect();
            if addresses.is_empty() { Err(no_addresses()) } else { Ok(addresses) }
        }
        Err(error) => Err(failure_of(&error)),
    }
}

fn no_addresses() -> Failure {
    Failure::new(Cause::NameUnknown, "the name has no addresses")
}

fn failure_of(error: &NetError) -> Failure {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code {
            ResponseCode::NXDomain => Failure::new(Cause::NameUnknown, "the name does not exist (NXDOMAIN)"),
            ResponseCode::NoError => no_addresses(),
            code => Failure::new(Cause::NameServers, format!("the name servers answered {code}")),
        },
        NetError::Dns(DnsError::ResponseCode(code)) => {
            Failure::new(Cause::NameServers, format!("the name servers answered {code}"))
        }
        NetError::Io(error) if is_out_of_files(error.as_ref()) => Failure::out_of_files(),
        NetError::Timeout => Failure::new(Cause::NameServers, "the name servers did not answer in time"),
        other => Failure::new(Cause::NameServers, format!("the name could not be resolved: {other}")),
    }
}
