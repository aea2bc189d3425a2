//! Rate limits: one bucket for each client address, refilled steadily.
//!
//! Reads and submissions have separate buckets. Programs on this machine have a large bucket, because the operator's own tools are trusted.
//! Every response contains the remaining quota (`RateLimit-*`).
//!
//! An IPv6 client is a /64, and one customer of a provider may have 65,536 of them. So the clients of a /48 also share a bucket.

use std::fmt;
use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use manifest::SiteName;
use runtime::{customer, ipv6_site};
use serde::Deserialize;

use crate::client::Client;
use crate::problem::Problem;
use crate::quota::RemainingQuota;

/// Interval at which full buckets are dropped.
pub(crate) const PRUNE_INTERVAL: Duration = Duration::from_mins(1);
/// Requests per second of programs on this machine: more than it can serve, so that only a runaway loop is slowed.
const LOCAL_PER_SECOND: NonZeroU32 = NonZeroU32::new(20_000).unwrap();
/// Visits an hour that the owner of a site can request: enough to try one correction after another.
const OWNER_VISITS_PER_HOUR: NonZeroU32 = NonZeroU32::new(60).unwrap();
/// Minimum time between two requested visits of one site.
const RECHECK_EVERY: Duration = Duration::from_mins(10);

/// URLs of one site that all clients without its owner's key may submit in a burst, and the interval after which they may submit another.
/// This is slightly more than the crawler requests from one host in a day, so submissions cannot use up the limit on the URLs of a site.
const SUBMITTED_URLS: NonZeroU32 = NonZeroU32::new(50).unwrap();
const SUBMITTED_URL_EVERY: Duration = Duration::from_mins(30);
/// URLs of one site that one client may submit in a burst, and the interval after which it may submit another. A few clients cannot use up
/// [`SUBMITTED_URLS`].
const SUBMITTED_URLS_OF_CLIENT: NonZeroU32 = NonZeroU32::new(10).unwrap();
const SUBMITTED_URL_OF_CLIENT_EVERY: Duration = Duration::from_hours(2);

/// Watches an hour of one client, and of all clients of an IPv6 /48 together. With this limit and an initial burst of the same size, twenty
/// clients cannot use up the maximum number of unconfirmed watches within an hour. Nobody needs more, because the receivers of one domain
/// may have at most ten.
const WATCHES_PER_HOUR: NonZeroU32 = NonZeroU32::new(12).unwrap();

/// All clients of an IPv6 /48 together have the limits of this many clients: enough for a company or a campus, and as much as sixteen
/// rented IPv4 addresses.
const CLIENTS_OF_IPV6_SITE: NonZeroU32 = NonZeroU32::new(16).unwrap();

/// Limits of one client; the table `[api.limits]` of the configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Sustained reads per second: far more than a person or a careful program needs.
    pub reads_per_second: NonZeroU32,
    /// Reads in a burst.
    pub reads_burst: NonZeroU32,
    /// Domains submitted or rechecked an hour.
    pub submissions_per_hour: NonZeroU32,
    /// Feedback requests an hour, where feedback is on.
    pub feedback_per_hour: NonZeroU32,
    /// Reports (`POST /reports`) an hour.
    pub reports_per_hour: NonZeroU32,
    /// Searches per minute that query peers, if peers are configured; further searches use only this index.
    pub federated_per_minute: NonZeroU32,
    /// Processes that a balancer spreads clients over: each of them grants this fraction of the limits above.
    pub replicas: NonZeroU32,
    /// Concurrent connections, of 2,000. A client behind a trusted proxy has one for each of its requests.
    pub connections_per_client: NonZeroU32,
    /// Concurrent requests, of 512.
    pub requests_per_client: NonZeroU32,
    /// Mebibytes of memory for large responses and bodies, of 32; a first large response may be larger.
    pub buffered_mib_per_client: NonZeroU32,
}

impl LimitsConfig {
    pub(crate) fn buffered_bytes_per_client(&self) -> usize {
        per_process_limit(self.buffered_mib_per_client).saturating_mul(1024 * 1024)
    }

    /// The share of this process in a limit of all replicas; at least one.
    fn share(&self, limit: NonZeroU32) -> NonZeroU32 {
        NonZeroU32::new(limit.get() / self.replicas).unwrap_or(NonZeroU32::MIN)
    }
}

