//! Requests to a site outside a visit: a list of seeds, a page of a registry, a message to a webhook, a check of a host.
//!
//! They use the code of visits and follow the same rules: the site is leased, robots.txt is requested first, clocks are written before the
//! request, budgets, Crawl-delay, Retry-After and opt-outs apply, and robots.txt and clocks are saved. They do not count as a visit: a
//! parked visit to the site is resumed as planned.
//!
//! In a fleet, a worker sends them even if another worker owns the address. It reserves the time of each request at the address, which the
//! owner reads with its own clock ([`store::SlotClaim`]).

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use manifest::{Discovery, Host, ManifestUrl, SiteName};
use policy::liveness::HostCheckOutcome;
use policy::robots::RobotsCause;
use policy::{BodyKind, RobotsDecision, VisitEnd};
use store::{GroupSet, LeaseRequest, LeaseToken, LeasedSite, PathSlots, StoreError, WorkerId};

use super::context::{Interrupt, Stop, Tools};
use super::progress::Progress;
use super::requester::{Message, Requester, Robots};
use super::source_requests::SourceRequests;
use super::task::{NamedBy, Task};
use crate::clock;
use crate::config::Mode;
use crate::reading::Reader;
use crate::retry::retry_while_unavailable;
use crate::seeds::Reading;
use egress::{Cause, Failure, Reply, Session};

/// Delay before another attempt to lease a site that another worker holds.
const HELD_DELAY: Duration = Duration::from_secs(1);
const HELD: &str = "the site is being visited";
/// Minimum interval between two log lines about the wait of one request. A wait for a lease is checked each second.
const WAIT_LOG_INTERVAL: TimeDelta = TimeDelta::minutes(1);

/// How long a site is leased for one request. Writing the clock of the request renews the lease, and the lease is released at the end.
const LEASE_DURATION: Duration = Duration::from_mins(15);

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StandaloneError {
    #[error("the owner of {0} opted out, or the site is suspended")]
    OptedOut(SiteName),
    #[error("robots.txt of {host} does not allow it: {rule}")]
    Disallowed { host: Host, rule: String },
    /// Until robots.txt can be read, nothing else is requested.
    #[error("robots.txt of {host} could not be read: {cause}")]
    RobotsUnread { host: Host, cause: String },
    #[error("{host} may not be requested before {}: {reason}", until.format("%Y-%m-%d %H:%M:%S UTC"))]
    Waits { host: Host, until: DateTime<Utc>, reason: String },
    #[error(transparent)]
    Failed(Failure),
    #[error("the crawler was stopped")]
    Stopped,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What to do about a server that failed. A start requests it at once, unless the server asked for a delay.
pub(crate) const ASK_AGAIN: &str = "it is requested again at the next start or time of --schedule-seeds";
/// What to do about a robots.txt that could not be read.
const ASK_ROBOTS_AGAIN: &str =
    "it is requested again at the next start of a single pass, and by a daemon after an hour at the earliest";
/// What to do about a server that asked for a delay.
pub(crate) const ASK_LATER: &str = "start again after that time, or pass the list as a file";

impl StandaloneError {
    /// What the operator can do about a source of seeds that was not read.
    pub(crate) const fn advice(&self) -> &'static str {
        match self {
            Self::OptedOut(_) | Self::Disallowed { .. } => "pass the list as a file",
            Self::Waits { .. } => ASK_LATER,
            Self::RobotsUnread { .. } => ASK_ROBOTS_AGAIN,
            Self::Stopped | Self::Store(_) => ASK_AGAIN,
            Self::Failed(failure) => match failure.cause {
                Cause::NameUnknown => "check the URL for typing errors",
                Cause::NameServers => "check the name servers with `agentdex doctor --only dns`",
                Cause::Address => "if the address is yours, name its network with --allow-addresses",
                Cause::Tls => {
                    "check the URL and the certificate; --ca-file names the authority of a private network"
                }
                Cause::TooLarge | Cause::OtherSite => "pass the list as a file",
                Cause::Connect
                | Cause::Timeout
                | Cause::Busy
                | Cause::Late
                | Cause::Encoding
                | Cause::Protocol => ASK_AGAIN,
            },
        }
    }
}

/// Sends requests outside visits, to any number of sites.
pub(crate) struct StandaloneRequests {
    tools: Tools,
    worker: WorkerId,
    /// Maximum wait before one request.
    wait_max: Duration,
    stop: Stop,
    source: Option<SourceRequests>,
    started: HashMap<SiteName, SiteRequests>,
}

/// State that the next request to a site reuses: the connection and the progress.
struct SiteRequests {
    session: Session,
    progress: Progress,
}

/// The result of an attempt to send a request.
enum Attempt {
    Answered(Box<Reply>),
    Later {
        until: DateTime<Utc>,
        reason: String,
    },
    /// A visit or another worker holds the site.
    Held,
}

impl StandaloneRequests {
    pub(crate) fn new(tools: &Tools, worker: WorkerId, wait_max: Duration, stop: Stop) -> Self {
        Self { tools: tools.clone(), worker, wait_max, stop, source: None, started: HashMap::new() }
    }

