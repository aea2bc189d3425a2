//! Errors of the SQL functions, which do not know the name of the operation.
//!
//! With [`Fault`], `?` works for both errors of the driver and errors of the store. The methods of `Store` convert it to a [`StoreError`].

use crate::StoreError;
use crate::error::POSTGRES_READ_ONLY;

pub(crate) type Outcome<T> = Result<T, Fault>;

#[derive(Debug)]
pub(crate) enum Fault {
    Driver(sqlx::Error),
    Store(StoreError),
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// SQLSTATEs after which the transaction is retried immediately: a serialisation failure, a deadlock, and a foreign key to a
/// document that another transaction deleted.
const CONFLICT_SQLSTATES: [&str; 3] = ["40001", "40P01", "23503"];
/// `SQLITE_CONSTRAINT_FOREIGNKEY`.
const CONFLICT_SQLITE: &str = "787";

/// `query_canceled` of PostgreSQL, and `SQLITE_INTERRUPT`.
const INTERRUPTED: [&str; 2] = ["57014", "9"];

impl Fault {
    /// Whether two transactions conflicted.
    pub(crate) fn is_conflict(&self) -> bool {
        self.code().is_some_and(|code| CONFLICT_SQLSTATES.contains(&code.as_str()) || code == CONFLICT_SQLITE)
    }

    /// Whether the server is a read-only replica.
    pub(crate) fn is_read_only(&self) -> bool {
        self.code().as_deref() == Some(POSTGRES_READ_ONLY)
    }

    fn code(&self) -> Option<String> {
        match self {
            Self::Driver(sqlx::Error::Database(error)) => error.code().map(std::borrow::Cow::into_owned),
            _ => None,
        }
    }

    /// Converts the fault of an operation with a time limit: an interruption is [`StoreError::Interrupted`].
    pub(crate) fn during_limited(self, operation: &'static str) -> StoreError {
        match self.code() {
            Some(code) if INTERRUPTED.contains(&code.as_str()) => StoreError::Interrupted { operation },
            _ => self.during(operation),
        }
    }

    pub(crate) fn during(self, operation: &'static str) -> StoreError {
        match self {
            Self::Driver(error) => StoreError::of_driver(operation, error),
            Self::Store(error) => error,
        }
    }
}
