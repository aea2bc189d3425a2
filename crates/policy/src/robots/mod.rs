//! What robots.txt permits (RFC 9309).
//!
//! A verdict is one of four: rules, no file, denied, unreachable. A failure never becomes permission: 5xx, 429, errors of
//! the network and files behind too many redirects forbid everything, for as long as they last. 401, 403 and 451 are
//! taken as a refusal, although §2.3.1.3 would permit going on. A bot wall hides the file: it counts as unreachable, and
//! the third in a row as a refusal. A copy is used for at most a day (§2.4).
//!
//! What was not read is never permission. A file is what came with any 2xx (§2.3.1.1) and was read: rules are made from
//! bytes, and there is no way to make them without. 204 and 205 say that there are no bytes to come (RFC 9110 §15.3.5-6),
//! which is a file without rules. 206 and 226 answer requests for a part or a difference, which are never sent: what they
//! carry is not the file, whatever it says.

mod file;
mod line;
mod pattern;
mod reader;
mod second;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors_tests;

use std::time::Duration;

use chrono::{DateTime, Utc};
use http::HeaderMap;
use manifest::closed;

pub use self::file::{
    CRAWL_DELAY_MAX, CrawlDelay, FileDecision, PRODUCT_TOKEN, RobotsFile, RobotsNote, RobotsNoteKind,
    RuleLine,
};
pub use self::line::BODY_BYTES_MAX;
use crate::outcome::{BLOCKS_MAX, FetchOutcome, RobotsKind, VisitEnd, wall_of};
use crate::redirect::RedirectRefusal;
use crate::retry::Ladder;
use crate::time::{DAY, HOUR, later};

/// Bytes of a file, or of its rules, up to which a task may parse it or compare paths with it between its other work: that
/// takes a few megabytes and milliseconds, whatever the file says. Real files are smaller but for a few in a hundred.
pub const SHORT_BYTES_MAX: usize = 16 * 1024;
/// Shortest time a copy is used, whatever its max-age says: a visit should not ask twice.
pub const COPY_AGE_MIN: Duration = HOUR;
/// Longest time a copy is used (§2.4).
pub const COPY_AGE_MAX: Duration = DAY;

closed! {
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
        /// A redirect that leads in a circle.
        RedirectLoop = "redirect_loop",
        /// A redirect that is not followed: to http, an IP address, another port, another host's other file.
        RedirectRefused = "redirect_refused",
        /// 429 or 503.
        RateLimited = "rate_limited",
        /// Any other 5xx.
        ServerError = "server_error",
        /// A status that cannot be made sense of.
        UnexpectedStatus = "unexpected_status",
        /// The name could not be resolved.
        DnsFailed = "dns_failed",
        /// No connection.
        ConnectFailed = "connect_failed",
        /// The handshake failed, or the certificate is not valid.
        TlsFailed = "tls_failed",
        /// Too slow.
        Timeout = "timeout",
        /// The name resolves to an address that is refused.
        AddressRefused = "address_refused",
        /// Not HTTP, or cut short.
        ProtocolError = "protocol_error",
        /// Encoded in a way that is refused.
        BadEncoding = "bad_encoding",
        /// No request could be made within the budget.
        OverBudget = "over_budget",
        /// A redirect to another site, which is never asked on this one's behalf.
        RedirectsToOtherSite = "redirects_to_other_site",
        /// A bot wall answered, with whatever status.
        BotWall = "bot_wall",
        /// 206 or 226: not the whole file.
        PartialAnswer = "partial_answer",
        /// A 2xx whose body was not read.
        BodyNotRead = "body_not_read",
    }
}

/// What came of asking for robots.txt, after redirects.
#[derive(Debug, Clone, Copy)]
pub enum RobotsAnswer<'a> {
    /// A final answer that is no redirect and no 304.
    Answered {
        /// The HTTP status.
        status: u16,
        /// The decoded body, as far as it was read; a body that was cut at the cap is fine. `None`: it was not read.
        body: Option<&'a [u8]>,
    },
    /// A bot wall, which announces itself in the headers.
    Wall,
    /// A redirect that is not followed.
    Redirect(RedirectRefusal),
    /// A redirect to another site, which is not followed either.
    OtherSite,
    /// No answer.
    Failed(FetchOutcome),
}

impl<'a> RobotsAnswer<'a> {
    /// A final answer, by its status, its headers, and its body if that was read.
    pub fn answered(status: u16, headers: &HeaderMap, body: Option<&'a [u8]>) -> Self {
        if wall_of(headers).is_some() { Self::Wall } else { Self::Answered { status, body } }
    }
}

/// What robots.txt of one scheme, host and port came to; never shared with another.
#[derive(Debug, Clone)]
pub enum RobotsVerdict {
    /// A file; its rules decide.
    Rules(RobotsFile),
    /// No file: everything is allowed.
    NoFile {
        /// The 4xx.
        status: u16,
    },
    /// Refused to us: nothing is allowed.
    Denied(RobotsCause),
    /// Could not be read: nothing is allowed.
    Unreachable(RobotsCause),
}

