//! Sends the requests of a visit and applies all rules: checked addresses, permits, clocks that are written before requests, opt-outs, and
//! Retry-After.
//!
//! The rules of the requested host apply. The host always belongs to the leased site, because [`Session`] refuses any other.

mod clocks;
mod exchange;
mod failure;
mod handshake;
mod message;
mod names;
mod records;
mod robots;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use manifest::{Host, ManifestUrl};
use policy::delay::{Network, Scope};
use policy::groups::Choice;
use policy::{BodyKind, RobotsVerdict, VisitEnd};
use store::{LeaseToken, MemberId, SiteState, VisitProgress};
use tokio::time::Instant;
use tracing::Instrument as _;

use self::clocks::{ChosenBy, requests_of_last_day, site_gap_until};
pub(super) use self::exchange::Exchange;
use self::failure::{answer_event, crowded_reason, fetch_span, head_of, park_reason};
pub(crate) use self::handshake::check_outcome_of;
pub(crate) use self::message::Message;
pub(crate) use self::robots::is_without_evidence;
pub(super) use self::robots::{Robots, robots_use};
use super::context::{Interrupt, Stop, Tools};
use super::progress::Progress;
use super::source_requests::SourceRequests;
use super::traffic::Traffic;
use crate::activity::VisitPlan;
use crate::events::Event;
use crate::groups::{GroupUse, Ownership};
use crate::pace::{
    AddressRole, AuthorityClock, Budget, Clearance, Departure, Permit, PermitAnswer, SiteClock, Target,
};
use crate::reading::HeldMemory;
use crate::{clock, metrics};
use egress::{Cause, Failure, LeaveCheck, NetworkScope, Reply, Session};

/// Maximum number of addresses that are tried for one request. If two do not answer, a third rarely does.
const ADDRESSES_TRIED_MAX: usize = 2;
/// If this many attempts miss their deadline, the machine is overloaded, and the visit is parked.
const LATE_MAX: u32 = 3;
/// Minimum time between two writes of the progress. A visit without delays would otherwise spend more time on writing than on requests.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// Data about a host's robots.txt that is kept after the rules of another host replaced its own.
#[derive(Debug, Clone, Copy)]
struct KnownRobots {
    is_checked: bool,
    crawl_delay: Option<Duration>,
}

struct ParsedRobots {
    host: Host,
    verdict: Arc<RobotsVerdict>,
    memory: HeldMemory,
}

/// A host that was contacted in this visit.
struct Authority {
    clock: AuthorityClock,
    target: Target,
    /// Set in a fleet: the ownership of the address.
    ownership: Option<Ownership>,
}

/// Sends requests to one leased site.
pub(super) struct Requester<'a> {
    tools: &'a Tools,
    pub(super) stop: &'a Stop,
    /// The lease, with the address group of the host that was requested last.
    pub(super) token: LeaseToken,
    site: &'a SiteState,
    session: Session,
    site_clock: SiteClock,
    authorities: HashMap<Host, Authority>,
    robots: HashMap<Host, KnownRobots>,
    /// The rules of the last requested host. Those of another host are parsed again with its next request.
    parsed: Option<ParsedRobots>,
    /// Memory that the findings use until the visit is saved.
    pub(super) memory: HeldMemory,
    /// The remaining work of the visit, for the progress display.
    plan: VisitPlan,
    /// When the progress was last written.
    written_at: Option<Instant>,
    /// Whether the requests belong to no visit. Then no progress is written with the clocks, and the address need not be owned.
    is_outside_visit: bool,
    /// Set for a request for a source of seeds.
    source: Option<SourceRequests>,
    /// Whether the site receives messages to webhooks; `None` until a visit reaches the part of a budget that is kept for them.
    receives_messages: Option<bool>,
}

