//! `paths`: the path table in request order, what was found under each path, and which visit requests it.

use policy::plan::{FullTableReason, Remaining};
use store::Store;

use crate::output::{self, OutputFormat};
use crate::path_table;

/// Shows the table.
pub(super) async fn run(store: &Store, format: OutputFormat) -> anyhow::Result<()> {
    let table = path_table(store).await?;
    if format == OutputFormat::Json {
        return Ok(output::json(&table.rows)?);
    }
    output::line(
        "ESTIMATE and ASSUMED count the sites with a manifest at this path, of 10,000 with manifests; FIRST those with none at a \
         path above. REQUESTED and FOUND count the sites of this database. VISIT is the visit of a site that requests the path.",
    )?;
    output::line("ESTIMATE ASSUMED  FIRST  REQUESTED   FOUND  VISIT  PATH")?;
    for row in &table.rows {
        output::line(&format!(
            "{:>8} {:>7} {:>6}  {:>9} {:>7}  {:>5}  {}",
            row.estimated, row.assumed, row.first, row.asked, row.found, row.visit, row.path
        ))?;
    }
    output::line(&format!(
        "A first visit that finds nothing leaves {} paths for later: {}. A visit requests all of them at once if it \
         finds a manifest or a link to one, if a seed names a URL of the site, or if the site was submitted.",
        table.first_visit.left.len(),
        why_left(table.first_visit.remaining)
    ))
    .map_err(Into::into)
}

/// Why paths are left for later visits, as text.
pub(super) fn why_left(remaining: Remaining) -> String {
    let chance_ppm = match remaining {
        Remaining::Requested(_) => return "they are requested in the same visit".to_owned(),
        Remaining::Enough { chance_ppm } => {
            let chance = chance_in_words(chance_ppm);
            return format!(
                "a visit without a reason for more requests {} paths at most, although {chance} has a manifest there",
                policy::plan::PATHS_SPECULATIVE_MAX
            );
        }
        Remaining::Likely { chance_ppm } | Remaining::Unlikely { chance_ppm } => chance_ppm,
    };
    format!("{} has a manifest there and none at the paths before", chance_in_words(chance_ppm))
}

fn chance_in_words(chance_ppm: u32) -> String {
    match 1_000_000_u32.checked_div(chance_ppm) {
        Some(sites) => format!("about one site in {sites}"),
        None => "hardly any site".to_owned(),
    }
}

/// Why a visit requests every path that was never requested, as the end of a sentence with "since".
pub(super) fn why_requested(reason: FullTableReason) -> &'static str {
    match reason {
        FullTableReason::Submitted => "the site was submitted",
        FullTableReason::Checked => "the operator or the owner of the site checks it",
        FullTableReason::UrlNamed => "a seed names a URL of the site",
        FullTableReason::ManifestKnown | FullTableReason::ManifestFound => "the site has a manifest",
        FullTableReason::Agentmap => "its robots.txt has an Agentmap line",
        FullTableReason::Linked => "the site links to a document",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explains_why_paths_are_left() {
        let table = [
            (
                Remaining::Unlikely { chance_ppm: 765 },
                "about one site in 1307 has a manifest there and none at the paths before",
            ),
            (
                Remaining::Unlikely { chance_ppm: 0 },
                "hardly any site has a manifest there and none at the paths before",
            ),
            (
                Remaining::Enough { chance_ppm: 5_000 },
                "a visit without a reason for more requests 9 paths at most, although about one site in 200 has a manifest there",
            ),
            (Remaining::Requested(FullTableReason::Submitted), "they are requested in the same visit"),
        ];
        for (remaining, words) in table {
            assert_eq!(why_left(remaining), words);
        }
    }
}