/// What robots.txt means for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RobotsDecision {
    /// Allowed, by this rule, or because no rule matches.
    Allowed(Option<RuleLine>),
    /// Allowed, since there is no file.
    NoFile,
    /// Disallowed by this rule.
    Disallowed(RuleLine),
    /// Two readings of the file disagree; the stricter counts.
    Doubted,
    /// Disallowed, since the file is refused to us.
    Denied(RobotsCause),
    /// Disallowed, since the file could not be read.
    Unreachable(RobotsCause),
}

impl RobotsDecision {
    /// Whether the request may be sent.
    pub const fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_) | Self::NoFile)
    }

    /// The outcome of a path that is not asked for this reason; `None` when it may be asked.
    pub const fn outcome(&self) -> Option<FetchOutcome> {
        match self {
            Self::Allowed(_) | Self::NoFile => None,
            Self::Disallowed(_) | Self::Doubted | Self::Denied(_) => Some(FetchOutcome::RobotsDenied),
            Self::Unreachable(_) => Some(FetchOutcome::RobotsUnreachable),
        }
    }
}

impl std::fmt::Display for RobotsDecision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Allowed(Some(rule)) => write!(f, "allowed by {rule}"),
            Self::Allowed(None) => f.write_str("allowed, no rule matches"),
            Self::NoFile => f.write_str("allowed, there is no robots.txt"),
            Self::Disallowed(rule) => write!(f, "disallowed by {rule}"),
            Self::Doubted => f.write_str("disallowed, since two readings of robots.txt disagree"),
            Self::Denied(cause) => write!(f, "disallowed, since robots.txt is refused to us ({cause})"),
            Self::Unreachable(cause) => write!(f, "disallowed, since robots.txt could not be read ({cause})"),
        }
    }
}

impl RobotsVerdict {
    /// Decides from what came of the request, for the crawler with this product token.
    pub fn of(answer: RobotsAnswer<'_>, product_token: &str) -> Self {
        match answer {
            RobotsAnswer::Answered { status, body } => Self::of_status(status, body, product_token),
            RobotsAnswer::Redirect(RedirectRefusal::TooManyHops) => {
                Self::Denied(RobotsCause::TooManyRedirects)
            }
            RobotsAnswer::Redirect(RedirectRefusal::Loop) => Self::Denied(RobotsCause::RedirectLoop),
            RobotsAnswer::Redirect(_) => Self::Denied(RobotsCause::RedirectRefused),
            RobotsAnswer::OtherSite => Self::Unreachable(RobotsCause::RedirectsToOtherSite),
            RobotsAnswer::Wall => Self::Unreachable(RobotsCause::BotWall),
            RobotsAnswer::Failed(outcome) => Self::Unreachable(cause_of(outcome)),
        }
    }

    /// The verdict after this many walls in a row, this answer included. The third counts as a denial, as for any other path;
    /// verdicts with another cause stay as they are.
    #[must_use]
    pub fn after_walls(self, walls_in_row: u32) -> Self {
        match self {
            Self::Unreachable(RobotsCause::BotWall) if walls_in_row >= BLOCKS_MAX => {
                Self::Denied(RobotsCause::BotWall)
            }
            verdict => verdict,
        }
    }

    fn of_status(status: u16, body: Option<&[u8]>, product_token: &str) -> Self {
        match status {
            206 | 226 => Self::Unreachable(RobotsCause::PartialAnswer),
            200..=299 => body.map_or(Self::Unreachable(RobotsCause::BodyNotRead), |body| {
                Self::Rules(RobotsFile::parse(body, product_token))
            }),
            401 => Self::Denied(RobotsCause::Unauthorized),
            403 => Self::Denied(RobotsCause::Forbidden),
            451 => Self::Denied(RobotsCause::Legal),
            429 | 503 => Self::Unreachable(RobotsCause::RateLimited),
            400..=499 => Self::NoFile { status },
            500..=599 => Self::Unreachable(RobotsCause::ServerError),
            _ => Self::Unreachable(RobotsCause::UnexpectedStatus),
        }
    }

    /// The verdict of a stored copy. A record that lacks what its kind needs is treated as unreachable.
    pub fn restore(stored: StoredVerdict<'_>, product_token: &str) -> Self {
        let cause = stored.cause.unwrap_or(RobotsCause::ProtocolError);
        match (stored.kind, stored.body) {
            (RobotsKind::Rules, Some(body)) => Self::Rules(RobotsFile::parse(body, product_token)),
            (RobotsKind::NoFile, _) => Self::NoFile { status: stored.status.unwrap_or(404) },
            (RobotsKind::Denied, _) => Self::Denied(cause),
            (RobotsKind::Unreachable | RobotsKind::Rules, _) => Self::Unreachable(cause),
        }
    }

    /// Which of the four.
    pub const fn kind(&self) -> RobotsKind {
        match self {
            Self::Rules(_) => RobotsKind::Rules,
            Self::NoFile { .. } => RobotsKind::NoFile,
            Self::Denied(_) => RobotsKind::Denied,
            Self::Unreachable(_) => RobotsKind::Unreachable,
        }
    }

