//! API keys for clients that need more than the public limits. Adds (up to a cap), lists and revokes them.

use std::num::NonZeroU32;

use super::Connection;
use super::rows::decode;
use crate::StoreError;
use crate::convert::{RowRef, intact, millis, to_u32};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::model::{READER_KEYS_MAX, ReaderKey, ReaderKeyOutcome};

struct KeyRow {
    name: String,
    key_hash: String,
    reads_per_second: i32,
    created_at_ms: i64,
}

from_row!(KeyRow { name, key_hash, reads_per_second, created_at_ms });

impl TryFrom<KeyRow> for ReaderKey {
    type Error = StoreError;

    fn try_from(row: KeyRow) -> Result<Self, StoreError> {
        let at = RowRef::new("reader_key", &row.name);
        let reads = NonZeroU32::new(to_u32(row.reads_per_second));
        Ok(Self {
            hash: at.parse("key_hash", &row.key_hash)?,
            reads_per_second: reads.ok_or_else(|| at.damaged("reads_per_second", "a number from 1"))?,
            created_at: at.time("created_at_ms", row.created_at_ms)?,
            name: row.name,
        })
    }
}

/// Adds a key unless its name is taken or the cap is reached. Concurrent additions may exceed the cap by a few.
pub(crate) async fn reader_key_add(
    connection: &mut Connection,
    key: &ReaderKey,
) -> Outcome<ReaderKeyOutcome> {
    let keys: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM reader_key").fetch_one(&mut *connection).await?;
    if keys >= i64::from(READER_KEYS_MAX) {
        return Ok(ReaderKeyOutcome::Full);
    }
    let added = sqlx::query(
        "INSERT INTO reader_key (name, key_hash, reads_per_second, created_at_ms) VALUES ($1, $2, $3, $4)
         ON CONFLICT (name) DO NOTHING",
    )
    .bind(&key.name)
    .bind(key.hash.as_str())
    .bind(i32::try_from(key.reads_per_second.get()).unwrap_or(i32::MAX))
    .bind(millis(key.created_at))
    .execute(&mut *connection)
    .await?;
    Ok(if added.rows_affected() > 0 { ReaderKeyOutcome::Added } else { ReaderKeyOutcome::NameTaken })
}

/// Every key, by name.
pub(crate) async fn reader_keys(connection: &mut Connection) -> Outcome<Vec<ReaderKey>> {
    let rows = sqlx::query(
        "SELECT name, key_hash, reads_per_second, created_at_ms FROM reader_key ORDER BY name LIMIT $1",
    )
    .bind(2 * i64::from(READER_KEYS_MAX))
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(decode::<KeyRow>(&["reader_key"], &rows), ReaderKey::try_from))
}

/// Deletes the key with this name. Returns whether there was one.
pub(crate) async fn reader_key_revoke(connection: &mut Connection, name: &str) -> Outcome<bool> {
    let gone =
        sqlx::query("DELETE FROM reader_key WHERE name = $1").bind(name).execute(&mut *connection).await?;
    Ok(gone.rows_affected() > 0)
}
