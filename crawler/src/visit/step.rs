//! Executes one task of a visit: checks whether the stored copy is fresh, requests the URL, and follows the links of the answer.

use std::collections::HashSet;
use std::sync::Arc;

use manifest::{Discovery, Format, Host, Manifest, ManifestUrl};
use policy::freshness::Use;
use policy::plan::{FullTableReason, PATHS};
use policy::{FetchOutcome, NextStep, RobotsDecision, RobotsVerdict, VisitEnd};
use store::{ResourceState, SiteState, StoreError};

use super::Visit;
use super::context::{Interrupt, Scope};
use super::fetched::Fetched;
use super::findings::{Findings, is_outdated, known};
use super::links::{self, FollowUps};
use super::parts::StoredCopy;
use super::prepare;
use super::progress::Progress;
use super::requester::Robots;
use super::sources::{ReadWhole, keep_source};
use super::task::{NamedBy, Role, Task, Turn, Validators};
use crate::clock;
use crate::config::TextRecords;

/// Maximum number of known documents, besides those that the visit would request, that one visit removes because the robots.txt of their
/// host forbids them. There is a limit because each removal is written with the progress of the visit. The next visit continues.
const DENIED_MAX: usize = 1_000;
/// Reason for keeping a readable document when an unreadable one is received.
const MAY_BE_CUT: &str = "the document cannot be read, and may have been cut off; it replaces the previous one if the next visit cannot read it either";

