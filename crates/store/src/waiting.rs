//! Opening a store whose server is away: programs that are started together with their database wait for it, as they do
//! when it goes away later.
//!
//! What waiting cannot mend (a wrong password, an unknown database, a URL that cannot be read) is reported at once. A name
//! that cannot be resolved is waited for: orchestrators give a database its name when it starts.

use std::time::Duration;

use tokio::time::Instant;

use crate::config::StoreConfig;
use crate::{Store, StoreError};

/// First and longest pause between two attempts.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How often the log says that the database is still waited for.
const TELL_EVERY: Duration = Duration::from_mins(1);

impl Store {
    /// As [`Store::open`], and tries again as long as the server is away. Drop the future to stop waiting.
    pub async fn open_when_available(config: &StoreConfig) -> Result<Self, StoreError> {
        let began = Instant::now();
        let (mut pause, mut tell_at) = (PAUSE_FIRST, Duration::ZERO);
        loop {
            let error = match Self::open(config).await {
                Err(error) if error.is_away() => error,
                done => return done,
            };
            let waited = began.elapsed();
            if waited >= tell_at {
                tracing::warn!(
                    database = %config.url,
                    waited_s = waited.as_secs(),
                    error = &error as &dyn std::error::Error,
                    "waiting for the database"
                );
                tell_at = waited + TELL_EVERY;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}
