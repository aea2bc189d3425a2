//! When the next request may leave: keeps the clocks that `policy::delay` decides over.
//!
//! Clocks of authority and site belong to the visit, which has its site to itself. Clocks of addresses and public suffixes
//! are shared by every visit of the process, and kept in the store across processes; at a public suffix every process takes its
//! turns from there. No request is sent before its clock is written: a crawler that is killed cannot ask twice. When the
//! database is away, requests wait.

mod book;
mod suffix;
mod writer;

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use manifest::Host;
use policy::Seed;
use policy::address::budget_network;
use policy::delay::{
    AuthorityPace, Network, Pace as Decision, Sample, Scope, ScopeState, day_of, next_request_at,
};
use store::{ClockWrite, MemberId, Membership, Store, StoreError, VisitProgress};
use tokio::time::Instant;

use self::book::{Book, Claim, Key, Taken};
use self::suffix::{Below, Suffixes};
pub(crate) use self::writer::Cleared;
use self::writer::ClockWriter;
use crate::gather::Gatherer;
use crate::patience::patiently;
use crate::{clock, metrics};

/// An answer whose reader was killed has come by then: the longest that headers are waited for.
const ANSWER_TIME_ASSUMED: Duration = Duration::from_secs(10);
/// The same in the operator's own networks, where nearly every answer has.
const ANSWER_TIME_ASSUMED_OWN: Duration = Duration::from_millis(500);
/// What a clock may be late by when it is written and the request leaves: this, or twice what the last one took.
const WRITE_TIME_MIN: Duration = Duration::from_millis(100);
const WRITE_TIME_MAX: Duration = Duration::from_secs(5);

/// The pace of a process; cheap to clone.
#[derive(Clone)]
pub(crate) struct Pace(Arc<Shared>);

struct Shared {
    book: Book,
    writer: Gatherer<ClockWriter>,
    suffixes: Suffixes,
    rate: DefaultDirectRateLimiter,
    store: Store,
    /// `--delay`.
    configured: Duration,
    /// How long the last clock took to be written.
    last_write_ms: AtomicU64,
}

impl Shared {
    /// What is allowed for the writing of a clock.
    fn write_time(&self) -> Duration {
        let last = Duration::from_millis(self.last_write_ms.load(Ordering::Relaxed));
        last.saturating_mul(2).clamp(WRITE_TIME_MIN, WRITE_TIME_MAX)
    }
}

/// The clocks of one authority within a visit.
#[derive(Debug, Clone)]
pub(crate) struct AuthorityClock {
    host: Host,
    next_ok_at: Option<DateTime<Utc>>,
    requests_today: u32,
    day: i32,
    last_latency: Option<Duration>,
    /// When the last response of this visit ended. The gap after it is known only now: that response may have been the
    /// robots.txt that asks for a longer one.
    last_end_at: Option<DateTime<Utc>>,
    turns: u64,
}

impl AuthorityClock {
    pub(crate) const fn new(
        host: Host,
        next_ok_at: Option<DateTime<Utc>>,
        requests_today: u32,
        day: i32,
    ) -> Self {
        Self { host, next_ok_at, requests_today, day, last_latency: None, last_end_at: None, turns: 0 }
    }
}

/// Clocks of the site as a whole, within a visit.
#[derive(Debug, Clone, Default)]
pub(crate) struct SiteClock {
    /// The store does not know of it: it goes with the progress of a visit.
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

/// What a request is about to be sent to.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) network: Network,
    pub(crate) crawl_delay: Option<Duration>,
}

/// Permission for one request; its scopes are free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    address: Claim,
    /// Below a public suffix.
    below: Option<Below>,
}

/// What goes with the clocks of a request.
pub(crate) struct Leave<'turn> {
    pub(crate) turn: &'turn mut Turn,
    pub(crate) progress: Option<VisitProgress>,
    /// By which the address is this worker's.
    pub(crate) member: Option<MemberId>,
}

/// What asking for a turn came to.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "taken apart where it is answered, and mostly a turn")]
pub(crate) enum Asked {
    Go(Turn),
    /// Ask again after this.
    Wait {
        until: DateTime<Utc>,
        scope: Scope,
    },
    /// Too long to keep a connection for.
    Park {
        until: DateTime<Utc>,
        scope: Scope,
    },
    /// Too many visits want the same address; this one is to come back then.
    Crowded {
        until: DateTime<Utc>,
        scope: Scope,
    },
    /// The day's budget is spent.
    OverBudget {
        scope: Scope,
        until: DateTime<Utc>,
    },
}

