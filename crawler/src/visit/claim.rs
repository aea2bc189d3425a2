//! Checks the claim to a site: the TXT record first, and the file only if no record proves a key.
//!
//! The request for the file follows every rule of the others, and comes after those for the paths and files of the site itself. Its
//! result does not affect how the site is read.

use manifest::{Discovery, ManifestUrl};
use policy::claim::{self, CheckResult, ClaimAuthority, Proof};
use policy::{BodyKind, FetchOutcome, NextStep};
use store::{SiteState, is_main_host};

use super::Visit;
use super::context::Interrupt;
use super::fetched::Fetched;
use super::task::{NamedBy, Role, Task};
use crate::clock;
use crate::retry::retry_while_unavailable;

/// The task that checks the claim to a site.
pub(super) fn task(site: &SiteState) -> Option<Task> {
    let url = ManifestUrl::on_host(&site.name.apex(), claim::FILE_PATH).ok()?;
    let task = Task::new(url, BodyKind::Other, Discovery::WellKnown);
    Some(Task { role: Role::Claim, named_by: NamedBy::Others, ..task })
}

impl Visit<'_> {
    /// Looks for the proof of a claim.
    pub(super) async fn check_claim(&mut self, task: &mut Task) -> Result<NextStep, Interrupt> {
        let secret =
            retry_while_unavailable("read the secret of claims", || self.tools.store.claim_secret_find())
                .await?;
        let Some(secret) = secret else {
            let reason = "this instance has issued no token yet".to_owned();
            self.conclude_claim(CheckResult::Nothing { reason });
            return Ok(NextStep::Continue);
        };
        let authority = ClaimAuthority::new(&secret);
        let apex = self.site.name.apex();
        let records = self.requester.text_records(claim::DNS_LABEL, &apex).await;
        let keys = authority.proven(&self.site.name, records.iter().map(String::as_str));
        if !keys.is_empty() {
            self.conclude_claim(CheckResult::Proven { keys, proof: Proof::Dns });
            return Ok(NextStep::Continue);
        }
        let fetched = self.answer(task, None).await?;
        let next = match fetched.outcome {
            // a page in place of the file does not count as one of the paths that answer alike
            FetchOutcome::Html => NextStep::Continue,
            outcome => self.progress.plan.rules(&task.url.host()).observe(outcome, task.body, None),
        };
        self.conclude_claim(of_file(self.site, &authority, &fetched, records.len()));
        Ok(next)
    }

    fn conclude_claim(&mut self, result: CheckResult) {
        let before = self.site.claim.clone().unwrap_or_default();
        self.progress.claim = Some(before.after(result, clock::now()));
    }
}

/// The result of a check whose TXT records proved no key.
fn of_file(site: &SiteState, authority: &ClaimAuthority, fetched: &Fetched, records: usize) -> CheckResult {
    let keys = match &fetched.body {
        Some(body) if is_own(site, fetched) => {
            authority.proven(&site.name, [&*String::from_utf8_lossy(&body.0)])
        }
        _ => Vec::new(),
    };
    if !keys.is_empty() {
        return CheckResult::Proven { keys, proof: Proof::File };
    }
    let domain = &site.name;
    let record = match records {
        0 => format!("{}.{domain} has no TXT record", claim::DNS_LABEL),
        _ => format!(
            "no TXT record of {}.{domain} has a token of this instance for {domain}",
            claim::DNS_LABEL
        ),
    };
    let reason = fetched.reason.as_deref().or(fetched.robots_rule.as_deref());
    let file = match (fetched.outcome, reason) {
        (FetchOutcome::Found, _) if !is_own(site, fetched) => {
            format!("redirects to a URL other than {} of {domain} or www.{domain}", claim::FILE_PATH)
        }
        (FetchOutcome::Found, _) => format!("has no token of this instance for {domain}"),
        (outcome, Some(reason)) => format!("could not be used ({outcome}): {reason}"),
        (outcome, None) => format!("could not be used ({outcome})"),
    };
    CheckResult::Nothing { reason: format!("{record}; {} {file}", claim::FILE_PATH) }
}

/// Whether the file comes from the site itself: another host of a site may belong to somebody else, and so may another path.
fn is_own(site: &SiteState, fetched: &Fetched) -> bool {
    let url = fetched.final_url.as_deref().unwrap_or(&fetched.url);
    is_main_host(site.name.as_str(), url.host().as_str()) && url.path_and_query() == claim::FILE_PATH
}
