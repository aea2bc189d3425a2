//! `explain DOMAIN`: shows from the store what was fetched, which rules applied, and when the next visit is.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::Host;
use policy::FetchOutcome;
use policy::claim::{self, Claim};
use policy::delay::{Scope, day_of};
use policy::plan::{PathPlan, PlannedPath, Remaining};
use policy::robots::{CopyUse, PRODUCT_TOKEN, RobotsFile};
use policy::{RobotsCause, RobotsKind, VisitEnd};
use serde::Serialize;
use store::{
    FetchReport, HostState, RobotsRecord, SiteGroup, SiteReport, SiteState, Store, Verdict, VisitReport,
    WorkerId,
};

use super::commands::site_under_any_scheme;
use super::duration;
use super::paths::{why_left, why_requested};
use super::report::{counted, plural, requests_in_words};
use crate::clock;
use crate::output::{self, OutputFormat};
use crate::priors::PathPriors;
use crate::summary::SiteAndHost;
use crate::visit::{ParkedPlan, is_without_evidence, next_paths, parked_plan, parked_robots};

/// Minimum number of fetches without a result that are shown as one entry. Fewer are shown one by one.
const FOLDED_MIN: usize = 3;

/// Shows the timeline of a site.
pub(super) async fn run(
    store: &Store,
    domain: &str,
    visits: u32,
    format: OutputFormat,
) -> anyhow::Result<()> {
    let site = site_under_any_scheme(domain)?;
    let mut read_by_parked = BTreeMap::new();
    let known = match store.site_report(&site, visits).await? {
        Some(mut report) => {
            read_by_parked = show_parked_robots(&mut report);
            let priors = PathPriors::default();
            priors.re_estimate(store).await?;
            let plan = next_paths(&report.state, &priors.now());
            let end = report.state.last_end;
            Some(Explained { paths: plan.as_ref().map(|plan| NextPaths::of(plan, end)), report })
        }
        None => None,
    };
    if format == OutputFormat::Json {
        output::json(&known)?;
    }
    let Some(Explained { report: known, paths }) = known else {
        anyhow::bail!(
            "{site} is not known here: it was neither seeded nor linked to; `{} check {site}` visits it now, \
             --seeds adds it, and --data-dir or --database-url name another database",
            super::program_name::program()
        )
    };
    if format == OutputFormat::Json {
        return Ok(());
    }
    for line in lines_before_hosts(&known).into_iter().chain(paths.iter().flat_map(NextPaths::lines)) {
        output::line(&line)?;
    }
    for host in &known.state.hosts {
        let stored = match &host.robots {
            Some(robots) if robots.kind == RobotsKind::Rules && !read_by_parked.contains_key(&host.host) => {
                store.robots_body(&host.host).await?
            }
            _ => None,
        };
        let body = read_by_parked.get(&host.host).map(|body| &**body).or(stored.as_deref());
        for line in host_lines((&known.state, host), body, worker_visiting(&known).is_some()) {
            output::line(&line)?;
        }
    }
    for line in lines_after_hosts(&known) {
        output::line(&line)?;
    }
    if let Some(SiteGroup { group, owner: Some(owner) }) = store.site_group(&site).await? {
        output::line(&format!("Its address is in group {group} of the fleet, which is visited by {owner}."))?;
    }
    Ok(())
}

/// Replaces the robots.txt records of earlier visits by those that a parked visit has read. Returns the texts of the files.
fn show_parked_robots(report: &mut SiteReport) -> BTreeMap<Host, Arc<[u8]>> {
    let mut bodies = BTreeMap::new();
    for mut record in parked_robots(&report.state) {
        let body = record.body.take();
        if let Some(state) = report.state.hosts.iter_mut().find(|state| state.host == record.host) {
            bodies.extend(body.map(|body| (record.host.clone(), body)));
            state.robots = Some(record);
        }
    }
    bodies
}

