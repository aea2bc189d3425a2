//! What can go wrong in the store, told so that the operator knows what to do.
//!
//! A lookup that finds nothing is no error: it is `Ok(None)` or an empty list. [`StoreError::is_transient`] says whether
//! waiting and trying again may help; everything else needs a person or a newer program.

use std::path::PathBuf;

use manifest::SiteName;

use crate::model::FeedPosition;

/// An operation on the store that failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database does not answer; nothing was changed.
    #[error("the database is not available for {operation}: {source}")]
    Unavailable {
        /// The method that was called.
        operation: &'static str,
        /// What the driver said.
        source: sqlx::Error,
    },
    /// No connection could be made when the store was opened.
    #[error(
        "cannot reach the database at {url}: {reason}; start it, or correct --database-url or DATABASE_URL"
    )]
    Unreachable {
        /// Where, without the password.
        url: String,
        /// What the driver said.
        reason: String,
    },
    /// The server is there and does not let this program in: a password, a database or a setting of TLS is wrong.
    #[error(
        "the database at {url} does not let this program in: {reason}; correct --database-url or DATABASE_URL"
    )]
    Rejected {
        /// Where, without the password.
        url: String,
        /// What the server said.
        reason: String,
    },
    /// The database URL cannot be understood.
    #[error(
        "\"{url}\" is no database URL: {reason}; write postgres://user:password@host/database or sqlite:PATH"
    )]
    BadUrl {
        /// What was given, without the password.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no embedded database where one was to be read.
    #[error(
        "there is no database at {}: name the right one with --data-dir or --database-url; a crawl makes a new one",
        path.display()
    )]
    Missing {
        /// Where it would be.
        path: PathBuf,
    },
    /// The schema is older than this program needs and may not be migrated on this connection.
    #[error(
        "the database has schema {found}, this program needs {needed}, and the connection is read-only: \
         run any agentdex program once against the primary to migrate it"
    )]
    SchemaOlder {
        /// Number of the last migration that the database has.
        found: i64,
        /// Number of the last migration that this program brings.
        needed: i64,
    },
    /// The schema was written by a newer program.
    #[error(
        "the database has schema {found}, which no longer serves programs that know schema {known}: \
         use the newer program, or restore a backup made before it ran"
    )]
    SchemaNewer {
        /// Number of the last migration that the database has.
        found: i64,
        /// Number of the last migration that this program brings.
        known: i64,
    },
    /// A migration failed; it was rolled back.
    #[error("the database schema could not be migrated: {source}")]
    Migration {
        /// What the driver said.
        #[source]
        source: Box<sqlx::migrate::MigrateError>,
    },
    /// The embedded database cannot be created or written there.
    #[error("cannot write the database {}: {reason}; choose another --data-dir or correct its permissions", path.display())]
    NotWritable {
        /// The database file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// No space is left for the database.
    #[error("the disk of the database is full, {operation} was rolled back: free some space")]
    DiskFull {
        /// The method that was called.
        operation: &'static str,
    },
    /// A dump is read into an empty database only.
    #[error("the database is not empty: its table {table} has rows; import into a new one")]
    NotEmpty {
        /// The table.
        table: &'static str,
    },
    /// A line of a dump cannot be read; nothing was imported.
    #[error("line {line} of the dump cannot be read: {reason}")]
    BadDump {
        /// Its number, 1 the first.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// Entries of the change feed were removed before this reader came for them.
    #[error(
        "the change feed begins at {} and the reader has come to {}: what lies between was removed by age; \
         begin anew from what is stored, and register the reader", first.0, after.0
    )]
    FeedOutrun {
        /// Where the reader had come.
        after: FeedPosition,
        /// The first entry that is kept.
        first: FeedPosition,
    },
    /// A row holds what this program cannot have written.
    #[error("the row {id} of table {table} is damaged in column {column}: {reason}")]
    BadRow {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The row's key.
        id: String,
        /// What is wrong with the value.
        reason: String,
    },
    /// A value cannot be brought into the form in which it is stored.
    #[error("{what} cannot be stored: {reason}")]
    Unstorable {
        /// Which value.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// Another worker has taken the site over, or the lease was given back.
    #[error("the lease on {site} is no longer held")]
    LeaseLost {
        /// The site.
        site: SiteName,
    },
    /// The owner of the site opted out.
    #[error("{site} is blocked: its owner asked to be left out")]
    Blocked {
        /// The site.
        site: SiteName,
    },
    /// The database refused a statement: a defect of the program.
    #[error("{operation} failed: {source}")]
    Refused {
        /// The method that was called.
        operation: &'static str,
        /// What the driver said.
        source: sqlx::Error,
    },
}

/// Classes of SQLSTATE (PostgreSQL, appendix A) after which the same statement may succeed: connection exceptions,
/// rolled-back transactions, insufficient resources, operator intervention; and read-only during a fail-over.
const TRANSIENT_SQLSTATES: [&str; 5] = ["08", "40", "53", "57", POSTGRES_READ_ONLY];
/// Primary result codes of SQLite: busy, locked, input or output error.
const TRANSIENT_SQLITE_CODES: [i32; 3] = [5, 6, 10];
const SQLITE_FULL: i32 = 13;
/// A transaction that may not write.
pub(crate) const POSTGRES_READ_ONLY: &str = "25006";
const POSTGRES_DISK_FULL: &str = "53100";

impl StoreError {
    /// Whether waiting and trying again may help.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Unreachable { .. } | Self::DiskFull { .. })
    }

    /// Whether the server is away, so that a program that starts waits for it.
    pub(crate) const fn is_away(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Unreachable { .. })
    }

    /// Sorts what kept a first connection from being made. `url` is shown, without the password.
    pub(crate) fn of_connecting(url: String, error: &sqlx::Error) -> Self {
        use std::io::ErrorKind;
        let reason = error.to_string();
        let is_away = match error {
            sqlx::Error::Database(error) => is_transient_code(&error.code().unwrap_or_default()),
            sqlx::Error::Io(error) => {
                !matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput)
            }
            sqlx::Error::PoolTimedOut => true,
            sqlx::Error::Configuration(_) => return Self::BadUrl { url, reason },
            _ => false,
        };
        if is_away { Self::Unreachable { url, reason } } else { Self::Rejected { url, reason } }
    }

    /// Whether the server takes no writes: a replica.
    pub(crate) fn is_read_only(&self) -> bool {
        match self {
            Self::Unavailable { source: sqlx::Error::Database(error), .. } => {
                error.code().as_deref() == Some(POSTGRES_READ_ONLY)
            }
            _ => false,
        }
    }

    /// Sorts a driver's error by what can be done about it.
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
    fn codes_tell_waiting_from_giving_up() {
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
