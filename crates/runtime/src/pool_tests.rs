//! Tests of reader threads that are slow, panic, or lose their caller.

use super::*;
use std::sync::mpsc::{Receiver, Sender, channel};

const SOON: Duration = Duration::from_secs(20);

fn limits(threads: usize, queue: usize) -> ReaderLimits {
    ReaderLimits { threads, queue, queue_wait: SOON, deadline: SOON }
}

/// A document that is read until the sender is dropped.
fn endless() -> (Sender<()>, Receiver<()>) {
    channel()
}

fn stalled(pool: &ReaderPool) -> usize {
    pool.0.stalled.load(Ordering::Relaxed)
}

async fn wait_for(mut is_true: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(SOON, async {
        while !is_true() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.unwrap();
}

#[tokio::test]
async fn returns_results_and_reuses_its_threads() {
    let pool = ReaderPool::new("test", limits(1, 8));
    for number in 0..100 {
        assert_eq!(pool.read(move || number * 2).await.unwrap(), number * 2);
    }
}

#[tokio::test]
async fn reading_does_not_block_the_runtime() {
    let pool = ReaderPool::new("test", limits(1, 0));
    let (release, waits) = endless();
    let reading = pool.read(move || waits.recv().is_err());
    // the runtime of this test has one thread, so the timer runs only if the document does not block it
    let other = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        drop(release);
    };
    let (read, ()) = tokio::join!(reading, other);
    assert!(read.unwrap());
}

#[tokio::test]
async fn refuses_more_documents_than_may_wait() {
    let pool = ReaderPool::new("test", limits(1, 1));
    let (release, waits) = endless();
    let (first, second) = (pool.read(move || waits.recv().is_err()), pool.read(|| true));
    let third = async {
        tokio::task::yield_now().await;
        let third = pool.read(|| ()).await;
        drop(release);
        third
    };
    let (first, second, third) = tokio::join!(first, second, third);
    assert!(first.unwrap() && second.unwrap());
    assert!(matches!(third, Err(ReadError::Busy)), "{third:?}");
}

#[tokio::test]
async fn abandons_a_document_at_its_deadline_and_continues_with_another_thread() {
    let deadline = Duration::from_millis(20);
    let pool = ReaderPool::new("test", ReaderLimits { deadline, ..limits(1, 0) });
    let (release, waits) = endless();
    let stuck = pool.read(move || waits.recv().is_err()).await;
    assert!(stuck.as_ref().is_err_and(ReadError::is_caused_by_document), "{stuck:?}");
    assert_eq!(stalled(&pool), 1);
    assert!(pool.read(|| true).await.unwrap());
    drop(release);
    wait_for(|| stalled(&pool) == 0).await;
    assert!(pool.read(|| true).await.unwrap());
}

/// The levels of the logged events.
#[derive(Clone, Default)]
struct Levels(Arc<Mutex<Vec<tracing::Level>>>);

impl tracing::Subscriber for Levels {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        if event.metadata().target().starts_with("runtime") {
            self.0.lock().unwrap().push(*event.metadata().level());
        }
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_slow_document_of_a_client_is_not_logged_as_an_error() {
    let limits = ReaderLimits { deadline: Duration::from_millis(20), ..limits(1, 0) };
    for (pool, expected) in [
        (ReaderPool::of_clients("test", limits), tracing::Level::DEBUG),
        (ReaderPool::new("test", limits), tracing::Level::ERROR),
    ] {
        let levels = Levels::default();
        let logs = tracing::subscriber::set_default(levels.clone());
        let (release, waits) = endless();
        let stuck = pool.read(move || waits.recv().is_err()).await;
        drop((release, logs));
        assert!(matches!(stuck, Err(ReadError::TimedOut { .. })), "{stuck:?}");
        assert_eq!(*levels.0.lock().unwrap(), [expected]);
    }
}

#[tokio::test]
async fn refuses_documents_while_every_thread_is_blocked_and_recovers() {
    let (deadline, queue_wait) = (Duration::from_millis(20), Duration::from_millis(50));
    let limits = ReaderLimits { threads: 1, queue: 1, queue_wait, deadline };
    let pool = ReaderPool::new("test", limits);
    let mut holds = Vec::new();
    for _ in 0..=STALLED_MAX {
        let (release, waits) = endless();
        holds.push(release);
        let stuck = pool.read(move || waits.recv().is_err()).await;
        assert!(matches!(stuck, Err(ReadError::TimedOut { .. })), "{stuck:?}");
    }
    assert!(matches!(pool.read(|| ()).await, Err(ReadError::Busy)));
    drop(holds);
    wait_for(|| stalled(&pool) == 0).await;
    assert!(pool.read(|| true).await.unwrap());
}

#[tokio::test]
async fn a_panic_fails_only_its_own_document() {
    let pool = ReaderPool::new("test", limits(1, 0));
    let panicked = pool.read(|| panic!("no such thing")).await;
    let error = panicked.map(|()| unreachable!()).unwrap_err();
    assert_eq!(error.to_string(), "reading the document failed: no such thing");
    assert!(pool.read(|| true).await.unwrap());
}

#[tokio::test]
async fn abandons_a_document_at_its_deadline_after_its_caller_is_dropped() {
    let deadline = Duration::from_millis(50);
    let pool = ReaderPool::new("test", ReaderLimits { deadline, ..limits(1, 8) });
    let (release, waits) = endless();
    let reading = pool.read(move || waits.recv().is_err());
    assert!(tokio::time::timeout(Duration::from_millis(5), reading).await.is_err());
    assert!(pool.read(|| true).await.unwrap(), "another thread replaces it");
    assert_eq!(stalled(&pool), 1);
    drop(release);
    wait_for(|| stalled(&pool) == 0).await;
    assert!(pool.0.orphaned.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_thread_survives_a_dropped_caller() {
    let pool = ReaderPool::new("test", limits(1, 0));
    let (release, waits) = endless();
    let reading = pool.read(move || waits.recv().is_err());
    assert!(tokio::time::timeout(Duration::from_millis(10), reading).await.is_err());
    drop(release);
    assert!(pool.read(|| true).await.unwrap());
}
