//! Decodes the rows of lists one by one, so that a damaged cell affects only its own row.
//!
//! SQLite accepts values of any type in any cell, including text that is not UTF-8.

use sqlx::{Column as _, Decode, FromRow, Row as _, Type};

use super::Database;
use crate::StoreError;
use crate::convert::log_damaged;
use crate::dump::Table;

pub(super) type Row = <Database as sqlx::Database>::Row;

/// Decodes rows. Errors name the first of `tables` that has the damaged column, and the first column as the key.
pub(super) fn decode<T>(tables: &[&'static str], rows: &[Row]) -> Vec<Result<T, StoreError>>
where
    T: for<'row> FromRow<'row, Row>,
{
    rows.iter().map(|row| decode_row(tables, row)).collect()
}

/// Decodes rows with the text of one column, such as the site of a row. Rows in which it cannot be read are left out.
pub(super) fn decode_by<T>(
    tables: &[&'static str],
    column: &str,
    rows: &[Row],
) -> Vec<(String, Result<T, StoreError>)>
where
    T: for<'row> FromRow<'row, Row>,
{
    let text = |row: &Row| row.try_get(column).map_err(|error| damaged(tables, row, error));
    rows.iter().filter_map(|row| Some((log_damaged(text(row))?, decode_row(tables, row)))).collect()
}

pub(super) fn decode_row<T>(tables: &[&'static str], row: &Row) -> Result<T, StoreError>
where
    T: for<'row> FromRow<'row, Row>,
{
    T::from_row(row).map_err(|error| damaged(tables, row, error))
}

/// The error of a cell that cannot be decoded.
pub(super) fn damaged(tables: &[&'static str], row: &Row, error: sqlx::Error) -> StoreError {
    let (column, reason) = match error {
        sqlx::Error::ColumnDecode { index, source } => (column_name(row, &index), source.to_string()),
        other => (String::new(), other.to_string()),
    };
    let has_column = |table: &&&'static str| Table::find(table).is_some_and(|table| table.has(&column));
    let table = tables.iter().find(has_column).or_else(|| tables.first()).copied().unwrap_or_default();
    StoreError::BadRow { table, column, id: key(row), reason }
}

/// The driver names a column by its number or by its quoted name.
fn column_name(row: &Row, index: &str) -> String {
    let by_number = index.parse::<usize>().ok().and_then(|number| row.columns().get(number));
    by_number.map_or_else(|| index.trim_matches('"').to_owned(), |column| column.name().to_owned())
}

/// The first column as text, or a placeholder if it cannot be read.
fn key(row: &Row) -> String {
    let number = |_| row.try_get::<i64, _>(0).map(|number| number.to_string());
    let bytes =
        |_| row.try_get_unchecked::<Vec<u8>, _>(0).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    row.try_get::<String, _>(0).or_else(number).or_else(bytes).unwrap_or_default()
}

/// The start of the next page of a list: after a key, and after the following rows whose keys cannot be read.
pub(super) struct Cursor<K> {
    pub(super) key: K,
    pub(super) skipped: i64,
}

impl<K> Cursor<K>
where
    K: for<'row> Decode<'row, Database> + Type<Database>,
{
    pub(super) const fn after(key: K) -> Self {
        Self { key, skipped: 0 }
    }

    /// Moves after rows that were read in order. Their first column is the key.
    pub(super) fn pass(&mut self, rows: &[Row]) {
        for row in rows {
            match row.try_get(0) {
                Ok(key) => *self = Self::after(key),
                Err(_) => self.skipped += 1,
            }
        }
    }
}
