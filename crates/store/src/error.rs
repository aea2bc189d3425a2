//! Errors of the store. Their texts state what the operator can do.
//!
//! A lookup that finds nothing is not an error: it is `Ok(None)` or an empty list. [`StoreError::is_transient`] tells whether a retry may
//! help.

use std::path::PathBuf;

use manifest::SiteName;

use crate::model::FeedPosition;

/// An operation on the store that failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was changed.
    #[error("the database is not available for {operation}: {source}")]
    Unavailable { operation: &'static str, source: sqlx::Error },
    /// The first connection failed, and may succeed later.
    #[error(
        "cannot reach the database at {url}: {reason}; start it, or correct --database-url, DATABASE_URL or database_url_file"
    )]
    Unreachable {
        /// Database URL without the password.
        url: String,
        reason: String,
    },
    /// The server refused the first connection: a password, a database name or a TLS setting is wrong.
    #[error(
        "the database at {url} refused the connection: {reason}; correct --database-url, DATABASE_URL or database_url_file"
    )]
    Rejected {
        /// Database URL without the password.
        url: String,
        reason: String,
    },
    #[error(
        "\"{url}\" is not a database URL: {reason}; write postgres://user:password@host/database, with \
         special characters of the password percent-encoded, or sqlite:PATH"
    )]
    BadUrl {
        /// Database URL without the password.
        url: String,
        reason: String,
    },
    /// A program that only reads found no SQLite file. The path is absolute, because a command may run in another directory than the crawl.
    #[error(
        "there is no database at {}: run this in the folder of the crawl, name its --data-dir or --database-url, or start a crawl",
        path.display()
    )]
    Missing { path: PathBuf },
    /// A program that only reads found a database without tables.
    #[error(
        "the database at {url} has no tables of agentdex: name the database of the crawl with --database-url, or start a crawl"
    )]
    WithoutTables {
        /// Database URL without the password.
        url: String,
    },
    /// The connection is read-only, so the schema cannot be migrated.
    #[error(
        "the database has schema {found}, this program needs {needed}, and the connection is read-only: \
         run any agentdex program once against the primary to migrate it"
    )]
    SchemaOlder {
        /// Last migration of the database.
        found: i64,
        /// Last migration of this program.
        needed: i64,
    },
    #[error(
        "the database has schema {found}, which programs of schema {known} cannot use: \
         use the newer program, or restore a backup from before its first start"
    )]
    SchemaNewer {
        /// Last migration of the database.
        found: i64,
        /// Last migration of this program.
        known: i64,
    },
    /// The user of the connection has no right to create tables.
    #[error(
        "the user of --database-url, DATABASE_URL or database_url_file may not create tables ({reason}): make it the owner of the database, as in \
         ALTER DATABASE agentdex OWNER TO agentdex"
    )]
    NotOwner { reason: String },
    /// The user of the connection has no right to read the tables.
    #[error(
        "the user of --database-url, DATABASE_URL or database_url_file may not read the tables of agentdex ({reason}): connect as \
         the user of the crawl, or grant this one the rights, as in GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"
    )]
    NotReadable { reason: String },
    /// The migration was rolled back.
    #[error("the database schema could not be migrated: {source}")]
    Migration {
        #[source]
        source: Box<sqlx::migrate::MigrateError>,
    },
    #[error(
        "cannot write the database {}, which SQLite needs to read it too: {reason}; choose another --data-dir or correct its permissions",
        path.display()
    )]
    NotWritable { path: PathBuf, reason: String },
    #[error(
        "cannot write beside the database {}, which SQLite needs to read it too: {reason}; the disk is probably full: free some space",
        path.display()
    )]
    NoSpace { path: PathBuf, reason: String },
    #[error("the database {} is a directory: name a file, as in sqlite:{}", path.display(), example.display())]
    FileIsDir { path: PathBuf, example: PathBuf },
    /// This user has no permission to search the directory of the database.
    #[error("cannot look for the database {}: {reason}; run this as the user that wrote it, or name another --data-dir", path.display())]
    NotSearchable { path: PathBuf, reason: String },
    #[error("the data directory {} is a file; choose another with --data-dir", dir.display())]
    DirIsFile { dir: PathBuf },
    /// The primary of a read replica has another change feed.
    #[error(
        "{url} is not the primary of this read replica, but another database: correct primary_url in [api]"
    )]
    PrimaryOther {
        /// Without the password.
        url: String,
    },
    /// The content of the file contradicts itself, for example because it was cut off.
    #[error("the database {} is damaged: restore a backup, or move it away to begin again", path.display())]
    Damaged { path: PathBuf },
    /// A statement met a damaged page of the file.
    #[error(
        "the database file is damaged, {operation} failed: restore a backup, or move the file away to begin again"
    )]
    DamagedPage { operation: &'static str },
    #[error("{} is not a SQLite database: move it away, or name another --data-dir", path.display())]
    NotADatabase { path: PathBuf },
    #[error("the disk of the database is full, {operation} was rolled back: free some space")]
    DiskFull { operation: &'static str },
    #[error("the database is not empty: its table {table} has rows; import into a new one")]
    NotEmpty { table: &'static str },
    /// Nothing was imported.
    #[error("line {line} of the dump cannot be read: {reason}")]
    BadDump {
        /// Number of the line, from 1.
        line: u64,
        reason: String,
    },
    /// Retention deleted entries that the reader of the feed had not read.
    #[error(
        "the change feed starts at {} and the reader is at {}: the entries between were deleted by age; \
         rebuild from the stored manifests, and register the reader", first.0, after.0
    )]
    FeedOutrun {
        /// The reader's position.
        after: FeedPosition,
        /// Position of the first remaining entry.
        first: FeedPosition,
    },
    /// This program cannot have written the value.
    #[error("the row {id} of table {table} is damaged in column {column}: {reason}")]
    BadRow {
        table: &'static str,
        column: String,
        /// The key of the row.
        id: String,
        reason: String,
    },
    #[error("{what} cannot be stored: {reason}")]
    Unstorable { what: &'static str, reason: String },
    /// Another worker has leased the site, or the lease was ended.
    #[error("the lease on {site} is no longer held")]
    LeaseLost { site: SiteName },
    #[error("{site} is not visited: it is blocked or suspended")]
    Blocked { site: SiteName },
    /// The statement exceeded the time limit of its caller.
    #[error("{operation} was interrupted: it took too long")]
    Interrupted { operation: &'static str },
    /// The database refused a statement: a bug.
    #[error("{operation} failed: {source}")]
    Refused { operation: &'static str, source: sqlx::Error },
}

/// SQLSTATE classes (PostgreSQL, appendix A) after which a retry may succeed: connection exceptions, rolled-back
/// transactions, insufficient resources, operator intervention; and read-only during a fail-over.
const TRANSIENT_SQLSTATES: [&str; 5] = ["08", "40", "53", "57", POSTGRES_READ_ONLY];
/// Primary result codes of SQLite: busy, locked, input or output error.
const TRANSIENT_SQLITE_CODES: [i32; 3] = [5, 6, 10];
const SQLITE_FULL: i32 = 13;
const SQLITE_CORRUPT: i32 = 11;
/// `read_only_sql_transaction`
pub(crate) const POSTGRES_READ_ONLY: &str = "25006";
const POSTGRES_DISK_FULL: &str = "53100";
/// `insufficient_privilege`
pub(crate) const POSTGRES_NO_PRIVILEGE: &str = "42501";

impl StoreError {
    /// Whether a retry may help.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Unreachable { .. } | Self::DiskFull { .. })
    }

    /// Whether there is nothing to read yet: no file, or no tables.
    pub const fn is_missing(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::WithoutTables { .. })
    }

    /// Whether a starting program waits for the server.
    pub(crate) const fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Unreachable { .. })
    }

    /// Classifies the error of a first connection. `url` has no password.
    pub(crate) fn of_connecting(url: String, error: &sqlx::Error) -> Self {
        use std::io::ErrorKind;
        // without the driver's text and the server's source line
        let reason = match error {
            sqlx::Error::Database(error) => error.message().to_owned(),
            sqlx::Error::Io(error) => error.to_string(),
            other => other.to_string(),
        };
        let is_transient = match error {
            sqlx::Error::Database(error) => is_transient_code(&error.code().unwrap_or_default()),
            sqlx::Error::Io(error) => {
                !matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput)
            }
            sqlx::Error::PoolTimedOut => true,
            sqlx::Error::Configuration(_) => return Self::BadUrl { url, reason },
            _ => false,
        };
        if is_transient { Self::Unreachable { url, reason } } else { Self::Rejected { url, reason } }
    }

    /// Whether the server accepts reads only: a streaming replica, or a primary that is failing over.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Unavailable { source: sqlx::Error::Database(error), .. } => {
                error.code().as_deref() == Some(POSTGRES_READ_ONLY)
            }
            _ => false,
        }
    }

    /// Classifies an error of the driver.
    pub(crate) fn of_driver(operation: &'static str, source: sqlx::Error) -> Self {
        let transient = match &source {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => true,
            sqlx::Error::Database(error) => {
                let code = error.code().unwrap_or_default();
                if is_disk_full(&code) {
                    return Self::DiskFull { operation };
                }
                if sqlite_primary_code(&code) == Some(SQLITE_CORRUPT) {
                    return Self::DamagedPage { operation };
                }
                is_transient_code(&code)
            }
            _ => false,
        };
        if transient { Self::Unavailable { operation, source } } else { Self::Refused { operation, source } }
    }
}

