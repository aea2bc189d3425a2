//! Ends a visit: determines the status of the site, what changed, and the time of the next visit.

use chrono::{DateTime, Utc};
use manifest::is_main_host;
use policy::plan::day_number;
use policy::schedule::{self, ManifestPresence, NextVisit, NextVisitReason, SiteHistory};
use policy::visit::PAGES_MAX;
use policy::{FetchOutcome, RobotsKind, Seed, Status, VisitEnd};
use store::{RobotsRecord, VisitRecord};

use super::context::Interrupt;
use super::fetched::Fetched;
use super::findings::Findings;
use super::progress::{Progress, VisitRequest};
use super::task::{NamedBy, Role};
use super::traffic::Traffic;
use super::{Outcome, Visit};
use crate::clock;
use egress::VERSION;

impl Visit<'_> {
    /// Reads the documents that were waiting for their parts. If the visit has to be parked here, it ends with `end` when it is resumed.
    pub(super) async fn prepare_end(&mut self, end: VisitEnd) -> Interrupt {
        let end = if self.confirms_catch_all(end) { VisitEnd::CatchAll } else { end };
        self.progress.ended_as = Some(end);
        if end == VisitEnd::CatchAll {
            self.progress.findings.reject_catch_all(&self.progress.plan.ended);
        }
        match self.read_together().await {
            Ok(()) => Interrupt::End(end),
            Err(interrupt) => interrupt,
        }
    }

    /// Whether a site that answered every path with a page still does. Such a site is asked for fewer paths than show this anew, or for
    /// every path.
    fn confirms_catch_all(&self, end: VisitEnd) -> bool {
        use FetchOutcome as Outcome;
        let fetched = &self.progress.findings.fetched;
        let count = |outcomes: &[FetchOutcome], is_counted: fn(&Fetched) -> bool| {
            fetched
                .iter()
                .filter(|fetched| outcomes.contains(&fetched.outcome) && is_counted(fetched))
                .count()
        };
        let pages_min = match self.site.status {
            Status::CatchAll => 1,
            _ if self.site.is_checked => PAGES_MAX,
            _ => return false,
        };
        let is_of_site = |fetched: &Fetched| fetched.named_by == NamedBy::Site;
        matches!(end, VisitEnd::Completed | VisitEnd::NothingNew)
            && count(&[Outcome::Html], |fetched| fetched.role == Role::Manifest) >= pages_min
            && count(&[Outcome::NotFound, Outcome::Gone], is_of_site) == 0
            && !fetched.iter().any(|fetched| is_of_site(fetched) && fetched.outcome.is_present())
    }

    /// Ends the visit.
    pub(super) async fn finish(mut self, end: VisitEnd) -> Outcome {
        self.requester.save_clocks(&mut self.progress.traffic).await;
        self.conclude_unfinished_claim(end);
        let now = clock::now();
        let history = self.history(end);
        let interval = schedule::revisit_every(self.tools.revisit_every, self.requester.network());
        let seed = Seed::of(self.site.name.as_str());
        let next = match self.repeated_copy(end) {
            Some((fetched_at, expires_at)) => {
                schedule::after_stored_robots(&history, seed, (fetched_at, expires_at), now)
            }
            None => schedule::next_visit(&history, interval, seed, now),
        };
        let next = schedule::after_unread_robots(next, self.unread_robots_until(end));
        let claim = self.progress.claim.as_ref().or(self.site.claim.as_ref());
        let check_by = claim.and_then(|claim| claim.next_check_by(now));
        let next = schedule::with_check_by(next, check_by, NextVisitReason::OwnersProof, &history, now);
        let keys_expire_at = self.progress.findings.keys_expire_at.filter(|end| *end > now);
        let next = schedule::with_check_by(next, keys_expire_at, NextVisitReason::KeyExpiry, &history, now);
        let next = schedule::after_skipped_hosts(next, self.progress.rest_from, &history, now);
        let next = match self.progress.request {
            VisitRequest::DuringVisit => schedule::with_request(next, &history, now),
            VisitRequest::None => next,
        };
        let is_file_denied = self.robots_of_main_hosts().any(|record| record.kind == RobotsKind::Denied);
        let reason = match next.reason {
            NextVisitReason::RobotsDenied if is_file_denied => {
                "robots.txt itself is denied to agentdex".to_owned()
            }
            _ => in_words(&next, history.not_before),
        };
        let changed_any = self.progress.findings.changed_any(self.site, &self.own_hosts);
        let status = schedule::status_after(&history, self.site.status);
        let Progress { started_at, traffic, findings, claim, .. } = self.progress;
        let Traffic { robots, phases, requests, bytes_in, .. } = traffic;
        let Findings { fetched, seeds, paths_checked, sources, .. } = findings;
        let links = sources.conclude(self.site, &fetched);
        Outcome::Ended(Box::new(VisitRecord {
            site: self.site.name.clone(),
            started_at,
            ended_at: now,
            end,
            status,
            next_visit: store::NextVisit { at: next.at, reason },
            robots: robots.into_values().map(|record| *record).collect(),
            fetches: fetched.into_iter().map(Fetched::into_record).collect(),
            changed_any,
            paths_checked,
            failures_in_row: history.failures_in_row,
            negatives_in_row: history.negatives_in_row,
            new_seeds: seeds,
            links,
            phases,
            requests,
            bytes_in,
            crawler_version: VERSION.to_owned(),
            claim,
        }))
    }

    /// The times of the stored robots.txt that ended a visit without a request: when it was fetched, and when it expires. Of several hosts,
    /// the copy that expires first.
    fn repeated_copy(&self, end: VisitEnd) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        use RobotsKind as Kind;
        if !self.is_repeated(end) {
            return None;
        }
        let now = clock::now();
        let records = self.site.hosts.iter().filter_map(|state| state.robots.as_ref());
        let ending = records.filter(|record| match record.kind {
            Kind::Denied | Kind::Unreachable => true,
            Kind::Rules => end == VisitEnd::RobotsDenied,
            Kind::NoFile => false,
        });
        let times = ending.map(|record| (record.fetched_at, record.expires_at));
        times.filter(|(_, expires_at)| *expires_at > now).min_by_key(|(_, expires_at)| *expires_at)
    }

    /// When a robots.txt that could not be read is requested again, if it ended the visit: no main host has another one. Of several hosts,
    /// the copy that expires first.
    fn unread_robots_until(&self, end: VisitEnd) -> Option<DateTime<Utc>> {
        let may_be_ended_so = matches!(end, VisitEnd::RobotsUnreachable | VisitEnd::RateLimited);
        let records: Vec<&RobotsRecord> = self.robots_of_main_hosts().collect();
        let is_unread = records.iter().all(|record| record.kind == RobotsKind::Unreachable);
        let times = records.iter().map(|record| record.expires_at);
        times.min().filter(|_| may_be_ended_so && is_unread)
    }

    /// The robots.txt records of the main hosts, from this visit or an earlier one.
    fn robots_of_main_hosts(&self) -> impl Iterator<Item = &RobotsRecord> {
        let main = self.site.hosts.iter().filter(|state| is_main_host(&self.site.name, &state.host));
        main.filter_map(|state| {
            let of_visit = self.progress.traffic.robots.get(&state.host).map(|record| &**record);
            of_visit.or(state.robots.as_ref())
        })
    }

    /// Whether the visit sent no request: only a stored robots.txt or delay was applied again, so the interval does not grow.
    fn is_repeated(&self, end: VisitEnd) -> bool {
        self.progress.traffic.requests == 0
            && matches!(end, VisitEnd::RobotsDenied | VisitEnd::RobotsUnreachable | VisitEnd::RateLimited)
    }

    /// Whether an earlier visit of the same day (UTC) found nothing, so that requested visits do not lengthen the interval again.
    fn is_counted_today(&self) -> bool {
        let today = day_number(clock::now());
        self.site.negatives_in_row > 0
            && self.site.failures_in_row == 0
            && self.site.last_visit_at.is_some_and(|at| day_number(at) == today)
    }

    fn history(&self, end: VisitEnd) -> SiteHistory {
        let (site, own, findings) = (self.site, &self.own_hosts, &self.progress.findings);
        let manifest_presence = findings.manifest_presence(site, own);
        let failed = end.is_failure();
        let found_nothing = !failed && manifest_presence == ManifestPresence::Absent;
        let is_repeated = self.is_repeated(end);
        let is_kept = failed || is_repeated || found_nothing && self.is_counted_today();
        SiteHistory {
            end,
            manifest_presence,
            visits: site.visits.saturating_add(1),
            changes: site.changes.saturating_add(u32::from(findings.changed_any(site, own))),
            first_visit_at: site.first_visit_at,
            previous_visit_at: site.last_visit_at,
            failures_in_row: match (failed, is_repeated) {
                (true, true) => site.failures_in_row,
                (true, false) => site.failures_in_row.saturating_add(1),
                (false, _) => 0,
            },
            negatives_in_row: match (is_kept, found_nothing) {
                (true, _) => site.negatives_in_row,
                (false, true) => site.negatives_in_row.saturating_add(1),
                (false, false) => 0,
            },
            fresh_until: findings.fresh_until(site, own),
            not_before: self.requester.not_before(),
        }
    }
}

