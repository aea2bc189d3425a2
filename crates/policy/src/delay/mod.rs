//! Determines the delay before the next request, and limits the number of requests.
//!
//! Several scopes limit a request: its authority, its site, its public suffix, its address, the platform of the address, the node, and the
//! Retry-After of the site. The request waits for all of them. On a global address, no configuration allows less than one second between
//! requests to an authority. Only networks that the operator named as their own are exempt: there only the configured delay, Crawl-delay
//! and Retry-After apply.

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

/// Default delay between two requests to one authority. News crawlers use a third of it.
pub const DELAY_DEFAULT: Duration = Duration::from_secs(3);
/// Minimum delay on global addresses, which configuration cannot lower.
pub const DELAY_FLOOR: Duration = Duration::from_secs(1);
/// The delay is at least the last response time multiplied by this.
const LATENCY_FACTOR: u32 = 5;
/// Jitter added to a delay, so that visits that start together spread out.
const JITTER_PERCENT_MAX: u32 = 20;
/// After a longer delay the visit is parked and its connection closed. The common Crawl-delay of 5 s, including jitter, keeps the
/// connection, which costs both sides less than a handshake for each request.
const PARK_AFTER: Duration = Duration::from_secs(6);

string_enum! {
    /// The scope of a limit.
    Scope, "scope" {
        /// Scheme, host and port.
        Authority = "authority",
        /// The registrable domain.
        Site = "site",
        /// A public suffix, such as github.io.
        PublicSuffix = "public_suffix",
        /// An address of an unknown owner: an IPv4 address or an IPv6 /56.
        Address = "address",
        /// A platform that serves many sites from few addresses.
        Platform = "platform",
        /// This machine.
        Node = "node",
        /// The delay that the site requested with Retry-After.
        RetryAfter = "retry_after",
    }
}

/// The limits of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeLimits {
    /// Maximum number of concurrent requests.
    pub in_flight_max: u32,
    /// Minimum time from one request to the next; for an authority, from the end of the previous one.
    pub gap: Duration,
    /// Requests per day, if there is a budget.
    pub requests_per_day_max: Option<u32>,
}

impl Scope {
    /// The default limits; operators may only tighten them.
    pub const fn limits(self) -> ScopeLimits {
        match self {
            // Enough to request the whole path table twice: in a planned visit, and in one that is started by hand.
            Self::Authority => limits(1, DELAY_DEFAULT, Some(40)),
            // The budget of three hosts.
            Self::Site => limits(2, Duration::from_secs(1), Some(120)),
            Self::PublicSuffix => limits(4, Duration::from_millis(500), None),
            // Enough for a shared host with a thousand sites per day.
            Self::Address => limits(1, Duration::from_millis(500), Some(20_000)),
            // The initial gap; `PlatformRate` adjusts it.
            Self::Platform => limits(20, Duration::from_millis(500), None),
            Self::Node | Self::RetryAfter => limits(u32::MAX, Duration::ZERO, None),
        }
    }

    /// Requests of the daily budget that visits leave to messages to webhooks: a quarter. Anybody can cause visits, by submissions and links.
    pub fn requests_kept(self) -> u32 {
        self.limits().requests_per_day_max.unwrap_or_default() / 4
    }

    /// Whether the scope also limits requests into the operator's own networks.
    const fn limits_own_networks(self) -> bool {
        matches!(self, Self::Authority | Self::RetryAfter)
    }
}

const fn limits(in_flight_max: u32, gap: Duration, requests_per_day_max: Option<u32>) -> ScopeLimits {
    ScopeLimits { in_flight_max, gap, requests_per_day_max }
}

/// Kind of network that an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// A public network: every rule applies.
    Global,
    /// The operator's own, named by `--allow-addresses`.
    Own,
}

impl Network {
    /// The network of an address with this verdict. `None` if nothing may be sent to it.
    pub const fn of(verdict: AddressVerdict) -> Option<Self> {
        match verdict {
            AddressVerdict::Global => Some(Self::Global),
            AddressVerdict::Own(_) => Some(Self::Own),
            AddressVerdict::Refused(_) => None,
        }
    }
}

string_enum! {
    /// The reason for the length of a gap.
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
    /// The wait, including jitter.
    pub wait: Duration,
    /// The bound that determined the gap.
    pub reason: GapReason,
}