    /// Requests for sources of seeds. A pass that an operator starts requests a robots.txt again that could not be read earlier. A daemon
    /// does not, because a supervisor may restart it all the time.
    pub(crate) fn for_sources(self, reading: Reading, mode: Mode) -> Self {
        let is_by_hand = reading == Reading::First && mode != Mode::Daemon;
        let robots_failures_before = is_by_hand.then(clock::now);
        Self { source: Some(SourceRequests { robots_failures_before }), ..self }
    }

    /// The reader that parses the responses.
    pub(crate) const fn reader(&self) -> &Reader {
        &self.tools.reader
    }

    /// Sends one request when it is permitted.
    pub(crate) async fn send(
        &mut self,
        url: &ManifestUrl,
        kind: BodyKind,
        message: Message<'_>,
    ) -> Result<Reply, StandaloneError> {
        let site = url.site();
        let wait_max = TimeDelta::from_std(self.wait_max).unwrap_or(TimeDelta::MAX);
        let mut logged_at = None;
        let began = clock::now();
        let mut wait_ends_at = began.checked_add_signed(wait_max).unwrap_or(DateTime::<Utc>::MAX_UTC);
        // Visits of this process begin before sources are read. The wait of a source for a visit to its host does not count.
        let held_until = self.source.is_some().then(|| began + LEASE_DURATION);
        loop {
            let now = clock::now();
            let (until, reason) = match Box::pin(self.attempt(&site, url, kind, message)).await? {
                Attempt::Answered(reply) => return Ok(*reply),
                Attempt::Later { until, reason } => (until, reason),
                Attempt::Held => {
                    let until = clock::now() + HELD_DELAY;
                    if held_until.is_some_and(|held_until| until <= held_until) {
                        wait_ends_at =
                            wait_ends_at.checked_add_signed(until - now).unwrap_or(DateTime::<Utc>::MAX_UTC);
                    }
                    (until, HELD.to_owned())
                }
            };
            if until > wait_ends_at {
                return Err(StandaloneError::Waits { host: url.host(), until, reason });
            }
            if is_line_due(&mut logged_at, clock::now()) {
                tracing::info!(%url, %until, reason, "a request waits");
            }
            self.sleep_until(until).await?;
        }
    }

    async fn sleep_until(&self, until: DateTime<Utc>) -> Result<(), StandaloneError> {
        tokio::select! {
            () = clock::sleep_until(until) => Ok(()),
            () = self.stop.soft.cancelled() => Err(StandaloneError::Stopped),
        }
    }

    async fn attempt(
        &mut self,
        site: &SiteName,
        url: &ManifestUrl,
        kind: BodyKind,
        message: Message<'_>,
    ) -> Result<Attempt, StandaloneError> {
        let Some(LeasedSite { token, site: state }) = self.lease(site).await? else {
            return Ok(Attempt::Held);
        };
        let (tools, stop) = (&self.tools, &self.stop);
        let SiteRequests { session, mut progress } =
            self.started.remove(site).unwrap_or_else(|| SiteRequests {
                session: tools.egress.session(site.clone()),
                progress: Progress::new(clock::now(), PathSlots::default()),
            });
        let leased = (token.clone(), &state);
        let requester = Requester::new(tools, stop, leased, session, &progress.traffic);
        let mut requester = requester.outside_visit().for_source(self.source);
        let attempt = request(&mut requester, &mut progress, url, kind, message).await;
        let released = release(tools, &token, requester, progress).await?;
        self.started.insert(site.clone(), released);
        attempt
    }

    /// Completes one TLS handshake with a host of a known site, if it is permitted now. Sends no request.
    ///
    /// # Errors
    ///
    /// If the site is being visited or opted out, if a limit of requests applies, or if the store fails.
    pub(crate) async fn handshake(&self, host: &Host) -> Result<HostCheckOutcome, StandaloneError> {
        let site = host.site();
        let waits = |(until, reason)| StandaloneError::Waits { host: host.clone(), until, reason };
        let Some(LeasedSite { token, site: state }) = self.lease(&site).await? else {
            return Err(waits((clock::now() + HELD_DELAY, HELD.to_owned())));
        };
        let (tools, stop) = (&self.tools, &self.stop);
        let mut progress = Progress::new(clock::now(), PathSlots::default());
        let leased = (token.clone(), &state);
        let session = tools.egress.session(site.clone());
        let mut requester = Requester::new(tools, stop, leased, session, &progress.traffic).outside_visit();
        let checked = requester.handshake(&mut progress, host).await;
        release(tools, &token, requester, progress).await?;
        checked.or_else(|interrupt| Err(waits(delayed_by(interrupt, &site)?)))
    }

