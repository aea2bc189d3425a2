//! Resolves names to addresses through the system's name servers.
//!
//! A bounded cache keeps the addresses of names, and negative responses, for their TTL within limits. Other records of a response are not
//! kept, because a name server may add any number of them. Equal concurrent queries are sent only once. The hosts file of the machine is
//! not read, because the index must show what is public.

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
use hickory_resolver::proto::rr::rdata::SVCB;
use hickory_resolver::proto::rr::rdata::svcb::{SvcParamKey, SvcParamValue};
use hickory_resolver::proto::rr::{RData, RecordType};
use hickory_resolver::{ResolverBuilder, TokioResolver};
use lru::LruCache;
use manifest::Host;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::failure::{Cause, Failure, is_out_of_files};

/// Minimum and maximum TTL of a record: a minute and a day.
const TTL_MIN: Duration = Duration::from_mins(1);
const TTL_MAX: Duration = Duration::from_hours(24);
/// TTL of negative responses, from the SOA's minimum (RFC 2308) within these bounds.
const NEGATIVE_TTL_MIN: Duration = Duration::from_mins(5);
const NEGATIVE_TTL_MAX: Duration = Duration::from_hours(3);
/// Maximum number of cached names. The least recently used names are evicted. A full cache takes about 100 MB, and at most 300 MB if every
/// name has the maximum number of addresses. Only large crawls fill it.
const CACHED_NAMES_MAX: usize = 250_000;
/// Maximum number of addresses of a name. Large services publish a dozen.
const ADDRESSES_MAX: usize = 32;
/// Timeout of a query; there is one retry.
const QUERY_TIME_MAX: Duration = Duration::from_secs(5);
const QUERY_TRIES: usize = 2;
/// Timeout of both attempts together, for any number of servers.
const LOOKUP_TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum number of TXT or SVCB records of one name that are read; the formats use one.
const RECORDS_MAX: usize = 10;
/// Maximum number of concurrent queries. Local recursive resolvers begin to drop queries beyond a thousand.
const IN_FLIGHT_MAX: usize = 500;

type Answer = Result<Arc<[IpAddr]>, Failure>;
type Flight = Shared<BoxFuture<'static, (Answer, Duration)>>;

/// Cached answers, each with the time until which it is valid.
struct AnswerCache(LruCache<Host, (Instant, Answer)>);

impl AnswerCache {
    fn get(&mut self, host: &Host, now: Instant) -> Option<Answer> {
        let (until, answer) = self.0.get(host)?;
        (now < *until).then(|| answer.clone())
    }

    fn put(&mut self, host: &Host, answer: Answer, until: Instant) {
        self.0.put(host.clone(), (until, answer));
        if self.0.len() > CACHED_NAMES_MAX {
            self.0.pop_lru();
        }
    }
}

/// The resolver of a process.
pub(crate) struct Dns {
    resolver: Arc<TokioResolver>,
    slots: Arc<Semaphore>,
    flights: Mutex<HashMap<Host, Flight>>,
    cached: Mutex<AnswerCache>,
}

impl Dns {
    /// Uses these servers. If there are none, uses the servers of the system's configuration.
    pub(crate) fn of(name_servers: &[SocketAddr]) -> Result<Self, NetError> {
        if name_servers.is_empty() { Self::from_system() } else { Self::of_servers(name_servers) }
    }

    /// Reads the system's configuration.
    fn from_system() -> Result<Self, NetError> {
        Self::build(TokioResolver::builder_tokio()?)
    }

    /// Uses these servers, over UDP and, for long responses, TCP.
    fn of_servers(servers: &[SocketAddr]) -> Result<Self, NetError> {
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
        // the cache of the library is off, because it would keep whole responses of up to 64 KiB
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        let slots = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
        let cached = Mutex::new(AnswerCache(LruCache::unbounded()));
        Ok(Self { resolver: Arc::new(builder.build()?), slots, flights: Mutex::default(), cached })
    }