/// The reason for the time of the next visit. `not_before` is the time that the site asked for.
fn in_words(next: &NextVisit, not_before: Option<DateTime<Utc>>) -> String {
    use NextVisitReason as Reason;
    match next.reason {
        Reason::ChangeRate => "as often as its manifests change",
        Reason::FreshUntil => "when the first of its documents is no longer fresh",
        Reason::Negative => "nothing was found",
        Reason::CatchAll => "every path is answered with a page",
        Reason::Revisit => "after the interval that is set for all sites (revisit_every)",
        Reason::DnsDead => "the name does not exist",
        Reason::Transport => "it could not be reached",
        Reason::RobotsUnreachable => "robots.txt could not be read",
        Reason::RobotsDenied => "robots.txt forbids everything",
        Reason::Blocked => "it denies access",
        Reason::RetryAfter if not_before.is_some_and(|asked_for| next.at > asked_for) => {
            "it asked for a delay (Retry-After), not for the first time in a row, so the interval is longer"
        }
        Reason::RetryAfter => "it asked for a delay (Retry-After)",
        Reason::OverBudget => "the day's budget of requests is used up",
        Reason::Resumed => "the visit continues",
        Reason::OptedOut => "it is blocked, or its owner opted out",
        Reason::OwnersProof => "to look for the proof of its owner",
        Reason::KeyExpiry => "a key that verified a signature expires",
        Reason::Requested => "it was requested during the last visit",
        Reason::Rest => "a host that the last visit skipped because of its delay may be requested again",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn a_delay_that_is_longer_than_the_site_asked_for_has_its_own_reason() {
        let asked_for = clock::now();
        let reason = |at| in_words(&NextVisit { at, reason: NextVisitReason::RetryAfter }, Some(asked_for));
        assert_eq!(reason(asked_for), "it asked for a delay (Retry-After)");
        assert!(reason(asked_for + TimeDelta::hours(1)).ends_with("so the interval is longer"));
    }
}
