//! Submitted sites: adds them to the crawler's queue, within limits.

use chrono::{DateTime, TimeDelta, Utc};
use manifest::{Host, ManifestUrl, SiteName, SiteScope};
use policy::claim::Claim;
use serde::Serialize;
use store::{HostState, Seed, SeedOrigin, SiteState, SiteSummary, Store};
use utoipa::ToSchema;

use super::site::unknown;
use crate::client::Client;
use crate::clock;
use crate::limits::{Exhausted, Limits};
use crate::manifests::ManifestReader;
use crate::problem::Problem;
use crate::quota::RemainingQuota;

/// Maximum number of hosts of a site that are queued again, visited hosts first. One visit covers fewer.
const HOSTS_MAX: u32 = 50;
/// When a requested visit is made.
const AS_SOON_AS_ALLOWED: &str = "visited as soon as its robots.txt and its crawl delay allow";
/// Minimum interval between a visit and the next requested one.
const RECHECK_EVERY: TimeDelta = TimeDelta::minutes(10);

/// The result of a submission.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SubmissionAnswer {
    #[schema(value_type = String)]
    pub(crate) site: SiteName,
    /// `added` where it was not known before, else `known`.
    outcome: &'static str,
    /// Where the record of the site is served.
    pub(crate) status_url: String,
    message: String,
}

/// Who requests a visit of a known site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestedBy {
    Anybody,
    /// Proved by the key of the site.
    Owner,
}

/// Queues sites for one client.
pub(crate) struct Submissions<'a> {
    pub(crate) store: &'a Store,
    pub(crate) limits: &'a Limits,
    pub(crate) base_url: String,
    pub(crate) client: Client,
}