/// Inputs of the gap between requests to an authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthorityPace {
    /// `--delay`.
    pub configured: Duration,
    /// Crawl-delay of the current robots.txt, clamped by [`crate::robots`].
    pub crawl_delay: Option<Duration>,
    /// Time from the last request to the end of its response.
    pub last_latency: Option<Duration>,
    /// The network of the address.
    pub network: Network,
}

impl AuthorityPace {
    /// The gap after the last response. `seed` determines the jitter; use another counter for each request.
    /// In the operator's own networks there is neither floor nor jitter.
    pub fn gap(&self, seed: Seed) -> Gap {
        let requested = self.crawl_delay.map(|wait| (wait, GapReason::CrawlDelay));
        let polite = match self.network {
            Network::Own => None,
            Network::Global => {
                let slow = self.last_latency.unwrap_or_default().saturating_mul(LATENCY_FACTOR);
                Some([(DELAY_FLOOR, GapReason::Floor), (slow, GapReason::Latency)])
            }
        };
        let reasons = requested.into_iter().chain(polite.into_iter().flatten());
        // If delays are equal, the first one is the reason.
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
    pub scope: Scope,
    /// No request before this.
    pub next_ok_at: Option<DateTime<Utc>>,
    /// Requests in flight.
    pub in_flight: u32,
    /// Requests already sent on `day`.
    pub requests_today: u32,
    /// The day that is counted, in days since 1970-01-01.
    pub day: i32,
    /// Requests of the budget that this request may not use ([`Scope::requests_kept`]).
    pub kept: u32,
}

impl ScopeState {
    /// A scope without any requests.
    pub const fn idle(scope: Scope) -> Self {
        Self { scope, next_ok_at: None, in_flight: 0, requests_today: 0, day: 0, kept: 0 }
    }

    fn is_full(&self) -> bool {
        self.in_flight >= self.scope.limits().in_flight_max
    }

    fn is_over_budget(&self, now: DateTime<Utc>) -> bool {
        let limits = self.scope.limits();
        // A day in the future means that the clock was set back after counting.
        let sent = if self.day >= day_of(now) { self.requests_today } else { 0 };
        limits.requests_per_day_max.is_some_and(|budget| sent.saturating_add(self.kept) >= budget)
    }
}

/// Whether the next request may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    Go,
    /// Send it after a delay that is short enough to keep the connection open.
    Wait {
        until: DateTime<Utc>,
        /// The scope that decides.
        scope: Scope,
    },
    /// After a longer delay: close the connection and park the visit.
    Park {
        until: DateTime<Utc>,
        /// The scope that decides.
        scope: Scope,
    },
    /// Send it after another request of this scope has ended.
    Busy {
        scope: Scope,
    },
    /// The budget is used up; send it on the next day.
    OverBudget {
        scope: Scope,
        /// When the next day begins.
        until: DateTime<Utc>,
    },
}

/// Decides when the next request may be sent. All of `scopes` limit this request.
pub fn next_request_at(scopes: &[ScopeState], network: Network, now: DateTime<Utc>) -> Pace {
    let limiting =
        || scopes.iter().filter(|state| network == Network::Global || state.scope.limits_own_networks());
    if network == Network::Global
        && let Some(spent) = limiting().find(|state| state.is_over_budget(now))
    {
        return Pace::OverBudget { scope: spent.scope, until: next_day(now) };
    }
    let latest =
        limiting().filter_map(|state| Some((state.next_ok_at?, state.scope))).max_by_key(|(at, _)| *at);
    match latest {
        Some((at, scope)) if until(now, at) > PARK_AFTER => Pace::Park { until: at, scope },
        Some((at, scope)) if at > now => Pace::Wait { until: at, scope },
        _ => {
            limiting().find(|state| state.is_full()).map_or(Pace::Go, |full| Pace::Busy { scope: full.scope })
        }
    }
}

/// Days since 1970-01-01, as budgets are counted.
pub fn day_of(now: DateTime<Utc>) -> i32 {
    i32::try_from(now.timestamp().div_euclid(86_400)).unwrap_or(i32::MAX)
}

/// The beginning of the next day.
pub fn next_day(now: DateTime<Utc>) -> DateTime<Utc> {
    let midnight = now.date_naive().and_time(chrono::NaiveTime::MIN).and_utc();
    later(midnight, DAY)
}