/// The state of a site as JSON.
#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    report: SiteReport,
    /// Absent before the first visit, and after all paths were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<NextPaths>,
}

/// The paths of the table that were not requested yet.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct NextPaths {
    /// The next visit requests these.
    next: Vec<&'static str>,
    /// Later visits request these.
    later: Vec<&'static str>,
    /// Why they were left for later visits, as text.
    reason: String,
}

impl NextPaths {
    /// `last_end` is how the last visit ended. If it ended early, this is why it left paths, whatever its plan was.
    fn of(plan: &PathPlan, last_end: Option<VisitEnd>) -> Self {
        let names = |rows: &[&'static PlannedPath]| rows.iter().map(|row| row.path).collect();
        let early = last_end.filter(|end| !matches!(end, VisitEnd::Completed | VisitEnd::NothingNew));
        let reason = match (early, plan.remaining) {
            (Some(end), _) => format!("the last visit ended early: {}", end.description()),
            (None, Remaining::Requested(reason)) => {
                format!("the next visit requests them since {}", why_requested(reason))
            }
            (None, remaining) => why_left(remaining),
        };
        Self { next: names(&plan.requested), later: names(&plan.left), reason }
    }

    fn lines(&self) -> Vec<String> {
        let count = self.next.len() + self.later.len();
        let mut lines = vec![
            format!("Paths left for later visits: {count}, because {}.", self.reason),
            format!("  next visit: {}", self.next.join(" ")),
        ];
        if !self.later.is_empty() {
            lines.push(format!("  after that: {}", self.later.join(" ")));
            lines.push(
                "  check requests all of them, and so does a visit after a submission if no list names the site."
                    .to_owned(),
            );
        }
        lines
    }
}

/// The host at which a visit failed, unless it is the host with the name of the site: that of the failed request, or the only known host if
/// the visit failed before its first request.
fn other_host(report: &SiteReport, visit: &VisitReport) -> Option<Host> {
    let name = &report.summary.name;
    SiteAndHost::of_report(name, visit).host.or_else(|| match report.state.hosts.as_slice() {
        [only] if only.host.as_str() != name.as_str() => Some(only.host.clone()),
        _ => None,
    })
}

fn lines_before_hosts(report: &SiteReport) -> Vec<String> {
    let summary = &report.summary;
    let mut lines = vec![format!(
        "{}: {}, {} with {}",
        summary.name,
        summary.status.label(),
        counted(summary.manifests.into(), "manifest"),
        plural(summary.capabilities.into(), "capability", "capabilities")
    )];
    if let Some(blocked) = &report.blocked {
        lines.push(format!("Blocked since {}: {}", time(blocked.at), blocked.reason));
    }
    if let Some(suspended) = &report.suspended {
        let note = if suspended.note.is_empty() { String::new() } else { format!(" ({})", suspended.note) };
        lines.push(format!(
            "Suspended since {}, for {}: {}{note}",
            time(suspended.at),
            suspended.reason,
            suspended.reason.description()
        ));
    }
    let failed = report.visits.first().filter(|visit| visit.end.is_failure());
    if let Some((visit, host)) = failed.and_then(|visit| Some((visit, other_host(report, visit)?))) {
        lines.push(format!("The last visit failed at {host}: {}", visit.end.description()));
    }
    lines.push(next_visit(report));
    lines.extend(report.state.claim.as_ref().map(claim_line));
    lines.extend(parked_plan(&report.state).iter().map(parked_line));
    if let Some(until) = report.state.not_before.filter(|until| *until > clock::now()) {
        lines.push(format!("The site asked for a delay until {} (Retry-After).", time(until)));
    }
    lines
}

fn lines_after_hosts(report: &SiteReport) -> Vec<String> {
    let mut lines = Vec::new();
    if report.visits.is_empty() {
        let none = if report.blocked.is_some() || report.suspended.is_some() || report.state.visits > 0 {
            "The stored data of its visits was deleted."
        } else if worker_visiting(report).is_some() {
            "No visit has ended yet."
        } else {
            "Not visited yet."
        };
        lines.push(none.to_owned());
    }
    for visit in &report.visits {
        lines.push(String::new());
        lines.extend(visit_lines(visit));
    }
    lines
}

/// The worker that visits the site now.
fn worker_visiting(report: &SiteReport) -> Option<&WorkerId> {
    report.lease.as_ref().filter(|lease| lease.until > clock::now()).map(|lease| &lease.worker)
}

fn next_visit(report: &SiteReport) -> String {
    if let Some(worker) = worker_visiting(report) {
        return format!("Being visited now, by {}.", worker.in_words());
    }
    if let Some(parked) = &report.state.parked {
        return format!("A visit is parked until {}: {}", time(parked.resume_at), parked.reason);
    }
    match (report.summary.next_visit_at, &report.summary.next_visit_reason) {
        (Some(at), Some(reason)) => format!("Next visit: {}, {}: {reason}", time(at), from_now(at)),
        (Some(at), None) => format!("Next visit: {}, {}", time(at), from_now(at)),
        (None, _) => "No visit is planned.".to_owned(),
    }
}

/// The result of the last check of the site's owner, whose requests are not among the listed ones.
fn claim_line(claim: &Claim) -> String {
    let finding = claim.finding.as_deref().unwrap_or("not checked yet");
    let at = claim.checked_at.map(|at| format!(", on {}", time(at))).unwrap_or_default();
    format!("Claim: {finding}{at}. A check reads TXT records, and may request {}.", claim::FILE_PATH)
}

/// What a parked visit has requested, and what it requests next.
fn parked_line(plan: &ParkedPlan) -> String {
    format!(
        "  {} since {}; the next is {}, {} left",
        counted(plan.requests.into(), "request"),
        time(plan.started_at),
        plan.next,
        if plan.left == 1 { "one URL is".to_owned() } else { format!("{} URLs are", plan.left) }
    )
}

fn from_now(at: DateTime<Utc>) -> String {
    match (at - clock::now()).to_std() {
        Ok(wait) if wait >= Duration::from_secs(1) => format!("in {}", duration::in_words(wait)),
        _ => "now".to_owned(),
    }
}

/// The rules of a host's robots.txt for this crawler, and the used part of the daily budget.
fn host_lines(
    (site, host): (&SiteState, &HostState),
    robots_body: Option<&[u8]>,
    is_being_visited: bool,
) -> Vec<String> {
    let none = if is_being_visited { "its copy is stored when the visit ends" } else { "no copy is kept" };
    let robots = host.robots.as_ref();
    let robots = robots.map_or_else(|| none.to_owned(), |robots| robots_in_words(site, robots));
    let mut lines = vec![format!("robots.txt of {}: {robots}", host.host)];
    if let Some(body) = robots_body {
        lines.extend(file_lines(&RobotsFile::parse(body, PRODUCT_TOKEN)));
    }
    let now = clock::now();
    if let (true, Some(budget)) =
        (host.requests_day == day_of(now), Scope::Authority.limits().requests_per_day_max)
    {
        lines.push(format!(
            "  requests today: {}; the limit of a host is {budget}, which does not apply inside --allow-addresses",
            host.requests_today
        ));
    }
    if let Some(at) = host.next_ok_at.filter(|at| *at > now) {
        lines.push(format!("  next request not before {}, {}", time(at), from_now(at)));
    }
    lines
}

fn file_lines(file: &RobotsFile) -> Vec<String> {
    let mut lines = vec![format!("  rules that concern {PRODUCT_TOKEN}: {}", file.rules_count())];
    let home = file.decide("/");
    lines.extend((!home.is_allowed()).then(|| format!("  /: {home}")));
    if let Some(delay) = file.crawl_delay() {
        lines.push(format!(
            "  line {}: Crawl-delay of {} is obeyed",
            delay.line,
            duration::in_words(delay.wait)
        ));
    }
    lines.extend(file.notes().iter().map(|note| {
        let location = note.line.map_or_else(|| "file".to_owned(), |line| format!("line {line}"));
        let text = if note.text.is_empty() { String::new() } else { format!(" ({})", note.text) };
        format!("  {location}: {}{text}", note.kind.in_words())
    }));
    lines
}

fn robots_in_words(site: &SiteState, record: &RobotsRecord) -> String {
    use policy::RobotsKind as Kind;
    let kind = match record.kind {
        Kind::Rules => "a file with rules".to_owned(),
        Kind::NoFile => {
            format!("no file (status {}), so everything is allowed", record.status.unwrap_or_default())
        }
        Kind::Denied => "denied to this crawler, so nothing is requested".to_owned(),
        Kind::Unreachable => "could not be read, so nothing is requested".to_owned(),
    };
    let cause = record.cause.as_deref().map(RobotsCause::in_words);
    let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
    let now = clock::now();
    let used = match CopyUse::at(record.expires_at, now) {
        CopyUse::Current if !is_without_evidence(site, record, now) => {
            format!("valid until {}", time(record.expires_at))
        }
        _ => "requested again at the next visit".to_owned(),
    };
    format!("{kind}{cause}; read {}, {used}", time(record.fetched_at))
}

fn visit_lines(visit: &VisitReport) -> Vec<String> {
    let took = (visit.ended_at - visit.started_at).to_std().unwrap_or_default();
    let phases = &visit.phases;
    let mut lines = vec![
        format!(
            "Visit of {}: {}; {}, {} with robots.txt, {}",
            time(visit.started_at),
            visit.end.description(),
            requests_in_words(visit.end, visit.requests.into()),
            counted(visit.bytes_in, "byte"),
            duration::in_words(took)
        ),
        format!(
            "  time: names {} ms, connecting {} ms, TLS {} ms, first bytes {} ms, bodies {} ms",
            phases.dns_ms, phases.connect_ms, phases.tls_ms, phases.ttfb_ms, phases.body_ms
        ),
    ];
    lines.extend(fetches_lines(&visit.fetches));
    lines.push(format!("  then: {}: {}", time(visit.next_visit.at), visit.next_visit.reason));
    lines
}

/// Lists fetches. Fetches that found nothing for the same reason share one entry, at the position of the first of them.
fn fetches_lines(fetches: &[FetchReport]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut shown = HashSet::new();
    for fetch in fetches {
        let Some(absence) = Absence::of(fetch) else {
            lines.extend(fetch_lines(fetch));
            continue;
        };
        if !shown.insert(absence.clone()) {
            continue;
        }
        let same: Vec<&FetchReport> =
            fetches.iter().filter(|other| Absence::of(other).as_ref() == Some(&absence)).collect();
        if same.len() < FOLDED_MIN {
            lines.extend(same.into_iter().flat_map(fetch_lines));
        } else {
            lines.extend(absence.lines(fetch, &same));
        }
    }
    lines
}

/// Properties of a fetch that found nothing. Fetches with equal properties are listed together.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Absence {
    outcome: FetchOutcome,
    origin: String,
    status: Option<u16>,
    reason: Option<String>,
    robots_rule: Option<String>,
    decision: String,
}

