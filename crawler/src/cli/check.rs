//! `check`: visits a site now and shows the result.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use ::settings::command_line::with_flags;
use chrono::{DateTime, Utc};
use egress::EgressSettings;
use manifest::{Finding, Host, ManifestUrl, SiteName, SiteScope, is_main_host};
use policy::plan::PATHS;
use policy::{FetchOutcome, RobotsCause, RobotsKind, VisitEnd};
use store::{
    FetchReport, RobotsRecord, Seed, SeedOrigin, SiteReport, Store, StoreError, StoredManifest, VisitReport,
};

use super::report::{self, counted, plural};
use super::settings::Settings;
use super::watch::Watch;
use crate::output::{self, OutputFormat};
use crate::retry::lasting_outage;
use crate::summary::{ParkedSite, SiteAndHost};
use crate::worker::{Cancel, Progress, STOP_MAX};
use crate::{UsageError, clock};

/// Maximum number of findings shown of one manifest.
const FINDINGS_MAX: usize = 50;

/// How many times `check` polls for the end of another process's visit, and at which interval: for two minutes, the duration of the longest
/// visit without waits.
const OTHER_VISIT_POLLS: u32 = 240;
const OTHER_VISIT_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How long `check` waits while the database is unavailable: longer than a restart of a server takes.
const OUTAGE_MAX: Duration = Duration::from_secs(30);

/// Visits a site now and shows its manifests. If another crawler takes the site first, its visit is shown.
pub(super) async fn check(settings: Settings, store: Store, domain: &str) -> anyhow::Result<()> {
    let seed = seed_to_check(&settings, domain)?;
    settings.warn_about_contact_to(&seed.host);
    let (site, url) = (seed.host.site(), seed.url.clone());
    refuse_excluded(&store, &site).await?;
    let (output, location) = (settings.output, settings.shared.location.clone());
    let began = clock::now();
    let watch = Watch::new(&settings.shared);
    let progress = |update: Progress<'_>| watch.show(&update);
    let cancel = Cancel::on_signals(STOP_MAX)?;
    let checked = tokio::select! {
        checked = crate::check(settings.crawl, store.clone(), cancel.clone(), seed, &progress) => checked.map(Some),
        () = lasting_outage(OUTAGE_MAX) => Ok(None),
    };
    watch.finish();
    let Some(summary) = checked? else {
        anyhow::bail!(
            "{site} was not checked: the database has been unavailable for {} s; the log has the reason",
            OUTAGE_MAX.as_secs()
        );
    };
    let is_elsewhere = summary.sites_visited == 0 && summary.parked.is_empty() && !cancel.soft.is_cancelled();
    if is_elsewhere && output == OutputFormat::Text {
        output::line(&format!("{site}: another crawler is visiting it; waiting for the end of that visit"))?;
    }
    let visit = visit_since(&store, &site, began, if is_elsewhere { OTHER_VISIT_POLLS } else { 0 });
    let visit = cancel.soft.run_until_cancelled(visit).await.transpose()?.flatten();
    if cancel.soft.is_cancelled() && output == OutputFormat::Text {
        return Ok(output::line("Stopped. The next check or crawl visits the site.")?);
    }
    let manifests = store.manifests_of_site(&site).await?;
    if output == OutputFormat::Json {
        let value = serde_json::json!({ "site": site, "visit": summary, "manifests": manifests });
        return Ok(output::json(&value)?);
    }
    print(&site, url.as_ref(), (summary.parked.first(), visit), &manifests, &location)
}

/// Prints how the visit ended, what the operator can do, and the manifests. `location` are the flags of the data, which suggested commands
/// repeat.
fn print(
    site: &SiteName,
    url: Option<&ManifestUrl>,
    (parked, visit): (Option<&ParkedSite>, Option<CheckVisit>),
    manifests: &[StoredManifest],
    location: &str,
) -> anyhow::Result<()> {
    let program = super::program_name::program();
    let outcome = match (parked, &visit) {
        (Some(parked), _) => format!(
            "{site}: the visit waits until {}: {}; a crawl resumes it then, as does `{program} check {site}`",
            time(parked.resume_at),
            parked.reason,
        ),
        (None, Some(visit)) => visit.in_words(site),
        (None, None) => format!(
            "{site}: another crawler is visiting it; when the visit has ended, `{program} explain {site}` shows it"
        ),
    };
    output::line(&with_flags(&outcome, location))?;
    for line in visit.iter().flat_map(|checked| &checked.unread_robots) {
        output::line(&with_flags(line, location))?;
    }
    let is_unread = visit.as_ref().is_some_and(|checked| !checked.unread_robots.is_empty());
    let visit = visit.map(|checked| checked.visit);
    // the advice on robots.txt is about its rules
    if let Some(advice) = visit.as_ref().filter(|_| !is_unread).and_then(|visit| report::advice(visit.end)) {
        output::line(&with_flags(advice.text, location))?;
    }
    let nothing =
        visit.as_ref().filter(|_| manifests.is_empty()).and_then(|visit| nothing_found(site, visit));
    if let Some(nothing) = nothing {
        output::line(&with_flags(&nothing, location))?;
    }
    if let Some(left) = visit.as_ref().and_then(|visit| paths_left(site, visit)) {
        output::line(&left)?;
    }
    let is_shown = |url: &&ManifestUrl| manifests.iter().any(|stored| stored.manifest.url == **url);
    let missing = url.filter(|url| !is_shown(url)).and_then(|url| without_manifest(url, visit.as_ref()));
    if let Some(missing) = missing {
        output::line(&missing)?;
    }
    for stored in manifests {
        show(stored, fresh_words(visit.as_ref(), &stored.manifest.url))?;
    }
    Ok(())
}

