//! Defines the outcome of a fetch, the end of a visit, and the status of a site or a manifest.
//!
//! The slugs are stored in the database, shown to site owners and used as labels of metrics, so they never change their
//! meaning; a new reason is a new variant.

use http::HeaderMap;
use manifest::string_enum;

/// Headers that mark a challenge of a bot wall, as documented by Cloudflare and AWS WAF. A challenge is never solved; it
/// counts as a denial.
const BOT_WALLS: [(&str, &[&str]); 2] =
    [("cf-mitigated", &["challenge"]), ("x-amzn-waf-action", &["challenge", "captcha"])];

/// Denials (401, 403, 451, and bot walls with any status) after which a visit ends.
pub(crate) const BLOCKS_MAX: u32 = 3;

string_enum! {
    /// The outcome of one fetch.
    FetchOutcome, "fetch outcome" {
        /// A manifest was read.
        Found = "found",
        /// 304: the stored copy is current.
        NotModified = "not_modified",
        /// Not requested, because the stored copy is fresh (RFC 9111 §4.2).
        Fresh = "fresh",
        /// 404.
        NotFound = "not_found",
        /// 410.
        Gone = "gone",
        /// 401, 403, 451, or a bot wall: the site denies access.
        Blocked = "blocked",
        /// 429 or 503: the site asks to wait.
        RateLimited = "rate_limited",
        /// Any other 5xx.
        ServerError = "server_error",
        /// Any other 4xx.
        ClientError = "client_error",
        /// 200 with an HTML page in place of a manifest: a soft 404.
        Html = "html",
        /// Read, but not a manifest of any kind.
        NotAManifest = "not_a_manifest",
        /// The body exceeded its cap, on the wire or decoded.
        TooLarge = "too_large",
        /// A redirect to another site, which becomes a seed.
        RedirectedAway = "redirected_away",
        /// A redirect that is not followed: to http, an IP address, another port, another scheme, or one too many.
        RedirectRefused = "redirect_refused",
        /// A redirect to a URL that was already requested.
        RedirectLoop = "redirect_loop",
        /// robots.txt forbids this path, or its server refuses to show it (RFC 9309 §2.2.2).
        RobotsDenied = "robots_denied",
        /// robots.txt could not be read, which forbids everything (RFC 9309 §2.3.1.4).
        RobotsUnreachable = "robots_unreachable",
        /// The name could not be resolved.
        DnsFailed = "dns_failed",
        /// No connection to any address.
        ConnectFailed = "connect_failed",
        /// The handshake failed or the certificate is not valid for the name.
        TlsFailed = "tls_failed",
        /// A phase took longer than its limit.
        Timeout = "timeout",
        /// The name resolves to an address that is not global and not allowed.
        AddressRefused = "address_refused",
        /// Not HTTP, HTTP beyond the limits, or a truncated connection.
        ProtocolError = "protocol_error",
        /// The encoding of the body is refused: nested, unknown, broken, or a decompression bomb.
        BadEncoding = "bad_encoding",
        /// The document crashed or stalled a reader; it is skipped until it or the reader changes.
        Quarantined = "quarantined",
        /// The budget of the authority, the site or the address is used up for today.
        OverBudget = "over_budget",
        /// The visit ended before this path was requested.
        NotReached = "not_reached",
    }
}

impl FetchOutcome {
    /// The outcome by status. `None` for 200, 304 and redirects, where the outcome depends on the body or the headers.
    pub const fn of_status(status: u16) -> Option<Self> {
        match status {
            401 | 403 | 451 => Some(Self::Blocked),
            404 => Some(Self::NotFound),
            410 => Some(Self::Gone),
            429 | 503 => Some(Self::RateLimited),
            400..=499 => Some(Self::ClientError),
            500..=599 => Some(Self::ServerError),
            200 | 301..=304 | 307 | 308 => None,
            201..=299 => Some(Self::NotAManifest),
            _ => Some(Self::ProtocolError),
        }
    }

