//! The command line of `api`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use indexer::cli::ReaderFlags;
use indexer::snapshot::SnapshotLocation;

/// Serves search, sites and manifests as JSON and as pages.
#[derive(Debug, Parser)]
#[command(name = "api", version, max_term_width = 100, after_long_help = settings::exit::help())]
pub struct Arguments {
    #[command(flatten)]
    pub reader: ReaderFlags,
    /// Where to listen [default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Public address of the API, when it differs from --listen.
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,
    /// PostgreSQL server that accepts writes, when --database-url names a read replica of it.
    #[arg(long, value_name = "URL")]
    pub primary_url: Option<String>,
    /// Serve from snapshots that an indexer publishes to this directory or, with the feature `s3`, to `s3://bucket/prefix`.
    #[arg(long, value_name = "LOCATION")]
    pub index_from: Option<SnapshotLocation>,
    /// Proxies whose X-Forwarded-For is trusted, as addresses or ranges.
    #[arg(long, value_name = "CIDR,…", value_delimiter = ',')]
    pub trusted_proxies: Vec<String>,
    /// File with the hashes of the tokens of /admin; without it, admin routes are disabled.
    #[arg(long, value_name = "FILE")]
    pub admin_tokens: Option<PathBuf>,
    /// Store feedback (POST /feedback); off by default.
    #[arg(long)]
    pub feedback: bool,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Read one document from standard input, under resource limits of the operating system. Internal: the api starts it.
    #[command(hide = true)]
    ReadDocument,
}
