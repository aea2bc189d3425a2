//! The location of the database: a PostgreSQL URL, or a SQLite file under the data directory.
//!
//! A password is never shown: `Display` and `Debug` of a [`DatabaseUrl`] replace it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::StoreError;

/// Name of the database file in the data directory.
pub(crate) const SQLITE_FILE: &str = "agentdex.db";
/// Default number of connections. A crawler needs one for each batched statement in progress, not one per visit, and a small PostgreSQL
/// server accepts 100 in total.
const CONNECTIONS_DEFAULT: u32 = 8;
/// Maximum number of concurrent reads of site lists. With SQLite, each has a separate connection, so other operations do not wait for it.
pub const SITE_LISTS_MAX: u32 = 2;
/// Maximum number of concurrent operations that read whole tables: one for each of the three API responses that count whole tables. With
/// SQLite, they have separate connections.
pub(crate) const SCANS_MAX: u32 = 3;
/// Size of the prepared statement cache of a connection. Each batch length is a separate statement.
pub(crate) const STATEMENTS_PREPARED: usize = 300;
/// Slower statements are logged. All but the statistics take milliseconds.
pub const SLOW_STATEMENT_DEFAULT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// A PostgreSQL server, shared by a fleet.
    Postgres,
    /// A file on this machine.
    Sqlite,
}

impl Backend {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Sqlite => "SQLite",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The location of the database.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// `postgres://user:password@host:5432/database`.
    Postgres(String),
    /// A file, which is created when it is missing.
    Sqlite(PathBuf),
}

/// The URL of a database to be typed again, with a word in place of its password.
pub fn url_to_type(url: &str) -> String {
    DatabaseUrl::parse(url).map_or_else(|_| "URL".to_owned(), |url| url.to_type())
}

impl DatabaseUrl {
    /// This URL to be typed again, with a word in place of its password.
    pub fn to_type(&self) -> String {
        self.to_string().replace(":***@", ":PASSWORD@").replace("password=***", "password=PASSWORD")
    }

    /// Parses `postgres://…`, `postgresql://…`, `sqlite:PATH` or `sqlite://PATH`.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            let parsed: Result<sqlx::postgres::PgConnectOptions, sqlx::Error> = text.parse();
            return match parsed {
                Ok(_) if has_delimiter_in_password(text) => {
                    let reason = "its password has a / that is not percent-encoded".to_owned();
                    Err(StoreError::BadUrl { url: redacted(text), reason })
                }
                Ok(_) => Ok(Self::Postgres(text.to_owned())),
                Err(error) => {
                    let reason = match &error {
                        sqlx::Error::Configuration(reason) => reason.to_string(),
                        error => error.to_string(),
                    };
                    Err(StoreError::BadUrl { url: redacted(text), reason })
                }
            };
        }
        let path = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:"));
        match path {
            Some("") => {
                Err(StoreError::BadUrl { url: text.to_owned(), reason: "the path is missing".into() })
            }
            Some(path) => Ok(Self::Sqlite(PathBuf::from(path))),
            None => {
                let reason = "the scheme is neither postgres nor sqlite".to_owned();
                Err(StoreError::BadUrl { url: redacted(text), reason })
            }
        }
    }

    /// The embedded database of a data directory.
    pub fn in_data_dir(dir: &Path) -> Self {
        Self::Sqlite(dir.join(SQLITE_FILE))
    }

    /// The URL with an absolute path, for people: their command may run in another folder than the crawl.
    #[must_use]
    pub fn absolute(&self) -> Self {
        match self {
            Self::Postgres(url) => Self::Postgres(url.clone()),
            Self::Sqlite(path) => Self::Sqlite(std::path::absolute(path).unwrap_or_else(|_| path.clone())),
        }
    }

    pub const fn backend(&self) -> Backend {
        match self {
            Self::Postgres(_) => Backend::Postgres,
            Self::Sqlite(_) => Backend::Sqlite,
        }
    }
}

/// Whether the path of a URL has an `@`, so that its password has a `/`: the name of the host was then read from the password.
fn has_delimiter_in_password(url: &str) -> bool {
    let (_, rest) = url.split_once("://").unwrap_or_default();
    let path = rest.split_once('/').map_or("", |(_, path)| path);
    path.split('?').next().is_some_and(|path| path.contains('@'))
}

