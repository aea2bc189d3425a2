//! The command line of `indexer`, and the flags that it shares with programs that read the index.
//!
//! Flags and resolved settings are separate types. Flags take precedence over the environment, the environment over the configuration file,
//! and the file over defaults.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use serde::Deserialize;
use settings::log::{Log, LogFormat, LogLevel};
use settings::{SharedFlags, TracesUrl};
use store::{DatabaseUrl, SLOW_STATEMENT_DEFAULT, StoreConfig, StoreError};

use crate::follow::{IndexConfig, Mode};
pub use crate::missing_shards::MissingShards;
use crate::snapshot::SnapshotLocation;
use crate::vectors::{Embedder, EmbedderError, open_embedder};

/// Keeps the search index up to date with the crawler's results.
#[derive(Debug, Parser)]
#[command(name = "indexer", version, max_term_width = 100, after_long_help = settings::exit::help())]
pub struct Arguments {
    #[command(flatten)]
    pub reader: ReaderFlags,
    /// Read the feed to its end, then stop (default: follow it).
    #[arg(long)]
    pub once: bool,
    /// Publish snapshots of the index to this directory or, with the feature `s3`, to `s3://bucket/prefix`, for replicas of the
    /// api that have no indexer.
    #[arg(long, value_name = "LOCATION", global = true)]
    pub publish: Option<SnapshotLocation>,
    /// Index the example requests of this file, lines of JSON with `query` and `capability`, as `agentdex feedback export` writes
    /// them. If the content of the file changes, the index is rebuilt at the next start.
    #[arg(long, value_name = "FILE", global = true)]
    pub examples: Option<PathBuf>,
    /// Serve metrics for Prometheus
    #[arg(long, value_name = "ADDRESS:PORT", global = true)]
    pub metrics: Option<SocketAddr>,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Rebuild the index from the database and swap it in.
    Rebuild,
}

/// Flags of every program that reads the index.
#[derive(Debug, Clone, Default, Args)]
pub struct ReaderFlags {
    #[command(flatten)]
    pub shared: SharedFlags,
    /// Directory of the index [default: `index` in the data directory].
    #[arg(long, value_name = "DIR", global = true)]
    pub index_dir: Option<PathBuf>,
    /// Directory of a sentence model, to search by meaning too (needs the feature `embedder`).
    #[arg(long, value_name = "DIR", global = true)]
    pub embedder: Option<PathBuf>,
    /// Keep the capabilities on a distributed search engine, at the address of its broker, as in `http://broker:50051` (needs the feature
    /// `cluster`).
    #[arg(long, value_name = "URL", global = true)]
    pub cluster: Option<String>,
    /// While shards of the cluster are away: fail searches, or return partial answers that name the missing shards [default: fail].
    #[arg(long, value_name = "WHAT", global = true)]
    pub cluster_missing_shards: Option<MissingShards>,
}

/// The cluster that the settings name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSettings {
    pub url: String,
    pub missing_shards: MissingShards,
}

/// The settings of every program that reads the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub data_dir: PathBuf,
    pub store: StoreConfig,
    pub index: IndexConfig,
    /// Directory of the sentence model.
    pub embedder: Option<PathBuf>,
    pub cluster: Option<ClusterSettings>,
    /// File of example requests, from the file.
    pub examples: Option<PathBuf>,
    /// Location of published snapshots, from the file.
    pub publish: Option<SnapshotLocation>,
    /// Listen address of the indexer's metrics, from the file.
    pub metrics: Option<SocketAddr>,
    pub log_format: LogFormat,
    pub log_level: LogLevel,
    /// Collector that receives spans, from the file.
    pub traces_url: Option<TracesUrl>,
}