    /// The outcome by status and headers. A bot wall may use any status, so it is recognised by its headers.
    pub fn of_response(status: u16, headers: &HeaderMap) -> Option<Self> {
        if bot_wall_header(headers).is_some() { Some(Self::Blocked) } else { Self::of_status(status) }
    }

    /// The outcome in a few words, for lists and tables.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Found => "manifest read",
            Self::NotModified => "unchanged",
            Self::Fresh => "still fresh",
            Self::NotFound => "not there",
            Self::Gone => "gone",
            Self::Blocked => "blocked",
            Self::RateLimited => "asked for a delay",
            Self::ServerError => "server error",
            Self::ClientError => "refused",
            Self::Html => "a web page",
            Self::NotAManifest => "not a manifest",
            Self::TooLarge => "too large",
            Self::RedirectedAway => "another site",
            Self::RedirectRefused => "redirect refused",
            Self::RedirectLoop => "redirect loop",
            Self::RobotsDenied => "robots.txt forbids",
            Self::RobotsUnreachable => "robots.txt unreadable",
            Self::DnsFailed => "name not resolved",
            Self::ConnectFailed => "no connection",
            Self::TlsFailed => "TLS failed",
            Self::Timeout => "timed out",
            Self::AddressRefused => "address refused",
            Self::ProtocolError => "broken HTTP",
            Self::BadEncoding => "bad encoding",
            Self::Quarantined => "quarantined",
            Self::OverBudget => "budget used up",
            Self::NotReached => "not reached",
        }
    }

    /// This number of outcomes as text: `1 manifest read`, `34 web pages`.
    pub fn counted(self, count: u64) -> String {
        let (one, many) = match self {
            Self::Found => (self.label(), "manifests read"),
            Self::Html => ("web page", "web pages"),
            Self::NotAManifest => (self.label(), "not manifests"),
            Self::ServerError => (self.label(), "server errors"),
            Self::RedirectedAway => ("redirect to another site", "redirects to other sites"),
            Self::RedirectRefused => (self.label(), "redirects refused"),
            Self::RedirectLoop => (self.label(), "redirect loops"),
            Self::RobotsDenied => ("forbidden by robots.txt", "forbidden by robots.txt"),
            Self::RobotsUnreachable => ("with an unreadable robots.txt", "with an unreadable robots.txt"),
            Self::DnsFailed => (self.label(), "names not resolved"),
            Self::ConnectFailed => ("without a connection", "without a connection"),
            Self::TlsFailed => ("with failed TLS", "with failed TLS"),
            Self::AddressRefused => (self.label(), "addresses refused"),
            Self::ProtocolError => ("with broken HTTP", "with broken HTTP"),
            Self::BadEncoding => ("with a bad encoding", "with a bad encoding"),
            Self::OverBudget => ("beyond the day's budget", "beyond the day's budget"),
            same => (same.label(), same.label()),
        };
        format!("{count} {}", if count == 1 { one } else { many })
    }

    /// Whether a request was sent, or at least a connection was attempted.
    pub const fn is_requested(self) -> bool {
        !matches!(
            self,
            Self::Fresh
                | Self::RobotsDenied
                | Self::RobotsUnreachable
                | Self::DnsFailed
                | Self::AddressRefused
                | Self::OverBudget
                | Self::NotReached
        )
    }

    /// Whether the request received an HTTP response.
    pub const fn is_response(self) -> bool {
        matches!(
            self,
            Self::Found
                | Self::NotModified
                | Self::NotFound
                | Self::Gone
                | Self::Blocked
                | Self::RateLimited
                | Self::ServerError
                | Self::ClientError
                | Self::Html
                | Self::NotAManifest
                | Self::TooLarge
                | Self::RedirectedAway
                | Self::RedirectRefused
                | Self::RedirectLoop
                | Self::BadEncoding
                | Self::Quarantined
        )
    }

    /// Whether the connection failed.
    pub const fn is_transport_error(self) -> bool {
        matches!(
            self,
            Self::DnsFailed | Self::ConnectFailed | Self::TlsFailed | Self::Timeout | Self::ProtocolError
        )
    }

    /// Whether there was no document for a possibly temporary reason: a failure of the server or of the connection, a denial, or a document
    /// that is too large.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::RateLimited | Self::ServerError | Self::Blocked | Self::TooLarge)
            || self.is_transport_error()
    }

    /// Whether the resource is known to exist and to be a manifest.
    pub const fn is_present(self) -> bool {
        matches!(self, Self::Found | Self::NotModified | Self::Fresh)
    }

    /// Whether the response means that there is no manifest at this path now.
    pub const fn is_absent(self) -> bool {
        matches!(self, Self::NotFound | Self::Gone | Self::ClientError | Self::Html | Self::NotAManifest)
    }
}

