//! Maintains the clocks of a visit's hosts: delays, Retry-After and the requests of a day. Estimates from them how long the rest of the
//! visit takes.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use http::StatusCode;
use manifest::{Host, is_main_host};
use policy::delay::Scope as Limit;
use policy::{BodyKind, FetchOutcome, RetryAfter};
use store::{HostState, SiteState};

use super::super::context::Interrupt;
use super::super::progress::Progress;
use super::super::task::{NamedBy, Task};
use super::super::traffic::Traffic;
use super::Requester;
use super::failure::sample_of;
use super::message::Message;
use crate::clock;
use crate::pace::Budget;
use crate::retry::retry_while_unavailable;
use egress::{Failure, Head, Reply};

/// Maximum delay of a site for a response to a link. It is longer than a visit waits before it is saved.
const LINK_DELAY_MAX: TimeDelta = TimeDelta::hours(2);

/// Who chose the URL of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChosenBy {
    /// The site itself, at a usual path, in its robots.txt or on its home page; or the operator. A robots.txt is always the site's.
    Site,
    /// A manifest of the site, of which it is a part.
    Part,
    /// A link, which a user of the site or another site may have written, or the client that created a watch.
    Link,
}

impl ChosenBy {
    pub(super) fn of(body: BodyKind, message: &Message<'_>, task: Option<&Task>) -> Self {
        match (message, task) {
            _ if body == BodyKind::Robots => Self::Site,
            (Message::Deliver { .. }, _) => Self::Link,
            (Message::Get(_) | Message::Post(_), None) => Self::Site,
            (_, Some(task)) if task.named_by.is_link(task.role) => Self::Link,
            (_, Some(task)) if task.named_by == NamedBy::Site => Self::Site,
            _ => Self::Part,
        }
    }
}