/// Replaces the password of `scheme://user:password@…` and of `?password=…`. A password that is not percent-encoded may contain
/// any of the delimiters, so it is assumed to end at the last `@`.
fn redacted(url: &str) -> String {
    let without_query_password = match url.split_once("password=") {
        Some((before, after)) => {
            let rest = after.find('&').and_then(|at| after.get(at..)).unwrap_or_default();
            format!("{before}password=***{rest}")
        }
        None => url.to_owned(),
    };
    let Some((scheme, rest)) = without_query_password.split_once("://") else {
        return without_query_password;
    };
    match rest.rsplit_once('@') {
        Some((user_info, host)) => {
            let user = user_info.split(':').next().unwrap_or_default();
            let password = if user_info.contains(':') { ":***" } else { "" };
            format!("{scheme}://{user}{password}@{host}")
        }
        None => without_query_password,
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(url) => f.write_str(&redacted(url)),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How to open the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreConfig {
    pub url: DatabaseUrl,
    pub connections_max: u32,
    /// Slower statements are logged as a warning.
    pub slow_statement: Duration,
}

impl StoreConfig {
    /// A database with default settings.
    pub const fn new(url: DatabaseUrl) -> Self {
        Self { url, connections_max: CONNECTIONS_DEFAULT, slow_statement: SLOW_STATEMENT_DEFAULT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redacts_passwords() {
        for (url, shown) in [
            ("postgres://me:secret@db.example:5432/agentdex", "postgres://me:***@db.example:5432/agentdex"),
            ("postgres://me:p@ss:word@db.example/x", "postgres://me:***@db.example/x"),
            ("postgresql://me@db.example/x?sslmode=require", "postgresql://me@db.example/x?sslmode=require"),
            (
                "postgres://db.example/x?user=me&password=secret&a=b",
                "postgres://db.example/x?user=me&password=***&a=b",
            ),
            ("postgres://me:secret@db.example", "postgres://me:***@db.example"),
            ("postgres://me:se/cr?et@db.example/x", "postgres://me:***@db.example/x"),
            ("postgres://me:se@cr/et:word@db.example/x", "postgres://me:***@db.example/x"),
            ("postgres://me@db.example/x?options=a@b", "postgres://me@db.example/x?options=a@b"),
        ] {
            let url = DatabaseUrl::Postgres(url.to_owned());
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), shown);
        }
    }

    #[test]
    fn parses_urls_of_both_backends() {
        assert_eq!(DatabaseUrl::parse("sqlite:a/b.db").unwrap(), DatabaseUrl::Sqlite("a/b.db".into()));
        assert_eq!(DatabaseUrl::parse("sqlite:///a/b.db").unwrap(), DatabaseUrl::Sqlite("/a/b.db".into()));
        assert_eq!(DatabaseUrl::in_data_dir(Path::new("d")).backend(), Backend::Sqlite);
        let error = DatabaseUrl::parse("mysql://me:secret@host/db").unwrap_err().to_string();
        assert!(error.contains("neither postgres nor sqlite") && !error.contains("secret"), "{error}");
        assert!(DatabaseUrl::parse("sqlite:").is_err());
        let error = DatabaseUrl::parse("postgres://me:se#cret@host/db").unwrap_err().to_string();
        assert!(error.contains("percent-encoded") && !error.contains("cret"), "{error}");
        assert!(error.contains("is not a database URL: invalid port number;"), "{error}");
        let error = DatabaseUrl::parse("postgres://me:p@se/cr@host/db").unwrap_err().to_string();
        assert!(
            error.contains("postgres://me:***@host/db\" is not") && error.contains("has a / that"),
            "{error}"
        );
        assert!(DatabaseUrl::parse("postgres://me@host/db?options=a@b").is_ok());
    }

    #[test]
    fn the_url_of_a_file_is_made_absolute() {
        let here = std::env::current_dir().unwrap();
        let url = DatabaseUrl::parse("sqlite:./a/b.db").unwrap().absolute();
        assert_eq!(url, DatabaseUrl::Sqlite(here.join("a/b.db")));
        let server = DatabaseUrl::parse("postgres://host/db").unwrap();
        assert_eq!(server.absolute(), server);
    }
}
