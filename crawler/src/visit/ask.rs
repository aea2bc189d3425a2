//! One request under every rule: resolved and judged address, turn, written clock, opt-out; then what Retry-After says.
//!
//! The rules are those of the host that is asked, which is always one of the leased site: [`Session`] refuses any other.

use std::net::IpAddr;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderMap;
use manifest::{Host, ManifestUrl, SiteName};
use policy::delay::{Network, Sample, Scope};
use policy::groups::Choice;
use policy::{BodyKind, RetryAfter, VisitEnd};
use serde_json::Value;
use store::{MemberId, VisitProgress};
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::answer::outcome_of;
use super::prepare::OwnHosts;
use super::{Authority, Interrupt, Scope as VisitScope, Visit};
use crate::egress::{Cause, Failure, Head, Reply, Standing, Timings};
use crate::events::Event;
use crate::groups::{InUse, Tenure};
use crate::pace::{Asked, AuthorityClock, Cleared, Leave, Target, Turn};
use crate::{clock, metrics};

/// Below this a visit without delays would spend more time on writing down what it did than on doing it.
const PROGRESS_EVERY: Duration = Duration::from_millis(50);

/// What a request carries.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Message<'a> {
    /// A GET, with the validators of the copy that is kept.
    Get(&'a HeaderMap),
    /// A POST of JSON, to a registry that the operator named.
    Post(&'a Value),
}

/// How long a visit waits when this crawler had no room for a body.
const BUSY_PAUSE: TimeDelta = TimeDelta::minutes(1);

/// What a request brought, and when.
pub(super) struct Exchange {
    pub(super) answer: Result<Reply, Failure>,
    pub(super) at: DateTime<Utc>,
    pub(super) took: Duration,
}

impl Visit<'_> {
    /// Sends one GET when its turn has come.
    pub(super) async fn request(
        &mut self,
        url: &ManifestUrl,
        body: BodyKind,
        conditions: &HeaderMap,
    ) -> Result<Exchange, Interrupt> {
        self.send(url, body, Message::Get(conditions)).await
    }

    /// Sends one request when its turn has come.
    pub(super) async fn send(
        &mut self,
        url: &ManifestUrl,
        body: BodyKind,
        message: Message<'_>,
    ) -> Result<Exchange, Interrupt> {
        let host = url.host();
        let started = Instant::now();
        // all but the wait for a turn has its state apart from the visit's, of which thousands wait
        if !self.authorities.contains_key(&host)
            && let Err(failure) = Box::pin(self.meet(&host)).await?
        {
            // silent name servers use up a visit's time like a silent host
            self.progress.active += started.elapsed();
            return Ok(Exchange { answer: Err(failure), at: clock::now(), took: started.elapsed() });
        }
        let mut turn = self.take_turn(&host).await?;
        let in_use = self.enter(&host)?;
        Box::pin(self.clear(&host, &mut turn, in_use.as_ref().map(|in_use| in_use.member))).await?;
        // the database may have been away for long
        if self.has_lost_site() {
            return Err(Interrupt::Lost);
        }
        let (at, sent) = (clock::now(), Instant::now());
        self.progress.requests += 1;
        let (events, site) = (&self.tools.events, &self.token.site);
        let conditional = matches!(message, Message::Get(conditions) if !conditions.is_empty());
        events.tell(Event::Request { site, url, conditional });
        let span = fetch_span(url);
        let session = &self.session;
        let answer = match message {
            Message::Get(conditions) => {
                Box::pin(session.fetch(url, body, conditions)).instrument(span.clone()).await
            }
            Message::Post(json) => Box::pin(session.post_json(url, json)).instrument(span.clone()).await,
        };
        if let Ok(reply) = &answer {
            span.record("http.response.status_code", reply.head.status.as_u16());
        }
        let took = sent.elapsed();
        events.tell(answer_event(site, url, &answer, took));
        metrics::answered(took);
        self.note(&host, &answer, took);
        drop((turn, in_use));
        if let Some(head) = head_of(&answer) {
            Box::pin(self.heed_retry_after(&host, head)).await?;
        }
        match &answer {
            Err(failure) if failure.cause == Cause::Busy => {
                Err(Interrupt::Park { until: clock::now() + BUSY_PAUSE, reason: failure.reason.clone() })
            }
            _ => Ok(Exchange { answer, at, took }),
        }
    }

    /// Resolves a name, once a visit, and looks up its clocks.
    async fn meet(&mut self, host: &Host) -> Result<Result<(), Failure>, Interrupt> {
        let moved = self.progress.addresses_of(host, clock::now());
        let adopted = moved.map_or(Ok(()), |addresses| self.session.adopt(host, addresses));
        let resolved = match adopted {
            Ok(()) => self.session.resolve(host).await,
            Err(failure) => Err(failure),
        };
        let resolved = match resolved {
            Ok(resolved) => resolved,
            Err(failure) => return Ok(Err(failure)),
        };
        self.progress.phases.dns_ms = self.progress.phases.dns_ms.saturating_add(millis(resolved.took));
        let network = match resolved.standing {
            Standing::Global => Network::Global,
            Standing::Own => Network::Own,
        };
        let (addresses, tenure) = match network {
            Network::Global => self.settle_on(host, resolved.addresses)?,
            Network::Own => (resolved.addresses, None),
        };
        let target = Target { addresses, network, crawl_delay: None };
        Box::pin(self.tools.pace.learn(&target)).await?;
        let known = self.site.hosts.iter().find(|state| state.host == *host);
        let clock = known.map_or_else(
            || AuthorityClock::new(host.clone(), None, 0, 0),
            |state| {
                AuthorityClock::new(host.clone(), state.next_ok_at, state.requests_today, state.requests_day)
            },
        );
        let copy = self.verdict_before(host).await;
        self.authorities.insert(host.clone(), Authority { clock, target, tenure, copy });
        Ok(Ok(()))
    }

    /// Chooses at which of its addresses a host is spoken to: one of ours, or it is for another worker.
    fn settle_on(
        &mut self,
        host: &Host,
        addresses: Vec<IpAddr>,
    ) -> Result<(Vec<IpAddr>, Option<Tenure>), Interrupt> {
        let groups = &self.tools.groups;
        if groups.is_sole() {
            return Ok((addresses, None));
        }
        let chosen = policy::groups::choose(&addresses, |group| groups.tenure(group).is_some());
        let Some(Choice { addresses, group }) = chosen else { return Ok((addresses, None)) };
        let Some(tenure) = groups.tenure(group) else { return Err(Interrupt::HandOver { group }) };
        self.session.narrow(host, &addresses);
        self.token.address_group = Some(group);
        self.progress.first_group.get_or_insert(group);
        Ok((addresses, Some(tenure)))
    }

    /// Begins a request at an address of ours; it may have become another worker's while this visit waited.
    fn enter(&self, host: &Host) -> Result<Option<InUse>, Interrupt> {
        let Some(tenure) = self.authorities.get(host).and_then(|authority| authority.tenure) else {
            return Ok(None);
        };
        let in_use = self.tools.groups.enter(tenure);
        in_use.map(Some).ok_or(Interrupt::HandOver { group: tenure.group })
    }

    async fn take_turn(&mut self, host: &Host) -> Result<Turn, Interrupt> {
        loop {
            if self.has_lost_site() {
                return Err(Interrupt::Lost);
            }
            if self.stop.soft.is_cancelled() {
                return Err(Interrupt::End(VisitEnd::Interrupted));
            }
            let crawl_delay = self.crawl_delay(host);
            let Some(authority) = self.authorities.get_mut(host) else { return Err(Interrupt::Lost) };
            authority.target.crawl_delay = crawl_delay;
            let asked = tokio::select! {
                asked = self.tools.pace.ask(&authority.target, &mut authority.clock, &self.site_clock) => asked,
                () = self.stop.soft.cancelled() => continue,
                () = self.stop.lost.cancelled() => continue,
            };
            match asked? {
                Asked::Go(turn) => return Ok(turn),
                Asked::Park { until, scope } => {
                    metrics::visit_parked(Some(scope));
                    return Err(Interrupt::Park { until, reason: park_reason(scope) });
                }
                Asked::OverBudget { scope, until } => {
                    metrics::visit_parked(Some(scope));
                    let reason = format!("the day's budget of the {scope} is used up");
                    return Err(Interrupt::Park { until, reason });
                }
                Asked::Crowded { until, scope } => {
                    metrics::visit_parked(Some(scope));
                    let reason = format!("many sites wait for the same {scope}");
                    return Err(Interrupt::Park { until, reason });
                }
                Asked::Wait { until, scope } => {
                    let began = Instant::now();
                    self.sleep_until(until).await;
                    metrics::waited(scope, began.elapsed());
                }
            }
        }
    }

    /// The Crawl-delay of a host. Before its robots.txt was looked at in this visit, as where the robots.txt of another host
    /// leads to it, what it said the last time holds.
    fn crawl_delay(&self, host: &Host) -> Option<Duration> {
        let before = || self.authorities.get(host)?.copy.as_ref();
        self.verdicts.get(host).or_else(before)?.crawl_delay().map(|delay| delay.wait)
    }

    /// Sleeps, unless the visit is stopped.
    async fn sleep_until(&self, until: DateTime<Utc>) {
        // one millisecond more, since the clock that is compared has finer steps than the timer
        let wait = (until - clock::now()).to_std().unwrap_or_default() + Duration::from_millis(1);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.stop.soft.cancelled() => {}
            () = self.stop.lost.cancelled() => {}
        }
    }

    /// Writes the clock ahead of the request; the owner's opt-out is heard here too.
    async fn clear(
        &mut self,
        host: &Host,
        turn: &mut Turn,
        member: Option<MemberId>,
    ) -> Result<(), Interrupt> {
        let progress = self.progress_to_keep();
        let Some(authority) = self.authorities.get_mut(host) else { return Err(Interrupt::Lost) };
        let (target, clock, site) = (&authority.target, &mut authority.clock, &mut self.site_clock);
        let cleared = tokio::select! {
            cleared = self.tools.pace.clear(target, clock, site, Leave { turn, progress, member }) => cleared?,
            () = self.stop.soft.cancelled() => return Err(Interrupt::End(VisitEnd::Interrupted)),
            () = self.stop.lost.cancelled() => return Err(Interrupt::Lost),
        };
        match cleared {
            Cleared::Go => Ok(()),
            Cleared::Moved => {
                let group = authority.tenure.map(|tenure| tenure.group);
                Err(group.map_or(Interrupt::Lost, |group| Interrupt::HandOver { group }))
            }
            Cleared::OptedOut => Err(Interrupt::End(VisitEnd::OptedOut)),
        }
    }

    /// What was done so far, written with the clock of the next request: who goes on after a kill repeats that one alone.
    /// Where requests follow each other without a gap, not with every one of them.
    fn progress_to_keep(&mut self) -> Option<VisitProgress> {
        let is_time = self.written_at.is_none_or(|at| at.elapsed() >= PROGRESS_EVERY);
        // what is asked beside a visit leaves the progress of the site's visit as it is
        if self.progress.requests == 0 || !is_time || self.scope == VisitScope::Standalone {
            return None;
        }
        self.written_at = Some(Instant::now());
        let state = self.progress.write_down(clock::now())?;
        Some(VisitProgress { site: self.token.site.clone(), fence: self.token.fence, state })
    }

    fn note(&mut self, host: &Host, answer: &Result<Reply, Failure>, took: Duration) {
        self.progress.active += took;
        if let Some(authority) = self.authorities.get_mut(host) {
            let sample = sample_of(answer, took);
            let (target, clock) = (&authority.target, &mut authority.clock);
            self.tools.pace.finish(target, clock, &mut self.site_clock, took, sample);
        }
        let Timings { connect, tls, first_byte, body } = self.session.timings();
        let phases = &mut self.progress.phases;
        phases.connect_ms = phases.connect_ms.saturating_add(millis(connect));
        phases.tls_ms = phases.tls_ms.saturating_add(millis(tls));
        phases.ttfb_ms = phases.ttfb_ms.saturating_add(millis(first_byte));
        phases.body_ms = phases.body_ms.saturating_add(millis(body));
        if let Ok(reply) = answer {
            self.progress.bytes_in = self.progress.bytes_in.saturating_add(reply.wire_bytes);
        }
    }

    /// A site that asks for a pause gets it, whatever its answer was otherwise, from this request on and across restarts. A 429
    /// or 503 that names no time speaks for its host alone where others named the host: load balancers answer so for names
    /// that they do not know.
    async fn heed_retry_after(&mut self, host: &Host, head: &Head) -> Result<(), Interrupt> {
        let Some(asked) = RetryAfter::of_answer(&head.headers, outcome_of(head), clock::now()) else {
            return Ok(());
        };
        if matches!(asked, RetryAfter::Absent(_)) && !OwnHosts::of(&self.site).has(host) {
            return Ok(());
        }
        self.site_clock.not_before = self.site_clock.not_before.max(Some(asked.not_before()));
        if let Some(authority) = self.authorities.get(host) {
            self.tools.pace.persist(&authority.target, &authority.clock, &self.site_clock).await?;
        }
        Ok(())
    }
}

