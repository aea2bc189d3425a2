//! `agentdex mcp`: the index as an MCP server over standard input and output, as clients start such servers themselves.
//!
//! Standard output belongs to the protocol: everything else goes to standard error.

use std::process::ExitCode;

use api::{ApiConfig, App};
use crawler::Cancel;
use crawler::cli::SharedFlags;
use tokio::task::JoinSet;

use crate::cli::ServeFlags;
use crate::serve;

/// Serves until the client leaves or Ctrl-C.
pub(crate) async fn run(shared: &SharedFlags, serve: &ServeFlags) -> anyhow::Result<ExitCode> {
    let settings = serve::reader_settings(shared, shared.data_dir.as_deref())?;
    let _log = settings.start_logging("agentdex-mcp");
    let embedder = serve::open_embedder(&settings, serve)?;
    let config = serve::api_settings(shared, serve)?.resolve(settings).map_err(serve::usage)?;
    let cancel = Cancel::default();
    let mut signals = JoinSet::new();
    signals.spawn(crawler::cli::stop_on_signals(cancel.clone()));
    let opening = App::open(ApiConfig { embedder, ..config });
    let Some(app) = cancel.soft.run_until_cancelled(opening).await else { return Ok(ExitCode::SUCCESS) };
    let app = app?;
    app.refresh_index();
    api::serve_stdio(app, cancel.soft).await?;
    Ok(ExitCode::SUCCESS)
}