impl Requester<'_> {
    /// Updates the progress display with the remaining work of the visit, before a request to this host.
    pub(super) fn show_plan(&mut self, progress: &Progress, host: &Host, body: BodyKind) {
        let crawl_delay = self.crawl_delay(host);
        if let Some(authority) = self.authorities.get_mut(host).filter(|_| !self.is_outside_visit) {
            authority.target.crawl_delay = crawl_delay;
            let left = progress.plan.left() + usize::from(body == BodyKind::Robots);
            let left = u32::try_from(left).unwrap_or(u32::MAX);
            let ends_at = self.tools.pace.answered_at(&authority.target, &authority.clock, left);
            self.plan.set(left.into(), ends_at);
        }
    }

    /// The Crawl-delay of a host. Until this visit has checked the robots.txt, it is that of the stored file.
    pub(in crate::visit) fn crawl_delay(&self, host: &Host) -> Option<Duration> {
        self.robots.get(host)?.crawl_delay
    }

    pub(super) fn finish(
        &mut self,
        traffic: &mut Traffic,
        host: &Host,
        answer: &Result<Reply, Failure>,
        took: Duration,
    ) {
        if let Some(authority) = self.authorities.get_mut(host) {
            let sample = sample_of(answer, took);
            let (target, clock) = (&authority.target, &mut authority.clock);
            self.tools.pace.finish(target, clock, &mut self.site_clock, took, sample);
        }
        let wire_bytes = answer.as_ref().map_or(0, |reply| reply.wire_bytes);
        traffic.count(took, self.session.timings(), wire_bytes);
    }

    /// Applies and stores the Retry-After of any response to a request for a URL. Only the domain and its `www.` host delay the whole site.
    /// Any other host delays itself, because it may belong to a customer, or may be a load balancer that does not serve the name. For a
    /// link, the domain and its `www.` host delay the site by [`LINK_DELAY_MAX`] at most: a user may have written it, an endpoint may return
    /// any header on request, and one path may have a strict limit of its own. A 429 or 503 without the header has a default delay, which
    /// applies to the whole site only if the URL is one that the site itself names. A 503 without the header to a request for a source of
    /// seeds has none.
    pub(super) async fn apply_retry_after(
        &mut self,
        host: &Host,
        chosen_by: ChosenBy,
        head: &Head,
    ) -> Result<(), Interrupt> {
        let outcome = FetchOutcome::of_response(head.status.as_u16(), &head.headers);
        let Some(retry_after) = RetryAfter::of_response(&head.headers, outcome, clock::now()) else {
            return Ok(());
        };
        // the operator decides when a source is requested again
        let is_of_source = self.source.is_some() && head.status == StatusCode::SERVICE_UNAVAILABLE;
        if is_of_source && matches!(retry_after, RetryAfter::Absent(_)) {
            return Ok(());
        }
        let is_stated = matches!(retry_after, RetryAfter::Given(_) | RetryAfter::Clamped(_));
        let is_main = is_main_host(&self.site.name, host);
        let not_before = match chosen_by {
            ChosenBy::Link if is_main => retry_after.not_before().min(clock::now() + LINK_DELAY_MAX),
            _ => retry_after.not_before(),
        };
        if is_main && (is_stated || chosen_by == ChosenBy::Site) {
            self.site_clock.not_before = self.site_clock.not_before.max(Some(not_before));
        }
        if let Some(authority) = self.authorities.get_mut(host) {
            authority.clock.wait_until(not_before);
            self.tools.pace.save_clock(&authority.clock, &self.site_clock).await?;
        }
        Ok(())
    }

    /// Lets a visit use the whole budgets if no messages to webhooks are sent to the site. Returns whether this permits more requests.
    pub(super) async fn may_use_whole_budget(&mut self, host: &Host) -> Result<bool, Interrupt> {
        let Some(authority) = self.authorities.get_mut(host) else { return Ok(false) };
        if authority.target.budget == Budget::Whole {
            return Ok(false);
        }
        let store = &self.tools.store;
        let look_up = || store.site_receives_messages(&self.token.site);
        let receives = match self.receives_messages {
            Some(known) => known,
            None => retry_while_unavailable("look receivers up", look_up).await?,
        };
        self.receives_messages = Some(receives);
        if !receives {
            authority.target.budget = Budget::Whole;
        }
        Ok(!receives)
    }

    /// Sleeps, unless the visit is stopped.
    pub(super) async fn sleep_until(&self, until: DateTime<Utc>) {
        tokio::select! {
            () = clock::sleep_until(until) => {}
            () = self.stop.soft.cancelled() => {}
            () = self.stop.lost.cancelled() => {}
        }
    }

    /// The latest Retry-After of the site.
    pub(in crate::visit) const fn not_before(&self) -> Option<DateTime<Utc>> {
        self.site_clock.not_before
    }

    /// The end of the delay that the server of a source of seeds asked for, if it did.
    pub(in crate::visit) fn delay_of_source(&self, host: &Host, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.source?;
        let of_host = self.authorities.get(host).and_then(|authority| authority.clock.asked_until());
        let of_site = self.not_before().filter(|_| is_main_host(&self.site.name, host));
        of_host.max(of_site).filter(|until| *until > now)
    }

    /// Writes the clocks after the last responses. They are later than the clocks that were written before the requests.
    pub(in crate::visit) async fn save_clocks(&self, traffic: &mut Traffic) {
        traffic.site_next_ok_at = self.site_clock.next_ok_at;
        for authority in self.authorities.values() {
            let saved = self.tools.pace.save_clock(&authority.clock, &self.site_clock).await;
            if let Err(error) = saved {
                tracing::warn!(site.name = %self.token.site, %error, "clocks could not be written");
            }
        }
    }
}

/// The number of requests to all hosts on the last day on which any host received one, and that day. Earlier requests do not count towards
/// the daily budget.
pub(super) fn requests_of_last_day(hosts: &[HostState]) -> (u32, i32) {
    let day = hosts.iter().map(|host| host.requests_day).max().unwrap_or_default();
    let of_day = hosts.iter().filter(|host| host.requests_day == day);
    (of_day.map(|host| host.requests_today).sum(), day)
}

/// The end of the gap of the whole site after a request of another visit. The time of its response is unknown. While the clock of a host is
/// in the future, the response may have just arrived.
pub(super) fn site_gap_until(site: &SiteState, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let gap = TimeDelta::from_std(Limit::Site.limits().gap).unwrap_or_default();
    site.hosts.iter().filter_map(|host| host.next_ok_at).max().map(|at| at.min(now + gap))
}