impl Submissions<'_> {
    /// Adds a site, or makes a known one due under the limit of a recheck. Nothing else changes for a known site, because anyone may submit
    /// it. If a visit was requested recently, a new host or URL is still added, and the site becomes due when the limit permits it.
    pub(crate) async fn submit(
        &self,
        host: Host,
        url: Option<ManifestUrl>,
        requested_by: RequestedBy,
    ) -> Result<(SubmissionAnswer, RemainingQuota), Problem> {
        let checked = match &url {
            Some(url) => SiteScope::Public.check_url(url).map_err(|error| (error, "url")),
            None => SiteScope::Public.check_host(&host).map_err(|error| (error, "domain")),
        };
        checked.map_err(|(error, parameter)| {
            Problem::bad_request(error.to_string()).with_parameter(parameter)
        })?;
        let site = host.site();
        let has_url = url.is_some();
        let (quota, limited) = match requested_by {
            RequestedBy::Owner => (self.admit_owner(&site).await?, None),
            RequestedBy::Anybody => self.admit_submission(&site, has_url).await?,
        };
        let seed = Seed { host, url, rank: None, origin: SeedOrigin::Submitted, revisit_now: false };
        let now = clock::now();
        let wait_s = limited.map_or(0, |exhausted| exhausted.retry_after_s);
        let due_at = now + TimeDelta::seconds(wait_s.into());
        let summary = self.store.site_summary(&site).await?;
        let added = self.store.seeds_add_due_at(std::slice::from_ref(&seed), now, due_at).await?;
        if added.refused > 0 {
            let detail =
                format!("{site} already has the maximum number of hosts or of URLs that wait for a visit");
            return Err(Problem::bad_request(detail).with_parameter(if has_url { "url" } else { "domain" }));
        }
        if added.added > 0 {
            let when = if wait_s == 0 { "soon".to_owned() } else { format!("in {}", wait_words(wait_s)) };
            let (outcome, message) = match summary {
                Some(_) => {
                    let new = if has_url { "URL" } else { "host" };
                    (
                        "known",
                        format!("{site} was known already, and this {new} is new: it is visited {when}"),
                    )
                }
                None => ("added", format!("{site} is in the queue and will be visited {when}")),
            };
            return Ok((self.answer(site, outcome, message), quota));
        }
        if let Some(exhausted) = limited {
            let next_visit_at = summary.and_then(|summary| summary.next_visit_at);
            return Err(recently_requested(&site, exhausted, next_visit_at, now));
        }
        let last_visit_at = summary.and_then(|summary| summary.last_visit_at);
        let report = self.store.site_report_brief(&site, 0, HOSTS_MAX).await?;
        let delay_s = report.and_then(|report| delay_of(&report.state, now));
        let wait_s = wait_after(last_visit_at, now).max(delay_s);
        let due_at = now + TimeDelta::seconds(wait_s.unwrap_or_default().into());
        if requested_by == RequestedBy::Owner {
            self.store.visit_request_of_owner(&site, now).await?;
        }
        self.store.seeds_add_due_at(&[Seed { revisit_now: true, ..seed }], now, due_at).await?;
        let message = match wait_s {
            Some(wait_s) if delay_s == Some(wait_s) => format!(
                "{site} was known already, and asked for a delay; it is visited again in {}",
                wait_words(wait_s)
            ),
            Some(wait_s) => format!(
                "{site} was known already, and was visited less than ten minutes ago; it is visited again in {}",
                wait_words(wait_s)
            ),
            None => format!("{site} was known already; it is {AS_SOON_AS_ALLOWED}"),
        };
        Ok((self.answer(site, "known", message), quota))
    }

    /// Requests a visit of a known site before it is due. The owner has its own limit, which replaces the limits of other clients.
    pub(crate) async fn recheck(
        &self,
        manifests: ManifestReader<'_>,
        site: SiteName,
        requested_by: RequestedBy,
    ) -> Result<(SubmissionAnswer, RemainingQuota), Problem> {
        let story = manifests.history(&site, 0, HOSTS_MAX).await?;
        let (story, _permit) = story.ok_or_else(|| unknown(&site))?.into_parts();
        let now = clock::now();
        self.refuse_blocked(&site).await?;
        if let Some(wait_s) = delay_of(&story.state, now) {
            let detail = format!("{site} asked for a delay; try again in {}", wait_words(wait_s));
            return Err(Problem::too_many(detail, wait_s));
        }
        let quota = match requested_by {
            RequestedBy::Owner => self.admit_owner(&site).await?,
            RequestedBy::Anybody => self.admit_recheck(&site, &story.summary, now)?,
        };
        if requested_by == RequestedBy::Owner {
            self.store.visit_request_of_owner(&site, now).await?;
        }
        Ok((self.visit_again(site, story.state, now).await?, quota))
    }

    /// Checks the limits of a submission for clients other than the owner. Returns the exhausted limit of the site if a visit was requested
    /// recently.
    async fn admit_submission(
        &self,
        site: &SiteName,
        has_url: bool,
    ) -> Result<(RemainingQuota, Option<Exhausted>), Problem> {
        let quota = self
            .limits
            .submission(self.client)
            .map_err(|exhausted| exhausted.problem("this address has submitted too many domains"))?;
        self.refuse_blocked(site).await?;
        if has_url {
            self.limits.submitted_url(self.client, site).map_err(|exhausted| {
                exhausted.problem(&format!(
                    "too many URLs of {site} were submitted; its owner may submit more, with the key of the site"
                ))
            })?;
        }
        Ok((quota, self.limits.visit(site).err()))
    }

    /// Checks the limit of the owner, which replaces the limits of other clients.
    async fn admit_owner(&self, site: &SiteName) -> Result<RemainingQuota, Problem> {
        self.refuse_blocked(site).await?;
        self.limits.owner_visit(site).map_err(|exhausted| {
            exhausted.problem(&format!("the key of the owner of {site} has requested too many visits"))
        })
    }

    /// The limits of a recheck for clients other than the owner.
    fn admit_recheck(
        &self,
        site: &SiteName,
        known: &SiteSummary,
        now: DateTime<Utc>,
    ) -> Result<RemainingQuota, Problem> {
        if let Some(wait_s) = wait_after(known.last_visit_at, now) {
            let detail =
                format!("{site} was visited less than ten minutes ago; try again in {}", wait_words(wait_s));
            return Err(Problem::too_many(detail, wait_s));
        }
        let quota = self
            .limits
            .submission(self.client)
            .map_err(|exhausted| exhausted.problem("this address has requested too many visits"))?;
        self.limits
            .visit(site)
            .map_err(|exhausted| recently_requested(site, exhausted, known.next_visit_at, now))?;
        Ok(quota)
    }

    /// Makes a known site due.
    async fn visit_again(
        &self,
        site: SiteName,
        state: SiteState,
        now: DateTime<Utc>,
    ) -> Result<SubmissionAnswer, Problem> {
        let wait_s = state.parked.and_then(|parked| seconds_until(parked.resume_at, now));
        let hosts = state.hosts.into_iter().filter(HostState::is_seeded).map(|host| host.host);
        let mut hosts: Vec<Host> = hosts.collect();
        if hosts.is_empty() {
            hosts.push(site.apex());
        }
        let again = |host| Seed { origin: SeedOrigin::Submitted, revisit_now: true, ..Seed::of_host(host) };
        let seeds: Vec<Seed> = hosts.into_iter().map(again).collect();
        self.store.seeds_add(&seeds, now).await?;
        let message = match wait_s {
            Some(wait_s) => format!("{site} is visited in {}, when its delay is over", wait_words(wait_s)),
            None => format!("{site} is {AS_SOON_AS_ALLOWED}"),
        };
        Ok(self.answer(site, "known", message))
    }

    /// Refuses names that are not on the public web, and blocked or suspended sites.
    pub(crate) async fn may_be_claimed(&self, site: &SiteName) -> Result<(), Problem> {
        let checked = SiteScope::Public.check_host(&site.apex());
        checked.map_err(|error| Problem::bad_request(error.to_string()).with_parameter("domain"))?;
        self.refuse_blocked(site).await
    }

    /// Requests a visit that looks for the token of a claim. A site that is not known is added.
    pub(crate) async fn check_claim(
        &self,
        site: SiteName,
    ) -> Result<(SubmissionAnswer, RemainingQuota), Problem> {
        self.may_be_claimed(&site).await?;
        let quota = self
            .limits
            .submission(self.client)
            .map_err(|exhausted| exhausted.problem("this address has requested too many visits"))?;
        let now = clock::now();
        let outcome = if self.store.site_summary(&site).await?.is_some() { "known" } else { "added" };
        if !self.store.claim_ask(&site, now, Claim::earlier_request_max(now)).await? {
            let asked = self.store.claim_find(&site).await?.unwrap_or_default();
            let wait = asked.next_check_at(now).unwrap_or(now) - now;
            let wait_s = u32::try_from(wait.num_seconds()).unwrap_or_default().saturating_add(1);
            let detail =
                format!("a check of {site} was requested less than ten minutes ago; try again in {wait_s} s");
            return Err(Problem::too_many(detail, wait_s));
        }
        let host = site.apex();
        let seed = Seed { origin: SeedOrigin::Submitted, revisit_now: true, ..Seed::of_host(host) };
        self.store.seeds_add(&[seed], now).await?;
        let message = format!("visits to {site} will look for the token for the next seven days");
        let status_url = format!("{}/sites/{site}/claim", self.base_url);
        Ok((SubmissionAnswer { site, outcome, status_url, message }, quota))
    }

    async fn refuse_blocked(&self, site: &SiteName) -> Result<(), Problem> {
        if self.store.blocked_among(std::slice::from_ref(site)).await?.is_empty() {
            return Ok(());
        }
        if let Some(suspension) = self.store.suspension_find(site).await? {
            let why = suspension.reason.description();
            return Err(Problem::forbidden(format!(
                "{site} is suspended ({why}); it is not visited: its owner can object with POST /sites/{site}/objection"
            )));
        }
        let record = self.store.site_report_brief(site, 0, 0).await?;
        let why = record.and_then(|record| record.blocked).map(|blocked| format!(" ({})", blocked.reason));
        Err(Problem::forbidden(format!("{site} is blocked{}; it is not visited", why.unwrap_or_default())))
    }

    fn answer(&self, site: SiteName, outcome: &'static str, message: String) -> SubmissionAnswer {
        let status_url = format!("{}/sites/{site}", self.base_url);
        SubmissionAnswer { site, outcome, status_url, message }
    }
}

