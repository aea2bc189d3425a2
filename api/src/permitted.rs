//! Values that are held with a permit for their memory, and work on them off the runtime.

use std::ops::Deref;

use crate::fair_permits::Permit;
use crate::problem::Problem;

/// A value with the permit for its bytes.
#[derive(Debug)]
pub(crate) struct Permitted<T> {
    pub(crate) value: T,
    pub(crate) permit: Permit,
}

impl<T> Deref for Permitted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Permitted<T> {
    /// Splits the value from its permit, which must be held as long as the value.
    pub(crate) fn into_parts(self) -> (T, Permit) {
        (self.value, self.permit)
    }

    /// Runs `work` on the value on the blocking pool, then releases the permit.
    pub(crate) async fn work<R, F>(self, work: F) -> Result<R, Problem>
    where
        T: Send + 'static,
        R: Send + 'static,
        F: FnOnce(T) -> R + Send + 'static,
    {
        let Self { value, permit } = self;
        off_runtime(move || {
            let result = work(value);
            drop(permit);
            result
        })
        .await
    }
}

/// Runs work on the blocking pool whose time is proportional to the size of a publisher's data. The caller limits the
/// concurrency.
pub(crate) async fn off_runtime<R, F>(work: F) -> Result<R, Problem>
where
    R: Send + 'static,
    F: FnOnce() -> R + Send + 'static,
{
    tokio::task::spawn_blocking(work).await.map_err(|error| Problem::internal(&error))
}
