//! Errors inside the store, before the operation's name is known.
//!
//! SQL functions return a [`Fault`] so that `?` serves both the driver and our own checks; the method that was called
//! turns it into a [`StoreError`].

use crate::StoreError;
use crate::error::POSTGRES_READ_ONLY;

pub(crate) type Outcome<T> = Result<T, Fault>;

#[derive(Debug)]
pub(crate) enum Fault {
    Driver(sqlx::Error),
    Ours(StoreError),
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Ours(error)
    }
}

/// SQLSTATEs after which the whole transaction is worth another try at once: a serialisation failure, a deadlock, and
/// a document that was purged between our looking and our referring to it (foreign key).
const CONFLICT_SQLSTATES: [&str; 3] = ["40001", "40P01", "23503"];
/// SQLite's extended code for a foreign key (787).
const CONFLICT_SQLITE: &str = "787";

impl Fault {
    /// Whether two transactions got into each other's way.
    pub(crate) fn is_conflict(&self) -> bool {
        self.code().is_some_and(|code| CONFLICT_SQLSTATES.contains(&code.as_str()) || code == CONFLICT_SQLITE)
    }

    /// Whether the server takes no writes on this connection: a replica.
    pub(crate) fn is_read_only(&self) -> bool {
        self.code().as_deref() == Some(POSTGRES_READ_ONLY)
    }

    fn code(&self) -> Option<String> {
        match self {
            Self::Driver(sqlx::Error::Database(error)) => error.code().map(std::borrow::Cow::into_owned),
            _ => None,
        }
    }

    pub(crate) fn during(self, operation: &'static str) -> StoreError {
        match self {
            Self::Driver(error) => StoreError::of_driver(operation, error),
            Self::Ours(error) => error,
        }
    }
}