/// The keys of the configuration file with their values.
impl fmt::Display for LimitsConfig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = [
            ("reads_per_second", self.reads_per_second),
            ("reads_burst", self.reads_burst),
            ("submissions_per_hour", self.submissions_per_hour),
            ("feedback_per_hour", self.feedback_per_hour),
            ("reports_per_hour", self.reports_per_hour),
            ("federated_per_minute", self.federated_per_minute),
            ("replicas", self.replicas),
            ("connections_per_client", self.connections_per_client),
            ("requests_per_client", self.requests_per_client),
            ("buffered_mib_per_client", self.buffered_mib_per_client),
        ];
        let keys = keys.map(|(key, value)| format!("{key} = {value}"));
        out.write_str(&keys.join(", "))
    }
}

/// A limit that is not divided by the number of replicas, because each process has its own memory and connections.
pub(crate) fn per_process_limit(limit: NonZeroU32) -> usize {
    usize::try_from(limit.get()).unwrap_or(usize::MAX)
}

impl Default for LimitsConfig {
    fn default() -> Self {
        const PER_SECOND: NonZeroU32 = NonZeroU32::new(50).unwrap();
        const BURST: NonZeroU32 = NonZeroU32::new(200).unwrap();
        const PER_HOUR: NonZeroU32 = NonZeroU32::new(60).unwrap();
        const CHOICES_PER_HOUR: NonZeroU32 = NonZeroU32::new(30).unwrap();
        // Enough for a person who reports search results, and more reports than an operator wants to read from one client.
        const REPORTS_PER_HOUR: NonZeroU32 = NonZeroU32::new(20).unwrap();
        // Enough for a person who searches, or for an agent that tries a few phrasings. The limit is low because each search costs every
        // peer a request.
        const FEDERATED_PER_MINUTE: NonZeroU32 = NonZeroU32::new(30).unwrap();
        // A quarter of the connections and of the request slots: forty people behind one address exhaust neither.
        const CONNECTIONS: NonZeroU32 = NonZeroU32::new(500).unwrap();
        const REQUESTS: NonZeroU32 = NonZeroU32::new(128).unwrap();
        const BUFFERED_MIB: NonZeroU32 = NonZeroU32::new(8).unwrap();
        Self {
            reads_per_second: PER_SECOND,
            reads_burst: BURST,
            submissions_per_hour: PER_HOUR,
            feedback_per_hour: CHOICES_PER_HOUR,
            reports_per_hour: REPORTS_PER_HOUR,
            federated_per_minute: FEDERATED_PER_MINUTE,
            replicas: NonZeroU32::MIN,
            connections_per_client: CONNECTIONS,
            requests_per_client: REQUESTS,
            buffered_mib_per_client: BUFFERED_MIB,
        }
    }
}

/// Buckets of one quota, by key.
pub(crate) type Buckets<K> = RateLimiter<K, DashMapStateStore<K>, DefaultClock, StateInformationMiddleware>;

pub(crate) fn buckets<K: Hash + Eq + Clone>(quota: Quota) -> Buckets<K> {
    RateLimiter::dashmap(quota).with_middleware::<StateInformationMiddleware>()
}

/// The buckets of one limit.
struct ClientBuckets {
    by_client: Buckets<IpAddr>,
    by_ipv6_site: Buckets<IpAddr>,
}

impl ClientBuckets {
    /// `per` makes a quota of this many requests a second or an hour.
    fn new(per: fn(NonZeroU32) -> Quota, limit: NonZeroU32, burst: NonZeroU32) -> Self {
        let together = |limit: NonZeroU32| limit.saturating_mul(CLIENTS_OF_IPV6_SITE);
        Self {
            by_client: buckets(per(limit).allow_burst(burst)),
            by_ipv6_site: buckets(per(together(limit)).allow_burst(together(burst))),
        }
    }

    /// Takes one token of the client and one of its IPv6 site. Returns the remaining quota of the client.
    fn take(&self, client: Client) -> Result<RemainingQuota, Exhausted> {
        let left = take(&self.by_client, &client.address)?;
        if let Some(site) = ipv6_site(client.address) {
            take(&self.by_ipv6_site, &site)?;
        }
        Ok(left)
    }

