//! What the crawl has been doing lately, and who does it.

use super::Connection;
use crate::fault::Outcome;
use crate::model::{VisitsOfHour, WorkerId, WorkerLoad};
use crate::pack::{Place, sized, whole};

const HOUR_MS: i64 = 60 * 60 * 1_000;

/// Visits that ended since a time, by the hour of their end and by how they ended, the earliest first.
pub(crate) async fn visits_by_hour(connection: &mut Connection, since_ms: i64) -> Outcome<Vec<VisitsOfHour>> {
    let rows: Vec<(i64, String, i64)> = sqlx::query_as(
        "SELECT ended_at_ms / $2 * $2 AS hour_ms, visit_end, COUNT(*) FROM visit WHERE ended_at_ms >= $1
         GROUP BY hour_ms, visit_end ORDER BY hour_ms, visit_end",
    )
    .bind(since_ms)
    .bind(HOUR_MS)
    .fetch_all(&mut *connection)
    .await?;
    Ok(whole(rows, |(hour_ms, end, count)| {
        let place = Place::new("visit", &end);
        Ok(VisitsOfHour {
            hour: place.time("ended_at_ms", hour_ms)?,
            end: place.parse("visit_end", &end)?,
            count: sized(count),
        })
    }))
}

/// Workers that hold sites or own address groups at a time, the busiest first.
pub(crate) async fn workers_list(
    connection: &mut Connection,
    now_ms: i64,
    max: i64,
) -> Outcome<Vec<WorkerLoad>> {
    let rows: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT name, CAST(SUM(sites) AS BIGINT) AS sites, CAST(SUM(groups_owned) AS BIGINT) AS groups_owned FROM (
             SELECT lease_owner AS name, COUNT(*) AS sites, 0 AS groups_owned FROM site
             WHERE lease_owner IS NOT NULL AND lease_until_ms > $1 GROUP BY lease_owner
             UNION ALL
             SELECT name, 0, (SELECT COUNT(*) FROM group_owner WHERE worker_id = worker.id) FROM worker
             WHERE alive_until_ms > $1) AS load
         GROUP BY name ORDER BY 2 DESC, 3 DESC, name LIMIT $2",
    )
    .bind(now_ms)
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    let load = |(worker, sites, groups): (String, i64, i64)| WorkerLoad {
        worker: WorkerId::new(&worker),
        sites: sized(sites),
        groups: sized(groups),
    };
    Ok(rows.into_iter().map(load).collect())
}
