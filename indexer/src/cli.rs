//! The command line of `indexer`, and the flags that the reading side shares with it.
//!
//! What was typed is one type, what it means is another: a flag wins over the environment, the environment over the
//! configuration file, the file over the default.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Deserialize;
use store::{DatabaseUrl, StoreConfig, StoreError};
use tracing_subscriber::EnvFilter;

use crate::follow::{IndexConfig, Mode};

/// Where everything is kept unless told otherwise.
const DATA_DIR_DEFAULT: &str = "./agentdex-data";

/// Keeps the search index up to date with what the crawler found.
#[derive(Debug, Parser)]
#[command(name = "indexer", version, max_term_width = 100)]
pub struct Arguments {
    #[command(flatten)]
    pub shared: SharedArguments,
    /// Read the feed to its end, then stop (default: follow it).
    #[arg(long)]
    pub once: bool,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Build the index anew from the database and swap it in.
    Rebuild,
}

/// Flags of every program that reads the database and the index.
#[derive(Debug, Clone, Default, Args)]
pub struct SharedArguments {
    /// Where the database, the index and everything else lies [default: ./agentdex-data].
    #[arg(long, value_name = "DIR", global = true)]
    pub data_dir: Option<PathBuf>,
    /// `postgres://user:password@host/database`, or `sqlite:PATH` [default: a file in the data directory].
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true, global = true)]
    pub database_url: Option<String>,
    /// Where the index lies [default: `index` in the data directory].
    #[arg(long, value_name = "DIR", global = true)]
    pub index_dir: Option<PathBuf>,
    /// A TOML file with the same settings, written with `_` for `-`.
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// How log lines are written.
    #[arg(long, value_name = "FORMAT", value_enum, global = true)]
    pub log_format: Option<LogFormat>,
    /// Say errors only.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more; twice says everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// What the shared flags mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub data_dir: PathBuf,
    pub store: StoreConfig,
    pub index: IndexConfig,
    pub log_format: LogFormat,
    /// A directive of the log filter.
    pub log_level: &'static str,
}

/// Why the settings cannot be used; a mistake of the one who typed them.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("the configuration file {} cannot be read: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the configuration file {} is wrong: {reason}", path.display())]
    Wrong { path: PathBuf, reason: String },
    #[error(transparent)]
    Database(#[from] StoreError),
}

/// What the file may say to the programs that read the index; the other programs check their own tables.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ConfigFile {
    data_dir: Option<PathBuf>,
    database_url: Option<String>,
    log_format: Option<LogFormat>,
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
}

impl SharedArguments {
    /// Reads the configuration file, when there is one, and settles every setting.
    pub fn settings(&self) -> Result<Settings, SettingsError> {
        let file = self.config.as_deref().map(read_file).transpose()?.unwrap_or_default();
        let data_dir = self.data_dir.clone().or(file.data_dir);
        let data_dir = data_dir.unwrap_or_else(|| PathBuf::from(DATA_DIR_DEFAULT));
        let url = self.database_url.clone().or(file.database_url);
        let url = match url.filter(|url| !url.is_empty()) {
            Some(url) => DatabaseUrl::parse(&url)?,
            None => DatabaseUrl::in_data_dir(&data_dir),
        };
        let index_dir = self.index_dir.clone().or(file.indexer.index_dir);
        let index = index_dir.map_or_else(|| IndexConfig::in_data_dir(&data_dir), |dir| IndexConfig { dir });
        let log_level = match (self.quiet, self.verbose) {
            (true, _) => "error",
            (false, 0) => "info",
            (false, 1) => "debug",
            (false, _) => "trace",
        };
        let log_format = self.log_format.or(file.log_format).unwrap_or_default();
        Ok(Settings { data_dir, store: StoreConfig::new(url), index, log_format, log_level })
    }
}

fn read_file(path: &Path) -> Result<ConfigFile, SettingsError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| SettingsError::Unreadable { path: path.to_owned(), source })?;
    toml::from_str(&text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = 1 + before.matches('\n').count();
        let reason = format!("line {line}: {}", error.message());
        SettingsError::Wrong { path: path.to_owned(), reason }
    })
}

impl Arguments {
    pub fn mode(&self) -> Mode {
        if self.once { Mode::Once } else { Mode::Follow }
    }
}

impl Settings {
    /// Sends log lines to stderr. Our own crates speak at the level that was asked for, others at `warn` unless
    /// everything was.
    pub fn start_logging(&self) {
        let directives = match self.log_level {
            "trace" => "trace".to_owned(),
            "error" => "error".to_owned(),
            level => {
                format!("warn,agentdex={level},api={level},crawler={level},indexer={level},store={level}")
            }
        };
        let builder = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new(directives))
            .with_writer(std::io::stderr);
        match self.log_format {
            LogFormat::Text => builder.init(),
            LogFormat::Json => builder.json().init(),
        }
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
        std::fs::write(&file, "data_dir = \"/data\"\nlog_format = \"json\"\n[indexer]\nindex_dir = \"/i\"\n")
            .unwrap();
        let config = file.to_str().unwrap();
        let settings = arguments(&["--once", "--config", config, "--data-dir", "/mine"]).unwrap();
        assert_eq!(settings.mode(), Mode::Once);
        let settings = settings.shared.settings().unwrap();
        assert_eq!(settings.data_dir, PathBuf::from("/mine"));
        assert_eq!(settings.index.dir, PathBuf::from("/i"));
        assert_eq!(settings.log_format, LogFormat::Json);
        let plain = arguments(&["rebuild", "--data-dir", "/d"]).unwrap();
        assert_eq!(plain.command, Some(Command::Rebuild));
        assert_eq!(plain.shared.settings().unwrap().index.dir, PathBuf::from("/d/index"));
    }

    #[test]
    fn a_wrong_file_is_named_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agentdex.toml");
        std::fs::write(&file, "\n[indexer]\nindexdir = \"/i\"\n").unwrap();
        let shared = SharedArguments { config: Some(file), ..SharedArguments::default() };
        let error = shared.settings().unwrap_err().to_string();
        assert!(error.contains("line 3") && error.contains("index_dir"), "{error}");
    }

    #[test]
    fn unknown_flags_are_refused() {
        assert!(arguments(&["--onse"]).is_err());
        assert!(arguments(&["-q", "-v"]).is_err());
    }
}
