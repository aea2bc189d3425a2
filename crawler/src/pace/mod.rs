//! Decides when the next request may be sent, from the clocks that `policy::delay` compares.
//!
//! A visit owns the clocks of its hosts and its site. All visits of the process share the clocks of addresses and public suffixes. The
//! database stores these clocks for other processes. Permits at a public suffix are reserved in the database. No request is sent before its
//! clock is written, so that a crawler that is killed cannot repeat it too early. While the database is unavailable, requests wait.

mod limiter;
mod permit;
mod suffix;
mod writer;

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use manifest::Host;
use policy::Seed;
use policy::address::budget_network;
use policy::delay::{
    AuthorityPace, Network, Pace as Decision, Sample, Scope, ScopeState, day_of, next_request_at,
};
use store::{
    AddressSlot, ClockWrite, LeaseToken, MemberId, Membership, SlotClaim, Store, StoreError, VisitProgress,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::limiter::{Key, Limiter, QUEUE_WAIT_MAX, SlotAnswer};
use self::permit::{LATE_MAX, is_in_time, later, wait_until};
pub(crate) use self::permit::{Permit, PermitAnswer};
use self::suffix::SuffixPermits;
pub(crate) use self::writer::Clearance;
use self::writer::{ClockWriter, WRITE_TIME_MIN, WriteTime};
use crate::batcher::Batcher;
use crate::clock::Moment;
use crate::groups::{LEAVES_WITHIN_MAX, Lifetimes};
use crate::retry::retry_while_unavailable;
use crate::{clock, metrics};
use egress::LeaveCheck;

/// Assumed time from writing a clock to the end of the response, if the sender was killed. Nearly all requests take less.
const ANSWER_TIME_ASSUMED: Duration = LEAVES_WITHIN_MAX;
/// Assumed time from writing a clock to the end of the response in the operator's own networks, if the sender was killed.
const ANSWER_TIME_ASSUMED_OWN: Duration = Duration::from_millis(500);
// a request leaves within the time that is held for it at its address
const _: () = assert!(
    Duration::from_millis(LATE_MAX.num_milliseconds().unsigned_abs()).as_nanos() <= WRITE_TIME_MIN.as_nanos()
);

/// The pace of a process; cheap to clone.
#[derive(Clone)]
pub(crate) struct Pace(Arc<Shared>);

struct Shared {
    limiter: Limiter,
    writer: Batcher<ClockWriter>,
    suffixes: SuffixPermits,
    rate: DefaultDirectRateLimiter,
    store: Store,
    /// `--delay`.
    configured: Duration,
    lifetimes: Lifetimes,
    write_time: Arc<WriteTime>,
}

/// The clocks of one authority within a visit.
#[derive(Debug, Clone)]
pub(crate) struct AuthorityClock {
    host: Host,
    next_ok_at: Option<DateTime<Utc>>,
    requests_today: u32,
    day: i32,
    last_latency: Option<Duration>,
    /// When the last response of this visit ended. The gap is computed later, because that response may be the robots.txt that requires a
    /// longer gap.
    last_end_at: Option<DateTime<Utc>>,
    /// Requests so far, which vary the jitter.
    requests: u64,
    /// The end of the delay that the host asked for in this visit.
    asked_until: Option<DateTime<Utc>>,
}

impl AuthorityClock {
    pub(crate) const fn new(
        host: Host,
        next_ok_at: Option<DateTime<Utc>>,
        requests_today: u32,
        day: i32,
    ) -> Self {
        let (last_latency, last_end_at, asked_until) = (None, None, None);
        Self { host, next_ok_at, requests_today, day, last_latency, last_end_at, requests: 0, asked_until }
    }

    /// Delays requests to this host until `at`, because of its Retry-After. The other hosts of the site are not affected.
    pub(crate) fn wait_until(&mut self, at: DateTime<Utc>) {
        self.next_ok_at = self.next_ok_at.max(Some(at));
        self.asked_until = self.asked_until.max(Some(at));
    }

    /// The end of the delay that the host asked for in this visit.
    pub(crate) const fn asked_until(&self) -> Option<DateTime<Utc>> {
        self.asked_until
    }
}

/// Clocks of the site as a whole, within a visit.
#[derive(Debug, Clone, Default)]
pub(crate) struct SiteClock {
    /// When the next request to the site may be sent. Stored in the progress of the visit, not in its own table.
    pub(crate) next_ok_at: Option<DateTime<Utc>>,
    requests_today: u32,
    day: i32,
    /// Retry-After.
    pub(crate) not_before: Option<DateTime<Utc>>,
}

impl SiteClock {
    pub(crate) const fn new(requests_today: u32, day: i32, not_before: Option<DateTime<Utc>>) -> Self {
        Self { next_ok_at: None, requests_today, day, not_before }
    }
}

/// The addresses of a host, and their gap.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// A request is sent to the first address; its permit is for that address.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) network: Network,
    /// Whether this worker owns the first address.
    pub(crate) role: AddressRole,
    pub(crate) crawl_delay: Option<Duration>,
    pub(crate) budget: Budget,
}

