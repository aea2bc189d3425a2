//! Gathers rows that many tasks want to be written at the same time, so that one statement writes them all.
//!
//! Whatever gathers while one batch is on its way goes into the next. While there is much to write, a batch also gathers for
//! a moment: many rows cost a database little more than one. While the database is away a batch is tried again, and those
//! who asked for it wait.

use std::sync::Arc;
use std::time::Duration;

use store::StoreError;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::patience::patiently;

/// How long a batch gathers after a busy one.
const GATHER_TIME: Duration = Duration::from_millis(20);

/// How rows of one kind are written.
pub(crate) trait Batches: Clone + Send + Sync + 'static {
    type Row: Send + Sync + 'static;
    /// What came of a row.
    type Answer: Send + 'static;

    /// What a row is, for errors.
    const ROW: &'static str;
    /// What waits while the database is away, for the log.
    const WAITS: &'static str;
    /// So many rows in a batch are much to write.
    const BUSY: usize;
    /// Whether a batch may be given up that nobody waits for any more: those who stop do not wait for a database that is away.
    const MAY_BE_GIVEN_UP: bool = true;

    /// The most rows in a batch.
    fn rows_max(&self) -> usize;

    /// Batches on their way at the same time.
    fn at_once(&self) -> usize {
        1
    }

    /// Writes the rows together, with an answer to each in their order, or none of them.
    fn write(&self, rows: &[Self::Row])
    -> impl Future<Output = Result<Vec<Self::Answer>, StoreError>> + Send;
}

struct Waiting<B: Batches> {
    row: B::Row,
    done: oneshot::Sender<Result<B::Answer, StoreError>>,
}

/// Hands rows to the tasks that write them; cheap to clone.
#[derive(Clone)]
pub(crate) struct Gatherer<B: Batches>(mpsc::Sender<Waiting<B>>);

impl<B: Batches> Gatherer<B> {
    /// The tasks end when the last clone is dropped.
    pub(crate) fn start(batches: &B, tracker: &TaskTracker) -> Self {
        let (sender, receiver) = mpsc::channel(batches.rows_max());
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..batches.at_once() {
            tracker.spawn(write_all(batches.clone(), receiver.clone()));
        }
        Self(sender)
    }

    /// Returns when the row is written, however long the database is away.
    pub(crate) async fn write(&self, row: B::Row) -> Result<B::Answer, StoreError> {
        let gone = || unstorable::<B>(&"the crawler is stopping");
        let (done, written) = oneshot::channel();
        self.0.send(Waiting { row, done }).await.map_err(|_| gone())?;
        written.await.map_err(|_| gone())?
    }
}

fn unstorable<B: Batches>(reason: &impl ToString) -> StoreError {
    StoreError::Unstorable { what: B::ROW, reason: reason.to_string() }
}

async fn write_all<B: Batches>(batches: B, receiver: Arc<Mutex<mpsc::Receiver<Waiting<B>>>>) {
    let mut written_last = 0;
    loop {
        let is_busy = written_last >= B::BUSY;
        let batch = gather(&mut *receiver.lock().await, batches.rows_max(), is_busy).await;
        if batch.is_empty() {
            return;
        }
        written_last = batch.len();
        write_batch(&batches, batch).await;
    }
}

/// Waits for a row, and takes along what else is there; nothing comes when the crawler stops.
async fn gather<T>(receiver: &mut mpsc::Receiver<T>, rows_max: usize, is_busy: bool) -> Vec<T> {
    let mut batch = Vec::new();
    let gathered = receiver.recv_many(&mut batch, rows_max).await;
    if is_busy && (1..rows_max).contains(&gathered) {
        tokio::time::sleep(GATHER_TIME).await;
        while batch.len() < rows_max
            && let Ok(waiting) = receiver.try_recv()
        {
            batch.push(waiting);
        }
    }
    batch
}

/// Writes the batch, and tells everyone who waits.
async fn write_batch<B: Batches>(batches: &B, batch: Vec<Waiting<B>>) {
    let (rows, mut waiting): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|waiting| (waiting.row, waiting.done)).unzip();
    let answers = tokio::select! {
        answers = answers(batches, &rows) => answers,
        () = all_dropped(&mut waiting), if B::MAY_BE_GIVEN_UP => return,
    };
    for (done, answer) in waiting.into_iter().zip(answers) {
        // who was cancelled no longer listens
        drop(done.send(answer));
    }
}