impl Pace {
    /// Starts the task that writes clocks; it ends when the last clone is dropped. `life` is how long a membership of the
    /// fleet lives from each clock on that is written under it.
    pub(crate) fn start(
        store: Store,
        configured: Duration,
        rate: NonZeroU32,
        life: Duration,
        tracker: &tokio_util::task::TaskTracker,
    ) -> Self {
        let writer = Gatherer::start(&ClockWriter { store: store.clone(), life }, tracker);
        let suffixes = Suffixes::start(store.clone(), tracker);
        let rate = RateLimiter::direct(Quota::per_second(rate));
        let (book, last_write_ms) = (Book::default(), AtomicU64::default());
        Self(Arc::new(Shared { book, writer, suffixes, rate, store, configured, last_write_ms }))
    }

    /// Loads what other processes wrote about addresses.
    pub(crate) async fn learn(&self, target: &Target) -> Result<(), StoreError> {
        if target.network == Network::Own {
            return Ok(());
        }
        let addresses: Vec<IpAddr> = target.addresses.iter().copied().map(clock_address).collect();
        let clocks = patiently("clocks to be read", || self.0.store.address_clocks(&addresses)).await?;
        for (address, at) in clocks {
            self.0.book.learn(&Key::of_address(address), at);
        }
        Ok(())
    }

    /// Asks for a turn; where many want one address, waits in their queue.
    pub(crate) async fn ask(
        &self,
        target: &Target,
        authority: &mut AuthorityClock,
        site: &SiteClock,
    ) -> Result<Asked, StoreError> {
        let after_last = authority.last_end_at.map(|at| later(at, self.gap(target, authority)));
        authority.next_ok_at = authority.next_ok_at.max(after_last);
        let own = own_scopes(authority, site);
        let decide = |shared: &[ScopeState], now| {
            let scopes: Vec<ScopeState> = own.iter().chain(shared).copied().collect();
            next_request_at(&scopes, target.network, now)
        };
        // the clocks of its own come first, so that nobody stands in a queue without being ready
        let keys = shared_keys(target, &authority.host);
        let now = clock::now();
        match decide(&[], now) {
            Decision::Go => {}
            Decision::Busy { scope } => return Ok(Asked::Wait { until: now, scope }),
            later => return Ok(asked(later, now)),
        }
        let (addresses, suffix) = keys.split_at(keys.iter().take_while(|key| key.suffix().is_none()).count());
        let below = match suffix.first() {
            Some(suffix) => match Box::pin(self.take_suffix_turn(suffix, addresses, &decide)).await? {
                Ok(below) => Some(below),
                Err(asked) => return Ok(asked),
            },
            None => None,
        };
        let began = Instant::now();
        let taken = self.0.book.take(addresses, &decide).await;
        if let Some(key) = addresses.first() {
            metrics::waited(key.scope(), began.elapsed());
        }
        match taken {
            Taken::Go(address) => match below {
                Some(below) => Ok(Box::pin(self.join(address, below)).await),
                None => Ok(Asked::Go(Turn { address, below: None })),
            },
            Taken::Crowded { until, scope } => Ok(Asked::Crowded { until, scope }),
            Taken::Never(later) => Ok(asked(later, clock::now())),
        }
    }

