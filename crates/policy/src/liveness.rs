//! Daily checks of hosts that endpoints name: what a check found, and in how many of the last days it succeeded.
//!
//! A check resolves the name and completes one TLS handshake. It sends no request, so it tells nothing about the service behind the host.

use chrono::{DateTime, Utc};
use manifest::string_enum;

use crate::delay::day_of;

/// Number of days, including today, whose checks are counted.
pub const DAYS_COUNTED: u32 = 30;
/// Maximum number of hosts of one registrable domain that are checked. Names below a domain cost its owner nothing, and the
/// manifest of another site may name any number of them.
pub const HOSTS_OF_SITE_MAX: u32 = 10;
/// How many of them only documents of others may name. The site names the others.
pub const HOSTS_NAMED_BY_OTHERS_MAX: u32 = 3;
/// One bit for each counted day; bit 0 is the last day.
const DAYS_MASK: u32 = (1 << DAYS_COUNTED) - 1;
/// Quantile of the normal distribution for a two-sided interval of 95 %.
const Z: f64 = 1.959_963_985;

string_enum! {
    /// What the last check of a host found. The slugs are stored and shown, so they never change their meaning.
    HostCheckOutcome, "outcome of a check" {
        /// The name resolved and the TLS handshake was completed.
        Completed = "completed",
        /// The name does not exist or has no addresses.
        NameUnknown = "name_unknown",
        /// The host accepted no connection in time.
        ConnectFailed = "connect_failed",
        /// The TLS handshake failed, or the certificate is not valid for the name.
        TlsFailed = "tls_failed",
        /// The name resolves to an address that is not public. It was not contacted.
        AddressRefused = "address_refused",
        /// The robots.txt of the host does not permit agentdex to visit it, or could not be read. It was not contacted.
        RobotsDenied = "robots_denied",
        /// The name resolved, but the host was not contacted: no visit has read its robots.txt, or a limit of requests applies.
        NotContacted = "not_contacted",
        /// The name servers gave no answer, or this crawler was busy.
        Unknown = "unknown",
    }
}

impl HostCheckOutcome {
    /// Whether the check succeeded. `None` if it does not count, because the host was not contacted.
    pub const fn succeeded(self) -> Option<bool> {
        match self {
            Self::Completed => Some(true),
            Self::NameUnknown | Self::ConnectFailed | Self::TlsFailed => Some(false),
            Self::AddressRefused | Self::RobotsDenied | Self::NotContacted | Self::Unknown => None,
        }
    }

    /// Whether the name resolved; `None` if unknown.
    pub const fn resolves(self) -> Option<bool> {
        match self {
            Self::NameUnknown => Some(false),
            Self::Unknown => None,
            _ => Some(true),
        }
    }

    /// Whether the TLS handshake was completed; `None` if it was not tried.
    pub const fn completes_tls(self) -> Option<bool> {
        match self {
            Self::Completed => Some(true),
            Self::ConnectFailed | Self::TlsFailed => Some(false),
            _ => None,
        }
    }
}

/// The checks of a host in the last [`DAYS_COUNTED`] days that count: one bit for each day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostCheckHistory {
    /// The day of bit 0, in days since 1970-01-01 (UTC).
    pub day: i32,
    /// The days with a check.
    pub checked: u32,
    /// The days with a check that succeeded.
    pub succeeded: u32,
}

impl HostCheckHistory {
    /// The history with a check at `at`. A second check on a day replaces the first. A clock that runs backwards counts as the last day.
    #[must_use]
    pub fn with(self, succeeded: bool, at: DateTime<Utc>) -> Self {
        let aged = self.until(at);
        let success = u32::from(succeeded);
        Self { checked: aged.checked | 1, succeeded: aged.succeeded & !1 | success, ..aged }
    }

    /// The checks that count at `at`.
    pub fn uptime(self, at: DateTime<Utc>) -> Uptime {
        let aged = self.until(at);
        Uptime { checks: aged.checked.count_ones(), succeeded: (aged.checked & aged.succeeded).count_ones() }
    }

    /// The history with the day of `at` as bit 0.
    fn until(self, at: DateTime<Utc>) -> Self {
        let day = day_of(at).max(self.day);
        let days = u32::try_from(day.saturating_sub(self.day)).unwrap_or(u32::MAX);
        let age = |bits: u32| bits.checked_shl(days).unwrap_or_default() & DAYS_MASK;
        Self { day, checked: age(self.checked), succeeded: age(self.succeeded) }
    }
}

/// A share of checks, with its denominator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uptime {
    pub checks: u32,
    pub succeeded: u32,
}

impl Uptime {
    /// Lower bound of the 95 % confidence interval of the share of successful checks (Wilson 1927), rounded down to a thousandth. `None`
    /// without checks.
    pub fn lower_bound(self) -> Option<f64> {
        if self.checks == 0 {
            return None;
        }
        let count = f64::from(self.checks);
        let share = f64::from(self.succeeded.min(self.checks)) / count;
        let square = Z * Z;
        let centre = share + square / (2.0 * count);
        let margin = Z * (share * (1.0 - share) / count + square / (4.0 * count * count)).sqrt();
        let bound = ((centre - margin) / (1.0 + square / count)).clamp(0.0, 1.0);
        Some((bound * 1_000.0).floor() / 1_000.0)
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn on(day: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(20_000 + day) + TimeDelta::hours(5)
    }

    #[test]
    fn counts_one_check_a_day_for_30_days() {
        let mut history = HostCheckHistory::default();
        for day in 0..40 {
            history = history.with(day % 10 != 0, on(day));
            history = history.with(day % 10 != 0, on(day));
        }
        assert_eq!(history.uptime(on(39)), Uptime { checks: 30, succeeded: 27 });
        assert_eq!(
            history.uptime(on(49)),
            Uptime { checks: 20, succeeded: 18 },
            "checks leave after 30 days"
        );
        assert_eq!(history.uptime(on(69)), Uptime { checks: 0, succeeded: 0 });
        assert_eq!(history.uptime(on(100_000)), Uptime { checks: 0, succeeded: 0 });
        assert_eq!(history.uptime(on(0)).checks, 30, "a clock that runs backwards");
    }

    #[test]
    fn a_second_check_on_a_day_replaces_the_first() {
        let history = HostCheckHistory::default().with(true, on(0)).with(false, on(0));
        assert_eq!(history.uptime(on(0)), Uptime { checks: 1, succeeded: 0 });
    }

    #[test]
    fn lower_bounds_are_those_of_wilson() {
        let bound = |succeeded, checks| Uptime { checks, succeeded }.lower_bound();
        assert_eq!(bound(0, 0), None);
        assert_eq!(bound(0, 30), Some(0.0));
        // Newcombe 1998, table I: 81 of 263 has the interval 0.2553 to 0.3662, and 15 of 148 0.0624 to 0.1605
        assert_eq!(bound(81, 263), Some(0.255));
        assert_eq!(bound(15, 148), Some(0.062));
        assert_eq!(bound(1, 1), Some(0.206));
        assert_eq!(bound(28, 30), Some(0.786));
        assert_eq!(bound(30, 30), Some(0.886));
    }

    #[test]
    fn only_checks_that_contacted_the_host_or_found_no_name_count() {
        for outcome in HostCheckOutcome::ALL {
            let is_counted = outcome.resolves() == Some(false) || outcome.completes_tls().is_some();
            assert_eq!(outcome.succeeded().is_some(), is_counted, "{outcome}");
        }
    }
}
