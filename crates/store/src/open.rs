//! Opens a store with retries: programs that start together with their database wait for it.
//!
//! Errors that retries cannot fix (a wrong password, an unknown database, an invalid URL) are returned immediately. An unresolved host name
//! is retried, because orchestrators add the name of the database when it starts.

use async_recursion::async_recursion as boxed;
use std::time::Duration;

use tokio::time::Instant;

use crate::config::StoreConfig;
use crate::{Store, StoreError};

/// First and longest delay between two attempts.
const DELAY_FIRST: Duration = Duration::from_millis(200);
const DELAY_MAX: Duration = Duration::from_secs(5);
/// Interval of log lines while the database is not available.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

impl Store {
    /// Opens a database for a program that only reads: it migrates an earlier schema, and creates nothing.
    ///
    /// # Errors
    ///
    /// An error with [`StoreError::is_missing`] if there is no such database.
    #[boxed]
    pub async fn open_existing(config: &StoreConfig) -> Result<Self, StoreError> {
        Self::existing_schema(config).await?;
        Self::open(config).await
    }

    /// Opens a database, and retries while the server is not available. Drop the future to stop.
    #[boxed]
    pub async fn open_when_available(config: &StoreConfig) -> Result<Self, StoreError> {
        let began = Instant::now();
        let (mut delay, mut log_at) = (DELAY_FIRST, Duration::ZERO);
        loop {
            let error = match Self::open(config).await {
                Err(error) if error.is_unavailable() => error,
                result => return result,
            };
            let waited = began.elapsed();
            if waited >= log_at {
                tracing::warn!(
                    database = %config.url,
                    waited_s = waited.as_secs(),
                    error = &error as &dyn std::error::Error,
                    "waiting for the database"
                );
                log_at = waited + LOG_INTERVAL;
            }
            tokio::time::sleep(delay).await;
            delay = (delay * 2).min(DELAY_MAX);
        }
    }
}
