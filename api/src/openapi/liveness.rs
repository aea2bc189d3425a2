//! Schema of the daily checks of a host.

use utoipa::ToSchema;

/// Whether the host of an endpoint resolves and completes a TLS handshake, by daily checks that send no request. This tells nothing about
/// the service behind the host, and does not change its rank.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes answers::liveness::Liveness")]
pub(crate) struct Liveness {
    host: String,
    /// Whether the name resolved in the last check; null if the name servers gave no answer.
    resolves: Option<bool>,
    /// Whether the TLS handshake was completed in the last check; null if the host was not contacted.
    tls: Option<bool>,
    /// `completed`, `name_unknown`, `connect_failed`, `tls_failed`, `address_refused`, `robots_denied`, `not_contacted` or `unknown`.
    outcome: String,
    checked_at: chrono::DateTime<chrono::Utc>,
    /// Number of last days of which the checks are counted.
    days: u32,
    /// Checks of these days, at most one a day. A check in which the host was not contacted although its name exists does not count.
    checks: u32,
    /// How many of the checks succeeded.
    succeeded: u32,
    /// Lower bound of the 95 % confidence interval (Wilson) of the share that succeeds; null without checks.
    uptime_lower_bound: Option<f64>,
}