/// The part of the daily budgets of a host and its site that a request may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Budget {
    Whole,
    /// Without the part that is kept for messages to webhooks.
    OfVisits,
}

impl Budget {
    fn kept(self, scope: Scope) -> u32 {
        match self {
            Self::Whole => 0,
            Self::OfVisits => scope.requests_kept(),
        }
    }
}

/// Whether a worker owns an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressRole {
    /// This worker limits the requests to the address. This includes a crawler without a fleet.
    Owner,
    /// Another worker limits the requests to the address, so this one reserves a time for each request.
    Guest,
}

/// The data that is written with the clocks of a request.
pub(crate) struct Departure<'p> {
    pub(crate) permit: &'p mut Permit,
    /// The lease under which the request is sent.
    pub(crate) lease: LeaseToken,
    pub(crate) progress: Option<VisitProgress>,
    /// The membership under which this worker owns the address.
    pub(crate) member: Option<MemberId>,
}

impl Pace {
    /// Starts the task that writes clocks; it ends when the last clone is dropped.
    pub(crate) fn start(
        store: Store,
        configured: Duration,
        rate: NonZeroU32,
        lifetimes: Lifetimes,
        tracker: &tokio_util::task::TaskTracker,
    ) -> Self {
        let writer = Batcher::start(&ClockWriter { store: store.clone(), lifetimes }, tracker);
        let (limiter, write_time) = (Limiter::default(), Arc::<WriteTime>::default());
        let suffixes = SuffixPermits::start(store.clone(), limiter.clone(), Arc::clone(&write_time), tracker);
        let rate = RateLimiter::direct(Quota::per_second(rate));
        Self(Arc::new(Shared { limiter, writer, suffixes, rate, store, configured, lifetimes, write_time }))
    }

    /// The gap that `--delay` and Crawl-delay require.
    pub(crate) fn stated_gap(&self, crawl_delay: Option<Duration>) -> Duration {
        self.0.configured.max(crawl_delay.unwrap_or_default())
    }

    /// Loads the clocks of addresses that other processes wrote.
    pub(crate) async fn load_clocks(&self, target: &Target) -> Result<(), StoreError> {
        if target.network == Network::Own {
            return Ok(());
        }
        let addresses: Vec<IpAddr> = target.addresses.iter().copied().map(clock_address).collect();
        let clocks =
            retry_while_unavailable("read clocks", || self.0.store.address_clocks(&addresses)).await?;
        for (address, at) in clocks {
            let key = Key::of_address(address);
            // the times that others reserved at one address of a platform do not delay requests to its other addresses
            if target.role == AddressRole::Owner && matches!(key, Key::Platform(_)) {
                continue;
            }
            self.0.limiter.load(&key, at);
        }
        Ok(())
    }

    /// Acquires a permit. If many visits use the same address, waits in their queue.
    pub(crate) async fn acquire(
        &self,
        target: &Target,
        authority: &mut AuthorityClock,
        site: &SiteClock,
    ) -> Result<PermitAnswer, StoreError> {
        let after_last = authority.last_end_at.map(|at| later(at, self.gap(target, authority)));
        authority.next_ok_at = authority.next_ok_at.max(after_last);
        let own = own_scopes(authority, site, target.budget);
        let decide = |shared: &[ScopeState], now| {
            let scopes: Vec<ScopeState> = own.iter().chain(shared).copied().collect();
            next_request_at(&scopes, target.network, now)
        };
        // check the visit's own clocks first, so that it does not queue before it may send
        let keys = shared_keys(target, &authority.host);
        let now = clock::now();
        match decide(&[], now) {
            Decision::Go => {}
            refused => return Ok(PermitAnswer::refused(refused, now)),
        }
        let (addresses, suffix) = keys.split_at(keys.iter().take_while(|key| key.suffix().is_none()).count());
        let suffix = match suffix.first() {
            Some(suffix) => match Box::pin(self.0.suffixes.acquire(suffix, addresses, &decide)).await? {
                Ok(permit) => Some(permit),
                Err(refused) => return Ok(refused),
            },
            None => None,
        };
        let began = Instant::now();
        let answer = self.0.limiter.acquire(addresses, &decide).await;
        if let Some(key) = addresses.first() {
            metrics::waited(key.scope(), began.elapsed());
        }
        Ok(match (answer, suffix) {
            (SlotAnswer::Granted(address), Some(suffix)) => {
                Box::pin(self.0.suffixes.join(address, suffix)).await
            }
            (SlotAnswer::Granted(address), None) => PermitAnswer::Granted(Permit { address, suffix: None }),
            (SlotAnswer::Crowded { until, scope }, _) => PermitAnswer::Crowded { until, scope },
            (SlotAnswer::Refused(decision), _) => PermitAnswer::refused(decision, clock::now()),
        })
    }

