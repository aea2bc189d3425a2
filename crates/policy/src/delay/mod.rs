//! How long to wait before the next request, and how many requests there may be.
//!
//! A request waits for every scope it falls under: its authority, its site, its public suffix, its address, the platform
//! behind the address, the node, and what the site itself asked for by Retry-After. The longest wait decides. No
//! configuration goes below one second per authority on a global address. Only networks that the operator named as
//! their own are exempt: there the configured delay, Crawl-delay and Retry-After alone apply.

mod known;
mod platform;
#[cfg(test)]
mod tests;

use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::string_enum;

pub use self::known::platform_of;
pub use self::platform::{PlatformRate, RateChange, Sample};
use crate::address::AddressVerdict;
use crate::spread::Seed;
use crate::time::{DAY, later, until};

/// Default delay between two requests to one authority. Crawlers of news use a third of it.
pub const DELAY_DEFAULT: Duration = Duration::from_secs(3);
/// Minimum delay on global addresses, whatever is configured.
const DELAY_FLOOR: Duration = Duration::from_secs(1);
/// The delay is at least the last response time multiplied by this.
const LATENCY_FACTOR: u32 = 5;
/// Jitter added to a delay, so that visits that start together spread out.
const JITTER_PERCENT_MAX: u32 = 20;
/// Longer delays close the connection and park the visit. The usual Crawl-delay of 5 s keeps the connection, jitter included,
/// which costs both sides less than a handshake for each request.
const PARK_AFTER: Duration = Duration::from_secs(6);

string_enum! {
    /// What a limit applies to.
    Scope, "scope" {
        /// Scheme, host and port.
        Authority = "authority",
        /// The registrable domain.
        Site = "site",
        /// A public suffix, such as github.io.
        PublicSuffix = "public_suffix",
        /// An address of an unknown owner: an IPv4 address or an IPv6 /56.
        Address = "address",
        /// A platform that is known to serve very many sites from few addresses.
        Platform = "platform",
        /// This machine.
        Node = "node",
        /// What the site asked for by Retry-After.
        RetryAfter = "retry_after",
    }
}

/// The limits of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeLimits {
    /// Requests that may be under way at once.
    pub in_flight_max: u32,
    /// The least time from one request to the next; for an authority, from the end of the one before.
    pub gap: Duration,
    /// Requests a day, where there is a budget.
    pub requests_per_day_max: Option<u32>,
}

impl Scope {
    /// The limits that hold by default; operators may only tighten them.
    pub const fn limits(self) -> ScopeLimits {
        match self {
            // The path table twice over: a visit, and one more by hand.
            Self::Authority => limits(1, DELAY_DEFAULT, Some(40)),
            // Three hosts' worth.
            Self::Site => limits(2, Duration::from_secs(1), Some(120)),
            Self::PublicSuffix => limits(4, Duration::from_millis(500), None),
            // A shared host of a thousand sites is through in a day.
            Self::Address => limits(1, Duration::from_millis(500), Some(20_000)),
            // The gap is the one at the start; `PlatformRate` moves it.
            Self::Platform => limits(20, Duration::from_millis(500), None),
            Self::Node | Self::RetryAfter => limits(u32::MAX, Duration::ZERO, None),
        }
    }

    /// Whether the scope holds back requests into the operator's own networks too.
    const fn concerns_own_networks(self) -> bool {
        matches!(self, Self::Authority | Self::RetryAfter)
    }
}

const fn limits(in_flight_max: u32, gap: Duration, requests_per_day_max: Option<u32>) -> ScopeLimits {
    ScopeLimits { in_flight_max, gap, requests_per_day_max }
}

/// Whose network an address is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// A public network: every rule applies.
    Global,
    /// The operator's own, named by `--allow-addresses`.
    Own,
}

impl Network {
    /// The network of an address that was judged; `None` where nothing may be sent at all.
    pub const fn of(verdict: AddressVerdict) -> Option<Self> {
        match verdict {
            AddressVerdict::Global => Some(Self::Global),
            AddressVerdict::Own(_) => Some(Self::Own),
            AddressVerdict::Refused(_) => None,
        }
    }
}

string_enum! {
    /// What made a gap as long as it is.
    GapReason, "gap reason" {
        /// The configured delay.
        Configured = "configured",
        /// The floor on global addresses.
        Floor = "floor",
        /// The server was slow.
        Latency = "latency",
        /// Crawl-delay of robots.txt.
        CrawlDelay = "crawl_delay",
    }
}

/// The wait after a response before the next request to the same authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The wait, jitter included.
    pub wait: Duration,
    /// What decided.
    pub reason: GapReason,
}

