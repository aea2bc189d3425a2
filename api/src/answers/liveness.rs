//! Daily checks of the hosts of endpoints: what the last one found, and how many of the last 30 days succeeded.

use chrono::{DateTime, Utc};
use manifest::Host;
use policy::liveness::{DAYS_COUNTED, HostCheckOutcome};
use serde::Serialize;
use store::HostCheck;

use crate::clock;

/// Whether the host of an endpoint resolves and completes a TLS handshake, by daily checks that send no request. This tells nothing about
/// the service behind the host, and does not change its rank.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Liveness {
    host: Host,
    /// Whether the name resolved in the last check; null if the name servers gave no answer.
    resolves: Option<bool>,
    /// Whether the TLS handshake was completed in the last check; null if the host was not contacted.
    tls: Option<bool>,
    outcome: HostCheckOutcome,
    checked_at: DateTime<Utc>,
    /// Number of last days of which the checks are counted.
    days: u32,
    /// Checks of these days, at most one a day. A check in which the host was not contacted although its name exists does not count.
    checks: u32,
    /// How many of the checks succeeded.
    succeeded: u32,
    /// Lower bound of the 95 % confidence interval (Wilson) of the share that succeeds; null without checks.
    uptime_lower_bound: Option<f64>,
}

impl From<HostCheck> for Liveness {
    fn from(check: HostCheck) -> Self {
        let uptime = check.history.uptime(clock::now());
        Self {
            host: check.host,
            resolves: check.outcome.resolves(),
            tls: check.outcome.completes_tls(),
            outcome: check.outcome,
            checked_at: check.checked_at,
            days: DAYS_COUNTED,
            checks: uptime.checks,
            succeeded: uptime.succeeded,
            uptime_lower_bound: uptime.lower_bound(),
        }
    }
}

impl Liveness {
    /// The result in words, for pages.
    pub(crate) fn in_words(&self) -> String {
        let Self { host, checks, succeeded, .. } = self;
        let last = match self.outcome {
            HostCheckOutcome::Completed => None,
            HostCheckOutcome::NameUnknown => Some("the name did not resolve"),
            HostCheckOutcome::ConnectFailed => Some("the host accepted no connection"),
            HostCheckOutcome::TlsFailed => Some("the TLS handshake failed"),
            HostCheckOutcome::AddressRefused => {
                Some("the name resolved to an address that is not public, and was not contacted")
            }
            HostCheckOutcome::RobotsDenied => {
                Some("the host was not contacted, because its robots.txt does not permit it")
            }
            HostCheckOutcome::NotContacted => Some("the name resolved, and the host was not contacted"),
            HostCheckOutcome::Unknown => Some("the name servers gave no answer"),
        };
        let uptime = self.uptime_lower_bound.map(|bound| {
            let noun = if *checks == 1 { "check" } else { "checks" };
            format!(
                "resolved and completed TLS in {succeeded} of {checks} daily {noun}; at least {:.0} % with 95 % confidence",
                (bound * 100.0).floor()
            )
        });
        match (uptime, last) {
            (Some(uptime), None) => format!("{host} {uptime}."),
            (Some(uptime), Some(last)) => format!("{host} {uptime}. In the last check, {last}."),
            (None, last) => format!("{host}: {}.", last.unwrap_or("not checked in the last 30 days")),
        }
    }
}

#[cfg(test)]
mod tests {
    use policy::liveness::HostCheckHistory;

    use super::*;

    fn words(outcome: HostCheckOutcome, checked: u32, succeeded: u32) -> String {
        let now = clock::now();
        let history = HostCheckHistory { day: policy::delay::day_of(now), checked, succeeded };
        let host = Host::parse("api.shop.example").unwrap();
        Liveness::from(HostCheck { host, outcome, checked_at: now, history }).in_words()
    }

    #[test]
    fn the_uptime_has_its_denominator_and_its_lower_bound() {
        assert_eq!(
            words(HostCheckOutcome::Completed, (1 << 30) - 1, (1 << 30) - 1 - (3 << 20)),
            "api.shop.example resolved and completed TLS in 28 of 30 daily checks; at least 78 % with 95 % confidence."
        );
        assert_eq!(
            words(HostCheckOutcome::TlsFailed, 1, 0),
            "api.shop.example resolved and completed TLS in 0 of 1 daily check; at least 0 % with 95 % confidence. \
             In the last check, the TLS handshake failed."
        );
        assert_eq!(
            words(HostCheckOutcome::RobotsDenied, 0, 0),
            "api.shop.example: the host was not contacted, because its robots.txt does not permit it."
        );
    }
}