impl<'a> Requester<'a> {
    pub(super) fn new(
        tools: &'a Tools,
        stop: &'a Stop,
        (token, site): (LeaseToken, &'a SiteState),
        session: Session,
        traffic: &Traffic,
    ) -> Self {
        let (requests, day) = requests_of_last_day(&site.hosts);
        let mut site_clock = SiteClock::new(requests, day, site.not_before);
        site_clock.next_ok_at = traffic.site_next_ok_at.max(site_gap_until(site, clock::now()));
        Self {
            tools,
            stop,
            token,
            site,
            session,
            site_clock,
            authorities: HashMap::new(),
            robots: HashMap::new(),
            parsed: None,
            memory: HeldMemory::default(),
            plan: tools.activity.visit(),
            written_at: None,
            is_outside_visit: false,
            source: None,
            receives_messages: None,
        }
    }

    /// Sends requests outside a visit.
    pub(super) fn outside_visit(self) -> Self {
        Self { is_outside_visit: true, ..self }
    }

    pub(super) fn into_session(self) -> Session {
        self.session
    }

    /// The network of the requested hosts: the operator's own if all of them are in it.
    pub(super) fn network(&self) -> Network {
        let mut targets = self.authorities.values().map(|authority| authority.target.network);
        let has_hosts = !self.authorities.is_empty();
        if has_hosts && targets.all(|network| network == Network::Own) {
            Network::Own
        } else {
            Network::Global
        }
    }

    /// Sends one GET when it is permitted.
    pub(super) async fn get(
        &mut self,
        progress: &mut Progress,
        url: &ManifestUrl,
        body: BodyKind,
        conditions: &HeaderMap,
    ) -> Result<Exchange, Interrupt> {
        self.send(progress, url, body, Message::Get(conditions)).await
    }

    /// Sends one request when it is permitted.
    pub(super) async fn send(
        &mut self,
        progress: &mut Progress,
        url: &ManifestUrl,
        body: BodyKind,
        message: Message<'_>,
    ) -> Result<Exchange, Interrupt> {
        let host = url.host();
        let started = Instant::now();
        let (mut tried, mut late) = (0, 0);
        // all futures except the wait for a permit are boxed, because thousands of visits wait for permits
        if !self.authorities.contains_key(&host)
            && let Err(failure) = Box::pin(self.resolve(&mut progress.traffic, &host)).await?
        {
            let exchange = Exchange { answer: Err(failure), at: clock::now(), took: started.elapsed() };
            return exchange.unless_busy();
        }
        loop {
            let exchange = self.send_to_first_address(progress, url, body, message).await?;
            if let Some(reason) = exchange.late() {
                // nothing was sent, so the request needs another permit and another clock
                progress.traffic.requests = progress.traffic.requests.saturating_sub(1);
                late += 1;
                if late == LATE_MAX {
                    return Err(Interrupt::busy(reason));
                }
                continue;
            }
            tried += 1;
            let failure = exchange.answer.as_ref().err();
            let is_unconnected = failure.is_some_and(|failure| self.session.failed_to_connect(failure));
            if !is_unconnected
                || tried == ADDRESSES_TRIED_MAX
                || !Box::pin(self.use_next_address(&mut progress.traffic, &host)).await?
            {
                return exchange.unless_busy();
            }
        }
    }

    /// Sends one request to the address for which it has a permit.
    async fn send_to_first_address(
        &mut self,
        progress: &mut Progress,
        url: &ManifestUrl,
        body: BodyKind,
        message: Message<'_>,
    ) -> Result<Exchange, Interrupt> {
        let host = url.host();
        self.show_plan(progress, &host, body);
        let mut permit = self.acquire_permit(&host).await?;
        let group_use = self.enter(&host)?;
        if body != BodyKind::Robots {
            self.end_use_after_delay(&mut progress.traffic, &host);
        }
        let member = group_use.as_ref().map(|group_use| group_use.member);
        let leave = Box::pin(self.write_clocks(progress, &host, &mut permit, member)).await?;
        let (at, sent) = (clock::now(), Instant::now());
        progress.traffic.requests += 1;
        let (events, site, shown) = (&self.tools.events, &self.token.site, message.shown_url(url));
        let conditional = matches!(message, Message::Get(conditions) if !conditions.is_empty());
        let chosen_by = ChosenBy::of(body, &message, progress.plan.current.as_ref());
        events.write(Event::Request { site, url: &shown, conditional });
        let answer = {
            let _waits = self.tools.activity.request();
            Box::pin(self.exchange(url, body, message, leave)).await
        };
        // if this machine stalled, the time is not a sample of the server
        let is_late = answer.as_ref().is_err_and(|failure| failure.cause == Cause::Late);
        let took = if is_late { Duration::ZERO } else { sent.elapsed() };
        events.write(answer_event(site, &shown, &answer, took));
        metrics::answered(took);
        self.finish(&mut progress.traffic, &host, &answer, took);
        drop((permit, group_use));
        if let Some(head) = head_of(&answer) {
            Box::pin(self.apply_retry_after(&host, chosen_by, head)).await?;
        }
        Ok(Exchange { answer, at, took })
    }

    async fn exchange(
        &self,
        url: &ManifestUrl,
        body: BodyKind,
        message: Message<'_>,
        leave: LeaveCheck,
    ) -> Result<Reply, Failure> {
        let span = fetch_span(&message.shown_url(url));
        let answer = match message {
            Message::Get(conditions) => {
                self.session.fetch(url, body, conditions, leave).instrument(span.clone()).await
            }
            Message::Post(json) => {
                let content = (HeaderMap::new(), json.to_string());
                self.session.post_json(url, body, content, leave).instrument(span.clone()).await
            }
            Message::Deliver { headers, body: text } => {
                let content = (headers.clone(), text.to_owned());
                self.session.post_json(url, body, content, leave).instrument(span.clone()).await
            }
        };
        if let Ok(reply) = &answer {
            span.record("http.response.status_code", reply.head.status.as_u16());
        }
        answer
    }

    /// Resolves a name, once per visit, and reads its clocks.
    async fn resolve(
        &mut self,
        traffic: &mut Traffic,
        host: &Host,
    ) -> Result<Result<(), Failure>, Interrupt> {
        let started = Instant::now();
        let known = traffic.addresses_of(host, clock::now());
        let adopted = known.map_or(Ok(()), |addresses| self.session.adopt(host, addresses));
        let resolved = match adopted {
            Ok(()) => {
                let _waits = self.tools.activity.resolution();
                tokio::select! {
                    resolved = self.session.resolve(host) => resolved,
                    () = self.stop.soft.cancelled() => return Err(Interrupt::End(VisitEnd::Interrupted)),
                }
            }
            Err(failure) => Err(failure),
        };
        // slow name servers use up a visit's time like a slow host
        traffic.count_resolution(started.elapsed());
        let resolved = match resolved {
            Ok(resolved) => resolved,
            Err(failure) => return Ok(Err(failure)),
        };
        let network = match resolved.standing {
            NetworkScope::Global => Network::Global,
            NetworkScope::Own => Network::Own,
        };
        let (target, ownership) = self.target_of(traffic, host, network, &resolved.addresses).await?;
        let known = self.site.hosts.iter().find(|state| state.host == *host);
        let clock = known.map_or_else(
            || AuthorityClock::new(host.clone(), None, 0, 0),
            |state| {
                AuthorityClock::new(host.clone(), state.next_ok_at, state.requests_today, state.requests_day)
            },
        );
        self.apply_stored_crawl_delay(traffic, host).await?;
        self.authorities.insert(host.clone(), Authority { clock, target, ownership });
        Ok(Ok(()))
    }

    /// Replaces an address that accepted no connection by the next one of the host, whose own limits then apply. Returns whether there is
    /// one.
    async fn use_next_address(&mut self, traffic: &mut Traffic, host: &Host) -> Result<bool, Interrupt> {
        let Some(authority) = self.authorities.get(host) else { return Ok(false) };
        let Target { addresses, network, .. } = authority.target.clone();
        let Some((failed, rest)) = addresses.split_first() else { return Ok(false) };
        traffic.add_unreachable(*failed);
        if rest.is_empty() {
            return Ok(false);
        }
        let (target, ownership) = self.target_of(traffic, host, network, rest).await?;
        if let Some(authority) = self.authorities.get_mut(host) {
            (authority.target, authority.ownership) = (target, ownership);
        }
        Ok(true)
    }

    /// The addresses of a host in the order in which they are tried, with their clocks, and in a fleet the ownership of the first.
    async fn target_of(
        &mut self,
        traffic: &mut Traffic,
        host: &Host,
        network: Network,
        addresses: &[IpAddr],
    ) -> Result<(Target, Option<Ownership>), Interrupt> {
        let addresses = traffic.reachable(addresses);
        self.session.narrow(host, &addresses);
        let (addresses, ownership) = match network {
            Network::Global => self.choose_addresses(traffic, host, addresses)?,
            Network::Own => (addresses, None),
        };
        let is_owned = ownership.is_some() || network == Network::Own || self.tools.groups.is_unshared();
        let role = if is_owned { AddressRole::Owner } else { AddressRole::Guest };
        let is_for_messages = self.is_outside_visit || self.receives_messages == Some(false);
        let budget = if is_for_messages { Budget::Whole } else { Budget::OfVisits };
        let target = Target { addresses, network, role, crawl_delay: None, budget };
        Box::pin(self.tools.pace.load_clocks(&target)).await?;
        Ok((target, ownership))
    }

    /// Moves an address that this worker owns to the front. If the worker owns none, hands the visit over. A request outside a visit is
    /// sent without the ownership.
    fn choose_addresses(
        &mut self,
        traffic: &mut Traffic,
        host: &Host,
        addresses: Vec<IpAddr>,
    ) -> Result<(Vec<IpAddr>, Option<Ownership>), Interrupt> {
        let groups = &self.tools.groups;
        if groups.is_unshared() {
            return Ok((addresses, None));
        }
        let chosen = policy::groups::choose(&addresses, |group| groups.ownership(group).is_some());
        let Some(Choice { addresses, group }) = chosen else { return Ok((addresses, None)) };
        let ownership = groups.ownership(group);
        if self.is_outside_visit {
            self.session.narrow(host, &addresses);
            return Ok((addresses, ownership));
        }
        let Some(ownership) = ownership else { return Err(Interrupt::HandOver { group }) };
        self.session.narrow(host, &addresses);
        self.token.address_group = Some(group);
        traffic.first_group.get_or_insert(group);
        Ok((addresses, Some(ownership)))
    }

    /// Begins a request at an owned address. Another worker may have taken it over while this visit waited.
    fn enter(&self, host: &Host) -> Result<Option<GroupUse>, Interrupt> {
        let Some(ownership) = self.authorities.get(host).and_then(|authority| authority.ownership) else {
            return Ok(None);
        };
        let group_use = self.tools.groups.enter(ownership);
        group_use.map(Some).ok_or(Interrupt::HandOver { group: ownership.group })
    }

    async fn acquire_permit(&mut self, host: &Host) -> Result<Permit, Interrupt> {
        let _waits = self.tools.activity.delay();
        loop {
            if self.stop.lost.is_cancelled() {
                return Err(Interrupt::LeaseLost);
            }
            if self.stop.soft.is_cancelled() {
                return Err(Interrupt::End(VisitEnd::Interrupted));
            }
            let crawl_delay = self.crawl_delay(host);
            let Some(authority) = self.authorities.get_mut(host) else { return Err(Interrupt::LeaseLost) };
            authority.target.crawl_delay = crawl_delay;
            let answer = tokio::select! {
                answer = self.tools.pace.acquire(&authority.target, &mut authority.clock, &self.site_clock) => answer,
                () = self.stop.soft.cancelled() => continue,
                () = self.stop.lost.cancelled() => continue,
            };
            let answer = answer?;
            if matches!(answer, PermitAnswer::OverBudget { .. })
                && Box::pin(self.may_use_whole_budget(host)).await?
            {
                continue;
            }
            let (until, scope, reason) = match answer {
                PermitAnswer::Granted(permit) => return Ok(permit),
                PermitAnswer::Wait { until, scope } => {
                    let began = Instant::now();
                    self.sleep_until(until).await;
                    metrics::waited(scope, began.elapsed());
                    continue;
                }
                PermitAnswer::Park { until, scope } => {
                    (until, scope, park_reason(scope, until, self.tools.pace.stated_gap(crawl_delay)))
                }
                PermitAnswer::OverBudget { until, scope } => {
                    (until, scope, format!("the day's budget of the {scope} is used up"))
                }
                PermitAnswer::Crowded { until, scope } => (until, scope, crowded_reason(scope)),
            };
            metrics::visit_parked(Some(scope));
            return Err(Interrupt::Park { until, reason });
        }
    }

    /// Writes the clocks before the request. The write also checks that the lease is still held and that the site has not opted out.
    /// Returns the check of the request's deadline.
    async fn write_clocks(
        &mut self,
        progress: &mut Progress,
        host: &Host,
        permit: &mut Permit,
        member: Option<MemberId>,
    ) -> Result<LeaveCheck, Interrupt> {
        let progress = self.progress_to_write(progress);
        let Some(authority) = self.authorities.get_mut(host) else { return Err(Interrupt::LeaseLost) };
        let (target, clock, site) = (&authority.target, &mut authority.clock, &mut self.site_clock);
        let departure = Departure { permit, lease: self.token.clone(), progress, member };
        let clearance = tokio::select! {
            clearance = self.tools.pace.write_clocks(target, clock, site, departure) => clearance?,
            () = self.stop.soft.cancelled() => return Err(Interrupt::End(VisitEnd::Interrupted)),
            () = self.stop.lost.cancelled() => return Err(Interrupt::LeaseLost),
        };
        match clearance {
            Clearance::Granted { since, .. } => {
                Ok(self.tools.pace.leave_check(since, self.stop.lost.clone()))
            }
            Clearance::LeaseLost => Err(Interrupt::LeaseLost),
            Clearance::Moved => {
                let group = authority.ownership.map(|ownership| ownership.group);
                Err(group.map_or(Interrupt::LeaseLost, |group| Interrupt::HandOver { group }))
            }
            Clearance::AddressTaken { until } => {
                let scope = Scope::Address;
                metrics::visit_parked(Some(scope));
                Err(Interrupt::Park { until, reason: crowded_reason(scope) })
            }
            Clearance::OptedOut => Err(Interrupt::End(VisitEnd::OptedOut)),
        }
    }

    /// The progress to write with the clocks of the next request, so that a visit that is resumed after a kill repeats only that request.
    /// If requests follow each other without a gap, it is not written with each of them.
    fn progress_to_write(&mut self, progress: &mut Progress) -> Option<VisitProgress> {
        let is_time = self.written_at.is_none_or(|at| at.elapsed() >= PROGRESS_INTERVAL);
        if progress.traffic.requests == 0 || !is_time || self.is_outside_visit {
            return None;
        }
        self.written_at = Some(Instant::now());
        let state = progress.write_json(clock::now())?;
        Some(VisitProgress { site: self.token.site.clone(), fence: self.token.fence, state })
    }

    /// Stores the resolved addresses of all hosts of the visit in the progress, for the next worker.
    pub(super) fn keep_addresses(&self, progress: &mut Progress) {
        let next = progress.plan.tasks().next().map(|task| task.current().host());
        let hops = progress.traffic.robots_hops.values().filter_map(|chain| Some(chain.last()?.host()));
        let hosts = self.authorities.keys().cloned().chain(next).chain(hops);
        let resolved = hosts.map(|host| (host.clone(), self.session.pinned(&host)));
        let resolved = resolved.filter(|(_, addresses)| !addresses.is_empty()).collect();
        progress.traffic.keep_addresses(resolved, clock::now());
    }
}

#[cfg(test)]
#[path = "requester_tests.rs"]
pub(super) mod tests;