/// What the gap of an authority depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthorityPace {
    /// `--delay`.
    pub configured: Duration,
    /// Of the robots.txt in force, clamped as [`crate::robots`] does.
    pub crawl_delay: Option<Duration>,
    /// From the request to the end of the last response.
    pub last_latency: Option<Duration>,
    /// Where the address lies.
    pub network: Network,
}

impl AuthorityPace {
    /// The gap after the response just received. `seed` gives the jitter; take another turn of it for each request.
    /// In the operator's own networks there is neither floor nor jitter.
    pub fn gap(&self, seed: Seed) -> Gap {
        let asked = self.crawl_delay.map(|wait| (wait, GapReason::CrawlDelay));
        let polite = match self.network {
            Network::Own => None,
            Network::Global => {
                let slow = self.last_latency.unwrap_or_default().saturating_mul(LATENCY_FACTOR);
                Some([(DELAY_FLOOR, GapReason::Floor), (slow, GapReason::Latency)])
            }
        };
        let reasons = asked.into_iter().chain(polite.into_iter().flatten());
        // Of equal delays the first one named decides.
        let (wait, reason) = reasons.fold((self.configured, GapReason::Configured), |longest, next| {
            if next.0 > longest.0 { next } else { longest }
        });
        let jitter = match self.network {
            Network::Own => Duration::ZERO,
            Network::Global => seed.share_of(wait, JITTER_PERCENT_MAX),
        };
        Gap { wait: wait.saturating_add(jitter), reason }
    }
}

/// The state of one scope of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeState {
    /// Which scope.
    pub scope: Scope,
    /// No request before this.
    pub next_ok_at: Option<DateTime<Utc>>,
    /// Requests under way.
    pub in_flight: u32,
    /// Requests already sent on `day`.
    pub requests_today: u32,
    /// The day that is counted, in days since 1970-01-01.
    pub day: i32,
}

impl ScopeState {
    /// A scope that nothing was ever sent under.
    pub const fn idle(scope: Scope) -> Self {
        Self { scope, next_ok_at: None, in_flight: 0, requests_today: 0, day: 0 }
    }

    fn is_full(&self) -> bool {
        self.in_flight >= self.scope.limits().in_flight_max
    }

    fn is_spent(&self, now: DateTime<Utc>) -> bool {
        let limits = self.scope.limits();
        // A day in the future was counted before the clock was set back.
        let sent = if self.day >= day_of(now) { self.requests_today } else { 0 };
        limits.requests_per_day_max.is_some_and(|budget| sent >= budget)
    }
}

/// Whether the next request may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Now.
    Go,
    /// After a delay during which the connection is kept.
    Wait {
        /// Until when.
        until: DateTime<Utc>,
        /// For what.
        scope: Scope,
    },
    /// After a longer delay: close the connection and park the visit.
    Park {
        /// Until when.
        until: DateTime<Utc>,
        /// For what.
        scope: Scope,
    },
    /// When another request of this scope has ended.
    Busy {
        /// Which scope is full.
        scope: Scope,
    },
    /// Not today.
    OverBudget {
        /// Whose budget is spent.
        scope: Scope,
        /// When the next day begins.
        until: DateTime<Utc>,
    },
}

/// Decides on the next request, which falls under all of `scopes`.
pub fn next_request_at(scopes: &[ScopeState], network: Network, now: DateTime<Utc>) -> Pace {
    let concerned =
        || scopes.iter().filter(|state| network == Network::Global || state.scope.concerns_own_networks());
    if network == Network::Global
        && let Some(spent) = concerned().find(|state| state.is_spent(now))
    {
        return Pace::OverBudget { scope: spent.scope, until: next_day(now) };
    }
    let latest =
        concerned().filter_map(|state| Some((state.next_ok_at?, state.scope))).max_by_key(|(at, _)| *at);
    match latest {
        Some((at, scope)) if until(now, at) > PARK_AFTER => Pace::Park { until: at, scope },
        Some((at, scope)) if at > now => Pace::Wait { until: at, scope },
        _ => concerned()
            .find(|state| state.is_full())
            .map_or(Pace::Go, |full| Pace::Busy { scope: full.scope }),
    }
}

/// Days since 1970-01-01, as budgets are counted.
pub fn day_of(now: DateTime<Utc>) -> i32 {
    i32::try_from(now.timestamp().div_euclid(86_400)).unwrap_or(i32::MAX)
}

/// The beginning of the next day.
pub(crate) fn next_day(now: DateTime<Utc>) -> DateTime<Utc> {
    let midnight = now.date_naive().and_time(chrono::NaiveTime::MIN).and_utc();
    later(midnight, DAY)
}
