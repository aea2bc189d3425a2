//! The statements, one file for each aggregate, written once and compiled for each backend.
//!
//! Both databases take `$1` placeholders, `ON CONFLICT`, `RETURNING` and `UPDATE … FROM`. A batch is one parameter: a JSON array of objects
//! whose columns `batch!` names, or a list of values for `list!`. Differences between the databases are defined in the parent module.
//! Functions take a connection and leave the transaction to their caller.

use sqlx::QueryBuilder;

use super::{
    AFTER_IMPORT, Connection, MIGRATIONS, SEQUENCED_BY_WRITER, SEQUENCER_LOCK, batch, for_update, sites_put,
    skip_locked, unhex, unhex_of,
};
use crate::StoreError;
use crate::fault::Outcome;

/// The values of `$1`, a list from [`crate::convert::names`] or [`numbers`], as in `name IN list!()`.
macro_rules! list {
    () => {
        "(SELECT value ->> 0 FROM json_each($1))"
    };
    ($kind:ident) => {
        concat!("(SELECT CAST(value ->> 0 AS ", stringify!($kind), ") FROM json_each($1))")
    };
}

/// The order of `SiteManifestSize::sort_by_trust` in SQL, for rows of the table `manifest`: 0 for what the site publishes, 3 for what only
/// others name.
macro_rules! trust_rank {
    () => {
        "CASE WHEN manifest.named_by = 'site'
              THEN CASE manifest.publisher WHEN 'site' THEN 0 WHEN 'host' THEN 1 ELSE 2 END ELSE 3 END"
    };
}

pub(crate) mod address;
pub(crate) mod block;
pub(crate) mod capability;
pub(crate) mod claim;
pub(crate) mod clock;
pub(crate) mod compaction;
pub(crate) mod declaration;
pub(crate) mod delivery;
pub(crate) mod dialect;
pub(crate) mod document;
pub(crate) mod dump;
pub(crate) mod feed;
pub(crate) mod feedback;
pub(crate) mod group;
pub(crate) mod health;
mod hint;
mod host;
pub(crate) mod host_check;
pub(crate) mod lease;
pub(crate) mod link;
pub(crate) mod listing;
pub(crate) mod manifest;
pub(crate) mod manifest_size;
pub(crate) mod read_attempt;
pub(crate) mod reader_key;
pub(crate) mod registry_entry;
pub(crate) mod renewal;
pub(crate) mod report;
pub(crate) mod resource;
pub(crate) mod retention;
mod rows;
pub(crate) mod search_count;
pub(crate) mod seed;
pub(crate) mod server;
pub(crate) mod site;
pub(crate) mod site_list;
pub(crate) mod state;
pub(crate) mod stats;
pub(crate) mod suffix;
pub(crate) mod suspension;
pub(crate) mod task;
pub(crate) mod version;
pub(crate) mod visit;
pub(crate) mod visit_report;
mod visit_save;
pub(crate) mod watch;

type Database = <Connection as sqlx::Connection>::Database;

/// Maximum number of rows of one statement of [`batches`].
const BATCH_ROWS_MAX: usize = 64;

/// Pushes names as bound values. Each number of names is a separate prepared statement, so use this only for a few names.
fn push_names<'query>(
    query: &'query mut QueryBuilder<Database>,
    names: &[&str],
) -> &'query mut QueryBuilder<Database> {
    let mut separated = query.separated(", ");
    for name in names {
        separated.push_bind(*name);
    }
    query
}

/// Splits rows into batches whose lengths are powers of two, so that few statements are prepared for any number of rows.
fn batches<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let length = BATCH_ROWS_MAX.min(1 << rows.len().checked_ilog2()?);
        let (batch, rest) = rows.split_at(length);
        rows = rest;
        Some(batch)
    })
}

/// A list of numbers for `list!`.
fn numbers<T: serde::Serialize>(values: &[T]) -> Result<String, StoreError> {
    let rows: Vec<[&T; 1]> = values.iter().map(|value| [value]).collect();
    crate::convert::json(&rows, "list of numbers")
}

/// Converts rows; the first damaged one is the error.
fn convert<R, T>(rows: Vec<R>, each: impl FnMut(R) -> Result<T, StoreError>) -> Outcome<Vec<T>> {
    Ok(rows.into_iter().map(each).collect::<Result<_, _>>()?)
}