    /// The addresses of a name. Waits for a query in flight instead of sending another one.
    pub(crate) async fn lookup(&self, host: &Host) -> Answer {
        let cached = || self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = cached().get(host, Instant::now()) {
            return answer;
        }
        let flight = self.flight(host);
        let (answer, ttl) = flight.clone().await;
        if !ttl.is_zero() {
            cached().put(host, answer.clone(), Instant::now() + ttl);
        }
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        if flights.get(host).is_some_and(|current| current.ptr_eq(&flight)) {
            flights.remove(host);
        }
        answer
    }

    /// The TXT records of a name; empty for a name that does not exist.
    ///
    /// # Errors
    ///
    /// If the name servers give no answer.
    pub(crate) async fn texts(&self, name: &str) -> Result<Vec<String>, Failure> {
        let _slot = self.slots.acquire().await;
        let lookup = self.resolver.txt_lookup(format!("{name}."));
        let found = match timeout(LOOKUP_TIME_MAX, lookup).await.unwrap_or(Err(NetError::Timeout)) {
            Ok(found) => found,
            Err(error) => {
                let failure = failure_of(&error);
                return if failure.cause == Cause::NameUnknown { Ok(Vec::new()) } else { Err(failure) };
            }
        };
        let texts = found.answers().iter().filter_map(|record| match &record.data {
            RData::TXT(text) => Some(text.to_string()),
            _ => None,
        });
        Ok(texts.take(RECORDS_MAX).collect())
    }

    /// The targets of the SVCB records of a name that lead to port 443. `.` means the name itself.
    pub(crate) async fn services(&self, name: &str) -> Result<Vec<String>, Failure> {
        let _slot = self.slots.acquire().await;
        let lookup = self.resolver.lookup(format!("{name}."), RecordType::SVCB);
        let found = match timeout(LOOKUP_TIME_MAX, lookup).await.unwrap_or(Err(NetError::Timeout)) {
            Ok(found) => found,
            Err(error) => {
                let failure = failure_of(&error);
                return if failure.cause == Cause::NameUnknown { Ok(Vec::new()) } else { Err(failure) };
            }
        };
        let targets = found.answers().iter().filter_map(|record| match &record.data {
            RData::SVCB(service) => target_of(service),
            _ => None,
        });
        Ok(targets.take(RECORDS_MAX).collect())
    }

    fn flight(&self, host: &Host) -> Flight {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let (resolver, slots) = (Arc::clone(&self.resolver), Arc::clone(&self.slots));
            // with the final dot, search domains are not used
            let name = format!("{host}.");
            async move { ask(&resolver, &slots, name).await }.boxed().shared()
        };
        flights.entry(host.clone()).or_insert_with(start).clone()
    }
}

/// The addresses of a name, and how long they may be cached. Failures of name servers are not cached.
async fn ask(resolver: &TokioResolver, slots: &Semaphore, name: String) -> (Answer, Duration) {
    // the semaphore is never closed
    let _slot = slots.acquire().await;
    let Ok(answer) = timeout(LOOKUP_TIME_MAX, resolver.lookup_ip(name)).await else {
        return (Err(failure_of(&NetError::Timeout)), Duration::ZERO);
    };
    match answer {
        Ok(found) => {
            let answer = bounded(found.iter());
            let ttl = found.as_lookup().answers().iter().map(|record| record.ttl).min().unwrap_or_default();
            let (least, most) =
                if answer.is_ok() { (TTL_MIN, TTL_MAX) } else { (NEGATIVE_TTL_MIN, NEGATIVE_TTL_MAX) };
            (answer, Duration::from_secs(ttl.into()).clamp(least, most))
        }
        Err(error) => {
            let ttl = match &error {
                NetError::Dns(DnsError::NoRecordsFound(none)) => none.negative_ttl,
                _ => None,
            };
            let ttl =
                ttl.map(|ttl| Duration::from_secs(ttl.into()).clamp(NEGATIVE_TTL_MIN, NEGATIVE_TTL_MAX));
            (Err(failure_of(&error)), ttl.unwrap_or_default())
        }
    }
}