    /// Leases a site for one request, independent of its planned visit. `None` while another worker holds it.
    async fn lease(&self, site: &SiteName) -> Result<Option<LeasedSite>, StandaloneError> {
        let store = &self.tools.store;
        let now = clock::now();
        retry_while_unavailable("add site", || store.site_add_unplanned(site, now)).await?;
        if !store.blocked_among(std::slice::from_ref(site)).await?.is_empty() {
            return Err(StandaloneError::OptedOut(site.clone()));
        }
        let request = LeaseRequest {
            worker: self.worker.clone(),
            sites_max: 1,
            duration: LEASE_DURATION,
            due_before: DateTime::<Utc>::MAX_UTC,
            only: Some(vec![site.clone()]),
            groups: GroupSet::all(),
        };
        Ok(retry_while_unavailable("lease site", || store.sites_lease(&request, now)).await?.pop())
    }
}

/// Whether a line about a wait is due: at its beginning, and after each [`WAIT_LOG_INTERVAL`].
fn is_line_due(logged_at: &mut Option<DateTime<Utc>>, now: DateTime<Utc>) -> bool {
    let is_due = logged_at.is_none_or(|at| now - at >= WAIT_LOG_INTERVAL);
    if is_due {
        *logged_at = Some(now);
    }
    is_due
}

/// Saves the clocks and the robots.txt files, and releases the lease. Returns what the next request to the site reuses.
async fn release(
    tools: &Tools,
    token: &LeaseToken,
    requester: Requester<'_>,
    mut progress: Progress,
) -> Result<SiteRequests, StoreError> {
    requester.save_clocks(&mut progress.traffic).await;
    let session = requester.into_session();
    // take the files out of the progress: they are in the store, where a visit may replace them before the next request
    let robots: Vec<_> =
        std::mem::take(&mut progress.traffic.robots).into_values().map(|record| *record).collect();
    match retry_while_unavailable("release lease", || tools.store.standalone_end(token, &robots)).await {
        // another worker holds the site now, so this robots.txt is not stored
        Ok(()) | Err(StoreError::LeaseLost { .. }) => Ok(SiteRequests { session, progress }),
        Err(error) => Err(error),
    }
}

/// The delay that an interrupt causes, with its reason.
fn delayed_by(interrupt: Interrupt, site: &SiteName) -> Result<(DateTime<Utc>, String), StandaloneError> {
    match interrupt {
        Interrupt::Park { until, reason } => Ok((until, reason)),
        Interrupt::End(VisitEnd::OptedOut) => Err(StandaloneError::OptedOut(site.clone())),
        Interrupt::End(_) => Err(StandaloneError::Stopped),
        Interrupt::LeaseLost | Interrupt::HandOver { .. } => {
            let reason = "another worker took over the site".to_owned();
            Ok((clock::now() + HELD_DELAY, reason))
        }
        Interrupt::Store(error) => Err(error.into()),
    }
}

/// Requests one URL, robots.txt first.
async fn request(
    requester: &mut Requester<'_>,
    progress: &mut Progress,
    url: &ManifestUrl,
    kind: BodyKind,
    message: Message<'_>,
) -> Result<Attempt, StandaloneError> {
    match request_allowed(requester, progress, url, kind, message).await {
        Ok(answer) => answer.map(|reply| Attempt::Answered(Box::new(reply))),
        Err(interrupt) => {
            let (until, reason) = delayed_by(interrupt, &url.site())?;
            Ok(Attempt::Later { until, reason })
        }
    }
}

async fn request_allowed(
    requester: &mut Requester<'_>,
    progress: &mut Progress,
    url: &ManifestUrl,
    kind: BodyKind,
    message: Message<'_>,
) -> Result<Result<Reply, StandaloneError>, Interrupt> {
    let host = url.host();
    // Somebody else may have caused the request, so a response is not evidence about the site.
    let task = Task { named_by: NamedBy::Others, ..Task::new(url.clone(), kind, Discovery::Listed) };
    progress.plan.current = Some(task);
    let Robots::Verdict(verdict) = requester.robots(progress, &host).await? else {
        let failure = Failure::new(Cause::NameUnknown, format!("the name {host} does not exist"));
        return Ok(Err(StandaloneError::Failed(failure)));
    };
    let decision = requester.decision(&verdict, url.path_and_query()).await?;
    if let RobotsDecision::Unreachable(cause) = decision {
        let cause = match (cause, requester.robots_status(progress, &host)) {
            (RobotsCause::RateLimited | RobotsCause::ServerError, Some(status)) => {
                format!("the server answered {status}")
            }
            (cause, _) => cause.label().to_owned(),
        };
        if let Some(until) = requester.delay_of_source(&host, clock::now()) {
            let reason = format!("{cause} for its robots.txt, and asked for a delay");
            return Ok(Err(StandaloneError::Waits { host, until, reason }));
        }
        return Ok(Err(StandaloneError::RobotsUnread { host, cause }));
    }
    if !decision.is_allowed() {
        return Ok(Err(StandaloneError::Disallowed { host, rule: decision.to_string() }));
    }
    let answer = requester.send(progress, url, kind, message).await?.answer;
    Ok(answer.map_err(StandaloneError::Failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_of_two_minutes_has_three_log_lines() {
        let mut logged_at = None;
        let times = (0..=120).map(|seconds| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds));
        let due: Vec<i64> =
            times.filter(|now| is_line_due(&mut logged_at, *now)).map(|now| now.timestamp()).collect();
        assert_eq!(due, [0, 60, 120]);
    }
}
