//! Going on as soon as the database is back: what was fetched is not thrown away because it is away for a minute.

use std::pin::pin;
use std::time::Duration;

use store::StoreError;
use tokio::time::timeout;

use crate::metrics;

/// First and longest pause between two attempts.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// After this an attempt that is still under way is told: it may be waiting for a connection.
const SILENCE_MAX: Duration = Duration::from_secs(2);

/// Tries again as long as the database is away. `what` waits, for the log.
pub(crate) async fn patiently<T, F>(what: &str, mut attempt: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut pause = PAUSE_FIRST;
    loop {
        let mut attempted = pin!(attempt());
        let attempted = if let Ok(attempted) = timeout(SILENCE_MAX, &mut attempted).await {
            attempted
        } else {
            metrics::database_wait();
            tracing::warn!(what, "waiting for the database");
            attempted.await
        };
        match attempted {
            Err(error) if error.is_transient() => {
                metrics::database_wait();
                tracing::warn!(%error, pause_ms = pause.as_millis(), what, "waiting for the database");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
            result => return result,
        }
    }
}
