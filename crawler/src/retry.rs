//! Retries database operations until the database is available, so that an outage loses nothing that was fetched.

use std::pin::pin;
use std::time::Duration;

use store::{OUTAGE, StoreError};
use tokio::time::{Instant, timeout};

use crate::metrics;

/// First and longest delay between two attempts.
const DELAY_FIRST: Duration = Duration::from_millis(200);
const DELAY_MAX: Duration = Duration::from_secs(5);
/// An attempt that takes longer is logged, because it may wait for a connection.
const SLOW_AFTER: Duration = Duration::from_secs(2);

/// Retries as long as the database is unavailable; the log names the `operation`.
pub(crate) async fn retry_while_unavailable<T, F>(
    operation: &str,
    mut attempt: impl FnMut() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut delay = DELAY_FIRST;
    loop {
        let began = Instant::now();
        let mut attempted = pin!(attempt());
        let attempted = if let Ok(attempted) = timeout(SLOW_AFTER, &mut attempted).await {
            attempted
        } else {
            metrics::database_wait();
            if OUTAGE.is_slow(began) {
                tracing::warn!(operation, "waiting for the database");
            }
            attempted.await
        };
        match attempted {
            Err(error) if error.is_transient() => {
                metrics::database_wait();
                if OUTAGE.failed(began) {
                    tracing::warn!(%error, operation, "waiting for the database");
                } else {
                    tracing::debug!(%error, delay_ms = delay.as_millis(), operation, "waiting for the database");
                }
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(DELAY_MAX);
            }
            result => {
                OUTAGE.answered();
                return result;
            }
        }
    }
}
