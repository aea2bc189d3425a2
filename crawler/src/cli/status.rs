//! `status`: the queue, and what the last day came to.

use store::{Stats, Store};

use crate::clock;
use crate::output::{self, OutputFormat};

/// Parked visits shown.
const PARKED_MAX: u32 = 10;

/// Shows the state of the crawl.
pub(super) async fn run(store: &Store, format: OutputFormat) -> anyhow::Result<()> {
    let now = clock::now();
    let stats = store.stats(now).await?;
    if format == OutputFormat::Json {
        return Ok(output::json(&stats)?);
    }
    for line in lines(&stats) {
        output::line(&line)?;
    }
    if let Some(due) = stats.oldest_due_at.filter(|due| *due < now) {
        let late = (now - due).to_std().unwrap_or_default();
        output::line(&format!("The oldest visit has been due for {}.", super::duration::in_words(late)))?;
    }
    for (site, at, reason) in store.parked_list(PARKED_MAX).await? {
        output::line(&format!("Parked: {site} until {}: {reason}", at.format("%Y-%m-%d %H:%M:%S UTC")))?;
    }
    Ok(())
}

fn lines(stats: &Stats) -> Vec<String> {
    let listed = |counts: Vec<String>| if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
    vec![
        format!(
            "Sites: {} ({} due, {} being visited, {} parked, {} left out)",
            stats.sites, stats.sites_due, stats.sites_leased, stats.sites_parked, stats.sites_blocked
        ),
        format!(
            "Manifests: {} with {} capabilities, in {} documents",
            stats.manifests, stats.capabilities, stats.documents
        ),
        format!(
            "By format: {}",
            listed(
                stats.manifests_by_format.iter().map(|(format, count)| format!("{count} {format}")).collect()
            )
        ),
        format!(
            "Visits in the last day: {}",
            listed(stats.ends_last_day.iter().map(|(end, count)| format!("{count} {end}")).collect())
        ),
        format!(
            "Fetches in the last day: {}",
            listed(
                stats.outcomes_last_day.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect()
            )
        ),
    ]
}