impl Absence {
    /// `None` for a fetch that found something, was redirected or followed a link.
    fn of(fetch: &FetchReport) -> Option<Self> {
        let is_plain = matches!(fetch.outcome, FetchOutcome::NotFound | FetchOutcome::RobotsDenied)
            && fetch.final_url.is_none()
            && fetch.linked_from.is_none()
            && fetch.etag.is_none();
        is_plain.then(|| Self {
            outcome: fetch.outcome,
            origin: fetch.url.origin(),
            status: fetch.status,
            reason: fetch.reason.clone(),
            robots_rule: fetch.robots_rule.clone(),
            decision: decision(fetch),
        })
    }

    fn lines(&self, first: &FetchReport, fetches: &[&FetchReport]) -> Vec<String> {
        let status = self.status.map(|status| format!(" {status}")).unwrap_or_default();
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let bytes = fetches.iter().map(|fetch| fetch.bytes).sum::<u64>();
        let mut lines = vec![format!(
            "  {} {}  {} paths  {}{status}{reason}  [{bytes} bytes]",
            first.at.format("%H:%M:%S"),
            self.origin,
            fetches.len(),
            first.outcome.label()
        )];
        lines.extend(fetches.iter().map(|fetch| {
            let url = fetch.url.as_str();
            format!("      {}", url.strip_prefix(&self.origin).unwrap_or(url))
        }));
        let rule = self.robots_rule.iter().filter(|rule| self.reason.as_ref() != Some(*rule));
        lines.extend(rule.map(|rule| format!("      robots.txt: {rule}")));
        lines.push(format!("      decision: {} (--format json shows each response)", self.decision));
        lines
    }
}

