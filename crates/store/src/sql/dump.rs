//! Exports every table, and imports a dump into an empty database.

use std::borrow::Cow;

use futures::TryStreamExt as _;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Row as _};
use tokio::sync::mpsc;

use super::rows::{Row, damaged};
use super::{AFTER_IMPORT, Connection, MIGRATIONS, unhex_of};
use crate::StoreError;
use crate::convert::{hex, json, text};
use crate::dump::{BATCH_BYTES, BATCH_ROWS, FORM, Header, Kind, TABLES, Table};
use crate::fault::Outcome;
use crate::schema::known;

/// Sends every row as a line; ends early when the receiver is dropped.
pub(crate) async fn export(connection: &mut Connection, lines: &mpsc::Sender<String>) -> Outcome<u64> {
    let mut rows = 0;
    let header = Header { agentdex_dump: FORM, schema: Some(known(&MIGRATIONS)) };
    if lines.send(json(&header, "header of a dump")?).await.is_err() {
        return Ok(rows);
    }
    for table in TABLES {
        let mut found = sqlx::query(AssertSqlSafe(table.select())).fetch(&mut *connection);
        while let Some(row) = found.try_next().await? {
            let values = values(table, &row).map_err(|error| damaged(&[table.name], &row, error))?;
            if lines.send(json(&(table.name, values), "row of a dump")?).await.is_err() {
                return Ok(rows);
            }
            rows += 1;
        }
    }
    Ok(rows)
}

fn values(table: &Table, row: &Row) -> Result<Vec<Value>, sqlx::Error> {
    let value = |(at, (_, kind)): (usize, &(&str, Kind))| {
        Ok(match kind {
            Kind::Text => Value::from(row.try_get::<Option<String>, _>(at)?),
            Kind::Integer | Kind::BigInt => Value::from(row.try_get::<Option<i64>, _>(at)?),
            Kind::Bytes => Value::from(row.try_get::<Option<Vec<u8>>, _>(at)?.map(|bytes| hex(&bytes))),
        })
    };
    table.columns.iter().enumerate().map(value).collect()
}

/// Imports every line of a dump, in the caller's transaction.
pub(crate) async fn import(connection: &mut Connection, lines: &mut mpsc::Receiver<String>) -> Outcome<u64> {
    for table in TABLES {
        let is_counter = table.name == "feed_state";
        let any = format!("SELECT COUNT(*) FROM (SELECT 1 AS one FROM {} LIMIT 1) AS first", table.name);
        let rows: i64 = sqlx::query_scalar(AssertSqlSafe(any)).fetch_one(&mut *connection).await?;
        if rows > 0 && !is_counter {
            return Err(StoreError::NotEmpty { table: table.name }.into());
        }
    }
    sqlx::query("DELETE FROM feed_state").execute(&mut *connection).await?;
    let header = Header::parse(lines.recv().await.as_deref(), known(&MIGRATIONS));
    let header = header.map_err(|reason| bad_dump(1, reason))?;
    let (mut number, mut rows) = (1, 0);
    let mut batch = Batch::default();
    while let Some(line) = lines.recv().await {
        number += 1;
        let (table, values) = header.row(&line).map_err(|reason| bad_dump(number, reason))?;
        if !batch.has_room_for(table) {
            rows += batch.write(connection).await?;
        }
        batch.push(table, values, line.len());
    }
    rows += batch.write(connection).await?;
    for statement in AFTER_IMPORT.iter().copied() {
        sqlx::query(statement).execute(&mut *connection).await?;
    }
    if !header.has_valid_positions() {
        sqlx::query("DELETE FROM registry_position").execute(&mut *connection).await?;
    }
    let counters: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM feed_state").fetch_one(&mut *connection).await?;
    if counters != 1 {
        return Err(bad_dump(number, "the dump ends before its feed_state".to_owned()));
    }
    Ok(rows)
}

fn bad_dump(line: u64, reason: String) -> crate::fault::Fault {
    StoreError::BadDump { line, reason }.into()
}

/// Rows of one table that are inserted by one statement.
#[derive(Default)]
struct Batch {
    table: Option<&'static Table>,
    rows: Vec<Vec<Value>>,
    bytes: usize,
}

impl Batch {
    fn has_room_for(&self, table: &Table) -> bool {
        let is_same = self.table.is_none_or(|ours| ours.name == table.name);
        is_same && self.rows.len() < BATCH_ROWS && self.bytes < BATCH_BYTES
    }

    fn push(&mut self, table: &'static Table, mut values: Vec<Value>, bytes: usize) {
        // SQLite stores NUL in a text, and PostgreSQL does not
        for value in &mut values {
            if let Value::String(stored) = value
                && let Cow::Owned(without) = text(stored)
            {
                *stored = without;
            }
        }
        self.table = Some(table);
        self.rows.push(values);
        self.bytes += bytes;
    }

    async fn write(&mut self, connection: &mut Connection) -> Outcome<u64> {
        let Some(table) = self.table.take() else { return Ok(0) };
        let written = sqlx::query(AssertSqlSafe(table.insert(unhex_of)))
            .bind(json(&self.rows, "rows of a dump")?)
            .execute(&mut *connection)
            .await?;
        self.rows.clear();
        self.bytes = 0;
        Ok(written.rows_affected())
    }
}
