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

/// Poll interval of [`lasting_outage`].
const OUTAGE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Waits for an outage of the database that lasts this long from now on.
pub(crate) async fn lasting_outage(lasts: Duration) {
    let mut began = Instant::now();
    while began.elapsed() < lasts {
        tokio::time::sleep(OUTAGE_POLL_INTERVAL).await;
        if !OUTAGE.is_on() {
            began = Instant::now();
        }
    }
}

/// Retries as long as the database is unavailable; the log names the `operation`.
pub(crate) async fn retry_while_unavailable<T, F>(
    operation: &str,
    mut attempt: impl FnMut() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut delay = DELAY_FIRST;
    let mut retried = None;
    loop {
        let began = Instant::now();
        let mut attempted = pin!(attempt());
        let (attempted, slow) = if let Ok(attempted) = timeout(SLOW_AFTER, &mut attempted).await {
            (attempted, None)
        } else {
            metrics::database_wait();
            let slow = OUTAGE.slow(operation, began);
            (attempted.await, slow)
        };
        match attempted {
            Err(error) if error.is_transient() => {
                metrics::database_wait();
                OUTAGE.failed(operation, error, began);
                retried.get_or_insert_with(|| OUTAGE.retried());
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(DELAY_MAX);
            }
            result => {
                drop(retried.take());
                OUTAGE.answered();
                if let Some(slow) = slow {
                    slow.answered();
                }
                return result;
            }
        }
    }
}