/// Parses the site or URL that is to be visited. `http` is read as `https`, as in lists of seeds.
pub(super) fn seed_to_check(settings: &Settings, domain: &str) -> Result<Seed, UsageError> {
    let egress = &settings.crawl.egress;
    let https = domain.strip_prefix("http://").map(|rest| format!("https://{rest}"));
    let seed = seed_of(https.as_deref().unwrap_or(domain), egress.own_networks.site_scope())?;
    refuse_demo_host(&seed.host, egress)?;
    Ok(seed)
}

/// Refuses a host below `.example` that this process cannot resolve.
///
/// # Errors
///
/// If the name is reserved for examples, and neither its address nor name servers are given.
pub fn refuse_demo_host(host: &Host, egress: &EgressSettings) -> Result<(), UsageError> {
    if is_only_in_a_demo(host, egress) {
        return Err(UsageError(format!(
            "{host} is not on the web: names below .example are reserved for examples (RFC 2606), such as the sites of the demo, which \
             visits them itself. Check a site of the web, or give the address of {host} with --hosts"
        )));
    }
    Ok(())
}

/// Whether public name servers do not know the host, and the operator has configured neither its address nor other name servers.
fn is_only_in_a_demo(host: &Host, egress: &EgressSettings) -> bool {
    let is_reserved = host.as_str().rsplit('.').next() == Some("example");
    is_reserved && egress.hosts.find(host).is_none() && egress.name_servers.is_empty()
}

/// A sentence for a visit that found nothing, with the number of paths that responded. `None` if no path responded.
fn nothing_found(site: &SiteName, visit: &VisitReport) -> Option<String> {
    let answered = visit.fetches.iter().filter(|fetch| fetch.outcome.is_response()).count() as u64;
    let paths = counted(answered, "path");
    (answered > 0).then(|| {
        format!(
            "Nothing was found at {paths}; `{} explain {site}` lists them.{}",
            super::program_name::program(),
            other_answers(visit).unwrap_or_default()
        )
    })
}

/// A sentence about the responses that are not "there is no such file", each with an example.
fn other_answers(visit: &VisitReport) -> Option<String> {
    let is_other = |fetch: &&FetchReport| {
        fetch.outcome.is_response() && !matches!(fetch.outcome, FetchOutcome::NotFound | FetchOutcome::Gone)
    };
    let mut groups: BTreeMap<&str, (u64, &FetchReport)> = BTreeMap::new();
    for fetch in visit.fetches.iter().filter(is_other) {
        groups.entry(fetch.outcome.as_str()).or_insert((0, fetch)).0 += 1;
    }
    let words = |(count, example): &(u64, &FetchReport)| {
        let status = || example.status.map(|status| format!("HTTP {status}"));
        let reason = example.reason.clone().or_else(status).unwrap_or_default();
        let path = example.url.path_and_query();
        format!("{} (for example {path}: {reason})", example.outcome.counted(*count))
    };
    let groups: Vec<String> = groups.values().map(words).collect();
    (!groups.is_empty()).then(|| format!(" Of the answers: {}.", groups.join(", ")))
}

/// A sentence with the well-known paths that the visit did not request at the main hosts. `None` if it requested every path or none.
fn paths_left(site: &SiteName, visit: &VisitReport) -> Option<String> {
    let is_requested = |fetch: &&FetchReport| match fetch.outcome {
        FetchOutcome::Fresh => true,
        FetchOutcome::ConnectFailed | FetchOutcome::TlsFailed => false,
        outcome => outcome.is_requested(),
    };
    let of_site = visit.fetches.iter().filter(|fetch| is_main_host(site, &fetch.url.host()));
    let requested: HashSet<String> =
        of_site.filter(is_requested).map(|fetch| fetch.url.path_and_query()).collect();
    let left = PATHS.iter().map(|row| row.path).filter(|path| !requested.contains(*path));
    let left: Vec<&str> = left.collect();
    let count = PATHS.len() - left.len();
    (count > 0 && !left.is_empty()).then(|| {
        format!("{count} of {} well-known paths were requested. Left: {}", PATHS.len(), left.join(" "))
    })
}

