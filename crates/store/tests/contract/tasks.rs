//! Failures of background tasks: counted until a success, one row for each machine, deleted by age.

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use store::{BackgroundTask, TaskFailure, TaskMonitor};

use crate::build::start;
use crate::harness::Db;

const LIST_MAX: u32 = 10;

fn at(seconds: i64) -> DateTime<Utc> {
    start() + TimeDelta::seconds(seconds)
}

fn failure(cause: &str) -> Result<(), TaskFailure> {
    Err(TaskFailure::new(cause, "start it again"))
}

pub(crate) async fn failures_of_a_task_are_counted_until_it_succeeds(Db { store, .. }: Db) -> Result<()> {
    let (seeds, vectors) = (BackgroundTask::Seeds, BackgroundTask::Vectors);
    store.task_failed((seeds, "other"), (3, "the server answered 503\0"), at(1)).await?;
    let monitor = TaskMonitor::new(store.clone(), seeds);
    monitor.ended(failure("no file"), at(2)).await;
    // repetitions within a minute are written together
    monitor.ended(failure("no file"), at(3)).await;
    monitor.ended(failure("no file"), at(4)).await;
    let failing = store.tasks_failing(LIST_MAX).await?;
    let shown: Vec<_> =
        failing.iter().map(|task| (task.since, task.failures, task.reason.as_str())).collect();
    let other = (at(1), 3, "the server answered 503");
    assert_eq!(shown, [other, (at(2), 1, "no file; start it again")]);
    monitor.ended(failure("no file"), at(70)).await;
    let failing = store.tasks_failing(LIST_MAX).await?;
    assert_eq!((failing[1].since, failing[1].last_at, failing[1].failures), (at(2), at(70), 4));

    // another process of this machine continues the count, and removes it with its first success
    let restarted = TaskMonitor::new(store.clone(), seeds);
    restarted.ended(failure("no server"), at(80)).await;
    let failing = store.tasks_failing(LIST_MAX).await?;
    assert_eq!((failing[1].since, failing[1].failures), (at(2), 5));
    TaskMonitor::new(store.clone(), vectors).ended(Ok(()), at(90)).await;
    assert_eq!(store.tasks_failing(LIST_MAX).await?.len(), 2, "another task succeeded");
    TaskMonitor::new(store.clone(), seeds).ended(Ok(()), at(90)).await;
    let failing = store.tasks_failing(LIST_MAX).await?;
    assert_eq!(failing.iter().map(|task| task.machine.as_str()).collect::<Vec<_>>(), ["other"]);
    Ok(())
}

pub(crate) async fn failures_of_tasks_are_deleted_by_age(Db { store, .. }: Db) -> Result<()> {
    store.task_failed((BackgroundTask::Report, "gone"), (1, "no"), start()).await?;
    store.task_failed((BackgroundTask::Report, "here"), (1, "no"), start() + TimeDelta::days(30)).await?;
    store.housekeeping(start() + TimeDelta::days(40)).await?;
    let failing = store.tasks_failing(LIST_MAX).await?;
    assert_eq!(failing.iter().map(|task| task.machine.as_str()).collect::<Vec<_>>(), ["here"]);
    Ok(())
}
