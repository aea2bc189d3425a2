//! Size and vacuum statistics of tables.

use super::Connection;
use crate::convert::{RowRef, to_u64};
use crate::fault::Outcome;
use crate::model::Space;

/// Tables with their indexes, the largest first; partitions are summed up.
pub(crate) async fn space(connection: &mut Connection) -> Outcome<Vec<Space>> {
    let rows: Vec<(String, i64, i64, i64, Option<i64>)> = sqlx::query_as(
        "SELECT CAST(COALESCE(whole.relname, own.relname) AS TEXT) AS name,
                CAST(SUM(pg_total_relation_size(own.oid)) AS BIGINT) AS bytes,
                CAST(SUM(n_live_tup) AS BIGINT), CAST(SUM(n_dead_tup) AS BIGINT),
                CAST(EXTRACT(EPOCH FROM MAX(GREATEST(last_vacuum, last_autovacuum))) * 1000 AS BIGINT)
         FROM pg_stat_user_tables AS counted
         JOIN pg_class AS own ON own.oid = counted.relid
         LEFT JOIN pg_inherits ON pg_inherits.inhrelid = own.oid
         LEFT JOIN pg_class AS whole ON whole.oid = pg_inherits.inhparent
         WHERE own.relkind = 'r' GROUP BY 1 ORDER BY 2 DESC, 1",
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut space = Vec::with_capacity(rows.len());
    for (name, bytes, live, dead, vacuumed_at_ms) in rows {
        let vacuumed_at = RowRef::new("pg_stat_user_tables", &name).time_of("last_vacuum", vacuumed_at_ms)?;
        space.push(Space {
            name,
            bytes: to_u64(bytes),
            rows: Some(to_u64(live)),
            dead_rows: Some(to_u64(dead)),
            free_bytes: None,
            vacuumed_at,
        });
    }
    Ok(space)
}