    /// Why it is denied or unreachable.
    pub const fn cause(&self) -> Option<RobotsCause> {
        match self {
            Self::Denied(cause) | Self::Unreachable(cause) => Some(*cause),
            Self::Rules(_) | Self::NoFile { .. } => None,
        }
    }

    /// The file, where there is one.
    pub const fn file(&self) -> Option<&RobotsFile> {
        match self {
            Self::Rules(file) => Some(file),
            _ => None,
        }
    }

    /// The wait that the file asks for between two requests.
    pub const fn crawl_delay(&self) -> Option<CrawlDelay> {
        match self {
            Self::Rules(file) => file.crawl_delay(),
            _ => None,
        }
    }

    /// Decides on the path and query of a request to the authority this verdict belongs to.
    pub fn decide(&self, path_and_query: &str) -> RobotsDecision {
        match self {
            Self::Rules(file) => match file.decide(path_and_query) {
                FileDecision::Allowed(rule) => RobotsDecision::Allowed(rule),
                FileDecision::Disallowed(rule) => RobotsDecision::Disallowed(rule),
                FileDecision::Doubted => RobotsDecision::Doubted,
            },
            Self::NoFile { .. } => RobotsDecision::NoFile,
            Self::Denied(cause) => RobotsDecision::Denied(*cause),
            Self::Unreachable(cause) => RobotsDecision::Unreachable(*cause),
        }
    }

    /// Until when the verdict is used without asking again. `max_age` is what is left of the publisher's freshness
    /// lifetime, `failures_in_row` counts unreachable answers with this one.
    pub fn expires_at(
        &self,
        fetched_at: DateTime<Utc>,
        max_age: Option<Duration>,
        failures_in_row: u32,
    ) -> DateTime<Utc> {
        let age = match self {
            Self::Unreachable(_) => Ladder::ROBOTS.wait(failures_in_row),
            Self::Denied(_) => COPY_AGE_MAX,
            Self::Rules(_) | Self::NoFile { .. } => {
                max_age.unwrap_or(COPY_AGE_MAX).clamp(COPY_AGE_MIN, COPY_AGE_MAX)
            }
        };
        later(fetched_at, age)
    }

    /// How a visit ends when nothing may be asked.
    pub const fn visit_end(&self) -> VisitEnd {
        match self.cause() {
            Some(RobotsCause::RateLimited) => VisitEnd::RateLimited,
            Some(RobotsCause::DnsFailed) => VisitEnd::DnsFailed,
            Some(RobotsCause::ConnectFailed) => VisitEnd::Unreachable,
            Some(RobotsCause::TlsFailed) => VisitEnd::TlsFailed,
            Some(RobotsCause::AddressRefused) => VisitEnd::AddressRefused,
            Some(RobotsCause::OverBudget) => VisitEnd::OverBudget,
            _ => match self {
                Self::Unreachable(_) => VisitEnd::RobotsUnreachable,
                _ => VisitEnd::RobotsDenied,
            },
        }
    }
}

/// What is kept of a verdict between visits.
#[derive(Debug, Clone, Copy)]
pub struct StoredVerdict<'a> {
    /// Which of the four.
    pub kind: RobotsKind,
    /// Why, for denied and unreachable.
    pub cause: Option<RobotsCause>,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// The file.
    pub body: Option<&'a [u8]>,
}

/// What a stored copy is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyUse {
    /// Decides without a request.
    Current,
    /// Has to be asked for again before anything else; until then it can only forbid.
    DenyOnly,
}

impl CopyUse {
    /// What a copy with this expiry is good for at `now`.
    pub fn at(expires_at: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        if now < expires_at { Self::Current } else { Self::DenyOnly }
    }
}

fn cause_of(outcome: FetchOutcome) -> RobotsCause {
    match outcome {
        FetchOutcome::DnsFailed => RobotsCause::DnsFailed,
        FetchOutcome::ConnectFailed => RobotsCause::ConnectFailed,
        FetchOutcome::TlsFailed => RobotsCause::TlsFailed,
        FetchOutcome::Timeout => RobotsCause::Timeout,
        FetchOutcome::AddressRefused => RobotsCause::AddressRefused,
        FetchOutcome::BadEncoding => RobotsCause::BadEncoding,
        FetchOutcome::OverBudget => RobotsCause::OverBudget,
        FetchOutcome::RateLimited => RobotsCause::RateLimited,
        FetchOutcome::ServerError => RobotsCause::ServerError,
        FetchOutcome::RedirectLoop => RobotsCause::RedirectLoop,
        FetchOutcome::RedirectRefused => RobotsCause::RedirectRefused,
        FetchOutcome::RedirectedAway => RobotsCause::RedirectsToOtherSite,
        FetchOutcome::Blocked => RobotsCause::BotWall,
        _ => RobotsCause::ProtocolError,
    }
}
