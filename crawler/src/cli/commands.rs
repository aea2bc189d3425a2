//! `check`, `block` and `unblock`, `suspend` and `unsuspend`.

use std::time::Duration;

use ::settings::command_line::with_flags;
use anyhow::Context;
use chrono::{DateTime, Utc};
use egress::EgressSettings;
use manifest::{Finding, Host, ManifestUrl, SiteName, SiteScope};
use policy::{AbuseReason, FetchOutcome, VisitEnd};
use store::{
    BlockOutcome, DatabaseUrl, FetchReport, Seed, SeedOrigin, Store, StoreError, StoredManifest,
    SuspensionOutcome, SuspensionRecord, VisitReport,
};

use super::flags::Command;
use super::report::{self, counted, plural};
use super::settings::Settings;
use super::watch::Watch;
use crate::output::{self, OutputFormat};
use crate::retry::lasting_outage;
use crate::summary::SiteAndHost;
use crate::worker::{Cancel, Progress, STOP_MAX};
use crate::{UsageError, clock, site_of};

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
    let site = seed.host.site();
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
    let outcome = match (summary.parked.first(), &visit) {
        (Some(parked), _) => format!("{site}: the visit waits: {}", parked.reason),
        (None, Some(visit)) => visit.in_words(&site),
        (None, None) => format!(
            "{site}: another crawler is visiting it; when the visit has ended, `{} explain {site}` shows it",
            super::app::program()
        ),
    };
    output::line(&with_flags(&outcome, &location))?;
    let visit = visit.map(|checked| checked.visit);
    if let Some(advice) = visit.as_ref().and_then(|visit| report::advice(visit.end)) {
        output::line(&with_flags(advice.text, &location))?;
    }
    if let Some(nothing) =
        visit.as_ref().filter(|_| manifests.is_empty()).and_then(|visit| nothing_found(&site, visit))
    {
        output::line(&with_flags(&nothing, &location))?;
    }
    for stored in &manifests {
        show(stored, fresh_words(visit.as_ref(), &stored.manifest.url))?;
    }
    Ok(())
}

/// Checks the names in a command, so that a wrong one is reported before a database is created.
pub(super) fn check_names(command: &Command, settings: &Settings) -> Result<(), UsageError> {
    match command {
        Command::Check { domain } => seed_to_check(settings, domain).map(drop),
        Command::Block { domains, .. } | Command::Suspend { domains, .. } => sites(domains).map(drop),
        _ => Ok(()),
    }
}

/// Parses the site or URL that is to be visited. `http` is read as `https`, as in lists of seeds.
fn seed_to_check(settings: &Settings, domain: &str) -> Result<Seed, UsageError> {
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
        format!("Nothing was found at {paths}; `{} explain {site}` lists them.", super::app::program())
    })
}

/// Refuses a site that the operator has excluded.
async fn refuse_excluded(store: &Store, site: &SiteName) -> anyhow::Result<()> {
    if store.blocked_among(std::slice::from_ref(site)).await?.is_empty() {
        return Ok(());
    }
    let known = store.site_report(site, 1).await?;
    let is_suspended = known.is_some_and(|known| known.suspended.is_some());
    let (is, command) = if is_suspended { ("suspended", "unsuspend") } else { ("blocked", "unblock") };
    let program = super::app::program();
    anyhow::bail!("{site} is not visited: it is {is}; `{program} {command} {site}` allows visits again")
}

/// The visit that `check` shows.
struct CheckVisit {
    visit: VisitReport,
    next_visit_at: Option<DateTime<Utc>>,
}

