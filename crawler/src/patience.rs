//! Going on as soon as the database is back: what was fetched is not thrown away because it is away for a minute.

use std::time::Duration;

use store::StoreError;

use crate::metrics;

/// First and longest pause between two attempts.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Tries again as long as the database is away. `what` waits, for the log.
pub(crate) async fn patiently<T, F>(what: &str, mut attempt: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut pause = PAUSE_FIRST;
    loop {
        match attempt().await {
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
