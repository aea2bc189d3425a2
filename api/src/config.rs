//! What the interface is told at its start: flags, environment and file, parsed once and checked.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use store::{DatabaseUrl, StoreConfig};
use url::Url;

/// Where the data lives unless told otherwise.
pub const DATA_DIR_DEFAULT: &str = "./agentdex-data";
/// Where the interface listens unless told otherwise: this machine only.
pub const LISTEN_DEFAULT: &str = "127.0.0.1:8080";
/// Connections to the database: reads are short, and more would wait for the same two cores.
const CONNECTIONS_MAX: u32 = 8;

/// What was wrong with the configuration; the text says what to write instead.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the configuration file {} cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("the configuration file {} is not understood: {source}", path.display())]
    Malformed { path: PathBuf, source: Box<toml::de::Error> },
    #[error("\"{text}\" is not an address to listen on: write it like 127.0.0.1:8080")]
    Listen { text: String },
    #[error("\"{text}\" is not a public URL: write it like https://agentdex.example")]
    PublicUrl { text: String },
    #[error("the database URL is not understood: {0}")]
    Database(String),
}

/// What the interface runs with.
#[derive(Debug, Clone)]
pub struct ApiConfig {
    pub listen: SocketAddr,
    /// How the world reaches us, where that differs from `listen`; without a final slash.
    pub public_url: Option<Url>,
    pub index_dir: PathBuf,
    pub database: StoreConfig,
}

/// What was typed, before anything is known about what it means; the file has the same keys.
#[derive(Debug, Clone, Default)]
pub struct ApiSettings {
    pub data_dir: Option<PathBuf>,
    pub database_url: Option<String>,
    pub listen: Option<String>,
    pub public_url: Option<String>,
    pub index_dir: Option<PathBuf>,
}

/// The configuration file, as far as it concerns the interface; other programs' tables pass unread.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    data_dir: Option<PathBuf>,
    database_url: Option<String>,
    #[serde(default)]
    api: ApiTable,
    #[serde(rename = "crawler", default)]
    _crawler: toml::Table,
    #[serde(rename = "indexer", default)]
    _indexer: toml::Table,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApiTable {
    listen: Option<String>,
    public_url: Option<String>,
    index_dir: Option<PathBuf>,
}

impl ApiSettings {
    /// Fills what was not typed from a file.
    pub fn or_file(self, path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        let file: ConfigFile = toml::from_str(&text)
            .map_err(|source| ConfigError::Malformed { path: path.to_owned(), source: Box::new(source) })?;
        Ok(Self {
            data_dir: self.data_dir.or(file.data_dir),
            database_url: self.database_url.or(file.database_url),
            listen: self.listen.or(file.api.listen),
            public_url: self.public_url.or(file.api.public_url),
            index_dir: self.index_dir.or(file.api.index_dir),
        })
    }

    /// What all of it means, with the defaults in place.
    pub fn resolve(self) -> Result<ApiConfig, ConfigError> {
        let data_dir = self.data_dir.unwrap_or_else(|| PathBuf::from(DATA_DIR_DEFAULT));
        let listen = self.listen.unwrap_or_else(|| LISTEN_DEFAULT.to_owned());
        let url = match self.database_url {
            Some(text) => {
                DatabaseUrl::parse(&text).map_err(|error| ConfigError::Database(error.to_string()))?
            }
            None => DatabaseUrl::in_data_dir(&data_dir),
        };
        Ok(ApiConfig {
            listen: listen.parse().map_err(|_| ConfigError::Listen { text: listen })?,
            public_url: self.public_url.as_deref().map(public_url).transpose()?,
            index_dir: self.index_dir.unwrap_or_else(|| data_dir.join("index")),
            database: StoreConfig { url, connections_max: CONNECTIONS_MAX },
        })
    }
}

fn public_url(text: &str) -> Result<Url, ConfigError> {
    let refused = || ConfigError::PublicUrl { text: text.to_owned() };
    let url = Url::parse(text).map_err(|_| refused())?;
    let is_plain = matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none();
    if is_plain { Ok(url) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_wins_over_the_file_and_the_file_over_defaults() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agentdex.toml");
        std::fs::write(
            &path,
            "data_dir = \"/srv/agentdex\"\n[api]\nlisten = \"0.0.0.0:80\"\n[crawler]\nrate = 5\n",
        )
        .unwrap();
        let typed = ApiSettings { listen: Some("127.0.0.1:9000".into()), ..ApiSettings::default() };
        let config = typed.or_file(&path).unwrap().resolve().unwrap();
        assert_eq!(config.listen.port(), 9000);
        assert_eq!(config.index_dir, Path::new("/srv/agentdex/index"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agentdex.toml");
        std::fs::write(&path, "[api]\nlisten_on = \"x\"\n").unwrap();
        let error = ApiSettings::default().or_file(&path).unwrap_err().to_string();
        assert!(error.contains("listen_on"), "{error}");
        for (settings, word) in [
            (ApiSettings { listen: Some("nowhere".into()), ..ApiSettings::default() }, "nowhere"),
            (ApiSettings { public_url: Some("ftp://x".into()), ..ApiSettings::default() }, "ftp://x"),
            (ApiSettings { database_url: Some("mysql://x".into()), ..ApiSettings::default() }, "database"),
        ] {
            assert!(settings.resolve().unwrap_err().to_string().contains(word), "{word}");
        }
    }
}
