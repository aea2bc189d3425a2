//! Collects rows from many tasks and writes them in batches, by one statement each.
//!
//! Rows that arrive while a batch is written form the next one. After a large batch, the next one also waits for `COLLECT_TIME`, because
//! writing many rows takes a database little longer than writing one. While the database is unavailable, a batch is retried, and its tasks
//! wait.

use std::sync::Arc;
use std::time::Duration;

use store::StoreError;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::retry::retry_while_unavailable;

/// How long a batch collects rows if the previous batch was busy.
const COLLECT_TIME: Duration = Duration::from_millis(20);

/// How rows of one kind are written.
pub(crate) trait BatchWriter: Clone + Send + Sync + 'static {
    type Row: Send + Sync + 'static;
    /// The result for a row.
    type Answer: Send + 'static;

    /// The kind of row, for errors.
    const ROW: &'static str;
    /// The operation, for the log.
    const OPERATION: &'static str;
    /// Minimum number of rows of a busy batch.
    const BUSY_ROWS_MIN: usize;
    /// Whether a batch is dropped if all tasks that waited for it were cancelled.
    const IS_CANCELLABLE: bool = true;

    /// Maximum number of rows in a batch.
    fn rows_max(&self) -> usize;

    /// How many batches are written at the same time.
    fn concurrency(&self) -> usize {
        1
    }

    /// Writes all rows or none; returns their results in order.
    fn write(&self, rows: &[Self::Row])
    -> impl Future<Output = Result<Vec<Self::Answer>, StoreError>> + Send;
}

struct Waiting<B: BatchWriter> {
    row: B::Row,
    done: oneshot::Sender<Result<B::Answer, StoreError>>,
}

/// Sends rows to the tasks that write them; cheap to clone.
#[derive(Clone)]
pub(crate) struct Batcher<B: BatchWriter>(mpsc::Sender<Waiting<B>>);

impl<B: BatchWriter> Batcher<B> {
    /// The tasks end when the last clone is dropped.
    pub(crate) fn start(writer: &B, tracker: &TaskTracker) -> Self {
        let (sender, receiver) = mpsc::channel(writer.rows_max());
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..writer.concurrency() {
            tracker.spawn(write_all(writer.clone(), receiver.clone()));
        }
        Self(sender)
    }

    /// Writes a row; while the database is unavailable, retries without a limit.
    pub(crate) async fn write(&self, row: B::Row) -> Result<B::Answer, StoreError> {
        let stopped = || unstorable::<B>(&"the crawler is stopping");
        let (done, written) = oneshot::channel();
        self.0.send(Waiting { row, done }).await.map_err(|_| stopped())?;
        written.await.map_err(|_| stopped())?
    }
}

fn unstorable<B: BatchWriter>(reason: &impl ToString) -> StoreError {
    StoreError::Unstorable { what: B::ROW, reason: reason.to_string() }
}

async fn write_all<B: BatchWriter>(writer: B, receiver: Arc<Mutex<mpsc::Receiver<Waiting<B>>>>) {
    let mut written_last = 0;
    loop {
        let is_busy = written_last >= B::BUSY_ROWS_MIN;
        let batch = collect(&mut *receiver.lock().await, writer.rows_max(), is_busy).await;
        if batch.is_empty() {
            return;
        }
        written_last = batch.len();
        write_batch(&writer, batch).await;
    }
}

/// Waits for a row and takes all that are queued; returns none when the crawler stops.
async fn collect<T>(receiver: &mut mpsc::Receiver<T>, rows_max: usize, is_busy: bool) -> Vec<T> {
    let mut batch = Vec::new();
    let collected = receiver.recv_many(&mut batch, rows_max).await;
    if is_busy && (1..rows_max).contains(&collected) {
        tokio::time::sleep(COLLECT_TIME).await;
        while batch.len() < rows_max
            && let Ok(waiting) = receiver.try_recv()
        {
            batch.push(waiting);
        }
    }
    batch
}