/// Rows that cannot be written together are written one by one, so that a bad one fails alone.
async fn answers<B: Batches>(batches: &B, rows: &[B::Row]) -> Vec<Result<B::Answer, StoreError>> {
    let error = match patiently(B::WAITS, || batches.write(rows)).await {
        Ok(answers) => return answers.into_iter().map(Ok).collect(),
        Err(error) if rows.len() == 1 => return vec![Err(unstorable::<B>(&error))],
        Err(error) => error,
    };
    tracing::debug!(%error, rows = rows.len(), what = B::WAITS, "a batch is written row by row");
    let mut answers = Vec::with_capacity(rows.len());
    for row in rows.chunks(1) {
        match patiently(B::WAITS, || batches.write(row)).await {
            Ok(written) => answers.extend(written.into_iter().map(Ok)),
            Err(error) => answers.push(Err(unstorable::<B>(&error))),
        }
    }
    answers
}

async fn all_dropped<T>(waiting: &mut [oneshot::Sender<T>]) {
    for done in waiting {
        done.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;

    const BAD: u32 = 13;

    /// Doubles numbers, and remembers each batch that was tried.
    #[derive(Clone, Default)]
    struct Doubling(Arc<Mutex<Vec<Vec<u32>>>>);

    impl Batches for Doubling {
        type Row = u32;
        type Answer = u32;

        const ROW: &'static str = "number";
        const WAITS: &'static str = "numbers to be doubled";
        const BUSY: usize = 2;

        fn rows_max(&self) -> usize {
            4
        }

        async fn write(&self, rows: &[u32]) -> Result<Vec<u32>, StoreError> {
            self.0.lock().await.push(rows.to_vec());
            let refused = StoreError::Unstorable { what: "batch", reason: "13 is in it".to_owned() };
            if rows.contains(&BAD) { Err(refused) } else { Ok(rows.iter().map(|row| row * 2).collect()) }
        }
    }

    async fn answered(gatherer: &Gatherer<Doubling>, rows: &[u32]) -> Vec<Option<u32>> {
        join_all(rows.iter().map(|row| async { gatherer.write(*row).await.ok() })).await
    }

    #[tokio::test]
    async fn a_bad_row_fails_alone() {
        let doubling = Doubling::default();
        let gatherer = Gatherer::start(&doubling, &TaskTracker::new());
        assert_eq!(answered(&gatherer, &[1, BAD, 3]).await, [Some(2), None, Some(6)]);
        assert_eq!(*doubling.0.lock().await, [vec![1, BAD, 3], vec![1], vec![BAD], vec![3]]);
        let error = gatherer.write(BAD).await.unwrap_err().to_string();
        assert_eq!(error, "number cannot be stored: batch cannot be stored: 13 is in it");
        assert_eq!(doubling.0.lock().await.len(), 5, "a row that is alone is tried once");
    }

    #[tokio::test]
    async fn batches_are_full_at_the_most_and_in_order() {
        let doubling = Doubling::default();
        let gatherer = Gatherer::start(&doubling, &TaskTracker::new());
        let rows: Vec<u32> = (100..110).collect();
        let doubled: Vec<Option<u32>> = rows.iter().map(|row| Some(row * 2)).collect();
        assert_eq!(answered(&gatherer, &rows).await, doubled);
        let batches = doubling.0.lock().await;
        assert!(batches.iter().all(|batch| batch.len() <= 4), "{batches:?}");
        assert_eq!(batches.concat(), rows);
    }

    #[tokio::test]
    async fn nobody_waits_for_those_who_have_gone() {
        let (doubling, tracker) = (Doubling::default(), TaskTracker::new());
        let gatherer = Gatherer::start(&doubling, &tracker);
        let database_away = doubling.0.lock().await;
        let unheard = tokio::time::timeout(Duration::from_millis(10), gatherer.write(1)).await;
        assert!(unheard.is_err());
        drop(gatherer);
        tracker.close();
        tokio::time::timeout(Duration::from_secs(10), tracker.wait()).await.unwrap();
        assert!(database_away.is_empty());
    }
}