fn fetch_lines(fetch: &FetchReport) -> Vec<String> {
    let status = fetch.status.map(|status| format!(" {status}")).unwrap_or_default();
    let format = fetch.format.map(|format| format!(" as {format}")).unwrap_or_default();
    let reason = fetch.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let mut lines = vec![format!(
        "  {} {}  {}{status}{format}{reason}  [{} ms, {} bytes]",
        fetch.at.format("%H:%M:%S"),
        fetch.url,
        fetch.outcome.label(),
        fetch.duration_ms,
        fetch.bytes
    )];
    let mut detail = |text: String| lines.push(format!("      {text}"));
    if let Some(to) = &fetch.final_url {
        detail(format!("redirected to {to}"));
    }
    if let Some(from) = &fetch.linked_from {
        detail(format!("linked from {from} ({})", fetch.discovery.label()));
    }
    if let Some(rule) = fetch.robots_rule.as_ref().filter(|rule| fetch.reason.as_ref() != Some(*rule)) {
        detail(format!("robots.txt: {rule}"));
    }
    for (name, value) in &fetch.headers {
        detail(format!("{name}: {value}"));
    }
    detail(format!("decision: {}", decision(fetch)));
    lines
}

/// The effect of a response.
fn decision(fetch: &FetchReport) -> String {
    use FetchOutcome as Outcome;
    match (fetch.outcome, fetch.fresh_until) {
        (Outcome::Fresh, _) => "not requested, because its copy is fresh".to_owned(),
        (outcome, until) if outcome.is_present() => {
            let what = if outcome == Outcome::NotModified { "the copy is still valid" } else { "stored" };
            match (until, fetch.etag.is_some() || fetch.last_modified.is_some()) {
                (Some(until), _) => format!("{what}, and not requested again before {}", time(until)),
                (None, true) => format!("{what}, and requested with its validators at the next visit"),
                (None, false) => format!("{what}, and requested without validators at the next visit"),
            }
        }
        (outcome, Some(until)) if outcome.is_absent() => {
            format!("{}; not requested again before {}", effect_of(outcome), time(until))
        }
        (outcome, _) => effect_of(outcome),
    }
}