/// Writes the batch and sends the results.
async fn write_batch<B: BatchWriter>(writer: &B, batch: Vec<Waiting<B>>) {
    let (rows, mut waiting): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|waiting| (waiting.row, waiting.done)).unzip();
    let answers = tokio::select! {
        answers = answers(writer, &rows) => answers,
        () = all_dropped(&mut waiting), if B::IS_CANCELLABLE => return,
    };
    for (done, answer) in waiting.into_iter().zip(answers) {
        // a cancelled task no longer receives
        drop(done.send(answer));
    }
}

/// Writes rows one by one if they cannot be written together, so that a bad row fails alone.
async fn answers<B: BatchWriter>(writer: &B, rows: &[B::Row]) -> Vec<Result<B::Answer, StoreError>> {
    let error = match retry_while_unavailable(B::OPERATION, || writer.write(rows)).await {
        Ok(answers) => return answers.into_iter().map(Ok).collect(),
        Err(error) if rows.len() == 1 => return vec![Err(unstorable::<B>(&error))],
        Err(error) => error,
    };
    tracing::debug!(%error, rows = rows.len(), operation = B::OPERATION, "a batch could not be written, so its rows are written one by one");
    let mut answers = Vec::with_capacity(rows.len());
    for row in rows.chunks(1) {
        match retry_while_unavailable(B::OPERATION, || writer.write(row)).await {
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

    /// Doubles numbers, and records each batch that was tried.
    #[derive(Clone, Default)]
    struct Doubling(Arc<Mutex<Vec<Vec<u32>>>>);

    impl BatchWriter for Doubling {
        type Row = u32;
        type Answer = u32;

        const ROW: &'static str = "number";
        const OPERATION: &'static str = "double numbers";
        const BUSY_ROWS_MIN: usize = 2;

        fn rows_max(&self) -> usize {
            4
        }

        async fn write(&self, rows: &[u32]) -> Result<Vec<u32>, StoreError> {
            self.0.lock().await.push(rows.to_vec());
            let refused = StoreError::Unstorable { what: "batch", reason: "13 is in it".to_owned() };
            if rows.contains(&BAD) { Err(refused) } else { Ok(rows.iter().map(|row| row * 2).collect()) }
        }
    }

    async fn answered(batcher: &Batcher<Doubling>, rows: &[u32]) -> Vec<Option<u32>> {
        join_all(rows.iter().map(|row| async { batcher.write(*row).await.ok() })).await
    }

    #[tokio::test]
    async fn writes_rows_one_by_one_after_a_bad_row() {
        let doubling = Doubling::default();
        let batcher = Batcher::start(&doubling, &TaskTracker::new());
        assert_eq!(answered(&batcher, &[1, BAD, 3]).await, [Some(2), None, Some(6)]);
        assert_eq!(*doubling.0.lock().await, [vec![1, BAD, 3], vec![1], vec![BAD], vec![3]]);
        let error = batcher.write(BAD).await.unwrap_err().to_string();
        assert_eq!(error, "number cannot be stored: batch cannot be stored: 13 is in it");
        assert_eq!(doubling.0.lock().await.len(), 5, "a single row is tried once");
    }

    #[tokio::test]
    async fn keeps_the_order_and_the_size_of_batches() {
        let doubling = Doubling::default();
        let batcher = Batcher::start(&doubling, &TaskTracker::new());
        let rows: Vec<u32> = (100..110).collect();
        let doubled: Vec<Option<u32>> = rows.iter().map(|row| Some(row * 2)).collect();
        assert_eq!(answered(&batcher, &rows).await, doubled);
        let written = doubling.0.lock().await;
        assert!(written.iter().all(|batch| batch.len() <= 4), "{written:?}");
        assert_eq!(written.concat(), rows);
    }

    #[tokio::test]
    async fn drops_a_batch_when_all_of_its_tasks_are_cancelled() {
        let (doubling, tracker) = (Doubling::default(), TaskTracker::new());
        let batcher = Batcher::start(&doubling, &tracker);
        let database_unavailable = doubling.0.lock().await;
        let cancelled = tokio::time::timeout(Duration::from_millis(10), batcher.write(1)).await;
        assert!(cancelled.is_err());
        drop(batcher);
        tracker.close();
        tokio::time::timeout(Duration::from_secs(10), tracker.wait()).await.unwrap();
        assert!(database_unavailable.is_empty());
    }
}