/// The settings are invalid.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(transparent)]
    Settings(#[from] settings::SettingsError),
    #[error(transparent)]
    Database(#[from] StoreError),
}

/// The cluster cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error(
        "the cluster at {url} cannot be used: this program was built without the feature `cluster`; build it with `cargo build \
         --release --features cluster`, or leave the cluster out of flags, environment and file"
    )]
    NotBuilt { url: String },
    #[error("the cluster cannot be used: {0}")]
    Invalid(String),
    #[error(
        "the cluster at {url} cannot be used with a sentence model, because a cluster has no vectors: leave out the cluster or the embedder"
    )]
    WithEmbedder { url: String },
    #[error(
        "the cluster at {url} cannot be used with snapshots, because they contain only its vocabulary: leave out the cluster, or --publish and \
         --index-from"
    )]
    WithSnapshots { url: String },
}

/// The part of the configuration file that concerns the index. The other programs check their own tables.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ConfigFile {
    data_dir: Option<PathBuf>,
    database_url: Option<String>,
    database_url_file: Option<PathBuf>,
    log_format: Option<LogFormat>,
    log_level: Option<LogLevel>,
    slow_statement_ms: Option<u64>,
    traces_url: Option<TracesUrl>,
    indexer: IndexerTable,
    #[serde(rename = "crawler")]
    _crawler: Option<toml::Table>,
    #[serde(rename = "api")]
    _api: Option<toml::Table>,
}

/// `[indexer]`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct IndexerTable {
    index_dir: Option<PathBuf>,
    embedder: Option<PathBuf>,
    cluster: Option<String>,
    cluster_missing_shards: Option<MissingShards>,
    publish: Option<SnapshotLocation>,
    examples: Option<PathBuf>,
    metrics: Option<SocketAddr>,
}

impl ReaderFlags {
    /// Reads the configuration file, if there is one, and resolves every setting.
    pub fn settings(&self) -> Result<Settings, SettingsError> {
        let file = self.file()?;
        let log_level = self.level(&file);
        let data_dir = self.shared.data_dir(file.data_dir);
        let url = match self.shared.database_url(file.database_url, file.database_url_file.as_deref())? {
            Some(url) => DatabaseUrl::parse(&url)?,
            None => DatabaseUrl::in_data_dir(&data_dir),
        };
        let index_dir = self.index_dir.clone().or(file.indexer.index_dir);
        let index = index_dir.map_or_else(|| IndexConfig::in_data_dir(&data_dir), IndexConfig::at);
        let log_format = self.shared.log_format.or(file.log_format).unwrap_or_default();
        let embedder = self.embedder.clone().or(file.indexer.embedder);
        let missing_shards = self.cluster_missing_shards.or(file.indexer.cluster_missing_shards);
        let cluster = self.cluster.clone().or(file.indexer.cluster);
        let cluster =
            cluster.map(|url| ClusterSettings { url, missing_shards: missing_shards.unwrap_or_default() });
        let IndexerTable { publish, examples, metrics, .. } = file.indexer;
        let slow_statement = file.slow_statement_ms.map_or(SLOW_STATEMENT_DEFAULT, Duration::from_millis);
        let store = StoreConfig { slow_statement, ..StoreConfig::new(url) };
        let traces_url = file.traces_url;
        Ok(Settings {
            data_dir,
            store,
            index,
            embedder,
            cluster,
            examples,
            publish,
            metrics,
            log_format,
            log_level,
            traces_url,
        })
    }

    /// The log level that flags and file set now; read again at SIGHUP.
    pub fn log_level(&self) -> Result<LogLevel, SettingsError> {
        Ok(self.level(&self.file()?))
    }

    fn file(&self) -> Result<ConfigFile, SettingsError> {
        Ok(settings::load(self.shared.config.as_deref(), &settings::variables())?)
    }

    fn level(&self, file: &ConfigFile) -> LogLevel {
        self.shared.log_level(file.log_level, LogLevel::Info)
    }
}

impl Arguments {
    pub fn mode(&self) -> Mode {
        if self.once { Mode::Once } else { Mode::Follow }
    }
}