    /// Waits for the node's own rate, writes the clocks of the request that is about to be sent, and returns when it is to be. The
    /// next request is counted from then: where the database took longer than was allowed for, a later clock is written.
    /// In a fleet it is written under the membership by which the address is ours, or not at all.
    pub(crate) async fn clear(
        &self,
        target: &Target,
        authority: &mut AuthorityClock,
        site: &mut SiteClock,
        leave: Leave<'_>,
    ) -> Result<Cleared, StoreError> {
        let Leave { turn, progress, member } = leave;
        let began = Instant::now();
        self.0.rate.until_ready().await;
        metrics::waited(Scope::Node, began.elapsed());
        let now = clock::now();
        authority.turns += 1;
        count_request(&mut authority.requests_today, &mut authority.day, now);
        count_request(&mut site.requests_today, &mut site.day, now);
        let gap = self.gap(target, authority);
        let ahead = gap.saturating_add(until_answered(gap, target.network, authority));
        let (mut requests_add, mut progress) = (1, progress);
        let member = member.map(|member| Membership { member, alive_until: now });
        loop {
            let (now, began, allowed) = (clock::now(), Instant::now(), self.0.write_time());
            let leaves_at = turn.below.as_ref().map_or(now, |below| below.turn.at.max(now));
            authority.next_ok_at = Some(later(leaves_at, ahead.saturating_add(allowed)));
            let write = write_of(target, authority, site, leaves_at, requests_add);
            let cleared = self.0.writer.write(ClockWrite { progress, member, ..write }).await?;
            let took = began.elapsed();
            self.0
                .last_write_ms
                .store(u64::try_from(took.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
            if cleared != Cleared::Go {
                return Ok(cleared);
            }
            match &turn.below {
                Some(below) if below.turn.is_in_time() => {
                    below.turn.wait(Duration::ZERO).await;
                    return Ok(cleared);
                }
                // rare, and large: every visit would carry its state through the wait for its clock
                Some(_) => Box::pin(self.renew(turn)).await?,
                None if gap.is_zero() || took <= allowed => return Ok(cleared),
                None => {}
            }
            (requests_add, progress) = (0, None);
        }
    }

    /// After the answer: the gap is counted from here.
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
            self.0.book.finish(&shared_keys(target, &authority.host), now, sample);
        }
    }

    /// Writes where an authority's clock stands, at the end of a visit or when the site asked for a pause.
    pub(crate) async fn persist(
        &self,
        target: &Target,
        authority: &AuthorityClock,
        site: &SiteClock,
    ) -> Result<(), StoreError> {
        let write = write_of(target, authority, site, clock::now(), 0);
        self.0.writer.write(write).await.map(|_| ())
    }

    fn gap(&self, target: &Target, authority: &AuthorityClock) -> Duration {
        let pace = AuthorityPace {
            configured: self.0.configured,
            crawl_delay: target.crawl_delay,
            last_latency: authority.last_latency,
            network: target.network,
        };
        pace.gap(Seed::of(authority.host.as_str()).with_counter(authority.turns)).wait
    }
}

/// A decision that is not to go.
const fn asked(decision: Decision, now: DateTime<Utc>) -> Asked {
    match decision {
        Decision::Park { until, scope } => Asked::Park { until, scope },
        Decision::OverBudget { scope, until } => Asked::OverBudget { scope, until },
        Decision::Wait { until, scope } => Asked::Wait { until, scope },
        Decision::Busy { scope } => Asked::Wait { until: now, scope },
        Decision::Go => Asked::Wait { until: now, scope: Scope::Node },
    }
}

fn own_scopes(authority: &AuthorityClock, site: &SiteClock) -> [ScopeState; 3] {
    [
        ScopeState {
            next_ok_at: authority.next_ok_at,
            requests_today: authority.requests_today,
            day: authority.day,
            ..ScopeState::idle(Scope::Authority)
        },
        ScopeState {
            next_ok_at: site.next_ok_at,
            requests_today: site.requests_today,
            day: site.day,
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

/// The gap counts from the answer. Whoever goes on after a kill does not know when that came, and leaves it this long.
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
    target: &Target,
    authority: &AuthorityClock,
    site: &SiteClock,
    now: DateTime<Utc>,
    requests_add: u32,
) -> ClockWrite {
    let first = target.addresses.first().filter(|_| target.network == Network::Global);
    let address = first.copied().map(clock_address);
    ClockWrite {
        host: authority.host.clone(),
        address,
        next_ok_at: authority.next_ok_at.unwrap_or(now),
        address_next_ok_at: address.map(|_| later(now, Scope::Address.limits().gap)),
        not_before: site.not_before,
        requests_add,
        day: day_of(now),
        progress: None,
        member: None,
    }
}

/// Under which address a clock is kept: one for everything that shares a budget.
fn clock_address(address: IpAddr) -> IpAddr {
    budget_network(address).network()
}

fn later(now: DateTime<Utc>, wait: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(wait)
        .ok()
        .and_then(|wait| now.checked_add_signed(wait))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
