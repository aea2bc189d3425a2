//! `block` and `unblock`, `suspend` and `unsuspend`, and dry runs.

use ::settings::command_line::with_flags;
use anyhow::Context;
use manifest::{NameError, SiteName, SiteScope};
use policy::AbuseReason;
use store::{BlockOutcome, DatabaseUrl, Store, StoreError, SuspensionOutcome, SuspensionRecord};

use super::check::seed_to_check;
use super::flags::Command;
use super::report::{self, counted};
use super::settings::Settings;
use crate::output::{self, OutputFormat};
use crate::{UsageError, clock, site_of};

/// Checks the names in a command, so that a wrong one is reported before a database is created.
pub(super) fn check_names(command: &Command, settings: &Settings) -> Result<(), UsageError> {
    match command {
        Command::Check { domain } => seed_to_check(settings, domain).map(drop),
        Command::Block { domains, .. } | Command::Suspend { domains, .. } => {
            sites_to_exclude(domains).map(drop)
        }
        _ => Ok(()),
    }
}

/// Prints the key directory of the signing key.
pub(super) fn keys(settings: &Settings) -> anyhow::Result<()> {
    let signer = settings.crawl.egress.signer.as_ref();
    let signer = signer.ok_or_else(|| {
        let program = super::program_name::program();
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
    for site in sites_to_exclude(domains)? {
        let note = unknown_note(store, &site).await?;
        let outcome = store
            .site_block(&site, reason, clock::now())
            .await
            .with_context(|| format!("blocking {site}"))?;
        output::line(&match outcome {
            BlockOutcome::AlreadyBlocked => {
                let kept = block_reason(store, &site).await?.unwrap_or_default();
                format!("{site} was blocked already, in {database}; its reason is kept: \"{kept}\"")
            }
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
        let reason = block_reason(store, &site).await?;
        let was_blocked = store.site_unblock(&site, clock::now()).await?;
        output::line(&if was_blocked {
            let note = unvisited_note(store, &site, location).await?;
            let reason = reason
                .map(|reason| format!("; it was blocked for this reason: \"{reason}\""))
                .unwrap_or_default();
            format!("{site} may be visited again, in {database}{reason}{note}")
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
    for site in sites_to_exclude(domains)? {
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
    let program = super::program_name::program();
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

/// The same, without public suffixes: to block one would block none of the sites below it.
fn sites_to_exclude(domains: &[String]) -> Result<Vec<SiteName>, UsageError> {
    let sites = sites(domains)?;
    let suffix = sites.iter().find_map(|site| match SiteScope::WithPrivateNames.check_host(&site.apex()) {
        Err(error @ NameError::PublicSuffix(_)) => Some(error),
        _ => None,
    });
    suffix.map_or(Ok(sites), |error| Err(UsageError(error.to_string())))
}

/// The reason for which a site is blocked, if it is.
async fn block_reason(store: &Store, site: &SiteName) -> Result<Option<String>, StoreError> {
    let known = store.site_report(site, 1).await?;
    Ok(known.and_then(|known| known.blocked).map(|blocked| blocked.reason))
}

/// The site of a domain or a URL, for commands that send no request. Also accepts `http`, because a site has the same name under both
/// schemes.
pub(super) fn site_under_any_scheme(domain: &str) -> Result<SiteName, UsageError> {
    let https = domain.strip_prefix("http://").map(|rest| format!("https://{rest}"));
    site_of(https.as_deref().unwrap_or(domain)).map_err(|error| UsageError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_suffix_is_not_blocked() {
        let words = |domains: &[&str]| {
            let domains: Vec<String> = domains.iter().map(|domain| (*domain).to_owned()).collect();
            sites_to_exclude(&domains).map(|sites| sites.len()).map_err(|error| error.to_string())
        };
        assert_eq!(words(&["shop.example", "http://10.internal"]), Ok(2));
        assert!(words(&["shop.example", "co.uk"]).unwrap_err().contains("public suffix"));
    }
}
