//! Recent visits, and the load of workers.

use super::Connection;
use super::lease::LEASE_MAX_MS;
use super::rows::decode;
use crate::convert::{RowRef, intact, to_u64};
use crate::fault::Outcome;
use crate::model::{VisitsOfHour, WorkerId, WorkerLoad};

const HOUR_MS: i64 = 60 * 60 * 1_000;

/// Visits that ended since a time, by hour and end, earliest first.
pub(crate) async fn visits_by_hour(connection: &mut Connection, since_ms: i64) -> Outcome<Vec<VisitsOfHour>> {
    let rows = sqlx::query(
        "SELECT ended_at_ms / $2 * $2 AS hour_ms, visit_end, COUNT(*) FROM visit WHERE ended_at_ms >= $1
         GROUP BY hour_ms, visit_end ORDER BY hour_ms, visit_end",
    )
    .bind(since_ms)
    .bind(HOUR_MS)
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(decode(&["visit"], &rows), |(hour_ms, end, count): (i64, String, i64)| {
        let at = RowRef::new("visit", &end);
        Ok(VisitsOfHour {
            hour: at.time("ended_at_ms", hour_ms)?,
            end: at.parse("visit_end", &end)?,
            count: to_u64(count),
        })
    }))
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
