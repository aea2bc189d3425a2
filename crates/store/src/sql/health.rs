//! Recent visits, and the load of workers.

use super::Connection;
use super::lease::LEASE_MAX_MS;
use super::rows::decode;
use super::stats::outcomes_parse;
use crate::convert::{RowRef, intact, to_u32, to_u64};
use crate::fault::Outcome;
use crate::model::{LatestVisit, VisitsOfInterval, WorkerId, WorkerLoad};

/// Visits that ended since a time, by interval and end, earliest first.
pub(crate) async fn visits_by_interval(
    connection: &mut Connection,
    since_ms: i64,
    interval_ms: i64,
) -> Outcome<Vec<VisitsOfInterval>> {
    let rows = sqlx::query(
        "SELECT ended_at_ms / $2 * $2 AS begins_at_ms, visit_end, COUNT(*),
                CAST(COALESCE(SUM(CASE WHEN requests BETWEEN 0 AND 2147483647 THEN requests END), 0) AS BIGINT)
         FROM visit WHERE ended_at_ms >= $1
         GROUP BY begins_at_ms, visit_end ORDER BY begins_at_ms, visit_end",
    )
    .bind(since_ms)
    .bind(interval_ms)
    .fetch_all(&mut *connection)
    .await?;
    let read = |(begins_at_ms, end, count, requests): (i64, String, i64, i64)| {
        let at = RowRef::new("visit", &end);
        Ok(VisitsOfInterval {
            begins_at: at.time("ended_at_ms", begins_at_ms)?,
            end: at.parse("visit_end", &end)?,
            count: to_u64(count),
            requests: to_u64(requests),
        })
    };
    Ok(intact(decode(&["visit"], &rows), read))
}

type LatestRow = (i64, String, i64, i64, String, i32, String);

/// The latest visits of all sites, the last one first.
pub(crate) async fn visits_latest(connection: &mut Connection, max: i64) -> Outcome<Vec<LatestVisit>> {
    let rows = sqlx::query(
        "SELECT id, site, started_at_ms, ended_at_ms, visit_end, requests, outcomes FROM visit
         ORDER BY id DESC LIMIT $1",
    )
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    let read = |(id, site, started_at_ms, ended_at_ms, end, requests, outcomes): LatestRow| {
        let name = id.to_string();
        let at = RowRef::new("visit", &name);
        Ok(LatestVisit {
            id,
            site: at.parse("site", &site)?,
            started_at: at.time("started_at_ms", started_at_ms)?,
            ended_at: at.time("ended_at_ms", ended_at_ms)?,
            end: at.parse("visit_end", &end)?,
            requests: to_u32(requests),
            outcomes: outcomes_parse(&at, &outcomes)?,
        })
    };
    Ok(intact(decode(&["visit"], &rows), read))
}

/// Workers that hold leases or own address groups, the busiest first.
pub(crate) async fn workers_list(
    connection: &mut Connection,
    now_ms: i64,
    max: i64,
) -> Outcome<Vec<WorkerLoad>> {
    let rows = sqlx::query(
        "SELECT name, CAST(SUM(sites) AS BIGINT) AS sites, CAST(SUM(groups_owned) AS BIGINT) AS groups_owned FROM (
             SELECT lease_owner AS name, COUNT(*) AS sites, 0 AS groups_owned FROM site
             WHERE lease_owner IS NOT NULL AND lease_until_ms > $1 AND lease_until_ms <= $3 GROUP BY lease_owner
             UNION ALL
             SELECT name, 0, (SELECT COUNT(*) FROM group_owner WHERE worker_id = worker.id) FROM worker
             WHERE alive_until_ms > $1) AS load
         GROUP BY name ORDER BY 2 DESC, 3 DESC, name LIMIT $2",
    )
    .bind(now_ms)
    .bind(max)
    .bind(now_ms + LEASE_MAX_MS)
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(decode(&["worker"], &rows), |(worker, sites, groups): (String, i64, i64)| {
        Ok(WorkerLoad { worker: WorkerId::new(&worker), sites: to_u64(sites), groups: to_u64(groups) })
    }))
}