/// The problem for a visit that was requested less than ten minutes ago, with the time of the visit that is planned.
fn recently_requested(
    site: &SiteName,
    exhausted: Exhausted,
    next_visit_at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Problem {
    let requested = format!("a visit to {site} was requested less than ten minutes ago");
    let planned = match next_visit_at {
        Some(at) if at <= now => "and is due now".to_owned(),
        Some(at) if at <= now + RECHECK_EVERY => format!("and is planned for {}", at.format("%H:%M:%S UTC")),
        _ => return exhausted.problem(&requested),
    };
    let wait_s = exhausted.retry_after_s;
    exhausted.explained(format!("{requested} {planned}; another one can be requested in {wait_s} s"))
}

/// Seconds to wait after a recent visit.
pub(crate) fn wait_after(last_visit_at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Option<u32> {
    seconds_until(last_visit_at? + RECHECK_EVERY, now)
}

/// Seconds to wait until the delay that a site asked for has passed at one of its hosts.
fn delay_of(state: &SiteState, now: DateTime<Utc>) -> Option<u32> {
    let hosts = state.hosts.iter().filter(|host| host.is_seeded());
    wait_of_delay(state.not_before, hosts.map(|host| host.next_ok_at), now)
}

/// Seconds to wait until the delay that a site asked for has passed. It may be the delay of one host, and a visit may request another one.
/// `next_requests` has for each host the earliest time of a request.
pub(crate) fn wait_of_delay(
    not_before: Option<DateTime<Utc>>,
    next_requests: impl Iterator<Item = Option<DateTime<Utc>>>,
    now: DateTime<Utc>,
) -> Option<u32> {
    let until = not_before?.min(next_requests.min()??);
    seconds_until(until, now)
}

/// Seconds until a time; `None` if it has passed.
fn seconds_until(at: DateTime<Utc>, now: DateTime<Utc>) -> Option<u32> {
    u32::try_from((at - now).num_seconds()).ok().filter(|seconds| *seconds > 0)
}

/// Formats a waiting time, rounded up: `3 minutes`, `5 hours`.
pub(crate) fn wait_words(seconds: u32) -> String {
    match seconds.div_ceil(60) {
        0 | 1 => "1 minute".to_owned(),
        minutes @ 2..=120 => format!("{minutes} minutes"),
        minutes => format!("{} hours", minutes.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_times_are_rounded_up_to_minutes() {
        for (seconds, words) in [
            (1, "1 minute"),
            (60, "1 minute"),
            (61, "2 minutes"),
            (600, "10 minutes"),
            (7_200, "120 minutes"),
            (7_201, "3 hours"),
        ] {
            assert_eq!(wait_words(seconds), words);
        }
    }

    #[test]
    fn a_check_waits_for_the_delay_of_all_hosts() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(1);
        let later = |seconds| Some(now + TimeDelta::seconds(seconds));
        for (not_before, hosts, wait) in [
            (later(600), vec![later(600)], Some(600)),
            (later(600), vec![later(600), later(300)], Some(300)),
            (later(600), vec![later(600), None], None),
            (later(600), vec![later(600), later(-5)], None),
            (later(600), vec![], None),
            (later(-5), vec![later(3)], None),
            // a Crawl-delay is not a delay that the site asked for
            (None, vec![later(3)], None),
        ] {
            assert_eq!(wait_of_delay(not_before, hosts.clone().into_iter(), now), wait, "{hosts:?}");
        }
    }

    #[test]
    fn a_second_request_is_told_when_the_first_one_is_answered() {
        let site = SiteName::parse("shop.example").unwrap();
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(1);
        let told = |next_visit_at| {
            let limits = Limits::new(crate::limits::LimitsConfig::default());
            let exhausted = std::iter::repeat_with(|| limits.visit(&site).err()).take(100).flatten().next();
            recently_requested(&site, exhausted.unwrap(), next_visit_at, now).body().detail.clone()
        };
        let planned = told(Some(now + TimeDelta::minutes(3)));
        assert!(
            planned.contains("and is planned for 00:03:00 UTC; another one can be requested in"),
            "{planned}"
        );
        assert!(!planned.contains("try again"), "{planned}");
        assert!(told(Some(now)).contains("and is due now; another one"), "{}", told(Some(now)));
        for unplanned in [None, Some(now + TimeDelta::days(2))] {
            assert!(told(unplanned).contains("ten minutes ago; try again in"), "{}", told(unplanned));
        }
    }

    #[test]
    fn recheck_waits_ten_minutes_after_the_last_visit() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(1);
        assert_eq!(wait_after(None, now), None);
        assert_eq!(wait_after(Some(now - TimeDelta::minutes(4)), now), Some(360));
        assert_eq!(wait_after(Some(now - TimeDelta::minutes(10)), now), None);
    }
}
