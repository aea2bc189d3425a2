//! The verdict on a robots.txt, from the response to the request for it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use http::HeaderMap;

use super::decision::{RobotsCause, RobotsDecision};
use super::file::{CrawlDelay, PATHS_WORK_MAX, RobotsFile};
use crate::outcome::{BLOCKS_MAX, FetchOutcome, RobotsKind, VisitEnd, bot_wall_header};
use crate::redirect::RedirectRefusal;
use crate::retry::Ladder;
use crate::time::{DAY, HOUR, later};

/// Maximum bytes of a file that an async task may parse itself. For any content, parsing takes at most a few megabytes and milliseconds. A
/// few percent of real files are longer.
pub const SHORT_BYTES_MAX: usize = 16 * 1024;
/// Maximum work of comparisons that an async task may do itself: about a millisecond.
pub(super) const SHORT_WORK_MAX: u64 = 1024 * 1024;
/// Minimum time for which a copy is used, even with a shorter max-age, so that a visit fetches robots.txt only once.
const COPY_AGE_MIN: Duration = HOUR;
/// Maximum time for which a copy is used (RFC 9309 §2.4).
const COPY_AGE_MAX: Duration = DAY;
/// Maximum time for which a copy is used by the first request after the one for robots.txt, if the delay of the host exceeds the validity
/// of the copy. The longest Crawl-delay takes 29 hours including jitter; the rest is for a crawler that resumes late.
const COPY_AGE_DELAYED_MAX: Duration = Duration::from_hours(48);

/// The result of a request for robots.txt, after redirects.
#[derive(Debug, Clone, Copy)]
pub enum RobotsResponse<'a> {
    /// A final response, neither a redirect nor a 304.
    Answered {
        status: u16,
        /// The decoded body, which may be truncated at its cap. `None` if it was not read.
        body: Option<&'a [u8]>,
    },
    /// A bot wall, recognised by its headers.
    Wall,
    /// A redirect that is not followed.
    Redirect(RedirectRefusal),
    /// A redirect to another site, which is not followed either.
    OtherSite,
    /// No response.
    Failed(FetchOutcome),
}

impl<'a> RobotsResponse<'a> {
    /// Classifies a final response by its status and headers. `body` is `None` if it was not read.
    pub fn answered(status: u16, headers: &HeaderMap, body: Option<&'a [u8]>) -> Self {
        if bot_wall_header(headers).is_some() { Self::Wall } else { Self::Answered { status, body } }
    }
}

/// The verdict on the robots.txt of one scheme, host and port; never shared with another.
#[derive(Debug)]
pub enum RobotsVerdict {
    /// A file, whose rules apply.
    Rules(Box<RobotsFile>),
    /// No file: everything is allowed.
    NoFile {
        /// The 4xx status.
        status: u16,
    },
    /// Access denied: nothing is allowed.
    Denied(RobotsCause),
    /// Not readable: nothing is allowed.
    Unreachable(RobotsCause),
}

impl RobotsVerdict {
    /// The verdict for the crawler with this product token.
    pub fn of(answer: RobotsResponse<'_>, product_token: &str) -> Self {
        match answer {
            RobotsResponse::Answered { status, body } => Self::of_status(status, body, product_token),
            RobotsResponse::Redirect(RedirectRefusal::TooManyHops) => {
                Self::Denied(RobotsCause::TooManyRedirects)
            }
            RobotsResponse::Redirect(RedirectRefusal::Loop) => Self::Denied(RobotsCause::RedirectLoop),
            RobotsResponse::Redirect(_) => Self::Denied(RobotsCause::RedirectRefused),
            RobotsResponse::OtherSite => Self::Unreachable(RobotsCause::RedirectsToOtherSite),
            RobotsResponse::Wall => Self::Unreachable(RobotsCause::BotWall),
            RobotsResponse::Failed(outcome) => Self::Unreachable(cause_of(outcome)),
        }
    }

