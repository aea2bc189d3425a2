//! Turns at suffixes below which strangers live. The row of a suffix is locked while a turn is taken, so that workers that ask
//! at the same moment get one after the other.

use super::Connection;
use crate::fault::Outcome;
use crate::model::{SuffixTurn, TurnAnswer, TurnRequest};
use crate::pack::{Place, json, millis, until_ms};

/// Takes the next turn, unless too many are open or it is too late.
pub(crate) async fn turn_take(connection: &mut Connection, request: &TurnRequest) -> Outcome<TurnAnswer> {
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
    let at = Place::new("suffix_clock", suffix).time("next_ok_at_ms", at_ms)?;
    if at > request.latest {
        return Ok(TurnAnswer::Late { until: at });
    }
    if turns_open(connection, request).await? >= i64::from(request.open_max) {
        return Ok(TurnAnswer::Full);
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
    Ok(TurnAnswer::Taken(SuffixTurn { number, at }))
}

/// How many turns are open, after those were removed that nobody will end any more.
async fn turns_open(connection: &mut Connection, request: &TurnRequest) -> Outcome<i64> {
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

/// Ends turns whose requests have ended.
pub(crate) async fn turns_end(connection: &mut Connection, numbers: &[i64]) -> Outcome<()> {
    sqlx::query(
        "DELETE FROM suffix_turn
         WHERE number IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($1))",
    )
    .bind(json(&numbers.iter().map(|number| [number]).collect::<Vec<_>>(), "batch of turns")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}