/// The header that marks a response as a bot wall, if there is one.
pub fn bot_wall_header(headers: &HeaderMap) -> Option<&'static str> {
    let found = BOT_WALLS.iter().find(|(name, values)| {
        let matches = |value: &http::HeaderValue| {
            let value = value.as_bytes().trim_ascii();
            values.iter().any(|wall| value.eq_ignore_ascii_case(wall.as_bytes()))
        };
        headers.get_all(*name).iter().any(matches)
    });
    found.map(|(name, _)| *name)
}

string_enum! {
    /// Why a visit stopped.
    VisitEnd, "visit end" {
        /// All planned paths were fetched.
        Completed = "completed",
        /// All known resources were fresh; nothing was requested.
        NothingNew = "nothing_new",
        /// The name does not exist (NXDOMAIN or no address records).
        DnsDead = "dns_dead",
        /// The name servers failed or did not answer.
        DnsFailed = "dns_failed",
        /// No connection to any address of the name.
        Unreachable = "unreachable",
        /// The handshake failed or the certificate is not valid.
        TlsFailed = "tls_failed",
        /// robots.txt forbids every planned path, or access to it is denied.
        RobotsDenied = "robots_denied",
        /// robots.txt could not be read.
        RobotsUnreachable = "robots_unreachable",
        /// 429 or 503: the site requests a delay.
        RateLimited = "rate_limited",
        /// Three denials or bot walls.
        Blocked = "blocked",
        /// Two server errors.
        ServerErrors = "server_errors",
        /// Two transport errors in a row.
        TransportErrors = "transport_errors",
        /// The host answers every path with a page.
        CatchAll = "catch_all",
        /// The visit used up its wall time.
        OutOfTime = "out_of_time",
        /// A budget of requests is used up for today.
        OverBudget = "over_budget",
        /// Waiting for a long Crawl-delay; resumed at the next path.
        Parked = "parked",
        /// The crawler was stopped; resumed at the next path.
        Interrupted = "interrupted",
        /// The site owner opted out or the operator suspended the site, before or during the visit.
        OptedOut = "opted_out",
        /// Another worker holds the lease.
        LeaseLost = "lease_lost",
        /// The name resolves to addresses that are refused.
        AddressRefused = "address_refused",
    }
}