impl CheckVisit {
    /// How the visit ended and, if the site asked for a delay, when the next one is.
    fn in_words(&self, site: &SiteName) -> String {
        let Self { visit, next_visit_at } = self;
        let requests = report::requests_in_words(visit.end, visit.requests.into());
        let named = SiteAndHost::of_report(site, visit);
        let next = next_visit_at.filter(|_| visit.end == VisitEnd::RateLimited);
        let next = next.map(|at| format!("; the next visit is at {}", at.format("%Y-%m-%d %H:%M:%S UTC")));
        let fresh = visit.fetches.iter().filter(|fetch| fetch.outcome == FetchOutcome::Fresh).count();
        let fresh = match fresh {
            0 => String::new(),
            1 => "; 1 document was not requested, because its copy is fresh".to_owned(),
            many => format!("; {many} documents were not requested, because their copies are fresh"),
        };
        format!("{named}: {}; {requests}{fresh}{}", visit.end.description(), next.unwrap_or_default())
    }
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
        let known = store.site_report(site, 1).await?;
        let last = known.and_then(|known| {
            let next_visit_at = known.summary.next_visit_at;
            known.visits.into_iter().next().map(|visit| CheckVisit { visit, next_visit_at })
        });
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

/// Prints the key directory of the signing key.
pub(super) fn keys(settings: &Settings) -> anyhow::Result<()> {
    let signer = settings.crawl.egress.signer.as_ref();
    let signer = signer.ok_or_else(|| {
        let program = super::app::program();
        UsageError(format!(
            "{program} keys prints the key directory of --signing-key FILE; for the API keys of clients, write \
             `{program} keys add NAME`, `{program} keys list` or `{program} keys revoke NAME`"
        ))
    })?;
    Ok(output::json(&signer.directory())?)
}

/// Lists what a pass would request. If there is no database, only the seeds are planned. Creates no database.
pub(super) async fn dry_run(settings: &Settings) -> anyhow::Result<()> {
    super::app::check_sources(settings)?;
    let store = match Store::open_existing(&settings.shared.store).await {
        Ok(store) => Some(store),
        Err(error) if error.is_missing() => {
            tracing::warn!(database = %settings.shared.store.url, "there is no database yet: only the seeds are planned");
            None
        }
        Err(error) => return Err(error.into()),
    };
    let planned = crate::dry_run(&settings.crawl, store.as_ref()).await;
    if let Some(store) = store {
        store.close().await;
    }
    let plan = planned?;
    if settings.output == OutputFormat::Json {
        return Ok(output::json(&plan)?);
    }
    Ok(output::text(&report::dry_run_text(&plan))?)
}

/// Blocks sites and deletes what was read from them. The output of this and of the following commands names the database, because a crawl
/// with another database continues to visit the sites.
pub(super) async fn block(
    store: &Store,
    database: &DatabaseUrl,
    domains: &[String],
    reason: &str,
) -> anyhow::Result<()> {
    for site in sites(domains)? {
        let note = unknown_note(store, &site).await?;
        let outcome = store
            .site_block(&site, reason, clock::now())
            .await
            .with_context(|| format!("blocking {site}"))?;
        output::line(&match outcome {
            BlockOutcome::AlreadyBlocked => format!("{site} was blocked already, in {database}"),
            BlockOutcome::Blocked { manifests_removed, documents_removed } => format!(
                "{site} is blocked in {database}: it is not visited any more; deleted {} and {}{note}",
                counted(manifests_removed.into(), "manifest"),
                counted(documents_removed.into(), "document")
            ),
        })?;
    }
    Ok(())
}

/// Allows sites again. `location` are the flags of the data, which suggested commands repeat.
pub(super) async fn unblock(
    store: &Store,
    database: &DatabaseUrl,
    domains: &[String],
    location: &str,
) -> anyhow::Result<()> {
    for site in sites(domains)? {
        let was_blocked = store.site_unblock(&site, clock::now()).await?;
        output::line(&if was_blocked {
            let note = unvisited_note(store, &site, location).await?;
            format!("{site} may be visited again, in {database}{note}")
        } else {
            format!("{site} was not blocked in {database}")
        })?;
    }
    Ok(())
}

/// Suspends sites for abuse and deletes what was read from them.
pub(super) async fn suspend(
    store: &Store,
    database: &DatabaseUrl,
    domains: &[String],
    (reason, note, places): (AbuseReason, &str, Vec<String>),
) -> anyhow::Result<()> {
    policy::abuse::check_places(&places).map_err(UsageError)?;
    if reason.needs_explanation() && note.trim().is_empty() {
        return Err(UsageError(format!("--reason {reason} needs --note, which says why")).into());
    }
    let suspension = SuspensionRecord { reason, note: note.trim().to_owned(), places, at: clock::now() };
    for site in sites(domains)? {
        let note = unknown_note(store, &site).await?;
        let outcome =
            store.site_suspend(&site, &suspension).await.with_context(|| format!("suspending {site}"))?;
        output::line(&match outcome {
            SuspensionOutcome::AlreadySuspended => format!("{site} was suspended before, in {database}"),
            SuspensionOutcome::Suspended { manifests_removed, documents_removed } => format!(
                "{site} is suspended in {database}: it is not visited any more; deleted {} and {}{note}",
                counted(manifests_removed.into(), "manifest"),
                counted(documents_removed.into(), "document")
            ),
        })?;
    }
    Ok(())
}

/// Lifts suspensions.
pub(super) async fn unsuspend(
    store: &Store,
    database: &DatabaseUrl,
    domains: &[String],
    location: &str,
) -> anyhow::Result<()> {
    for site in sites(domains)? {
        let was_suspended = store.site_unsuspend(&site, clock::now()).await?;
        output::line(&if was_suspended {
            let note = unvisited_note(store, &site, location).await?;
            format!("{site} is no longer suspended, in {database}{note}")
        } else {
            format!("{site} was not suspended in {database}")
        })?;
    }
    Ok(())
}

/// A hint that the name may be mistyped, if the site to block or suspend is not in the database.
async fn unknown_note(store: &Store, site: &SiteName) -> Result<&'static str, StoreError> {
    let is_known = store.site_report(site, 1).await?.is_some();
    Ok(if is_known { "" } else { "; this site was not in the database: check the name" })
}