/// The span of one request, by OpenTelemetry's names.
fn fetch_span(url: &ManifestUrl) -> Span {
    tracing::debug_span!(
        "fetch",
        url.full = %url,
        server.address = url.host().as_str(),
        http.response.status_code = Empty,
        otel.kind = "client",
    )
}

fn answer_event<'a>(
    site: &'a SiteName,
    url: &'a ManifestUrl,
    answer: &'a Result<Reply, Failure>,
    took: Duration,
) -> Event<'a> {
    let (failure, wire_bytes) = match answer {
        Ok(reply) => (None, reply.wire_bytes),
        Err(failure) => (Some(failure.reason.as_str()), 0),
    };
    let status = head_of(answer).map(|head| head.status.as_u16());
    Event::Answer { site, url, status, failure, wire_bytes, took_ms: millis(took) }
}

/// Status and headers, if they came, whatever became of the body.
fn head_of(answer: &Result<Reply, Failure>) -> Option<&Head> {
    match answer {
        Ok(reply) => Some(&reply.head),
        Err(failure) => failure.head.as_deref(),
    }
}

/// What an answer says about the platform that gave it.
fn sample_of(answer: &Result<Reply, Failure>, took: Duration) -> Option<Sample> {
    let status = head_of(answer)?.status;
    let is_trouble = status.as_u16() == 429 || status.is_server_error();
    Some(if is_trouble { Sample::Trouble } else { Sample::Fine(took) })
}

/// How the visit ends when a name cannot even be asked.
pub(super) const fn end_of_failure(cause: Cause) -> VisitEnd {
    match cause {
        Cause::NameUnknown => VisitEnd::DnsDead,
        Cause::NameServers => VisitEnd::DnsFailed,
        Cause::Address | Cause::OtherSite => VisitEnd::AddressRefused,
        Cause::Connect => VisitEnd::Unreachable,
        Cause::Tls => VisitEnd::TlsFailed,
        Cause::Timeout | Cause::TooLarge | Cause::Busy | Cause::Encoding | Cause::Protocol => {
            VisitEnd::TransportErrors
        }
    }
}

fn park_reason(scope: Scope) -> String {
    match scope {
        Scope::Authority => {
            "the gap to the next request is long (Crawl-delay, --delay, or a slow server)".to_owned()
        }
        Scope::RetryAfter => "the site asked for a pause (Retry-After)".to_owned(),
        other => format!("the {other} is busy"),
    }
}

pub(super) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