/// The effect of an outcome on a manifest that an earlier visit found. It is the effect that the store applies.
fn effect_of(outcome: FetchOutcome) -> String {
    let effect = match Verdict::of_first(outcome) {
        Verdict::Confirmed => "stored".to_owned(),
        Verdict::Unknown => "a known document is kept as it is".to_owned(),
        Verdict::StatusOnly(status) => format!("a known document is kept and marked as {status}"),
        Verdict::Missed(_) => {
            "nothing is stored; a known document is removed after the second such visit in a row".to_owned()
        }
        Verdict::Removed(_) => "a known document is removed immediately".to_owned(),
    };
    match outcome {
        FetchOutcome::NotReached | FetchOutcome::OverBudget => format!("not requested; {effect}"),
        FetchOutcome::RateLimited => {
            format!("no request is sent to this host before the delay is over; {effect}")
        }
        _ => effect,
    }
}

fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use policy::plan::FullTableReason;

    use super::*;

    #[test]
    fn describes_the_effect_of_each_outcome_that_the_store_applies() {
        use FetchOutcome as Outcome;
        let expected: [(&str, &[Outcome]); 5] = [
            (
                "removed after the second such visit in a row",
                &[Outcome::Blocked, Outcome::RedirectedAway, Outcome::RedirectRefused, Outcome::RedirectLoop],
            ),
            (
                "marked as unreachable",
                &[Outcome::Timeout, Outcome::DnsFailed, Outcome::RobotsUnreachable, Outcome::TlsFailed],
            ),
            (
                "marked as stale",
                &[Outcome::RateLimited, Outcome::ServerError, Outcome::TooLarge, Outcome::Quarantined],
            ),
            ("kept as it is", &[Outcome::NotReached, Outcome::OverBudget]),
            ("removed immediately", &[Outcome::Gone, Outcome::RobotsDenied]),
        ];
        for (words, outcomes) in expected {
            for outcome in outcomes {
                let effect = effect_of(*outcome);
                assert!(effect.ends_with(words), "{outcome}: {effect}");
            }
        }
        for outcome in FetchOutcome::ALL {
            let (effect, verdict) = (effect_of(*outcome), Verdict::of_first(*outcome));
            let is_kept = matches!(verdict, Verdict::Unknown | Verdict::StatusOnly(_));
            assert_eq!(effect.contains("is kept"), is_kept, "{outcome}: {effect}");
            assert!(!effect.contains("the visit ends"), "{outcome}: {effect}");
        }
    }

    #[test]
    fn describes_why_a_robots_txt_is_missing() {
        let record = |cause: &str| RobotsRecord {
            host: Host::parse("drowsy.example").unwrap(),
            kind: RobotsKind::Unreachable,
            cause: Some(cause.to_owned()),
            status: Some(503),
            body: None,
            fetched_at: DateTime::UNIX_EPOCH,
            expires_at: DateTime::UNIX_EPOCH,
            failures_in_row: 1,
            etag: None,
            last_modified: None,
        };
        let site = crate::dry_run::unknown(manifest::SiteName::parse("drowsy.example").unwrap());
        for (cause, words) in [
            ("rate_limited", "so nothing is requested (it asked for a delay); read 1970"),
            ("redirects_to_other_site", "(redirect to another site)"),
            ("a text of an earlier release", "(a text of an earlier release)"),
        ] {
            let text = robots_in_words(&site, &record(cause));
            assert!(text.contains(words), "{text}");
        }
        let expires_at = clock::now() + chrono::TimeDelta::hours(1);
        for (cause, words) in [("timeout", "valid until"), ("connect_failed", "again at the next visit")] {
            let text = robots_in_words(&site, &RobotsRecord { expires_at, ..record(cause) });
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn explains_paths_left_by_an_early_end_or_by_the_plan() {
        let plan = |remaining| PathPlan { requested: Vec::new(), left: Vec::new(), remaining };
        let unlikely = plan(Remaining::Unlikely { chance_ppm: 654 });
        let submitted = plan(Remaining::Requested(FullTableReason::Submitted));
        for (plan, last_end, words) in [
            (&unlikely, Some(VisitEnd::DnsDead), "the last visit ended early: the name does not exist"),
            (
                &submitted,
                Some(VisitEnd::RateLimited),
                "the last visit ended early: the site asked for a delay",
            ),
            (&unlikely, Some(VisitEnd::Completed), "about one site in 1529 has a manifest there"),
            (&unlikely, None, "about one site in 1529 has a manifest there"),
            (&submitted, Some(VisitEnd::NothingNew), "since the site was submitted"),
        ] {
            let reason = NextPaths::of(plan, last_end).reason;
            assert!(reason.contains(words), "{reason}");
        }
    }
}