    /// Waits for the rate limit of the process, writes the clocks of the request, and returns at the time at which it is to be sent. If the
    /// database takes longer than allowed for, or another worker uses the address at that time, writes later clocks. Clocks are written
    /// only while this worker holds the lease of the site and, in a fleet, the membership under which it owns the address.
    pub(crate) async fn write_clocks(
        &self,
        target: &Target,
        authority: &mut AuthorityClock,
        site: &mut SiteClock,
        departure: Departure<'_>,
    ) -> Result<Clearance, StoreError> {
        let Departure { permit, lease, progress, member } = departure;
        let began = Instant::now();
        self.0.rate.until_ready().await;
        metrics::waited(Scope::Node, began.elapsed());
        let now = clock::now();
        authority.requests += 1;
        count_request(&mut authority.requests_today, &mut authority.day, now);
        count_request(&mut site.requests_today, &mut site.day, now);
        let gap = self.gap(target, authority);
        let ahead = gap.saturating_add(until_answered(gap, target.network, authority));
        let (mut requests_add, mut progress) = (1, progress);
        let member = member.map(|member| Membership { member, alive_until: now });
        // the time that is reserved at the address
        let mut slot_at: Option<DateTime<Utc>> = None;
        loop {
            let (now, began, allowed) = (clock::now(), Instant::now(), self.0.write_time.allowed());
            let suffix_at = permit.suffix.as_ref().map(|suffix| suffix.reservation.at);
            let leaves_at = suffix_at.max(slot_at).map_or(now, |at| at.max(now));
            slot_at = slot_at.filter(|at| leaves_at <= *at + LATE_MAX);
            let planned_at = suffix_at.max(slot_at);
            authority.next_ok_at = Some(later(leaves_at, ahead.saturating_add(allowed)));
            let address = if slot_at.is_none() { address_slot(target, leaves_at, allowed) } else { None };
            let (write, lease) = (write_of(authority, site, leaves_at, requests_add), Some(lease.clone()));
            let write = ClockWrite { address, progress, member, lease, ..write };
            let clearance = self.0.writer.write(write).await?;
            let took = began.elapsed();
            self.0.write_time.observe(took);
            let Clearance::Granted { reserved_at, .. } = clearance else { return Ok(clearance) };
            (requests_add, progress) = (0, None);
            // rare and large, so it is boxed: every visit waits for its clock
            if let Some(at) = reserved_at {
                slot_at = Some(at);
                Box::pin(self.wait_for_slot(permit, at)).await?;
                continue;
            }
            match planned_at {
                Some(at) if is_in_time(at) => {
                    wait_until(at, Duration::ZERO).await;
                    return Ok(clearance);
                }
                Some(_) => {
                    slot_at = None;
                    Box::pin(self.0.suffixes.renew(permit, clock::now())).await?;
                }
                None if gap.is_zero() || took <= allowed => return Ok(clearance),
                None => {}
            }
        }
    }

    /// Waits until shortly before the time that is reserved at the address. A permit at a suffix is replaced by one for that time.
    async fn wait_for_slot(&self, permit: &mut Permit, at: DateTime<Utc>) -> Result<(), StoreError> {
        let began = Instant::now();
        permit.address.delay_from(at);
        self.0.suffixes.renew(permit, at).await?;
        wait_until(at, self.0.write_time.allowed()).await;
        metrics::waited(Scope::Address, began.elapsed());
        Ok(())
    }

    /// Whether a request may still be sent whose clock was written at `since`. Its response then ends before the lease and the membership
    /// expire.
    pub(crate) fn leave_check(&self, since: Moment, lost: CancellationToken) -> LeaveCheck {
        let leaves_within = self.0.lifetimes.leaves_within();
        LeaveCheck::new(move || !lost.is_cancelled() && since.elapsed() < leaves_within)
    }

    /// Starts the gaps after a response.
    pub(crate) fn finish(
        &self,
        target: &Target,
        authority: &mut AuthorityClock,
        site: &mut SiteClock,
        latency: Duration,
        sample: Option<Sample>,
    ) {
        let now = clock::now();
        authority.last_latency = Some(latency);
        authority.last_end_at = Some(now);
        authority.next_ok_at = Some(later(now, self.gap(target, authority)));
        site.next_ok_at = Some(later(now, Scope::Site.limits().gap));
        if target.network == Network::Global {
            self.0.limiter.finish(&shared_keys(target, &authority.host), now, sample);
        }
    }

