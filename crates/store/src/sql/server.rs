//! Clock and migrations of the database.

use chrono::{DateTime, NaiveDateTime, Utc};

use super::Connection;
use crate::fault::Outcome;

/// Both databases write UTC times in this format, followed by fractions.
const TIME: &str = "%Y-%m-%d %H:%M:%S";
const TIME_LENGTH: usize = "2026-11-21 12:00:00".len();

/// The database's clock, to the second; `None` if the format is unknown.
pub(crate) async fn server_time(connection: &mut Connection) -> Outcome<Option<DateTime<Utc>>> {
    let text: String =
        sqlx::query_scalar("SELECT CAST(CURRENT_TIMESTAMP AS TEXT)").fetch_one(&mut *connection).await?;
    let seconds = text.get(..TIME_LENGTH).unwrap_or_default();
    Ok(NaiveDateTime::parse_from_str(seconds, TIME).ok().map(|time| time.and_utc()))
}

/// Contracting migrations after a number; see migrations/README.md.
pub(crate) async fn contractions_after(connection: &mut Connection, known: i64) -> Outcome<i64> {
    let count = "SELECT COUNT(*) FROM _sqlx_migrations WHERE version > $1 AND description LIKE 'contract%'";
    Ok(sqlx::query_scalar(count).bind(known).fetch_one(&mut *connection).await?)
}
