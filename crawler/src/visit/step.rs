//! One task of a visit, from the copy that may still be fresh to the links of the answer.

use std::sync::Arc;

use manifest::{Discovery, Host};
use policy::{FetchOutcome, NextStep, RobotsVerdict, VisitEnd};
use store::ResourceState;

use super::fetched::Fetched;
use super::links;
use super::parts::StoredCopy;
use super::robots::Robots;
use super::task::{NamedBy, Plainly, Role, Task};
use super::{Interrupt, Visit};
use crate::clock;
use crate::config::TextRecords;

impl Visit<'_> {
    /// Does one task and says what comes next.
    pub(super) async fn step(&mut self, task: &mut Task) -> Result<NextStep, Interrupt> {
        let host = task.url.host();
        let known = self.site.resources.iter().find(|known| known.url == task.url).cloned().map(Box::new);
        if let Some(known) = known.as_deref().filter(|known| is_fresh(known, task)) {
            return Box::pin(self.stay_with_copy(task, known)).await;
        }
        let verdict = match self.robots(&host).await? {
            Robots::Verdict(verdict) => verdict,
            Robots::NoName => {
                let reason = Some("the name does not exist".to_owned());
                let fetched = Fetched::unanswered(task, FetchOutcome::DnsFailed, reason, clock::now());
                self.progress.record(task.slot, fetched);
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
        let mut paths = self.progress.queue.paths_at(host);
        paths.push(task.url.path_and_query());
        let decisions = self.decisions(verdict, paths).await;
        let rules = self.progress.rules.entry(host.clone()).or_default();
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
            for text in self.session.texts(label, &host).await {
                self.progress.follow(links::of_text_record(&task.url, &text));
            }
        }
    }

    /// What is known of a host that may no longer be asked.
    async fn refuse_known(&mut self, host: &Host, verdict: &Arc<RobotsVerdict>) {
        let now = clock::now();
        let known: Vec<_> = self.site.resources.iter().filter(|known| known.url.host() == *host).collect();
        let paths = known.iter().map(|known| known.url.path_and_query()).collect();
        let decisions = self.decisions(verdict, paths).await;
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
        self.progress.fetched.extend(refused);
    }

    /// A copy that is fresh is not asked for; its parts may be stale all the same.
    async fn stay_with_copy(&mut self, task: &Task, known: &ResourceState) -> Result<NextStep, Interrupt> {
        if known.outcome.is_present() {
            let until = known.fresh_until.map(|until| until.format("%Y-%m-%d %H:%M:%S UTC").to_string());
            let reason = Some(format!("fresh until {}", until.unwrap_or_default()));
            let fetched = Fetched::unanswered(task, FetchOutcome::Fresh, reason, clock::now());
            self.progress.record(task.slot, fetched);
            Box::pin(self.follow_known_parts(task)).await?;
        }
        Ok(NextStep::Continue)
    }

    /// A document that the site has at another URL too is no second manifest: other sites and clients may name it under any
    /// number of URLs, as by adding queries.
    fn disown_copy(&self, fetched: &mut Fetched) {
        let Some(hash) = fetched.hash.as_ref().filter(|_| fetched.manifest.is_some()) else { return };
        let of_site = self.site.resources.iter();
        let of_site =
            of_site.filter(|known| known.manifest_id.is_some() && known.content_hash.as_ref() == Some(hash));
        let of_visit = self.progress.fetched.iter();
        let of_visit = of_visit.filter(|known| known.manifest.is_some() && known.hash.as_ref() == Some(hash));
        let mut urls = of_site.map(|known| &known.url).chain(of_visit.map(|known| &known.url));
        if let Some(original) = urls.find(|url| **url != fetched.url) {
            let reason = format!("the same document is at {original}");
            fetched.forget_document();
            (fetched.outcome, fetched.reason) = (FetchOutcome::NotAManifest, Some(reason));
        }
    }

    /// Records what became of a task, follows where it leads, and lets the rules of ending decide.
    async fn conclude(
        &mut self,
        task: &Task,
        mut fetched: Fetched,
        known: Option<&ResourceState>,
    ) -> Result<NextStep, Interrupt> {
        let rules = self.progress.rules.entry(task.url.host()).or_default();
        let next = match task.role {
            Role::Canary => rules.observe_canary(fetched.outcome),
            // what a link leads to may well be a page
            _ if fetched.outcome == FetchOutcome::Html && task.slot.is_none() => NextStep::Continue,
            _ => rules.observe(fetched.outcome, task.body, fetched.hash.as_ref()),
        };
        if task.role == Role::Canary {
            return Ok(next);
        }
        if task.named_by == NamedBy::Others && task.discovery != Discovery::Listed {
            self.disown_copy(&mut fetched);
        }
        if let Some(leads) = fetched.page.take() {
            self.progress.follow(*leads);
        }
        if let Some(manifest) = &fetched.manifest {
            self.progress.follow(links::of_manifest(manifest));
        }
        let is_unchanged = fetched.outcome == FetchOutcome::NotModified;
        self.progress.record(task.slot, fetched);
        if is_unchanged && known.is_some() {
            Box::pin(self.follow_known_parts(task)).await?;
        }
        Ok(next)
    }
}

fn is_fresh(known: &ResourceState, task: &Task) -> bool {
    task.plainly == Plainly::No && known.fresh_until.is_some_and(|until| clock::now() < until)
}