    fn prune(&self) {
        for buckets in [&self.by_client, &self.by_ipv6_site] {
            buckets.retain_recent();
            buckets.shrink_to_fit();
        }
    }
}

pub(crate) struct Limits {
    granted: RwLock<Arc<Granted>>,
    local_reads: Buckets<IpAddr>,
    /// Requested visits, by site.
    visits: Buckets<SiteName>,
    /// Visits that owners requested, by site.
    owner_visits: Buckets<SiteName>,
    /// URLs that clients without the key of the owner submitted, by site, and by client and site.
    submitted_urls: Buckets<SiteName>,
    submitted_urls_of_client: Buckets<(IpAddr, SiteName)>,
    /// New watches, by customer.
    watches: Buckets<IpAddr>,
}

/// The buckets with configurable limits.
struct Granted {
    config: LimitsConfig,
    reads: ClientBuckets,
    submissions: ClientBuckets,
    feedback: ClientBuckets,
    reports: ClientBuckets,
    federated: ClientBuckets,
}

impl Granted {
    fn new(config: LimitsConfig) -> Self {
        let per_hour = |limit| {
            let share = config.share(limit);
            ClientBuckets::new(Quota::per_hour, share, share)
        };
        Self {
            config,
            reads: ClientBuckets::new(
                Quota::per_second,
                config.share(config.reads_per_second),
                config.share(config.reads_burst),
            ),
            submissions: per_hour(config.submissions_per_hour),
            feedback: per_hour(config.feedback_per_hour),
            reports: per_hour(config.reports_per_hour),
            federated: ClientBuckets::new(
                Quota::per_minute,
                config.share(config.federated_per_minute),
                config.share(config.federated_per_minute),
            ),
        }
    }
}

/// The bucket is empty; the time until it has a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted {
    pub(crate) quota: RemainingQuota,
    pub(crate) retry_after_s: u32,
}

impl Limits {
    pub(crate) fn new(config: LimitsConfig) -> Self {
        let every = |period| Quota::with_period(period).unwrap_or_else(|| Quota::per_hour(NonZeroU32::MIN));
        Self {
            granted: RwLock::new(Arc::new(Granted::new(config))),
            local_reads: buckets(Quota::per_second(LOCAL_PER_SECOND)),
            visits: buckets(every(RECHECK_EVERY)),
            owner_visits: buckets(Quota::per_hour(OWNER_VISITS_PER_HOUR)),
            submitted_urls: buckets(every(SUBMITTED_URL_EVERY).allow_burst(SUBMITTED_URLS)),
            submitted_urls_of_client: buckets(
                every(SUBMITTED_URL_OF_CLIENT_EVERY).allow_burst(SUBMITTED_URLS_OF_CLIENT),
            ),
            watches: buckets(Quota::per_hour(WATCHES_PER_HOUR)),
        }
    }

