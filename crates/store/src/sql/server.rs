//! What the database says about itself.

use chrono::{DateTime, NaiveDateTime, Utc};

use super::Connection;
use crate::fault::Outcome;

/// A time as both databases write it in UTC, up to the second.
const TIME: &str = "%Y-%m-%d %H:%M:%S";
const TIME_LENGTH: usize = "2026-11-21 12:00:00".len();

/// The time on the database's clock; nothing where it is written in a way that is not known.
pub(crate) async fn server_time(connection: &mut Connection) -> Outcome<Option<DateTime<Utc>>> {
    let text: String =
        sqlx::query_scalar("SELECT CAST(CURRENT_TIMESTAMP AS TEXT)").fetch_one(&mut *connection).await?;
    let seconds = text.get(..TIME_LENGTH).unwrap_or_default();
    Ok(NaiveDateTime::parse_from_str(seconds, TIME).ok().map(|time| time.and_utc()))
}

/// How many migrations after a number took something away; their files are called so, see migrations/README.md.
pub(crate) async fn contractions_after(connection: &mut Connection, known: i64) -> Outcome<i64> {
    let count = "SELECT COUNT(*) FROM _sqlx_migrations WHERE version > $1 AND description LIKE 'contract%'";
    Ok(sqlx::query_scalar(count).bind(known).fetch_one(&mut *connection).await?)
}
