//! The configuration file. Its keys are the names of the flags, with `_` in place of `-`. An unknown key is an error, because a misspelt
//! limit would have no effect.

use std::net::SocketAddr;
use std::path::PathBuf;

use ::settings::TracesUrl;
use ::settings::log::{LogFormat, LogLevel};
use serde::Deserialize;

/// The keys of the file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ConfigFile {
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) database_url: Option<String>,
    pub(crate) database_url_file: Option<PathBuf>,
    pub(crate) log_format: Option<LogFormat>,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) slow_statement_ms: Option<u64>,
    pub(crate) traces_url: Option<TracesUrl>,
    pub(crate) crawler: CrawlerTable,
    /// Settings of the other programs; each checks its own table.
    #[serde(rename = "indexer")]
    _indexer: Option<toml::Table>,
    #[serde(rename = "api")]
    _api: Option<toml::Table>,
    /// The file, if one was read.
    #[serde(skip)]
    pub(crate) path: Option<PathBuf>,
}

impl ConfigFile {
    /// The source of a key of `[crawler]` that a flag overrides: an environment variable, or the file.
    pub(crate) fn name_of(&self, flag: &str) -> String {
        let key = flag.trim_start_matches('-').replace('-', "_");
        let variables = ::settings::variables();
        let mut known =
            ::settings::keys().into_iter().filter(|known| known.table == "crawler" && known.name == key);
        let variable = known.next().map(|known| known.variable());
        match (variable.filter(|name| variables.iter().any(|(set, _)| set == name)), &self.path) {
            (Some(variable), _) => variable,
            (None, Some(path)) => format!("`{key}` in [crawler] of {}", path.display()),
            (None, None) => flag.to_owned(),
        }
    }
}

/// `[crawler]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CrawlerTable {
    pub(crate) seeds: Vec<PathBuf>,
    pub(crate) follow_seeds: Option<bool>,
    pub(crate) park_wait: Option<String>,
    pub(crate) concurrency: Option<u32>,
    pub(crate) rate: Option<u32>,
    pub(crate) delay: Option<String>,
    pub(crate) lease: Option<String>,
    pub(crate) revisit_every: Option<String>,
    pub(crate) hosts: Option<PathBuf>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) allow_addresses: Vec<String>,
    pub(crate) strict: bool,
    pub(crate) name_servers: Vec<String>,
    pub(crate) text_records: bool,
    pub(crate) check_endpoints: bool,
    pub(crate) events: Option<PathBuf>,
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) schedule_seeds: Option<String>,
    pub(crate) schedule_housekeeping: Option<String>,
    pub(crate) schedule_report: Option<String>,
    pub(crate) retain_feed: Option<String>,
    pub(crate) retain_versions: Option<String>,
    pub(crate) signing_key: Option<PathBuf>,
    pub(crate) signature_agent: Option<String>,
    pub(crate) contact_url: Option<String>,
    pub(crate) contact_email: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_the_tables_of_other_programs() {
        let file: ConfigFile = toml::from_str("[crawler]\ndelay = \"5s\"\n[api]\nlisten = \"x\"\n").unwrap();
        assert_eq!(file.crawler.delay.as_deref(), Some("5s"));
        let error = toml::from_str::<ConfigFile>("[crawler]\nconcurency = 5\n").unwrap_err().to_string();
        assert!(error.contains("concurency"), "{error}");
    }
}