    /// Writes the clock of a host at the end of a visit, or after a Retry-After.
    pub(crate) async fn save_clock(
        &self,
        authority: &AuthorityClock,
        site: &SiteClock,
    ) -> Result<(), StoreError> {
        let write = write_of(authority, site, clock::now(), 0);
        self.0.writer.write(write).await.map(|_| ())
    }

    /// When the last of `requests` to a host will be answered, if neither other hosts nor other visits delay them.
    pub(crate) fn answered_at(
        &self,
        target: &Target,
        authority: &AuthorityClock,
        requests: u32,
    ) -> DateTime<Utc> {
        let (gap, now) = (self.gap(target, authority), clock::now());
        let after_last = authority.last_end_at.map(|at| later(at, gap));
        let first = [after_last, authority.next_ok_at].into_iter().flatten().fold(now, DateTime::max);
        let gaps = gap.saturating_mul(requests.saturating_sub(1));
        let answers = authority.last_latency.unwrap_or_default().saturating_mul(requests);
        later(first, gaps.saturating_add(answers))
    }

    fn gap(&self, target: &Target, authority: &AuthorityClock) -> Duration {
        let pace = AuthorityPace {
            configured: self.0.configured,
            crawl_delay: target.crawl_delay,
            last_latency: authority.last_latency,
            network: target.network,
        };
        pace.gap(Seed::of(authority.host.as_str()).with_counter(authority.requests)).wait
    }
}

fn own_scopes(authority: &AuthorityClock, site: &SiteClock, budget: Budget) -> [ScopeState; 3] {
    [
        ScopeState {
            next_ok_at: authority.next_ok_at,
            requests_today: authority.requests_today,
            day: authority.day,
            kept: budget.kept(Scope::Authority),
            ..ScopeState::idle(Scope::Authority)
        },
        ScopeState {
            next_ok_at: site.next_ok_at,
            requests_today: site.requests_today,
            day: site.day,
            kept: budget.kept(Scope::Site),
            ..ScopeState::idle(Scope::Site)
        },
        ScopeState { next_ok_at: site.not_before, ..ScopeState::idle(Scope::RetryAfter) },
    ]
}

fn shared_keys(target: &Target, host: &Host) -> Vec<Key> {
    if target.network == Network::Own {
        return Vec::new();
    }
    let addresses = target.addresses.iter().take(1).map(|address| Key::of_address(*address));
    addresses.chain(Key::of_private_suffix(host)).collect()
}

/// The time from sending a request to the end of the gap after its response. A visit that is resumed after a kill does not know when the
/// response arrived, so a duration is assumed.
fn until_answered(gap: Duration, network: Network, authority: &AuthorityClock) -> Duration {
    let assumed = match network {
        Network::Global => ANSWER_TIME_ASSUMED,
        Network::Own => ANSWER_TIME_ASSUMED_OWN,
    };
    if gap.is_zero() { gap } else { authority.last_latency.unwrap_or_default().max(assumed) }
}

fn count_request(requests_today: &mut u32, day: &mut i32, now: DateTime<Utc>) {
    let today = day_of(now);
    if *day != today {
        (*day, *requests_today) = (today, 0);
    }
    *requests_today = requests_today.saturating_add(1);
}

fn write_of(
    authority: &AuthorityClock,
    site: &SiteClock,
    now: DateTime<Utc>,
    requests_add: u32,
) -> ClockWrite {
    ClockWrite {
        host: authority.host.clone(),
        address: None,
        next_ok_at: authority.next_ok_at.unwrap_or(now),
        not_before: site.not_before,
        requests_add,
        day: day_of(now),
        progress: None,
        member: None,
        lease: None,
    }
}

/// The time of a request at its address. The request may be sent up to `allowed` later.
fn address_slot(target: &Target, from: DateTime<Utc>, allowed: Duration) -> Option<AddressSlot> {
    let address = target.addresses.first().copied().filter(|_| target.network == Network::Global)?;
    let claim = match (target.role, Key::of_address(address)) {
        (AddressRole::Guest, _) => SlotClaim::Guest,
        (AddressRole::Owner, Key::Platform(_)) => SlotClaim::PlatformOwner,
        (AddressRole::Owner, _) => SlotClaim::Owner,
    };
    let hold = Scope::Address.limits().gap.saturating_add(allowed);
    let (address, latest) = (clock_address(address), later(from, QUEUE_WAIT_MAX));
    Some(AddressSlot { address, claim, from, hold, latest })
}

/// The address under which a clock is stored. It is the same for all addresses that share a budget.
fn clock_address(address: IpAddr) -> IpAddr {
    budget_network(address).network()
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
