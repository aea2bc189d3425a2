//! `agentdex mcp`: the index as an MCP server over standard input and output, which clients start as a child process.
//!
//! Standard output is used only for the protocol; all other output goes to standard error.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use api::{ApiConfig, App};
use runtime::{ReaderProgram, Shutdown};
use settings::SharedFlags;
use store::Store;

use crate::serve::{self, ServeFlags};

/// Serves until the client disconnects or Ctrl-C.
pub(crate) async fn run(shared: &SharedFlags, serve: &ServeFlags) -> anyhow::Result<ExitCode> {
    let settings = serve::searcher_settings(shared, serve, shared.data_dir.as_deref())?;
    let _log = settings.start_logging("agentdex-mcp");
    let embedder = settings.open_embedder().map_err(serve::usage)?;
    let config = serve::api_settings(shared, serve)?.resolve(settings).map_err(serve::usage)?;
    let reader = Some(ReaderProgram::this_program()?);
    let shutdown = Shutdown::on_signals(api::STOP_MAX)?;
    let opening = Store::open_existing(&config.database);
    let Some(store) = shutdown.soft.run_until_cancelled(opening).await else { return Ok(ExitCode::SUCCESS) };
    let app = App::with_store(ApiConfig { embedder, reader, ..config }, store?);
    app.refresh_index().await;
    if std::io::stdin().is_terminal() {
        let note = "an MCP client starts this command and communicates over its standard input and output; Ctrl-C ends it";
        writeln!(std::io::stderr(), "{note}")?;
    }
    api::serve_stdio(app, shutdown.soft).await?;
    Ok(ExitCode::SUCCESS)
}