/// Refuses a site that the operator has excluded.
async fn refuse_excluded(store: &Store, site: &SiteName) -> anyhow::Result<()> {
    if store.blocked_among(std::slice::from_ref(site)).await?.is_empty() {
        return Ok(());
    }
    let known = store.site_report(site, 1).await?;
    let is_suspended = known.as_ref().is_some_and(|known| known.suspended.is_some());
    let blocked = known.and_then(|known| known.blocked).map(|blocked| format!(" ({})", blocked.reason));
    let (is, command) = if is_suspended {
        ("suspended".to_owned(), "unsuspend")
    } else {
        (format!("blocked{}", blocked.unwrap_or_default()), "unblock")
    };
    let program = super::program_name::program();
    anyhow::bail!("{site} is not visited: it is {is}; `{program} {command} {site}` allows visits again")
}

/// What became of a URL that was to be checked and has no manifest.
fn without_manifest(url: &ManifestUrl, visit: Option<&VisitReport>) -> Option<String> {
    let fetch = visit?.fetches.iter().find(|fetch| fetch.url == *url)?;
    let status = fetch.status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
    let reason = fetch.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    Some(format!("{url}: {}{status}{reason}", fetch.outcome.label()))
}

fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// The visit that `check` shows.
struct CheckVisit {
    visit: VisitReport,
    next_visit_at: Option<DateTime<Utc>>,
    /// A line for each robots.txt that allows nothing because it could not be read.
    unread_robots: Vec<String>,
}

impl CheckVisit {
    /// The last visit of a site.
    fn last(known: SiteReport) -> Option<Self> {
        let next_visit_at = known.summary.next_visit_at;
        let visit = known.visits.into_iter().next()?;
        let ends = [VisitEnd::RobotsUnreachable, VisitEnd::RobotsDenied, VisitEnd::RateLimited];
        let hosts = known.state.hosts.iter().filter(|_| ends.contains(&visit.end));
        let unread_robots = hosts.filter_map(|host| unread_robots(&host.host, host.robots.as_ref()?));
        Some(Self { unread_robots: unread_robots.collect(), visit, next_visit_at })
    }

    /// How the visit ended and, if it failed or was denied, when the next one is.
    fn in_words(&self, site: &SiteName) -> String {
        let Self { visit, next_visit_at, .. } = self;
        let requests = report::requests_in_words(visit.end, visit.requests.into());
        let named = SiteAndHost::of_report(site, visit);
        let next = next_visit_at.filter(|_| visit.end.is_failure() || visit.end == VisitEnd::RobotsDenied);
        let next = next.map(|at| format!("; the next visit is at {}", time(at)));
        let fresh = visit.fetches.iter().filter(|fetch| fetch.outcome == FetchOutcome::Fresh).count();
        let fresh = match fresh {
            0 => String::new(),
            1 => "; 1 document was not requested, because its copy is fresh".to_owned(),
            many => format!("; {many} documents were not requested, because their copies are fresh"),
        };
        format!("{named}: {}; {requests}{fresh}{}", visit.end.description(), next.unwrap_or_default())
    }
}

/// Why a robots.txt allows nothing, if it could not be read, and what the operator can do.
fn unread_robots(host: &Host, robots: &RobotsRecord) -> Option<String> {
    if !matches!(robots.kind, RobotsKind::Denied | RobotsKind::Unreachable) {
        return None;
    }
    let cause = robots.cause.as_deref().unwrap_or_default();
    let status = robots.status.map(|status| format!("HTTP {status}, ")).unwrap_or_default();
    let other = RobotsCause::target(cause).map(|other| {
        format!(
            "; if the site has moved, `{} check {other}` visits the other site",
            super::program_name::program()
        )
    });
    Some(format!(
        "robots.txt of {host}: {status}{}, read at {}; it is requested again after {}{}",
        RobotsCause::in_words(cause),
        time(robots.fetched_at),
        time(robots.expires_at),
        other.unwrap_or_default()
    ))
}

