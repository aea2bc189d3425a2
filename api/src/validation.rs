//! Where documents of clients are read: places of their own, so that a document that takes long delays other documents
//! and never a search.
//!
//! A document whose reading has begun keeps its place to its end, even where its client has gone or was told that it
//! takes too long: what cannot be stopped must not be counted as stopped.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::problem::Problem;

/// Documents read at the same time: one for every second core, so that searches keep the others.
const CORES_PER_DOCUMENT: usize = 2;
/// Documents that wait for a place.
const WAITING_MAX: usize = 16;
/// Longest time from the wait for a place to the end of the reading: below the deadline of a request.
const DEADLINE: Duration = Duration::from_secs(8);

/// The places of this process.
#[derive(Debug, Clone)]
pub(crate) struct Validation(Arc<Places>);

#[derive(Debug)]
struct Places {
    reading: Arc<Semaphore>,
    /// Those that read and those that wait.
    admitted: Arc<Semaphore>,
    deadline: Duration,
}

impl Validation {
    pub(crate) fn for_this_machine() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with((cores / CORES_PER_DOCUMENT).max(1), WAITING_MAX, DEADLINE)
    }

    fn with(reading: usize, waiting: usize, deadline: Duration) -> Self {
        Self(Arc::new(Places {
            reading: Arc::new(Semaphore::new(reading)),
            admitted: Arc::new(Semaphore::new(reading + waiting)),
            deadline,
        }))
    }

    /// Reads one document, off the threads that answer requests.
    pub(crate) async fn run<T, F>(&self, read: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let admitted = Arc::clone(&self.0.admitted).try_acquire_owned();
        let admitted = admitted
            .map_err(|_| Problem::unavailable("too many documents wait to be read; try again in a moment"))?;
        let reading = Arc::clone(&self.0.reading);
        let worked = tokio::time::timeout(self.0.deadline, async move {
            let place = reading.acquire_owned().await.map_err(|error| Problem::internal(&error))?;
            let worked = tokio::task::spawn_blocking(move || {
                let result = read();
                drop((place, admitted));
                result
            });
            worked.await.map_err(|error| Problem::internal(&error))
        });
        worked.await.map_err(|_| {
            Problem::unavailable("reading this document took longer than its deadline; nothing of it is kept")
        })?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn documents_beyond_the_queue_are_refused_and_slow_ones_keep_their_place_to_their_end() {
        let validation = Validation::with(1, 1, Duration::from_millis(200));
        let (finish, finished) = mpsc::channel::<()>();
        let slow = validation.run(move || finished.recv().unwrap());
        let waits = validation.run(|| ());
        let refused = async {
            tokio::task::yield_now().await;
            validation.run(|| ()).await
        };
        let (slow, waits, refused) = tokio::join!(slow, waits, refused);
        for (late, says) in [(slow, "deadline"), (waits, "deadline"), (refused, "too many documents")] {
            let problem = late.unwrap_err();
            assert_eq!(problem.body().status.as_u16(), 503);
            assert!(problem.body().detail.contains(says), "{}", problem.body().detail);
        }
        assert_eq!(validation.0.reading.available_permits(), 0, "it is still being read");
        finish.send(()).unwrap();
        let place = tokio::time::timeout(Duration::from_secs(20), validation.0.reading.acquire()).await;
        drop(place.unwrap().unwrap());
        validation.run(|| ()).await.unwrap();
    }
}
