//! The program `api`: flags in, the interface out.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use api::{ApiConfig, ApiSettings, App};
use clap::Parser;
use indexer::cli::SharedArguments;
use tokio_util::sync::CancellationToken;

/// Serves search, sites and manifests as JSON and as pages.
#[derive(Debug, Parser)]
#[command(name = "api", version, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    shared: SharedArguments,
    /// Where to listen [default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// How the world reaches this interface, when that differs from --listen.
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Proxies that may say in whose name they ask (X-Forwarded-For), as addresses or ranges.
    #[arg(long, value_name = "CIDR,…", value_delimiter = ',')]
    trusted_proxies: Vec<String>,
    /// File with the hashes of the tokens of /admin; without it nobody administers.
    #[arg(long, value_name = "FILE")]
    admin_tokens: Option<PathBuf>,
}

/// As for every program here: a wrong call ends with 2, a failure of ours with 1.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let config = match configured(Arguments::parse()) {
        Ok(config) => config,
        Err(error) => return failed(&error, ExitCode::from(EXIT_USAGE)),
    };
    match run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, ExitCode::FAILURE),
    }
}

#[expect(clippy::print_stderr, reason = "the last word of a program that could not do its work")]
fn failed(error: &anyhow::Error, code: ExitCode) -> ExitCode {
    eprintln!("api: {error}");
    code
}

fn configured(arguments: Arguments) -> anyhow::Result<ApiConfig> {
    let shared = arguments.shared.settings()?;
    shared.start_logging();
    let typed = ApiSettings {
        listen: arguments.listen,
        public_url: arguments.public_url,
        trusted_proxies: arguments.trusted_proxies,
        admin_tokens: arguments.admin_tokens,
        ..ApiSettings::default()
    };
    let settings = match &arguments.shared.config {
        Some(path) => typed.or_file(path)?,
        None => typed,
    };
    Ok(settings.resolve(shared)?)
}

fn run(config: ApiConfig) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the threads of the interface could not be started")?;
    runtime.block_on(serve(config))
}

async fn serve(config: ApiConfig) -> anyhow::Result<()> {
    let listener = api::bind(&config).await?;
    let app = App::open(config).await?;
    let address = listener.local_addr().context("the address that was bound is not known")?;
    tracing::info!("serving on http://{address}");
    let cancel = CancellationToken::new();
    let serving = api::serve(listener, app, cancel.clone());
    tokio::pin!(serving);
    tokio::select! {
        served = &mut serving => return Ok(served?),
        () = asked_to_stop() => tracing::info!("stopping"),
    }
    cancel.cancel();
    Ok(serving.await?)
}

/// Ctrl-C, or SIGTERM as service managers send it.
async fn asked_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return tokio::signal::ctrl_c().await.unwrap_or_default();
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