/// Until when the copy of a document is fresh, if the visit did not request it for this reason.
fn fresh_words<'v>(visit: Option<&'v VisitReport>, url: &ManifestUrl) -> Option<&'v str> {
    let is_fresh = |fetch: &&FetchReport| fetch.outcome == FetchOutcome::Fresh && fetch.url == *url;
    let fetch = visit?.fetches.iter().find(is_fresh)?;
    Some(fetch.reason.as_deref().unwrap_or("fresh"))
}

/// Waits for a visit that ends after `began`, and returns it.
async fn visit_since(
    store: &Store,
    site: &SiteName,
    began: DateTime<Utc>,
    polls: u32,
) -> Result<Option<CheckVisit>, StoreError> {
    for poll in 0..=polls {
        let last = store.site_report(site, 1).await?.and_then(CheckVisit::last);
        if let Some(last) = last.filter(|last| last.visit.ended_at >= began) {
            return Ok(Some(last));
        }
        if poll < polls {
            tokio::time::sleep(OTHER_VISIT_POLL_INTERVAL).await;
        }
    }
    Ok(None)
}

/// Shows a manifest. `fresh` says until when its copy is fresh, if it was not requested.
fn show(stored: &StoredManifest, fresh: Option<&str>) -> std::io::Result<()> {
    let manifest = &stored.manifest;
    output::text("")?;
    let named_by = if stored.is_of_site() { "" } else { ", named only by others" };
    output::line(&format!(
        "{} ({}, {}{named_by}): {}, {}",
        manifest.url,
        manifest.format(),
        stored.status.label(),
        plural(manifest.capabilities.len() as u64, "capability", "capabilities"),
        counted(manifest.findings.len() as u64, "finding")
    ))?;
    if let Some(fresh) = fresh {
        output::line(&format!("  not requested: its copy is {fresh}"))?;
    }
    for finding in manifest.findings.iter().take(FINDINGS_MAX) {
        finding_lines(finding).iter().try_for_each(|line| output::line(line))?;
    }
    Ok(())
}

fn finding_lines(finding: &Finding) -> [String; 2] {
    let pointer = if finding.pointer.is_empty() { "(document)" } else { &finding.pointer };
    let severity = finding.severity.as_str();
    [
        format!("  {severity}  {} at {pointer}: {}", finding.code, finding.text),
        format!("        {}", finding.fix),
    ]
}

fn seed_of(domain: &str, scope: SiteScope) -> Result<Seed, UsageError> {
    let wrong = |error: manifest::NameError| UsageError(error.to_string());
    let origin = SeedOrigin::Submitted;
    if domain.contains('/') {
        // a path without a scheme is read as in lists
        let with_scheme =
            if domain.contains("://") { domain.to_owned() } else { format!("https://{domain}") };
        let wrong = |error: manifest::NameError| wrong(error.quoting(domain));
        let url = ManifestUrl::parse(&with_scheme).map_err(wrong)?;
        scope.check_url(&url).map_err(wrong)?;
        return Ok(Seed { host: url.host(), url: Some(url), rank: None, origin, revisit_now: true });
    }
    let host = Host::parse(domain).map_err(wrong)?;
    scope.check_host(&host).map_err(wrong)?;
    Ok(Seed { host, url: None, rank: None, origin, revisit_now: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn robots(kind: RobotsKind, cause: &str, status: Option<u16>) -> RobotsRecord {
        RobotsRecord {
            host: Host::parse("moved.example").unwrap(),
            kind,
            cause: Some(cause.to_owned()),
            status,
            body: None,
            fetched_at: DateTime::UNIX_EPOCH,
            expires_at: DateTime::UNIX_EPOCH + chrono::TimeDelta::hours(1),
            failures_in_row: 1,
            etag: None,
            last_modified: None,
        }
    }

    #[test]
    fn an_unread_robots_txt_has_its_cause_its_next_request_and_the_site_to_which_it_redirects() {
        let host = Host::parse("moved.example").unwrap();
        let words = |kind, cause: &str, status| unread_robots(&host, &robots(kind, cause, status));
        let moved =
            words(RobotsKind::Unreachable, &RobotsCause::redirect_to("other.example"), Some(301)).unwrap();
        for part in [
            "robots.txt of moved.example: HTTP 301, redirect to another site, other.example, read at 1970-01-01",
            "requested again after 1970-01-01 01:00:00 UTC; if the site has moved, `",
            " check other.example` visits the other site",
        ] {
            assert!(moved.contains(part), "{moved}");
        }
        let late = words(RobotsKind::Unreachable, "timeout", None).unwrap();
        assert!(late.contains("moved.example: timed out, read at") && !late.contains("check"), "{late}");
        assert!(words(RobotsKind::Denied, "unauthorized", Some(401)).unwrap().contains("it needs a login"));
        assert_eq!(words(RobotsKind::Rules, "", Some(200)), None);
    }
}
