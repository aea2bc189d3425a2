//! `paths`: the path table in request order, and what was found under each path.

use store::Store;

use crate::output::{self, OutputFormat};
use crate::path_estimates;

/// Shows the table.
pub(super) async fn run(store: &Store, format: OutputFormat) -> anyhow::Result<()> {
    let estimates = path_estimates(store).await?;
    if format == OutputFormat::Json {
        return Ok(output::json(&estimates)?);
    }
    output::line("of 10,000 sites with manifests, here: estimated (assumed); sites requested, found")?;
    for row in &estimates {
        output::line(&format!(
            "{:>6} ({:>5})  {:>7} {:>7}  {}",
            row.estimated, row.assumed, row.asked, row.found, row.path
        ))?;
    }
    Ok(())
}