    /// Sets the limits, with full buckets. Returns whether they changed.
    pub(crate) fn set(&self, config: LimitsConfig) -> bool {
        if self.granted().config == config {
            return false;
        }
        *self.granted.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Granted::new(config));
        true
    }

    fn granted(&self) -> Arc<Granted> {
        Arc::clone(&self.granted.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn read(&self, client: Client) -> Result<RemainingQuota, Exhausted> {
        if client.is_local {
            return take(&self.local_reads, &client.address);
        }
        self.granted().reads.take(client)
    }

    pub(crate) fn submission(&self, client: Client) -> Result<RemainingQuota, Exhausted> {
        self.granted().submissions.take(client)
    }

    pub(crate) fn feedback(&self, client: Client) -> Result<RemainingQuota, Exhausted> {
        self.granted().feedback.take(client)
    }

    /// A search that queries peers. Programs on this machine have no such limit.
    pub(crate) fn federated(&self, client: Client) -> Result<(), Exhausted> {
        if client.is_local { Ok(()) } else { self.granted().federated.take(client).map(drop) }
    }

    pub(crate) fn report(&self, client: Client) -> Result<RemainingQuota, Exhausted> {
        self.granted().reports.take(client)
    }

    /// One visit to a site, for all clients together.
    pub(crate) fn visit(&self, site: &SiteName) -> Result<RemainingQuota, Exhausted> {
        take(&self.visits, site)
    }

    /// One visit to a site that its owner requests.
    pub(crate) fn owner_visit(&self, site: &SiteName) -> Result<RemainingQuota, Exhausted> {
        take(&self.owner_visits, site)
    }

    /// One URL of a site that a client submits without the key of its owner.
    pub(crate) fn submitted_url(&self, client: Client, site: &SiteName) -> Result<(), Exhausted> {
        take(&self.submitted_urls_of_client, &(customer(client.address), site.clone()))?;
        take(&self.submitted_urls, site).map(|_| ())
    }

    /// One new watch.
    pub(crate) fn watch(&self, client: Client) -> Result<(), Exhausted> {
        take(&self.watches, &customer(client.address)).map(|_| ())
    }

    /// Drops full buckets, so that memory depends only on the clients of the last few minutes.
    pub(crate) fn prune(&self) {
        let granted = self.granted();
        let Granted { reads, submissions, feedback, reports, federated, .. } = &*granted;
        for buckets in [reads, submissions, feedback, reports, federated] {
            buckets.prune();
        }
        for buckets in [&self.local_reads, &self.watches] {
            buckets.retain_recent();
            buckets.shrink_to_fit();
        }
        for buckets in [&self.visits, &self.owner_visits, &self.submitted_urls] {
            buckets.retain_recent();
            buckets.shrink_to_fit();
        }
        self.submitted_urls_of_client.retain_recent();
        self.submitted_urls_of_client.shrink_to_fit();
    }
}

/// Takes a token from the bucket of a key.
pub(crate) fn take<K: Hash + Eq + Clone>(buckets: &Buckets<K>, key: &K) -> Result<RemainingQuota, Exhausted> {
    match buckets.check_key(key) {
        Ok(state) => Ok(remaining(state.quota(), state.remaining_burst_capacity())),
        Err(not_until) => {
            let wait = not_until.wait_time_from(buckets.clock().now());
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            let retry_after_s = u32::try_from(seconds).unwrap_or(u32::MAX).max(1);
            Err(Exhausted { quota: remaining(not_until.quota(), 0), retry_after_s })
        }
    }
}

fn remaining(quota: Quota, remaining: u32) -> RemainingQuota {
    let limit = quota.burst_size().get();
    let missing = limit.saturating_sub(remaining);
    let reset = quota.replenish_interval().saturating_mul(missing);
    RemainingQuota { limit, remaining, reset_s: reset.as_secs() + u64::from(reset.subsec_nanos() > 0) }
}

impl Exhausted {
    /// The 429 response, with the limit.
    pub(crate) fn problem(self, detail: &str) -> Problem {
        let when = format!("{detail}; try again in {} s", self.retry_after_s);
        self.explained(when)
    }

    /// The 429 response with the limit, for a detail that already says when another request is accepted.
    pub(crate) fn explained(self, detail: String) -> Problem {
        Problem::too_many(detail, self.retry_after_s).with_quota(self.quota)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: &str, is_local: bool) -> Client {
        Client { address: address.parse().unwrap(), is_local }
    }

    #[test]
    fn the_clients_of_one_customer_share_a_limit_on_new_watches() {
        let limits = Limits::new(LimitsConfig::default());
        let of_network = |number: u32| client(&format!("2001:db8:1:{number:x}::1"), false);
        for number in 0..WATCHES_PER_HOUR.get() {
            limits.watch(of_network(number)).unwrap();
        }
        limits.watch(of_network(9_999)).unwrap_err();
        limits.watch(client("2001:db8:2::1", false)).unwrap();
        limits.watch(client("192.0.2.1", false)).unwrap();
    }

    #[test]
    fn changed_limits_apply_to_the_next_request() {
        let [two, five] = [2, 5].map(|count| NonZeroU32::new(count).unwrap());
        let few = LimitsConfig { reads_per_second: two, reads_burst: two, ..Default::default() };
        let limits = Limits::new(few);
        let client = client("192.0.2.1", false);
        limits.read(client).unwrap();
        limits.read(client).unwrap();
        limits.read(client).unwrap_err();
        assert!(!limits.set(few), "unchanged limits are not reported as a change");
        limits.read(client).unwrap_err();
        assert!(limits.set(LimitsConfig { reads_burst: five, ..few }));
        assert_eq!(limits.read(client).unwrap().limit, 5);
    }

    #[test]
    fn each_client_has_a_bucket_and_sees_its_remaining_quota() {
        let two = NonZeroU32::new(2).unwrap();
        let limits =
            Limits::new(LimitsConfig { reads_per_second: two, reads_burst: two, ..Default::default() });
        let (one, other) = (client("192.0.2.1", false), client("192.0.2.2", false));
        assert_eq!(limits.read(one).unwrap().remaining, 1);
        assert_eq!(limits.read(one).unwrap().remaining, 0);
        let refused = limits.read(one).unwrap_err();
        assert_eq!((refused.retry_after_s, refused.quota.limit, refused.quota.remaining), (1, 2, 0));
        assert!(limits.read(other).is_ok());
        assert!(limits.read(client("127.0.0.1", true)).unwrap().limit > 1_000);
        limits.prune();
        assert!(limits.read(one).is_err(), "an empty bucket is not forgotten");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the buckets count real time")]
    fn a_full_bucket_is_forgotten() {
        let limits = Limits::new(LimitsConfig::default());
        limits.read(client("192.0.2.1", false)).unwrap();
        assert_eq!(limits.granted().reads.by_client.len(), 1);
        // the token that was taken is added again after a fiftieth of a second
        std::thread::sleep(Duration::from_millis(100));
        limits.prune();
        assert_eq!(limits.granted().reads.by_client.len(), 0);
    }

    #[test]
    fn the_clients_of_one_ipv6_site_share_a_limit() {
        let two = NonZeroU32::new(2).unwrap();
        let limits = Limits::new(LimitsConfig { reports_per_hour: two, ..Default::default() });
        let of = |site: u16, network: u16| client(&format!("2001:db8:{site:x}:{network:x}::"), false);
        let granted = |clients: &[Client]| {
            let all = clients.iter().flat_map(|client| [client; 3]);
            all.filter(|client| limits.report(**client).is_ok()).count()
        };
        assert_eq!(granted(&[of(1, 0)]), 2, "a client alone has its own limit");
        let customer: Vec<Client> = (1..1_000).map(|network| of(1, network)).collect();
        assert_eq!(granted(&customer), 16 * 2 - 2);
        assert_eq!(granted(&[of(2, 0), client("192.0.2.1", false)]), 4, "other clients have their own limit");
        let refused = limits.report(of(1, 7_000)).unwrap_err();
        assert!(refused.retry_after_s > 60, "{refused:?}");
    }

    #[test]
    fn divides_rate_limits_by_the_number_of_replicas() {
        let number = |number: u32| NonZeroU32::new(number).unwrap();
        let config =
            LimitsConfig { reads_burst: number(9), submissions_per_hour: number(3), ..Default::default() };
        let one = client("192.0.2.1", false);
        let granted = |replicas: u32| {
            let limits = Limits::new(LimitsConfig { replicas: number(replicas), ..config });
            let reads = std::iter::from_fn(|| limits.read(one).ok()).take(100).count();
            let submissions = std::iter::from_fn(|| limits.submission(one).ok()).take(100).count();
            (reads, submissions)
        };
        assert_eq!(granted(1), (9, 3));
        assert_eq!(granted(3), (3, 1));
        assert_eq!(granted(50), (1, 1), "each replica grants at least one");
    }

    #[test]
    fn federated_searches_have_a_separate_limit() {
        let limits = Limits::new(LimitsConfig::default());
        let (one, local) = (client("192.0.2.1", false), client("127.0.0.1", true));
        assert_eq!((0..100).filter(|_| limits.federated(one).is_ok()).count(), 30);
        assert!(limits.read(one).is_ok() && limits.federated(client("192.0.2.2", false)).is_ok());
        assert!((0..100).all(|_| limits.federated(local).is_ok()));
    }

    #[test]
    fn limits_requested_visits_to_one_per_ten_minutes() {
        let limits = Limits::new(LimitsConfig::default());
        let site = SiteName::parse("skyhop.example").unwrap();
        assert!(limits.visit(&site).is_ok());
        let refused = limits.visit(&site).unwrap_err();
        assert!((590..=600).contains(&refused.retry_after_s), "{refused:?}");
        assert!(limits.visit(&SiteName::parse("weather.example").unwrap()).is_ok());
    }
}
