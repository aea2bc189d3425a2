//! One task of a visit, from the copy that may still be fresh to the links of the answer.

use std::sync::Arc;

use manifest::Host;
use policy::{FetchOutcome, NextStep, RobotsVerdict, VisitEnd};
use store::ResourceState;

use super::Visit;
use super::context::Interrupt;
use super::fetched::Fetched;
use super::findings::known;
use super::links;
use super::parts::StoredCopy;
use super::requester::Robots;
use super::task::{NamedBy, Plainly, Role, Task};
use crate::clock;
use crate::config::TextRecords;

impl Visit<'_> {
    /// Does one task and says what comes next.
    pub(super) async fn step(&mut self, task: &mut Task) -> Result<NextStep, Interrupt> {
        let host = task.url.host();
        let known = known(self.site, &task.url).cloned().map(Box::new);
        if let Some(known) = known.as_deref().filter(|known| is_fresh(known, task)) {
            return Box::pin(self.stay_with_copy(task, known)).await;
        }
        let verdict = match self.requester.robots(&mut self.progress, &host).await? {
            Robots::Verdict(verdict) => verdict,
            Robots::NoName => {
                let reason = Some("the name does not exist".to_owned());
                let fetched = Fetched::unanswered(task, FetchOutcome::DnsFailed, reason, clock::now());
                self.progress.findings.record(task.slot, fetched);
                return Ok(NextStep::Stop(VisitEnd::DnsDead));
            }
        };
        let is_first_word = !self.greeted.contains(&host);
        if let NextStep::Stop(end) = Box::pin(self.greet(&host, &verdict, task)).await {
            return Ok(NextStep::Stop(end));
        }
        if is_first_word && self.tools.text_records == TextRecords::Asked {
            Box::pin(self.follow_text_records(task)).await;
        }
        // a part whose bytes are not kept has to come whole; a manifest was read when they came
        let copy = Box::pin(self.copy_of(task, known.as_deref())).await?;
        let is_part_without_copy = task.role == Role::Part && copy == StoredCopy::Missing && known.is_some();
        if copy == StoredCopy::Damaged || is_part_without_copy {
            task.plainly = Plainly::Yes;
        }
        let fetched = self.answer(task, known.as_deref()).await?;
        self.conclude(task, fetched, known.as_deref()).await
    }

    /// At the first word with a host: whether robots.txt leaves anything to ask, and where its Agentmap lines lead.
    async fn greet(&mut self, host: &Host, verdict: &Arc<RobotsVerdict>, task: &Task) -> NextStep {
        if !self.greeted.insert(host.clone()) {
            return NextStep::Continue;
        }
        let mut paths = self.progress.plan.paths_at(host);
        paths.push(task.url.path_and_query());
        let decisions = self.requester.decisions(verdict, paths).await;
        let rules = self.progress.plan.rules(host);
        let next = rules.observe_robots(verdict, &decisions);
        match next {
            NextStep::Stop(_) => self.refuse_known(host, verdict).await,
            _ => {
                if let Some(file) = verdict.file() {
                    self.progress.follow(links::of_robots(&task.url, file));
                }
            }
        }
        next
    }

    /// Names may say by TXT records where their manifest is; it is asked for like any other.
    async fn follow_text_records(&mut self, task: &Task) {
        let host = task.url.host();
        for label in links::TEXT_LABELS {
            for text in self.requester.text_records(label, &host).await {
                self.progress.follow(links::of_text_record(&task.url, &text));
            }
        }
    }

    /// What is known of a host that may no longer be asked.
    async fn refuse_known(&mut self, host: &Host, verdict: &Arc<RobotsVerdict>) {
        let now = clock::now();
        let known: Vec<_> = self.site.resources.iter().filter(|known| known.url.host() == *host).collect();
        let paths = known.iter().map(|known| known.url.path_and_query()).collect();
        let decisions = self.requester.decisions(verdict, paths).await;
        let refused: Vec<Fetched> = known
            .into_iter()
            .zip(decisions)
            .filter_map(|(known, decision)| {
                let task = Task {
                    linked_from: known.linked_from.clone().map(Box::new),
                    ..Task::new(known.url.clone(), policy::BodyKind::Manifest, known.discovery)
                };
                let fetched = Fetched::unanswered(&task, decision.outcome()?, None, now);
                Some(Fetched { robots_rule: Some(decision.to_string()), ..fetched })
            })
            .collect();
        self.progress.findings.fetched.extend(refused);
    }

    /// A copy that is fresh is not asked for; its parts may be stale all the same.
    async fn stay_with_copy(&mut self, task: &Task, known: &ResourceState) -> Result<NextStep, Interrupt> {
        if known.outcome.is_present() {
            let until = known.fresh_until.map(|until| until.format("%Y-%m-%d %H:%M:%S UTC").to_string());
            let reason = Some(format!("fresh until {}", until.unwrap_or_default()));
            let fetched = Fetched::unanswered(task, FetchOutcome::Fresh, reason, clock::now());
            self.progress.findings.record(task.slot, fetched);
            Box::pin(self.follow_known_parts(task)).await?;
        }
        Ok(NextStep::Continue)
    }

    /// Records what became of a task, follows where it leads, and lets the rules of ending decide.
    async fn conclude(
        &mut self,
        task: &Task,
        mut fetched: Fetched,
        known: Option<&ResourceState>,
    ) -> Result<NextStep, Interrupt> {
        let rules = self.progress.plan.rules(&task.url.host());
        let next = match task.role {
            Role::Canary => rules.observe_canary(fetched.outcome),
            // what a link leads to may well be a page
            _ if fetched.outcome == FetchOutcome::Html && task.slot.is_none() => NextStep::Continue,
            _ => rules.observe(fetched.outcome, task.body, fetched.hash.as_ref()),
        };
        if task.role == Role::Canary {
            return Ok(next);
        }
        if task.named_by == NamedBy::Others && task.linked_from.is_some() {
            if let Some(original) = self.progress.findings.original_of(&fetched, self.site) {
                let reason = format!("the same document is at {original}");
                fetched.reject(FetchOutcome::NotAManifest, reason);
            }
        }
        if let Some(leads) = fetched.page.take() {
            self.progress.follow(*leads);
        }
        if let Some(manifest) = &fetched.manifest {
            self.progress.follow(links::of_manifest(manifest));
        }
        let is_unchanged = fetched.outcome == FetchOutcome::NotModified;
        self.progress.findings.record(task.slot, fetched);
        if is_unchanged && known.is_some() {
            Box::pin(self.follow_known_parts(task)).await?;
        }
        Ok(next)
    }
}

fn is_fresh(known: &ResourceState, task: &Task) -> bool {
    task.plainly == Plainly::No && known.fresh_until.is_some_and(|until| clock::now() < until)
}
