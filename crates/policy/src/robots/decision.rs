//! The decision on one request according to robots.txt, with its reason.

use std::borrow::Cow;
use std::fmt;

use manifest::string_enum;

use crate::outcome::FetchOutcome;

string_enum! {
    /// Why a verdict is `denied` or `unreachable`.
    RobotsCause, "robots cause" {
        /// 401.
        Unauthorized = "unauthorized",
        /// 403.
        Forbidden = "forbidden",
        /// 451.
        Legal = "legal",
        /// More than five redirects.
        TooManyRedirects = "too_many_redirects",
        /// A redirect to a URL that was already requested.
        RedirectLoop = "redirect_loop",
        /// A redirect that is not followed: to http, an IP address, another port, or a file of another host that is not its robots.txt.
        RedirectRefused = "redirect_refused",
        /// 429 or 503.
        RateLimited = "rate_limited",
        /// Any other 5xx.
        ServerError = "server_error",
        /// A status outside the classes of RFC 9110.
        UnexpectedStatus = "unexpected_status",
        /// The name could not be resolved.
        DnsFailed = "dns_failed",
        /// No connection.
        ConnectFailed = "connect_failed",
        /// The handshake failed, or the certificate is not valid.
        TlsFailed = "tls_failed",
        /// A phase took longer than its limit.
        Timeout = "timeout",
        /// The name resolves to an address that is refused.
        AddressRefused = "address_refused",
        /// Not HTTP, or truncated.
        ProtocolError = "protocol_error",
        /// A content encoding that is refused.
        BadEncoding = "bad_encoding",
        /// No request could be made within the budget.
        OverBudget = "over_budget",
        /// A redirect to another site, which is not followed.
        RedirectsToOtherSite = "redirects_to_other_site",
        /// A bot wall responded, with any status.
        BotWall = "bot_wall",
        /// 206 or 226: not the whole file.
        PartialAnswer = "partial_answer",
        /// A 2xx whose body was not read, or is compressed or binary.
        BodyNotRead = "body_not_read",
    }
}

impl RobotsCause {
    /// The cause in a few words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unauthorized => "it needs a login",
            Self::Forbidden => "access is denied",
            Self::Legal => "denied for legal reasons",
            Self::TooManyRedirects => "too many redirects",
            Self::RedirectLoop => "redirect loop",
            Self::RedirectRefused => "redirect refused",
            Self::RateLimited => "it asked for a delay",
            Self::ServerError => "server error",
            Self::UnexpectedStatus => "unexpected status",
            Self::DnsFailed => "name not resolved",
            Self::ConnectFailed => "no connection",
            Self::TlsFailed => "TLS failed",
            Self::Timeout => "timed out",
            Self::AddressRefused => "address refused",
            Self::ProtocolError => "broken HTTP",
            Self::BadEncoding => "bad encoding",
            Self::OverBudget => "the day's budget is used up",
            Self::RedirectsToOtherSite => "redirect to another site",
            Self::BotWall => "bot protection",
            Self::PartialAnswer => "not the whole file",
            Self::BodyNotRead => "its content could not be read",
        }
    }

    /// Whether no server was reached. Without a connection with a valid certificate, the result is not a statement of the site.
    pub const fn is_without_server(self) -> bool {
        matches!(self, Self::DnsFailed | Self::ConnectFailed | Self::TlsFailed | Self::AddressRefused)
    }

    /// The stored text of a redirect to another site: the slug and the host of the target.
    pub fn redirect_to(host: &str) -> String {
        format!("{} {host}", Self::RedirectsToOtherSite.as_str())
    }

    /// The cause of a stored text; `None` for the text of an earlier version.
    pub fn of_stored(stored: &str) -> Option<Self> {
        match Self::target(stored) {
            Some(_) => Some(Self::RedirectsToOtherSite),
            None => stored.parse().ok(),
        }
    }

    /// The host to which a robots.txt redirects, if the stored text names it.
    pub fn target(stored: &str) -> Option<&str> {
        stored.strip_prefix(Self::RedirectsToOtherSite.as_str())?.strip_prefix(' ')
    }

    /// A stored cause in words. The stored value is a slug, a slug with a host, or a text, which is returned unchanged.
    pub fn in_words(stored: &str) -> Cow<'_, str> {
        match (Self::of_stored(stored), Self::target(stored)) {
            (Some(cause), Some(host)) => Cow::Owned(format!("{}, {host}", cause.label())),
            (Some(cause), None) => Cow::Borrowed(cause.label()),
            (None, _) => Cow::Borrowed(stored),
        }
    }
}

/// The rule that determined a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleLine {
    /// Counted from 1.
    pub line: u32,
    /// The rule as written: `Disallow: /private`.
    pub text: String,
}

impl fmt::Display for RuleLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.text)
    }
}

/// The decision on one request according to robots.txt.
///
/// Records keep the text of a decision. Old records may contain a text that is no longer produced, such as "disallowed, since two readings
/// of robots.txt disagree".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RobotsDecision {
    /// Allowed by this rule, or because no rule matches.
    Allowed(Option<RuleLine>),
    /// Allowed: the site has no robots.txt.
    NoFile,
    /// Disallowed by this rule, or by the whole file if it could not be parsed.
    Disallowed(Option<RuleLine>),
    /// Disallowed: comparing the path with the rules would take too long.
    TooMuchWork,
    /// Disallowed: the server denies access to robots.txt.
    Denied(RobotsCause),
    /// Disallowed: robots.txt could not be read.
    Unreachable(RobotsCause),
}

impl RobotsDecision {
    /// Whether the request may be sent.
    pub const fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_) | Self::NoFile)
    }

    /// The outcome of a path that is not fetched for this reason; `None` when it may be fetched.
    pub const fn outcome(&self) -> Option<FetchOutcome> {
        match self {
            Self::Allowed(_) | Self::NoFile => None,
            Self::Disallowed(_) | Self::TooMuchWork | Self::Denied(_) => Some(FetchOutcome::RobotsDenied),
            Self::Unreachable(_) => Some(FetchOutcome::RobotsUnreachable),
        }
    }
}

impl fmt::Display for RobotsDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allowed(Some(rule)) => write!(f, "allowed by {rule}"),
            Self::Allowed(None) => f.write_str("allowed, no rule matches"),
            Self::NoFile => f.write_str("allowed, there is no robots.txt"),
            Self::Disallowed(Some(rule)) => write!(f, "disallowed by {rule}"),
            Self::Disallowed(None) => f.write_str("disallowed, since robots.txt cannot be parsed"),
            Self::TooMuchWork => f.write_str(
                "disallowed, since robots.txt has too many rules with wildcards to compare a path of this length with",
            ),
            Self::Denied(cause) => write!(f, "disallowed, since the server denies access to robots.txt ({cause})"),
            Self::Unreachable(cause) => write!(f, "disallowed, since robots.txt could not be read ({cause})"),
        }
    }
}
