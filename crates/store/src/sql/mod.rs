//! The statements, one file for each aggregate, written once and compiled for each back end.
//!
//! Both databases take `$1` placeholders, `ON CONFLICT`, `RETURNING`, `UPDATE … FROM` and batches as one JSON array of
//! arrays (`json_each`, which the PostgreSQL migration defines under SQLite's name). Where they differ, the back end's
//! module above this one says how. Functions take a connection and leave the transaction to their caller.

use sqlx::QueryBuilder;

use super::{
    AFTER_IMPORT, Connection, SEQUENCED_BY_WRITER, SEQUENCER_LOCK, for_update, sites_put, skip_locked, unhex,
    unhex_of,
};

pub(crate) mod adoption;
pub(crate) mod block;
pub(crate) mod capability;
pub(crate) mod clock;
pub(crate) mod document;
pub(crate) mod dump;
pub(crate) mod feed;
pub(crate) mod feedback;
pub(crate) mod group;
pub(crate) mod health;
pub(crate) mod lease;
pub(crate) mod link;
pub(crate) mod listing;
pub(crate) mod manifest;
pub(crate) mod manifest_size;
pub(crate) mod read_attempt;
pub(crate) mod resource;
pub(crate) mod rest;
pub(crate) mod retention;
pub(crate) mod robots;
pub(crate) mod seed;
pub(crate) mod server;
pub(crate) mod site;
pub(crate) mod site_list;
pub(crate) mod stats;
pub(crate) mod suffix;
pub(crate) mod version;
pub(crate) mod visit;
mod visit_rows;
pub(crate) mod visit_story;

type Database = <Connection as sqlx::Connection>::Database;

/// Rows of one part of a batch: a statement's way to the server is little beside them.
const BATCH_LONGEST: usize = 64;

/// Names as a list of values: for a few, since each number of them is a statement of its own.
fn listed<'query>(
    query: &'query mut QueryBuilder<Database>,
    names: &[&str],
) -> &'query mut QueryBuilder<Database> {
    let mut separated = query.separated(", ");
    for name in names {
        separated.push_bind(*name);
    }
    query
}

/// Parts of a batch whose lengths are powers of two, so that there are few statements to prepare for batches of any length.
fn batches<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let longest = BATCH_LONGEST.min(1 << rows.len().checked_ilog2()?);
        let (batch, rest) = rows.split_at(longest);
        rows = rest;
        Some(batch)
    })
}