    /// The verdict after this number of bot walls in a row, including this response. From the third on, a bot wall counts as a denial.
    /// Verdicts with another cause do not change.
    #[must_use]
    pub fn after_bot_walls(self, walls_in_row: u32) -> Self {
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
            200..=299 => Self::of_body(body, RobotsCause::BodyNotRead, product_token),
            401 => Self::Denied(RobotsCause::Unauthorized),
            403 => Self::Denied(RobotsCause::Forbidden),
            451 => Self::Denied(RobotsCause::Legal),
            429 | 503 => Self::Unreachable(RobotsCause::RateLimited),
            400..=499 => Self::NoFile { status },
            500..=599 => Self::Unreachable(RobotsCause::ServerError),
            _ => Self::Unreachable(RobotsCause::UnexpectedStatus),
        }
    }

    /// The rules of a body. Unreachable if there is no body, or if it is not text.
    fn of_body(body: Option<&[u8]>, cause: RobotsCause, product_token: &str) -> Self {
        let file = body.and_then(|body| RobotsFile::parse_text(body, product_token));
        file.map_or(Self::Unreachable(cause), |file| Self::Rules(Box::new(file)))
    }

    /// The verdict of a stored copy. An incomplete record is treated as unreachable.
    pub fn restore(stored: StoredVerdict<'_>, product_token: &str) -> Self {
        let cause = stored.cause.unwrap_or(RobotsCause::ProtocolError);
        match stored.kind {
            RobotsKind::Rules => Self::of_body(stored.body, cause, product_token),
            RobotsKind::NoFile => Self::NoFile { status: stored.status.unwrap_or(404) },
            RobotsKind::Denied => Self::Denied(cause),
            RobotsKind::Unreachable => Self::Unreachable(cause),
        }
    }

    /// The kind of the verdict, as it is stored.
    pub const fn kind(&self) -> RobotsKind {
        match self {
            Self::Rules(_) => RobotsKind::Rules,
            Self::NoFile { .. } => RobotsKind::NoFile,
            Self::Denied(_) => RobotsKind::Denied,
            Self::Unreachable(_) => RobotsKind::Unreachable,
        }
    }

    /// Why it is denied or unreachable; `None` for the other kinds.
    pub const fn cause(&self) -> Option<RobotsCause> {
        match self {
            Self::Denied(cause) | Self::Unreachable(cause) => Some(*cause),
            Self::Rules(_) | Self::NoFile { .. } => None,
        }
    }

    /// The file, if there is one.
    pub const fn file(&self) -> Option<&RobotsFile> {
        match self {
            Self::Rules(file) => Some(file),
            _ => None,
        }
    }

    /// The delay between two requests that the file requests.
    pub const fn crawl_delay(&self) -> Option<CrawlDelay> {
        match self {
            Self::Rules(file) => file.crawl_delay(),
            _ => None,
        }
    }

    /// Decides on the path and query of a request to the authority to which this verdict belongs.
    pub fn decide(&self, path_and_query: &str) -> RobotsDecision {
        match self {
            Self::Rules(file) => file.decide(path_and_query),
            Self::NoFile { .. } => RobotsDecision::NoFile,
            Self::Denied(cause) => RobotsDecision::Denied(*cause),
            Self::Unreachable(cause) => RobotsDecision::Unreachable(*cause),
        }
    }

    /// Decides on several paths, with [`PATHS_WORK_MAX`] for all of them together. Paths for which no work is left are disallowed.
    pub fn decide_all(&self, paths: &[String]) -> Vec<RobotsDecision> {
        let mut work_left = PATHS_WORK_MAX;
        let decide = |path: &String| match self {
            Self::Rules(file) => file.decide_within(path, &mut work_left),
            verdict => verdict.decide(path),
        };
        paths.iter().map(decide).collect()
    }

    /// Whether decisions on these paths take at most `SHORT_WORK_MAX`.
    pub fn is_short_work(&self, paths: &[String]) -> bool {
        let work = |file: &RobotsFile| {
            paths.iter().fold(0, |sum: u64, path| sum.saturating_add(file.comparison_work(path)))
        };
        self.file().is_none_or(|file| work(file) <= SHORT_WORK_MAX)
    }

    /// When the verdict expires and robots.txt is requested again. `max_age` is the rest of the freshness lifetime; `failures_in_row`
    /// counts unreachable responses, including this one.
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

    /// How a visit ends when nothing may be fetched.
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

/// A verdict as it is stored between visits.
#[derive(Debug, Clone, Copy)]
pub struct StoredVerdict<'a> {
    pub kind: RobotsKind,
    /// The cause, for denied and unreachable.
    pub cause: Option<RobotsCause>,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    pub body: Option<&'a [u8]>,
}

/// How a stored copy may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyUse {
    /// It is used without a new request.
    Current,
    /// It must be fetched again before anything else; until then it can only forbid.
    DenyOnly,
}

impl CopyUse {
    /// How a copy with this expiry may be used at `now`.
    pub fn at(expires_at: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        if now < expires_at { Self::Current } else { Self::DenyOnly }
    }

    /// How a copy that was fetched and expires at these times may be used at `now`, if the request for it was the last one to its host. The
    /// next request is possible from `delay_ends_at` on, when the delay is over and the visit that sends it has begun. If the copy is then
    /// valid for less than an hour, it is used for that one request. Otherwise robots.txt would be the only file that is ever requested
    /// from the host. RFC 9309 §2.4 says that a copy should not be used for more than 24 hours, and allows exceptions for such reasons.
    pub fn after_delay(
        (fetched_at, expires_at): (DateTime<Utc>, DateTime<Utc>),
        delay_ends_at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Self {
        let is_outlasted = later(delay_ends_at, COPY_AGE_MIN) >= expires_at;
        let at_next_request = Self::at(later(fetched_at, COPY_AGE_DELAYED_MAX), now);
        if is_outlasted && at_next_request == Self::Current {
            Self::Current
        } else {
            Self::at(expires_at, now)
        }
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
