//! Checks the claim to a site: the TXT record first, and the file only if no record proves a key.
//!
//! The record is queried before any request, so that no response of the site can prevent the query. The request for the file follows the
//! same rules as other requests, but is sent first, because a site may ask for delays that make a visit take weeks. A further request for
//! the file is sent after other requests. The result does not affect how the site is read, unless the site asks for a delay. It is saved
//! while the visit waits. If responses of the domain end a visit before the check, the visit counts as one that did not find the proof.
//! Otherwise a former owner could keep the claim to a domain that now belongs to someone else. Results that others can cause, such as a
//! response of another host or a failure of the name servers, do not count.

use chrono::{DateTime, Utc};
use manifest::{Discovery, Host, ManifestUrl, is_main_host};
use policy::claim::{self, CheckResult, Claim, ClaimAuthority, Proof};
use policy::key::{KeyHash, KeyKind};
use policy::{BodyKind, FetchOutcome, NextStep, VisitEnd};
use store::SiteState;

use super::Visit;
use super::context::{Interrupt, Scope};
use super::fetched::Fetched;
use super::task::{Role, Task};
use crate::clock;
use crate::retry::retry_while_unavailable;

/// The task that checks the claim to a site. `None` if a visit that began at `started_at` need not check it.
pub(super) fn task(site: &SiteState, started_at: DateTime<Utc>, now: DateTime<Utc>) -> Option<Task> {
    site.claim.as_ref().filter(|claim| claim.is_open_in_visit(started_at, now))?;
    let url = ManifestUrl::on_host(&site.name.apex(), claim::FILE_PATH).ok()?;
    Some(Task { role: Role::Claim, ..Task::new(url, BodyKind::Other, Discovery::WellKnown) })
}

impl Visit<'_> {
    /// Looks for the proof in the TXT records, once per visit and before its requests.
    pub(super) async fn check_claim_records(&mut self) -> Result<(), Interrupt> {
        if !self.looks_for_claim() || self.progress.claim_records.is_some() {
            return Ok(());
        }
        let Some(authority) = self.claim_authority().await? else { return Ok(()) };
        let apex = self.site.name.apex();
        let labels = (&[claim::DNS_LABEL][..], &[][..]);
        let mut records = self.requester.records(&mut self.progress.traffic, &apex, labels).await;
        let Some(Ok(records)) = records.texts.pop() else { return Ok(()) };
        self.progress.claim_records = Some(records.len());
        let keys = authority.proven(&self.site.name, records.iter().map(String::as_str));
        if !keys.is_empty() {
            self.conclude_claim(CheckResult::Proven { keys, proof: Proof::Dns });
        }
        Ok(())
    }

    /// Looks for the proof in the file.
    pub(super) async fn check_claim_file(&mut self, task: &mut Task) -> Result<NextStep, Interrupt> {
        let Some(authority) = self.claim_authority().await? else {
            let reason = "this instance has issued no token yet".to_owned();
            self.conclude_claim(CheckResult::Nothing { reason });
            return Ok(NextStep::Continue);
        };
        let Some(fetched) = self.answer(task, None).await? else { return Ok(NextStep::Continue) };
        self.progress.claim_file_at = Some(clock::now());
        self.progress.results_at_claim_file = self.progress.findings.fetched.len();
        let next = match fetched.outcome {
            FetchOutcome::RateLimited => NextStep::Stop(VisitEnd::RateLimited),
            // this response does not affect the other paths
            _ => NextStep::Continue,
        };
        match of_file(self.site, &authority, &fetched, self.progress.claim_records) {
            CheckResult::Nothing { .. } if self.has_unread_proof() => {}
            result => self.conclude_claim(result),
        }
        Ok(next)
    }

    /// Concludes a check that was still open when the visit ended. A visit that reached its own limits, or that another host ended, counts
    /// as one without a check.
    pub(super) fn conclude_unfinished_claim(&mut self, end: VisitEnd) {
        if !self.looks_for_claim() || self.has_unread_proof() {
            return;
        }
        if let Some(end) = self.end_at_main_host(end) {
            let record = no_record(self.site, self.progress.claim_records);
            let (file, why) = (claim::FILE_PATH, end.description());
            let reason = format!("{record}; the visit ended before {file} was requested ({why})");
            self.conclude_claim(CheckResult::Nothing { reason });
        }
    }

    /// How responses of the domain or its `www.` host ended the requests to that host, or `None` if they did not. `end` is the end of the
    /// whole visit.
    fn end_at_main_host(&self, end: VisitEnd) -> Option<VisitEnd> {
        let is_main = |host: &Host| is_main_host(&self.site.name, host);
        let mut ended = self.progress.plan.ended.iter();
        let of_host = ended.find(|(host, _)| is_main(host)).map(|(_, end)| *end);
        of_host.or_else(|| self.progress.ended_at.as_ref().filter(|host| is_main(host)).map(|_| end))
    }

    /// Whether the owner's proof is in TXT records that could not be queried.
    fn has_unread_proof(&self) -> bool {
        let owner = self.site.claim.as_ref().and_then(|claim| claim.owner.as_ref());
        self.progress.claim_records.is_none() && owner.is_some_and(|owner| owner.proof == Proof::Dns)
    }

    /// Whether the visit checks the claim and has no result yet.
    fn looks_for_claim(&self) -> bool {
        let started_at = self.progress.started_at;
        let is_open = |claim: &Claim| claim.is_open_in_visit(started_at, clock::now());
        self.site.claim.as_ref().is_some_and(is_open)
            && self.scope == Scope::Site
            && self.progress.claim.is_none()
    }

    /// Returns the verifier of tokens. `None` if this instance has not issued a token yet.
    async fn claim_authority(&self) -> Result<Option<ClaimAuthority>, Interrupt> {
        let store = &self.tools.store;
        let secret =
            retry_while_unavailable("read the secret of claims", || store.claim_secret_find()).await?;
        Ok(secret.map(|secret| ClaimAuthority::new(&secret)))
    }

    fn conclude_claim(&mut self, result: CheckResult) {
        let before = self.site.claim.clone().unwrap_or_default();
        self.progress.claim = Some(before.after(result, clock::now()));
    }
}