impl Settings {
    /// Reads the model, if one is configured. Blocking.
    pub fn open_embedder(&self) -> Result<Option<Arc<dyn Embedder>>, EmbedderError> {
        self.embedder.as_deref().map(open_embedder).transpose()
    }

    /// Connects to the cluster, if one is configured, and keeps the index there.
    pub fn open_cluster(&mut self) -> Result<(), ClusterError> {
        let Some(settings) = &self.cluster else { return Ok(()) };
        if self.embedder.is_some() {
            return Err(ClusterError::WithEmbedder { url: settings.url.clone() });
        }
        #[cfg(feature = "cluster")]
        {
            let opened = crate::cluster::Cluster::connect(&settings.url, settings.missing_shards);
            self.index.cluster = Some(opened.map_err(ClusterError::Invalid)?);
            Ok(())
        }
        #[cfg(not(feature = "cluster"))]
        Err(ClusterError::NotBuilt { url: settings.url.clone() })
    }

    /// An error if the index is on a cluster, for programs that publish or fetch snapshots.
    pub fn refuse_cluster_with_snapshots(&self) -> Result<(), ClusterError> {
        let url = self.cluster.as_ref().map(|cluster| cluster.url.clone());
        url.map_or(Ok(()), |url| Err(ClusterError::WithSnapshots { url }))
    }

    /// Sends log lines to stderr, and the spans of the program to the collector, if there is one.
    pub fn start_logging(&self, program: &'static str) -> Log {
        settings::log::start(program, self.log_format, self.log_level, self.traces_url.as_ref())
    }
}

/// Logs that the configured embedded database does not exist yet, because the directory may be mistyped. The program creates the database.
pub fn announce_new_database(url: &DatabaseUrl) {
    if let DatabaseUrl::Sqlite(path) = url
        && !path.exists()
    {
        tracing::info!(
            "there is no database at {} yet: an empty one is created; choose another with --data-dir or --database-url",
            path.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(typed: &[&str]) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from([&["indexer"], typed].concat())
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_defaults() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agentdex.toml");
        std::fs::write(
            &file,
            "data_dir = \"/data\"\nlog_format = \"json\"\n[indexer]\nindex_dir = \"/i\"\nembedder = \"/m\"\n\
             metrics = \"127.0.0.1:9102\"\n",
        )
        .unwrap();
        let config = file.to_str().unwrap();
        let settings = arguments(&["--once", "--config", config, "--data-dir", "/mine"]).unwrap();
        assert_eq!(settings.mode(), Mode::Once);
        let settings = settings.reader.settings().unwrap();
        assert_eq!(settings.data_dir, PathBuf::from("/mine"));
        assert_eq!(settings.index.dir, PathBuf::from("/i"));
        assert_eq!(settings.embedder, Some(PathBuf::from("/m")));
        assert_eq!(settings.log_format, LogFormat::Json);
        assert_eq!(settings.metrics, "127.0.0.1:9102".parse().ok());
        let plain = arguments(&["rebuild", "--data-dir", "/d"]).unwrap();
        assert_eq!(plain.command, Some(Command::Rebuild));
        assert_eq!(plain.reader.settings().unwrap().index.dir, PathBuf::from("/d/index"));
    }

    #[test]
    fn an_error_in_the_file_names_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agentdex.toml");
        std::fs::write(&file, "\n[indexer]\nindexdir = \"/i\"\n").unwrap();
        let shared = SharedFlags { config: Some(file), ..SharedFlags::default() };
        let error = ReaderFlags { shared, ..ReaderFlags::default() }.settings().unwrap_err().to_string();
        assert!(error.contains("line 3") && error.contains("index_dir"), "{error}");
    }

    #[test]
    fn rejects_unknown_flags() {
        assert!(arguments(&["--onse"]).is_err());
        assert!(arguments(&["-q", "-v"]).is_err());
    }
}
