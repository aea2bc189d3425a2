//! Reads documents within the memory that all visits share.

use futures::FutureExt as _;

use crate::reading::{HeldMemory, MemoryBudget, NoMemory};

/// Reads a document and reserves memory for the result. If no memory is free, drops the result, waits, and reads the document again. So a
/// waiting visit holds no memory that is not counted.
pub(super) async fn read_within<T, E, R>(
    memory: &MemoryBudget,
    held: &mut HeldMemory,
    read: impl Fn() -> R,
    bytes_of: impl Fn(&T) -> usize,
) -> Result<Result<T, NoMemory>, E>
where
    R: Future<Output = Result<T, E>>,
{
    let first = read().await?;
    let bytes = bytes_of(&first);
    if let Some(at_once) = memory.hold_manifest(held, bytes).now_or_never() {
        return Ok(at_once.map(|()| first));
    }
    drop(first);
    match memory.hold_manifest(held, bytes).await {
        Ok(()) => Ok(Ok(read().await?)),
        Err(none) => Ok(Err(none)),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    const BYTES: usize = 100 * 1_024 * 1_024;

    #[tokio::test]
    async fn drops_manifests_while_their_visits_wait_for_memory() {
        let memory = MemoryBudget::new(Duration::from_millis(400));
        let (read_so_far, manifest) = (AtomicUsize::new(0), Arc::new(()));
        let read = || async {
            read_so_far.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Arc::clone(&manifest))
        };
        let mut visits: Vec<HeldMemory> = (0..10).map(|_| HeldMemory::default()).collect();
        let results = visits.iter_mut().map(|held| read_within(&memory, held, read, |_| BYTES));
        let waiting = futures::future::join_all(results);
        let in_memory = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            (read_so_far.load(Ordering::Relaxed), Arc::strong_count(&manifest) - 1)
        };
        let (results, (read_before, in_memory)) = tokio::join!(waiting, in_memory);
        assert_eq!((read_before, in_memory), (10, 5), "five fit into 512 MiB");
        let refused = results.iter().filter(|result| matches!(result, Ok(Err(NoMemory::Now)))).count();
        assert_eq!(refused, 5);
        drop((results, visits));

        let memory = MemoryBudget::new(Duration::from_secs(30));
        let mut visits: Vec<HeldMemory> = (0..6).map(|_| HeldMemory::default()).collect();
        let (last, first) = visits.split_last_mut().unwrap();
        for held in first.iter_mut() {
            assert!(read_within(&memory, held, read, |_| BYTES).await.unwrap().is_ok());
        }
        let ends = async {
            tokio::task::yield_now().await;
            for held in first {
                drop(std::mem::take(held));
            }
        };
        let before = read_so_far.load(Ordering::Relaxed);
        let (result, ()) = tokio::join!(read_within(&memory, last, read, |_| BYTES), ends);
        assert!(result.unwrap().is_ok(), "memory is free after other visits have ended");
        assert_eq!(read_so_far.load(Ordering::Relaxed), before + 2);
    }
}