/// The result of a check whose TXT records proved no key. `records` is the number of records, if the name servers answered.
fn of_file(
    site: &SiteState,
    authority: &ClaimAuthority,
    fetched: &Fetched,
    records: Option<usize>,
) -> CheckResult {
    let keys = match &fetched.body {
        Some(body) if is_own(site, fetched) => {
            authority.proven_by_file(&site.name, &String::from_utf8_lossy(&body.0))
        }
        _ => Vec::new(),
    };
    if !keys.is_empty() {
        return CheckResult::Proven { keys, proof: Proof::File };
    }
    let domain = &site.name;
    let record = no_record(site, records);
    let reason = fetched.reason.as_deref().or(fetched.robots_rule.as_deref());
    let file = match (fetched.outcome, reason) {
        (FetchOutcome::Found, _) if !is_own(site, fetched) => {
            format!("redirects to a URL other than {} of {domain} or www.{domain}", claim::FILE_PATH)
        }
        (FetchOutcome::Found, _) if has_key(fetched) => {
            "has a key, which is a secret and now public: request a new key, and publish its line, which begins \
             with agentdex-claim="
                .to_owned()
        }
        (FetchOutcome::Found, _) => {
            format!("has no token of this instance for {domain}, or has other text than tokens and comments")
        }
        (outcome, Some(reason)) => format!("could not be used ({}): {reason}", outcome.label()),
        (outcome, None) => format!("could not be used ({})", outcome.label()),
    };
    CheckResult::Nothing { reason: format!("{record}; {} {file}", claim::FILE_PATH) }
}

/// Whether the file has the key of an owner, which must not be published.
fn has_key(fetched: &Fetched) -> bool {
    let text = fetched.body.as_ref().map(|body| String::from_utf8_lossy(&body.0));
    text.is_some_and(|text| {
        text.split_whitespace().any(|word| KeyHash::of_key(KeyKind::Owner, word).is_some())
    })
}

/// The reason why the TXT records prove no key. `records` is their number, if the name servers answered.
fn no_record(site: &SiteState, records: Option<usize>) -> String {
    let domain = &site.name;
    match records {
        None => format!("the TXT records of {}.{domain} could not be queried", claim::DNS_LABEL),
        Some(0) => format!("{}.{domain} has no TXT record", claim::DNS_LABEL),
        Some(_) => format!(
            "no TXT record of {}.{domain} has a token of this instance for {domain}",
            claim::DNS_LABEL
        ),
    }
}

/// Whether the file was served at its path by a main host of the site. Another host or path may belong to somebody else.
fn is_own(site: &SiteState, fetched: &Fetched) -> bool {
    let url = fetched.final_url.as_deref().unwrap_or(&fetched.url);
    is_main_host(&site.name, &url.host()) && url.path_and_query() == claim::FILE_PATH
}