/// Why a site is still not visited after its block or its suspension was lifted. Empty if it is visited.
async fn unvisited_note(store: &Store, site: &SiteName, location: &str) -> Result<String, StoreError> {
    let known = store.site_report(site, 1).await?;
    let program = super::app::program();
    let note = match known {
        Some(known) if known.blocked.is_some() => format!("; it stays blocked: `{program} unblock {site}`"),
        Some(known) if known.suspended.is_some() => {
            format!("; it stays suspended: `{program} unsuspend {site}`")
        }
        Some(known) if known.summary.next_visit_at.is_none() => {
            format!(
                "; no visit is planned: `{program} check {site}` visits it now, and reading a list that names it plans a visit"
            )
        }
        _ => String::new(),
    };
    Ok(with_flags(&note, location))
}

/// Parses all names or none, so that a typo in the last name does not leave the first sites changed.
fn sites(domains: &[String]) -> Result<Vec<SiteName>, UsageError> {
    domains.iter().map(|domain| site_under_any_scheme(domain)).collect()
}

/// The site of a domain or a URL, for commands that send no request. Also accepts `http`, because a site has the same name under both
/// schemes.
pub(super) fn site_under_any_scheme(domain: &str) -> Result<SiteName, UsageError> {
    let https = domain.strip_prefix("http://").map(|rest| format!("https://{rest}"));
    site_of(https.as_deref().unwrap_or(domain)).map_err(|error| UsageError(error.to_string()))
}

fn seed_of(domain: &str, scope: SiteScope) -> Result<Seed, UsageError> {
    let wrong = |error: manifest::NameError| UsageError(error.to_string());
    let origin = SeedOrigin::Submitted;
    if domain.contains("://") {
        let url = ManifestUrl::parse(domain).map_err(wrong)?;
        scope.check_url(&url).map_err(wrong)?;
        return Ok(Seed { host: url.host(), url: Some(url), rank: None, origin, revisit_now: true });
    }
    let host = Host::parse(domain).map_err(wrong)?;
    scope.check_host(&host).map_err(wrong)?;
    Ok(Seed { host, url: None, rank: None, origin, revisit_now: true })
}