impl Visit<'_> {
    /// Executes one task, and returns how the visit continues.
    pub(super) async fn step(&mut self, task: &mut Task) -> Result<NextStep, Interrupt> {
        let is_claim = task.role == Role::Claim;
        if is_claim && self.progress.claim.is_some() {
            return Ok(NextStep::Continue);
        }
        let host = task.url.host();
        let known = known(self.site, &task.url).filter(|_| !is_claim).cloned().map(Box::new);
        let copy_use = task.role.copy_use();
        if let Some(known) = known.as_deref() {
            Box::pin(self.keep_role(task, known)).await?;
            keep_source(task, known, &self.own_hosts);
        }
        if known.as_deref().is_some_and(|known| has_left_index(self.site, known, task)) {
            task.validators = Validators::Omitted;
        }
        if let Some(known) = known.as_deref().filter(|known| is_known_part(self.site, known, task)) {
            Box::pin(self.read_part_as_manifest(task, known)).await?;
        }
        let may_use_copy = !self.site.is_checked && task.validators == Validators::Sent;
        if let Some(known) = known.as_deref().filter(|known| may_use_copy && is_fresh(known, copy_use)) {
            return Box::pin(self.use_fresh_copy(task, known)).await;
        }
        let verdict = match self.requester.robots(&mut self.progress, &host).await? {
            Robots::Verdict(verdict) => verdict,
            Robots::NoName => {
                let reason = Some("the name does not exist".to_owned());
                let fetched = Fetched::unanswered(task, FetchOutcome::DnsFailed, reason, clock::now());
                if !is_claim {
                    self.progress.findings.record(self.slot_checked(task), fetched);
                }
                self.progress.plan.end_host(host, VisitEnd::DnsDead);
                return Ok(NextStep::Continue);
            }
        };
        let is_first_request = !self.progress.traffic.robots_applied.contains(&host);
        if let NextStep::Stop(end) = Box::pin(self.apply_robots(&host, &verdict, task)).await? {
            // this is evidence about the host, whichever task found it
            self.progress.plan.end_host(host, end);
            return Ok(NextStep::Continue);
        }
        // release the rules: the visit keeps the rules of only one host, and a redirect may lead to another
        drop(verdict);
        if is_first_request && self.tools.text_records == TextRecords::Queried {
            Box::pin(self.follow_records(task)).await;
        }
        if is_claim {
            return Box::pin(self.check_claim_file(task)).await;
        }
        // a part without a stored copy must be received completely; a manifest was already read when it was received
        let copy = Box::pin(self.copy_of(task, known.as_deref())).await?;
        let is_part_without_copy = task.role == Role::Part && copy == StoredCopy::Missing && known.is_some();
        // without this condition, a document that the reader refuses would be received completely at each visit
        let is_refused = |known: &ResourceState| {
            matches!(known.outcome, FetchOutcome::Quarantined | FetchOutcome::TooLarge)
        };
        let is_outdated_without_copy = copy == StoredCopy::Missing
            && !known.as_deref().is_some_and(is_refused)
            && is_outdated(self.site, &task.url);
        if copy == StoredCopy::Damaged || is_part_without_copy || is_outdated_without_copy {
            task.validators = Validators::Omitted;
        }
        let Some(fetched) = self.answer(task, known.as_deref()).await? else {
            self.progress.plan.put_last(task.clone());
            return Ok(NextStep::Continue);
        };
        self.conclude(task, fetched, known.as_deref()).await
    }

    /// Applies the robots.txt of a host to the plan before its first request, and follows its Agentmap lines.
    async fn apply_robots(
        &mut self,
        host: &Host,
        verdict: &Arc<RobotsVerdict>,
        task: &Task,
    ) -> Result<NextStep, Interrupt> {
        if self.progress.traffic.robots_applied.contains(host) {
            return Ok(NextStep::Continue);
        }
        let mut decisions = self.requester.decisions(verdict, self.paths_of_evidence(host, task)).await?;
        // a host with at least one allowed path does not end, whoever named the path
        let mut planned = self.progress.plan.paths_at(host, |_| true);
        planned.push(task.url.path_and_query());
        let planned = self.requester.decisions(verdict, planned).await?;
        decisions.extend(planned.into_iter().filter(|decision| decision.outcome().is_none()));
        self.progress.traffic.robots_applied.insert(host.clone());
        let rules = self.progress.plan.rules(task);
        let next = rules.observe_robots(verdict, &decisions);
        if let NextStep::Stop(_) = next {
            self.deny_known(host, verdict, usize::MAX, |_, _| true).await?;
        } else {
            // paths beyond the shared work limit are decided when they are requested, and the current task is decided below
            let is_denied = |known: &ResourceState, decision: &RobotsDecision| {
                let is_disallowed = matches!(decision, RobotsDecision::Disallowed(_));
                is_disallowed && known.manifest_id.is_some() && known.url != task.url
            };
            self.deny_known(host, verdict, DENIED_MAX, is_denied).await?;
            // Without a file there are no links.
            let follow_ups = verdict.file().map(|file| links::of_robots(host, file));
            let (read, follow_ups) = (ReadWhole::Robots(host), follow_ups.unwrap_or_default());
            self.follow_links_of_host(FullTableReason::Agentmap, task, Some(read), follow_ups);
        }
        Ok(next)
    }

    /// The paths that determine whether the robots.txt of a host forbids everything: paths that the site itself names and that this visit
    /// has requested or will request, or the path table if there are none. URLs that others name are not included, so they cannot end the
    /// requests to a host.
    fn paths_of_evidence(&self, host: &Host, task: &Task) -> Vec<String> {
        let Progress { plan, findings, .. } = &self.progress;
        let is_site = |named_by| named_by == NamedBy::Site;
        let mut paths = plan.paths_at(host, is_site);
        paths.extend(is_site(task.named_by).then(|| task.url.path_and_query()));
        let requested = findings
            .fetched
            .iter()
            .filter(|fetched| is_site(fetched.named_by) && fetched.url.host() == *host);
        paths.extend(requested.map(|fetched| fetched.url.path_and_query()));
        if paths.is_empty() {
            paths.extend(PATHS.iter().map(|row| row.path.to_owned()));
        }
        paths
    }

    /// Follows the links of the robots.txt, the DNS records or the home page of the host of `task`. They are links of the site if the host
    /// is its own. `read` is the source if all of its links were read. Hosts to which the links lead become the site's own after this
    /// visit.
    fn follow_links_of_host(
        &mut self,
        reason: FullTableReason,
        task: &Task,
        read: Option<ReadWhole<'_>>,
        follow_ups: FollowUps,
    ) -> bool {
        let named_by = self.own_hosts.named_by_host(&task.url.host());
        self.request_remaining(reason, named_by, !follow_ups.tasks.is_empty());
        if let Some(read) = read {
            self.compare_links(read, (&follow_ups, named_by));
        }
        let FollowUps { tasks, seeds } = follow_ups;
        let (own, elsewhere): (Vec<Task>, Vec<Task>) =
            tasks.into_iter().partition(|linked| self.own_hosts.contains(&linked.url.host()));
        let has_room = self.follow(FollowUps { tasks: elsewhere, seeds }, named_by.of_links());
        self.follow(FollowUps { tasks: own, seeds: Vec::new() }, named_by) && has_room
    }

    /// Compares the links that were read with the known sources. If a document lost its source, the home page is requested too, because it
    /// may contain the link now.
    fn compare_links(&mut self, read: ReadWhole<'_>, links: (&FollowUps, NamedBy)) {
        let Findings { sources, fetched, .. } = &mut self.progress.findings;
        sources.compare((self.site, fetched), read, links);
        if self.scope == Scope::Site && sources.has_lost() {
            self.progress.plan.add_own(prepare::home_pages(self.site, &self.own_hosts));
        }
    }

    /// Plans requests for the links of a response. Returns whether all of them were within the limits. Links of the site beyond the limits
    /// are recorded for the next visit.
    pub(super) fn follow(&mut self, mut follow_ups: FollowUps, named_by: NamedBy) -> bool {
        for task in follow_ups.tasks.iter_mut().filter(|task| self.retries.contains(&task.url)) {
            task.turn = Turn::Retry;
        }
        if named_by == NamedBy::Others {
            // an indexed document has its own turn, which links of third parties must not change
            let in_index = self.site.resources.iter().filter(|known| known.manifest_id.is_some());
            let in_index: HashSet<&ManifestUrl> = in_index.map(|known| &known.url).collect();
            follow_ups.tasks.retain(|task| task.role == Role::Part || !in_index.contains(&task.url));
        }
        let is_own = |host: &Host| self.own_hosts.contains(host);
        let without_room = self.progress.follow(follow_ups, named_by, &self.in_turns, is_own);
        let has_room = without_room.is_empty();
        self.progress.findings.leave_without_room(without_room, (self.site, &self.own_hosts));
        has_room
    }

    /// Plans the paths that were left for later if the reason is given by a document that the site itself names.
    fn request_remaining(&mut self, reason: FullTableReason, named_by: NamedBy, is_given: bool) {
        if is_given && named_by == NamedBy::Site {
            let tasks = prepare::remaining(self.site, &self.own_hosts, &self.tools.priors.now(), reason);
            self.progress.plan.add_own(tasks);
        }
    }

    /// Follows TXT records that name a manifest, and SVCB records that name a host with one.
    async fn follow_records(&mut self, task: &Task) {
        let host = task.url.host();
        let labels = (&links::TEXT_LABELS[..], &links::SERVICE_LABELS[..]);
        let records = self.requester.records(&mut self.progress.traffic, &host, labels).await;
        let is_whole = records.texts.iter().chain(&records.services).all(Result::is_ok);
        let of_texts = records.texts.iter().flatten().flatten();
        let of_services = records.services.iter().flatten().flatten();
        let mut found = FollowUps::default();
        found.extend(of_texts.map(|text| links::of_text_record(&task.url, text)));
        found.extend(of_services.map(|target| links::of_service_record(&task.url, target)));
        let read = is_whole.then_some(ReadWhole::Records(&host));
        self.follow_links_of_host(FullTableReason::Linked, task, read, found);
    }

    /// Records denials for up to `max` known documents of a host that its robots.txt forbids, whether or not this visit would request them,
    /// and removes them from the plan. Skips URLs without a document, because they have nothing in the index.
    async fn deny_known(
        &mut self,
        host: &Host,
        verdict: &Arc<RobotsVerdict>,
        max: usize,
        is_denied: impl Fn(&ResourceState, &RobotsDecision) -> bool,
    ) -> Result<(), Interrupt> {
        let now = clock::now();
        let has_document =
            |known: &&ResourceState| known.manifest_id.is_some() || known.content_hash.is_some();
        let known = self.site.resources.iter().filter(|known| known.url.host() == *host);
        let known: Vec<&ResourceState> = known.filter(has_document).collect();
        let paths = known.iter().map(|known| known.url.path_and_query()).collect();
        let decisions = self.requester.decisions(verdict, paths).await?;
        let denied = known.into_iter().zip(decisions).filter(|(known, decision)| is_denied(known, decision));
        let denied = denied.filter_map(|(known, decision)| {
            let task = Task {
                linked_from: known.linked_from.clone().map(Box::new),
                ..Task::new(known.url.clone(), policy::BodyKind::Manifest, known.discovery)
            };
            let task = Task { named_by: self.own_hosts.named_by_for_task(&task), ..task };
            let fetched = Fetched::unanswered(&task, decision.outcome()?, None, now);
            Some(Fetched { robots_rule: Some(decision.to_string()), ..fetched })
        });
        let denied: Vec<Fetched> = denied.take(max).collect();
        let Progress { plan, findings, .. } = &mut self.progress;
        plan.drop_urls(&denied.iter().map(|fetched| &fetched.url).collect());
        findings.deny(denied);
        Ok(())
    }

    /// The row of the path table that a task checks, if the host is the one with path checks.
    fn slot_checked(&self, task: &Task) -> Option<u8> {
        task.slot.filter(|_| self.own_hosts.has_path_checks(&task.url.host()))
    }

    /// Uses a fresh copy instead of sending a request. Follows its parts, which may be stale.
    async fn use_fresh_copy(&mut self, task: &Task, known: &ResourceState) -> Result<NextStep, Interrupt> {
        if known.outcome.is_present() {
            let until = known.fresh_until.map(|until| until.format("%Y-%m-%d %H:%M:%S UTC").to_string());
            let reason = Some(format!("fresh until {}", until.unwrap_or_default()));
            let fetched = Fetched::unanswered(task, FetchOutcome::Fresh, reason, clock::now());
            self.progress.findings.record(self.slot_checked(task), fetched);
            Box::pin(self.follow_known_parts(task)).await?;
        }
        Ok(NextStep::Continue)
    }

    /// Whether a document is unreadable for the first time in a row, although the index has a readable manifest. The response may have been
    /// cut off.
    async fn may_be_truncated(
        &self,
        fetched: &Fetched,
        known: Option<&ResourceState>,
    ) -> Result<bool, StoreError> {
        let is_malformed = |manifest: &Manifest| manifest.format() == Format::Malformed;
        let is_first = known.is_some_and(|known| known.manifest_id.is_some() && known.misses_in_row == 0);
        if !is_first || !fetched.manifest.as_deref().is_some_and(is_malformed) {
            return Ok(false);
        }
        let stored = self.stored_manifest(&fetched.url).await?;
        Ok(stored.is_some_and(|stored| !is_malformed(&stored.manifest)))
    }

    /// Records the result of a task, follows its links, and determines whether the visit continues.
    async fn conclude(
        &mut self,
        task: &Task,
        mut fetched: Fetched,
        known: Option<&ResourceState>,
    ) -> Result<NextStep, Interrupt> {
        let rules = self.progress.plan.rules(task);
        let next = match task.role {
            Role::Canary => rules.observe_canary(fetched.outcome),
            // links may lead to pages, and a check requests every path
            _ if fetched.outcome == FetchOutcome::Html && (task.slot.is_none() || self.site.is_checked) => {
                NextStep::Continue
            }
            _ => rules.observe(fetched.outcome, task.body, fetched.hash.as_ref()),
        };
        if task.role == Role::Canary {
            return Ok(next);
        }
        if self.may_be_truncated(&fetched, known).await? {
            fetched.reject(FetchOutcome::NotAManifest, MAY_BE_CUT.to_owned());
        }
        let is_found = |url: &ManifestUrl| self.own_hosts.is_found_without_links(url);
        // an indexed document stays in the index, even if the same document is later published elsewhere
        let is_in_index = known.is_some_and(|known| known.manifest_id.is_some());
        if matches!(task.named_by, NamedBy::Further | NamedBy::Others)
            && task.discovery != Discovery::Listed
            && !is_in_index
            && let Some(original) = self.progress.findings.original_of(&fetched, self.site, is_found)
        {
            let reason = format!("the same document is at {original}");
            self.reject(&mut fetched, FetchOutcome::NotAManifest, reason);
        }
        let mut has_room = true;
        if let Some(follow_ups) = fetched.page.take() {
            let host = task.url.host();
            let read = Some(ReadWhole::Page(&host));
            has_room &= self.follow_links_of_host(FullTableReason::Linked, task, read, *follow_ups);
        }
        let is_unchanged = fetched.outcome == FetchOutcome::NotModified;
        if let Some(manifest) = fetched.manifest.as_deref() {
            let (reason, is_found) = (FullTableReason::ManifestFound, fetched.outcome.is_present());
            self.request_remaining(reason, task.named_by, is_found);
            let has_followed = self.follow_manifest(task, manifest, fetched.outcome);
            match &mut fetched.cache {
                Some(cache) => cache.links_left = !has_followed,
                None => has_room &= has_followed,
            }
        } else if is_unchanged && let Some(cache) = fetched.cache.as_mut().filter(|cache| cache.links_left) {
            match Box::pin(self.stored_manifest(&task.url)).await? {
                Some(stored) => {
                    cache.links_left = !self.follow_manifest(task, &stored.manifest, fetched.outcome);
                }
                None => has_room = false,
            }
        }
        let has_memory = fetched.outcome != FetchOutcome::NotReached;
        if !(has_room && has_memory) {
            self.progress.findings.sources.add_unfollowed(&task.url);
        }
        self.progress.links_exceed_memory |= !has_memory && task.is_link();
        self.progress.findings.record(self.slot_checked(task), fetched);
        if is_unchanged && known.is_some() {
            Box::pin(self.follow_known_parts(task)).await?;
        }
        Ok(next)
    }

    /// Follows the links of a manifest that was received or confirmed. Returns whether it has no further links. The parts of a confirmed
    /// manifest are followed separately.
    fn follow_manifest(&mut self, task: &Task, manifest: &Manifest, outcome: FetchOutcome) -> bool {
        let named_by = self.own_hosts.named_by_document(task);
        let mut follow_ups = links::of_manifest_in_visit(manifest, self.site.visits);
        follow_ups.put_unknown_first(self.site);
        let is_whole = links::are_read_whole(manifest);
        if is_whole && outcome.is_present() && manifest.format() != Format::Malformed {
            let read = ReadWhole::Document(&task.url);
            self.compare_links(read, (&follow_ups, named_by));
        }
        if outcome == FetchOutcome::NotModified {
            follow_ups.tasks.retain(|task| task.role == Role::Manifest);
        }
        self.follow(follow_ups, named_by) && is_whole
    }
}

/// Whether the document was a manifest that was removed from the index, for example because it was denied for a while. It is indexed again
/// only if it is received completely. A copy of another manifest has never been in the index.
fn has_left_index(site: &SiteState, known: &ResourceState, task: &Task) -> bool {
    let is_copy = || {
        let others = site.resources.iter().filter(|other| other.manifest_id.is_some());
        known.outcome.is_present() && others.into_iter().any(|other| other.content_hash == known.content_hash)
    };
    task.role == Role::Manifest
        && known.manifest_id.is_none()
        && known.content_hash.is_some()
        && !is_known_part(site, known, task)
        && !is_copy()
}

/// Whether a document that a link names as a manifest was received only as a part of another manifest so far.
fn is_known_part(site: &SiteState, known: &ResourceState, task: &Task) -> bool {
    task.role == Role::Manifest
        && known.manifest_id.is_none()
        && known.content_hash.is_some()
        && known.outcome.is_present()
        && known.linked_from.as_ref().is_some_and(|from| from.site() == site.name)
}

fn is_fresh(known: &ResourceState, copy_use: Use) -> bool {
    let until = known.fresh_until.map(|until| copy_use.limit(known.fetched_at, until));
    until.is_some_and(|until| clock::now() < until)
}