impl VisitEnd {
    /// The end in a few words that can follow a number of visits.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::NothingNew => "with nothing new",
            Self::DnsDead => "with an unknown name",
            Self::DnsFailed => "with a name that was not resolved",
            Self::Unreachable => "unreachable",
            Self::TlsFailed => "with failed TLS",
            Self::RobotsDenied => "forbidden by robots.txt",
            Self::RobotsUnreachable => "with an unreadable robots.txt",
            Self::RateLimited => "asked for a delay",
            Self::Blocked => "denied access",
            Self::ServerErrors => "with server errors",
            Self::TransportErrors => "with failed connections",
            Self::CatchAll => "with a page at every path",
            Self::OutOfTime => "out of time",
            Self::OverBudget => "beyond the day's budget",
            Self::Parked => "parked",
            Self::Interrupted => "stopped",
            Self::OptedOut => "blocked or opted out",
            Self::LeaseLost => "taken over",
            Self::AddressRefused => "with a refused address",
        }
    }

    /// A description of the end, as a part of a sentence.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Completed => "all planned paths were requested",
            Self::NothingNew => "all known documents are fresh, so nothing was requested",
            Self::DnsDead => "the name does not exist",
            Self::DnsFailed => "the name servers failed",
            Self::Unreachable => "no connection to any address",
            Self::TlsFailed => "the TLS handshake failed or the certificate is not valid",
            Self::RobotsDenied => "robots.txt forbids all planned paths",
            Self::RobotsUnreachable => "robots.txt could not be read, so nothing may be requested",
            Self::RateLimited => "the site asked for a delay",
            Self::Blocked => "the site denied several requests",
            Self::ServerErrors => "the server failed twice",
            Self::TransportErrors => "the connection failed twice in a row",
            Self::CatchAll => "the host answers every path with a page",
            Self::OutOfTime => "the visit used up its time",
            Self::OverBudget => "the day's budget of requests is used up",
            Self::Parked => "the visit waits for the site's delay and continues at the next path",
            Self::Interrupted => "the crawler was stopped; the visit continues at the next path",
            Self::OptedOut => "the operator blocked or suspended it, or its owner opted out",
            Self::LeaseLost => "another worker took the site over",
            Self::AddressRefused => "the name resolves to addresses that are refused",
        }
    }

    /// Whether the site could not be reached or failed to respond, so that its manifests remain unknown. A denial is a
    /// response, not a failure.
    pub const fn is_failure(self) -> bool {
        matches!(
            self,
            Self::DnsDead
                | Self::DnsFailed
                | Self::Unreachable
                | Self::TlsFailed
                | Self::RobotsUnreachable
                | Self::RateLimited
                | Self::ServerErrors
                | Self::TransportErrors
                | Self::OutOfTime
                | Self::AddressRefused
        )
    }
}

string_enum! {
    /// The status of a site, a manifest or a capability.
    Status, "status" {
        /// Known, never visited (sites only).
        Pending = "pending",
        /// Seen at the last visit.
        Fresh = "fresh",
        /// Not confirmed within the expected time.
        Stale = "stale",
        /// The last visits could not reach it.
        Unreachable = "unreachable",
        /// No longer there.
        Gone = "gone",
        /// The site forbids reading it, or withdrew it with a 410.
        Denied = "denied",
        /// The site owner opted out.
        OptedOut = "opted_out",
        /// The operator suspended it (sites only).
        Suspended = "suspended",
        /// Present, but not readable as a manifest.
        Invalid = "invalid",
        /// The host answers every path with a page, so its pages carry no information.
        CatchAll = "catch_all",
    }
}

impl Status {
    /// The status in words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Pending => "no result yet",
            Self::Fresh => "fresh",
            Self::Stale => "not confirmed recently",
            Self::Unreachable => "unreachable",
            Self::Gone => "gone",
            Self::Denied => "reading is not allowed",
            Self::OptedOut => "blocked or opted out",
            Self::Suspended => "suspended",
            Self::Invalid => "not readable",
            Self::CatchAll => "answers every path with a page",
        }
    }
}