/// SQLite reports decimal result codes, extended ones in the upper bytes; SQLSTATEs are five characters.
fn sqlite_primary_code(code: &str) -> Option<i32> {
    if code.len() == 5 { None } else { code.parse::<i32>().ok().map(|extended| extended & 0xff) }
}

fn is_disk_full(code: &str) -> bool {
    code == POSTGRES_DISK_FULL || sqlite_primary_code(code) == Some(SQLITE_FULL)
}

fn is_transient_code(code: &str) -> bool {
    sqlite_primary_code(code).map_or_else(
        || TRANSIENT_SQLSTATES.iter().any(|class| code.starts_with(class)),
        |primary| TRANSIENT_SQLITE_CODES.contains(&primary),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classifies_codes_as_transient_or_permanent() {
        // Connection lost, server stopped, deadlock, too many connections, read-only; SQLite busy and busy recovering.
        for code in ["08006", "57P01", "40P01", "53300", "25006", "5", "261"] {
            assert!(is_transient_code(code) && !is_disk_full(code), "{code}");
        }
        // Unknown table, unique key; SQLite's generic error, its unique key, and not a database.
        for code in ["42P01", "23505", "1", "2067", "26", "", "nonsense"] {
            assert!(!is_transient_code(code) && !is_disk_full(code), "{code}");
        }
        assert!(is_disk_full("53100") && is_disk_full("13"));
    }
}
