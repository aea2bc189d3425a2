//! The record of a visit: how the site stands, what changed, and when to come back.

use policy::schedule::{self, ManifestPresence, NextVisit, NextVisitReason, SiteHistory};
use policy::{FetchOutcome, Seed, VisitEnd};
use store::{StoreError, VisitRecord};

use super::fetched::Fetched;
use super::progress::Progress;
use super::task::Role;
use super::{Outcome, Visit};
use crate::clock;
use crate::egress::VERSION;

impl Visit<'_> {
    /// Ends the visit.
    pub(super) async fn finish(mut self, end: VisitEnd) -> Result<Outcome, StoreError> {
        self.persist_clocks().await;
        if end == VisitEnd::CatchAll {
            disown(&mut self.progress);
        }
        Box::pin(self.read_together()).await?;
        let now = clock::now();
        let history = self.history(end);
        let next = schedule::next_visit(&history, None, Seed::of(self.site.name.as_str()), now);
        let changed_any = self.changed_any();
        let status = schedule::status_after(&history, self.site.status);
        let Progress {
            started_at, robots, fetched, seeds, paths_checked, phases, requests, bytes_in, ..
        } = self.progress;
        Ok(Outcome::Ended(Box::new(VisitRecord {
            site: self.site.name,
            started_at,
            ended_at: now,
            end,
            status,
            next_visit: store::NextVisit { at: next.at, reason: in_words(&next) },
            robots: robots.into_values().map(|record| *record).collect(),
            fetches: fetched.into_iter().map(Fetched::into_record).collect(),
            changed_any,
            paths_checked,
            failures_in_row: history.failures_in_row,
            negatives_in_row: history.negatives_in_row,
            new_seeds: seeds,
            phases,
            requests,
            bytes_in,
            crawler_version: VERSION.to_owned(),
        })))
    }

    fn history(&self, end: VisitEnd) -> SiteHistory {
        let manifest_presence = self.manifest_presence();
        let failed = end.is_failure();
        let found_nothing = !failed && manifest_presence == ManifestPresence::Absent;
        SiteHistory {
            end,
            manifest_presence,
            visits: self.site.visits.saturating_add(1),
            changes: self.site.changes.saturating_add(u32::from(self.changed_any())),
            first_visit_at: self.site.first_visit_at,
            previous_visit_at: self.site.last_visit_at,
            failures_in_row: if failed { self.site.failures_in_row.saturating_add(1) } else { 0 },
            negatives_in_row: match (failed, found_nothing) {
                (true, _) => self.site.negatives_in_row,
                (false, true) => self.site.negatives_in_row.saturating_add(1),
                (false, false) => 0,
            },
            fresh_until: self.fresh_until(),
            not_before: self.site_clock.not_before,
        }
    }

    /// A manifest that was seen, or one that this visit learned nothing about.
    fn manifest_presence(&self) -> ManifestPresence {
        let seen = self.manifests().any(|fetched| fetched.outcome.is_present());
        let untold = self.site.resources.iter().any(|known| {
            known.manifest_id.is_some()
                && !self.progress.fetched.iter().any(|fetched| fetched.url == known.url)
        });
        if seen || untold { ManifestPresence::Present } else { ManifestPresence::Absent }
    }

    /// When the first answer becomes stale, if all are fresh.
    fn fresh_until(&self) -> Option<chrono::DateTime<chrono::Utc>> {
        let until = |fetched: &Fetched| match fetched.outcome {
            FetchOutcome::Fresh => self.known(&fetched.url)?.fresh_until,
            _ => fetched.fresh_until(),
        };
        let present = self.manifests().filter(|fetched| fetched.outcome.is_present());
        present.map(until).collect::<Option<Vec<_>>>()?.into_iter().min()
    }

    fn changed_any(&self) -> bool {
        let changed = |fetched: &Fetched| {
            let known = self.known(&fetched.url);
            let was_there = known.is_some_and(|known| known.manifest_id.is_some());
            match fetched.outcome {
                FetchOutcome::Found | FetchOutcome::NotModified => {
                    fetched.manifest.is_some()
                        && known.and_then(|known| known.content_hash.as_ref()) != fetched.hash.as_ref()
                }
                outcome => was_there && outcome.is_absent(),
            }
        };
        // what a first visit finds is new, not changed
        self.site.visits > 0 && self.manifests().any(changed)
    }

    fn manifests(&self) -> impl Iterator<Item = &Fetched> {
        self.progress.fetched.iter().filter(|fetched| fetched.role == Role::Manifest)
    }
}

/// On a host that answers everything, nothing that was found means anything.
fn disown(progress: &mut Progress) {
    let (ended, fetched) = (&progress.ended, &mut progress.fetched);
    for fetched in fetched.iter_mut() {
        let is_catch_all = ended.get(&fetched.url.host()) == Some(&VisitEnd::CatchAll);
        if is_catch_all && fetched.outcome == FetchOutcome::Found {
            fetched.outcome = FetchOutcome::NotAManifest;
            fetched.reason = Some("the host answers every path".to_owned());
            fetched.forget_document();
        }
    }
}

fn in_words(next: &NextVisit) -> String {
    use NextVisitReason as Reason;
    match next.reason {
        Reason::ChangeRate => "as often as its manifests change",
        Reason::FreshUntil => "when the first of its documents is no longer fresh",
        Reason::Negative => "nothing was found",
        Reason::CatchAll => "every path is answered with a page",
        Reason::Revisit => "by the operator's interval",
        Reason::DnsDead => "the name does not exist",
        Reason::Transport => "it could not be reached",
        Reason::RobotsUnreachable => "robots.txt could not be read",
        Reason::RobotsDenied => "robots.txt forbids everything",
        Reason::Blocked => "it refuses us",
        Reason::RetryAfter => "it asked for a pause (Retry-After)",
        Reason::OverBudget => "the day's budget of requests is used up",
        Reason::Resumed => "the visit goes on",
        Reason::OptedOut => "the owner asked to be left out",
    }
    .to_owned()
}