string_enum! {
    /// The kind of a robots.txt verdict.
    RobotsKind, "robots kind" {
        /// A file, whose rules apply.
        Rules = "rules",
        /// No file (404, 410 and other 4xx): everything is allowed.
        NoFile = "no_file",
        /// Access is denied (401, 403, 451), or there are too many redirects: nothing is allowed.
        Denied = "denied",
        /// The file could not be read (5xx, 429, network): nothing is allowed (RFC 9309 §2.3.1.4).
        Unreachable = "unreachable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_words_and_differ() {
        for labels in [
            FetchOutcome::ALL.iter().map(|outcome| outcome.label()).collect::<Vec<_>>(),
            VisitEnd::ALL.iter().map(|end| end.label()).collect(),
        ] {
            assert!(!labels.iter().any(|label| label.contains('_')), "{labels:?}");
            let distinct: std::collections::BTreeSet<_> = labels.iter().collect();
            assert_eq!(distinct.len(), labels.len(), "{labels:?}");
        }
    }

    #[test]
    fn counts_of_outcomes_have_the_plural() {
        for (outcome, one, many) in [
            (FetchOutcome::Found, "1 manifest read", "2 manifests read"),
            (FetchOutcome::Html, "1 web page", "2 web pages"),
            (FetchOutcome::NotFound, "1 not there", "2 not there"),
            (FetchOutcome::DnsFailed, "1 name not resolved", "2 names not resolved"),
        ] {
            assert_eq!((outcome.counted(1).as_str(), outcome.counted(2).as_str()), (one, many));
        }
        for outcome in FetchOutcome::ALL {
            assert!(!outcome.is_response() || outcome.is_requested(), "{outcome}");
        }
        assert!(!FetchOutcome::DnsFailed.is_requested() && FetchOutcome::ConnectFailed.is_requested());
    }

    #[test]
    fn slugs_survive_parsing_and_json() {
        for outcome in FetchOutcome::ALL {
            assert_eq!(outcome.as_str().parse(), Ok(*outcome));
        }
        for end in VisitEnd::ALL {
            let json = serde_json::to_string(end).unwrap();
            assert_eq!(json, format!("\"{end}\""));
            assert_eq!(serde_json::from_str::<VisitEnd>(&json).unwrap(), *end);
        }
        assert!("".parse::<Status>().is_err());
        assert!(
            "Rules"
                .parse::<RobotsKind>()
                .unwrap_err()
                .to_string()
                .contains("rules, no_file, denied, unreachable")
        );
    }

    #[test]
    fn visits_without_response_are_failures_and_denials_are_not() {
        assert!(VisitEnd::RateLimited.is_failure() && VisitEnd::DnsDead.is_failure());
        assert!(!VisitEnd::Completed.is_failure() && !VisitEnd::RobotsDenied.is_failure());
        assert!(!VisitEnd::Blocked.is_failure());
    }

    #[test]
    fn maps_statuses_to_outcomes() {
        let table = [
            (200, None),
            (204, Some(FetchOutcome::NotAManifest)),
            (301, None),
            (304, None),
            (401, Some(FetchOutcome::Blocked)),
            (403, Some(FetchOutcome::Blocked)),
            (404, Some(FetchOutcome::NotFound)),
            (406, Some(FetchOutcome::ClientError)),
            (410, Some(FetchOutcome::Gone)),
            (429, Some(FetchOutcome::RateLimited)),
            (451, Some(FetchOutcome::Blocked)),
            (500, Some(FetchOutcome::ServerError)),
            (503, Some(FetchOutcome::RateLimited)),
            (999, Some(FetchOutcome::ProtocolError)),
        ];
        for (status, outcome) in table {
            assert_eq!(FetchOutcome::of_status(status), outcome, "{status}");
        }
    }

    #[test]
    fn a_bot_wall_is_a_denial_with_any_status() {
        let of = |status, name: &'static str, value: &'static str| {
            let headers = HeaderMap::from_iter([(
                http::HeaderName::from_static(name),
                http::HeaderValue::from_static(value),
            )]);
            FetchOutcome::of_response(status, &headers)
        };
        assert_eq!(of(200, "cf-mitigated", "challenge"), Some(FetchOutcome::Blocked));
        assert_eq!(of(503, "cf-mitigated", "challenge"), Some(FetchOutcome::Blocked));
        assert_eq!(of(202, "x-amzn-waf-action", "challenge"), Some(FetchOutcome::Blocked));
        assert_eq!(of(200, "x-amzn-waf-action", "count"), None);
        assert_eq!(of(404, "server", "cloudflare"), Some(FetchOutcome::NotFound));
    }

    #[test]
    fn no_outcome_is_both_a_response_and_a_transport_error() {
        for outcome in FetchOutcome::ALL {
            assert!(!(outcome.is_response() && outcome.is_transport_error()), "{outcome}");
            assert!(!(outcome.is_present() && outcome.is_absent()), "{outcome}");
        }
    }
}