/// The target of a service. `None` if the service is on another port than 443.
fn target_of(service: &SVCB) -> Option<String> {
    let is_elsewhere = |(_, value): &(SvcParamKey, SvcParamValue)| matches!(value, SvcParamValue::Port(port) if *port != 443);
    if service.svc_params.iter().any(is_elsewhere) {
        return None;
    }
    let target = service.target_name.to_ascii();
    Some(if target == "." { target } else { target.trim_end_matches('.').to_owned() })
}

/// All addresses of a name. A name with too many is refused, because each address must be checked before a connection.
fn bounded(found: impl Iterator<Item = IpAddr>) -> Answer {
    let addresses: Arc<[IpAddr]> = found.take(ADDRESSES_MAX + 1).collect();
    match addresses.len() {
        0 => Err(no_addresses()),
        1..=ADDRESSES_MAX => Ok(addresses),
        _ => {
            let reason = format!("the name has more than {ADDRESSES_MAX} addresses");
            Err(Failure::new(Cause::NameServers, reason))
        }
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

/// Checks whether the name servers of this machine can resolve a public name.
///
/// # Errors
///
/// Why they do not, as text.
pub async fn name_servers_know(name_servers: &[SocketAddr], host: &Host) -> Result<(), String> {
    let dns = Dns::of(name_servers).map_err(|error| error.to_string())?;
    match dns.lookup(host).await {
        Ok(_) => Ok(()),
        Err(failure) if failure.cause == Cause::NameUnknown => {
            Err(format!("the name servers answer that {host} does not exist: they know no public names"))
        }
        Err(failure) => Err(failure.reason),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn addresses(count: u32) -> impl Iterator<Item = IpAddr> {
        (0..count).map(|number| IpAddr::V4(Ipv4Addr::from_bits(number)))
    }

    #[test]
    fn services_lead_to_port_443_of_their_target() {
        use hickory_resolver::proto::rr::Name;
        let of = |target: &str, port: Option<u16>| {
            let port = port.map(|port| (SvcParamKey::Port, SvcParamValue::Port(port)));
            target_of(&SVCB::new(1, Name::from_ascii(target).unwrap(), port.into_iter().collect()))
        };
        assert_eq!(of("agents.a.example.", None).as_deref(), Some("agents.a.example"));
        assert_eq!(of(".", Some(443)).as_deref(), Some("."));
        assert_eq!(of("agents.a.example.", Some(8443)), None);
    }

    #[test]
    fn a_name_with_too_many_addresses_is_refused() {
        let most = u32::try_from(ADDRESSES_MAX).unwrap();
        assert_eq!(bounded(addresses(most)).unwrap().len(), ADDRESSES_MAX);
        assert!(bounded(addresses(most + 1)).is_err());
        assert!(bounded(addresses(4_000)).is_err());
        assert!(bounded(addresses(0)).is_err());
    }

    #[test]
    fn the_cache_holds_a_bounded_number_of_names_until_their_time() {
        let mut cache = AnswerCache(LruCache::unbounded());
        let host = |number: usize| Host::parse(&format!("a{number}.example")).unwrap();
        let (now, until) = (Instant::now(), Instant::now() + TTL_MIN);
        for number in 0..=CACHED_NAMES_MAX {
            cache.put(&host(number), bounded(addresses(1)), until);
        }
        assert_eq!(cache.0.len(), CACHED_NAMES_MAX);
        assert!(cache.get(&host(0), now).is_none(), "the oldest name was evicted");
        assert!(cache.get(&host(1), now).is_some());
        assert!(cache.get(&host(1), until).is_none());
    }
}
