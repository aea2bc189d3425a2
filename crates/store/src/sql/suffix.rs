//! Rate limits for public suffixes such as `github.io`, shared by all workers. Taking a permit locks the row of the suffix,
//! so concurrent requests get their permits one after the other.

use super::{Connection, numbers};
use crate::convert::{RowRef, millis, until_ms};
use crate::fault::Outcome;
use crate::model::{SuffixPermit, SuffixPermitOutcome, SuffixPermitRequest};

/// Takes the next permit, unless too many are open or it is too late.
pub(crate) async fn permit_take(
    connection: &mut Connection,
    request: &SuffixPermitRequest,
) -> Outcome<SuffixPermitOutcome> {
    let suffix = request.suffix.as_str();
    let next_ok_at_ms: i64 = sqlx::query_scalar(
        "INSERT INTO suffix_clock (suffix, next_ok_at_ms) VALUES ($1, 0)
         ON CONFLICT (suffix) DO UPDATE SET next_ok_at_ms = suffix_clock.next_ok_at_ms
         RETURNING next_ok_at_ms",
    )
    .bind(suffix)
    .fetch_one(&mut *connection)
    .await?;
    let at_ms = next_ok_at_ms.max(millis(request.from));
    let at = RowRef::new("suffix_clock", suffix).time("next_ok_at_ms", at_ms)?;
    if at > request.latest {
        return Ok(SuffixPermitOutcome::Late { until: at });
    }
    if permits_open(connection, request).await? >= i64::from(request.open_max) {
        return Ok(SuffixPermitOutcome::Full);
    }
    sqlx::query("UPDATE suffix_clock SET next_ok_at_ms = $2 WHERE suffix = $1")
        .bind(suffix)
        .bind(until_ms(at, request.gap))
        .execute(&mut *connection)
        .await?;
    let number =
        sqlx::query_scalar("INSERT INTO suffix_turn (suffix, until_ms) VALUES ($1, $2) RETURNING number")
            .bind(suffix)
            .bind(until_ms(at, request.life))
            .fetch_one(&mut *connection)
            .await?;
    Ok(SuffixPermitOutcome::Taken(SuffixPermit { number, at }))
}

/// Deletes expired permits and counts the open ones.
async fn permits_open(connection: &mut Connection, request: &SuffixPermitRequest) -> Outcome<i64> {
    sqlx::query("DELETE FROM suffix_turn WHERE suffix = $1 AND until_ms < $2")
        .bind(request.suffix.as_str())
        .bind(millis(request.from))
        .execute(&mut *connection)
        .await?;
    let open = sqlx::query_scalar("SELECT COUNT(*) FROM suffix_turn WHERE suffix = $1")
        .bind(request.suffix.as_str())
        .fetch_one(&mut *connection)
        .await?;
    Ok(open)
}

/// Releases permits whose requests have ended.
pub(crate) async fn permits_release(connection: &mut Connection, permits: &[i64]) -> Outcome<()> {
    sqlx::query(concat!("DELETE FROM suffix_turn WHERE number IN ", list!(BIGINT)))
        .bind(numbers(permits)?)
        .execute(&mut *connection)
        .await?;
    Ok(())
}
