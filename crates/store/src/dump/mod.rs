//! Dumps: a database as lines of JSON, to move it from SQLite to a server and back, including feed positions.
//!
//! The first line is the header. Every other line is a row: the name of the table and the values of its columns in the order of [`TABLES`],
//! bytes in hexadecimal. State of running processes is left out: leases, workers, address groups, clocks of addresses and suffixes, and the
//! salt of the day. A dump is imported into an empty database, in one transaction. Dumps of schema 10 and later can be imported; before
//! schema 12, the header does not contain the schema.

use manifest::ListingRank;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compaction::{CompactedColumns, legacy};
use crate::convert::NEVER_MS;

/// Version of the format. Other versions are refused.
pub(crate) const FORM: u32 = 1;
/// Rows of one INSERT.
pub(crate) const BATCH_ROWS: usize = 500;
/// Bytes of one INSERT, without its last row.
pub(crate) const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Columns at the end of a table that dumps of earlier schemas do not have: the schema that added them, the table, and the value of each;
/// `None` is null.
const ADDED_COLUMNS: [(i64, &str, &[Option<i32>]); 12] = [
    (14, "manifest", &[None]),
    (14, "capability", &[None; 2]),
    (15, "capability", &[None]),
    (18, "manifest", &[None]),
    (22, "manifest", &[None; 3]),
    (26, "registry_entry", &[None]),
    (27, "registry_entry", &[Some(ListingRank::Other.number())]),
    (27, "watch", &[None]),
    (29, "registry_position", &[None]),
    (30, "registry_position", &[None]),
    (31, "watch", &[None]),
    (32, "suspension", &[None; 5]),
];

/// The first schema whose entries of registries have publishers and ranks. Positions of earlier dumps are forgotten, as by its migration, so
/// that the next reading of each registry reads all entries.
const RANKED_ENTRIES: i64 = 27;

/// The first line of a dump.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) agentdex_dump: u32,
    /// Number of the last migration. Absent before 12.
    pub(crate) schema: Option<i64>,
}

impl Header {
    /// Parses the first line; `known` is the schema of this program.
    pub(crate) fn parse(line: Option<&str>, known: i64) -> Result<Self, String> {
        let header: Option<Self> = line.and_then(|line| serde_json::from_str(line).ok());
        match header {
            Some(Self { schema: Some(found), .. }) if found > known => Err(format!(
                "the dump has schema {found} and this program has schema {known}: use the newer program"
            )),
            Some(header) if header.agentdex_dump == FORM => Ok(header),
            _ => Err("it is not the header of a dump that this program can read".to_owned()),
        }
    }

    /// Whether the positions of registries in the dump are still valid.
    pub(crate) fn has_valid_positions(&self) -> bool {
        self.schema.is_some_and(|schema| schema >= RANKED_ENTRIES)
    }

    /// Parses another line.
    pub(crate) fn row(&self, line: &str) -> Result<(&'static Table, Vec<Value>), String> {
        let (name, mut values): (String, Vec<Value>) =
            serde_json::from_str(line).map_err(|error| error.to_string())?;
        let table = Table::find(&name).ok_or_else(|| format!("unknown table {name}"))?;
        if self.schema.is_none() && table.name == "site" {
            values.extend(compacted_columns(table, &values).into_iter().flatten());
        }
        for (schema, name, columns) in ADDED_COLUMNS {
            if name == table.name && self.schema.is_none_or(|found| found < schema) {
                values.extend(columns.iter().map(|value| value.map_or(Value::Null, Value::from)));
            }
        }
        let mismatch = if values.len() == table.columns.len() {
            let Some(column) = table.misfit(&values) else { return Ok((table, values)) };
            format!("its value of the column {column} of table {name} has the wrong type or is out of range")
        } else {
            format!("its values do not match the columns of table {name}")
        };
        Err(match self.schema {
            Some(_) => mismatch,
            None => format!(
                "{mismatch}; if the schema of the dump is earlier than 10, import it with the version that wrote it, \
                 and open that database with this version"
            ),
        })
    }
}

/// The columns that migration 12 adds to a row of `site`; `None` if they are unknown.
fn compacted_columns(site: &Table, values: &[Value]) -> Option<[Value; 3]> {
    let packed = site.columns.iter().zip(values).find(|((name, _), _)| *name == "packed")?.1;
    let columns = match packed.as_str() {
        Some(packed) => legacy::columns(&data_encoding::HEXLOWER.decode(packed.as_bytes()).ok()?)?,
        None => CompactedColumns::default(),
    };
    let (failures, last_visit) = (columns.compacted_failures, columns.compacted_last_visit_at_ms);
    Some([columns.compacted_status.into(), failures.into(), last_visit.into()])
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    BigInt,
    Bytes,
}

/// A dumped table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Columns of the primary key; rows are sorted by it.
    pub(crate) key: &'static str,
    pub(crate) columns: &'static [(&'static str, Kind)],
}

use Kind::{BigInt, Bytes, Integer, Text};

macro_rules! tables {
    ($($name:ident by $key:literal: $($column:ident $kind:ident),+;)+) => {
        &[$(Table {
            name: stringify!($name),
            key: $key,
            columns: &[$((stringify!($column), $kind)),+],
        }),+]
    };
}

/// Every dumped table, after those that it refers to. A new column goes to the end of its table.
pub(crate) const TABLES: &[Table] = tables! {
    feed_state by "id":
        id Integer, feed_id Text, last_position BigInt, first_position BigInt;
    site by "name":
        name Text, priority Integer, next_visit_at_ms BigInt, fence BigInt, packed Bytes,
        visits_at_rest Integer, compacted_status Text, compacted_failures Integer,
        compacted_last_visit_at_ms BigInt;
    site_state by "name":
        name Text, status Text, first_seen_at_ms BigInt, visits Integer, changes Integer,
        first_visit_at_ms BigInt, last_visit_at_ms BigInt, last_end Text, next_visit_reason Text,
        failures_in_row Integer, negatives_in_row Integer, paths_checked Bytes, hinted_at_ms BigInt,
        parked_until_ms BigInt, parked_reason Text, parked_progress Text, manifests Integer,
        capabilities Integer, formats Text;
    host by "host":
        host Text, site Text, seeded Integer, next_ok_at_ms BigInt, not_before_ms BigInt,
        requests_today Integer, requests_day Integer;
    robots by "host":
        host Text, site Text, kind Text, cause Text, status Integer, body Bytes, fetched_at_ms BigInt,
        expires_at_ms BigInt, failures_in_row Integer, etag Text, last_modified Text;
    document by "hash":
        hash Text, body Bytes, bytes BigInt, first_seen_at_ms BigInt, body_hash Text;
    resource by "id":
        id Text, site Text, url Text, discovery Text, linked_from Text, outcome Text, status Integer,
        etag Text, last_modified Text, cache Text, fresh_until_ms BigInt, content_hash Text,
        fetched_at_ms BigInt, changed_at_ms BigInt, misses_in_row Integer, document_hash Text;
    manifest by "id":
        id Text, site Text, url Text, format Text, status Text, version Integer, content_hash Text,
        capabilities Integer, first_seen_at_ms BigInt, last_seen_at_ms BigInt, changed_at_ms BigInt,
        removed_at_ms BigInt, conformance Text, training Text, named_by Text, publisher Text,
        reader_version BigInt, read_version Integer;
    manifest_version by "manifest_id, version":
        manifest_id Text, version Integer, content_hash Text, document_hash Text, model Bytes,
        capabilities Integer, findings Integer, first_seen_at_ms BigInt, last_seen_at_ms BigInt;
    capability by "id":
        id Text, manifest_id Text, site Text, native_id Text, name Text, kind Text, operation Text,
        fullness Integer, statement Text;
    capability_type by "name, capability_id":
        name Text, capability_id Text, manifest_id Text, site Text, declared Integer;
    visit by "id":
        id BigInt, site Text, started_at_ms BigInt, ended_at_ms BigInt, visit_end Text, status Text,
        next_visit_at_ms BigInt, next_visit_reason Text, requests Integer, bytes_in BigInt, dns_ms Integer,
        connect_ms Integer, tls_ms Integer, ttfb_ms Integer, body_ms Integer, outcomes Text,
        crawler_version Text, fetches Bytes;
    block by "site":
        site Text, reason Text, blocked_at_ms BigInt;
    suspension by "site":
        site Text, reason Text, note Text, suspended_at_ms BigInt, places Text, objection Text,
        objected_at_ms BigInt, answer Text, answered_at_ms BigInt;
    feed_reader by "name":
        name Text, position BigInt, seen_at_ms BigInt;
    feed by "position":
        position BigInt, at_ms BigInt, change Text, site Text, manifest_id Text, reason Text;
    feedback by "id":
        id BigInt, at_ms BigInt, query Text, capability_id Text, site Text, place Integer, client Text;
    report by "id":
        id BigInt, at_ms BigInt, site Text, capability_id Text, reason Text, note Text;
    site_link by "site":
        site Text, linked_by Text, is_open Integer;
    declaration by "id":
        id Text, capability_id Text, site Text, manifest_id Text, place Integer;
    read_attempt by "hash":
        hash Text, reader_version BigInt, site Text, url Text, began_at_ms BigInt, quarantined_at_ms BigInt,
        reason Text;
    site_claim by "site":
        site Text, asked_at_ms BigInt, key_hash Text, proof Text, since_ms BigInt, proven_at_ms BigInt,
        missing_since_ms BigInt, checked_at_ms BigInt, finding Text;
    search_count by "site, day":
        site Text, day Integer, searches BigInt;
    capability_search_count by "site, day, capability_id":
        site Text, day Integer, capability_id Text, searches BigInt;
    claim_secret by "id":
        id Integer, secret Text;
    reader_key by "name":
        name Text, key_hash Text, reads_per_second Integer, created_at_ms BigInt;
    watch by "id":
        id Text, site Text, receiver Text, receiver_site Text, token_hash Text, secret Text, old_secret Text,
        old_secret_until_ms BigInt, status Text, position BigInt, created_at_ms BigInt, confirmed_at_ms BigInt,
        delivered_at_ms BigInt, failing_since_ms BigInt, client Integer, search Text;
    delivery by "id":
        id Text, watch_id Text, challenge Text, body Text, first_position BigInt, last_position BigInt,
        created_at_ms BigInt, attempts Integer, next_at_ms BigInt, dead_at_ms BigInt, failure Text;
    receiver_day by "receiver_site":
        receiver_site Text, day Integer, requests Integer, challenges Integer;
    host_check by "host":
        host Text, site Text, begun_day Integer, history_day Integer, checked Integer, succeeded Integer,
        outcome Text, checked_at_ms BigInt, own_day Integer;
    registry_entry by "registry, identifier, site":
        registry Text, identifier Text, site Text, name Text, url Text, version Text, updated_at_ms BigInt,
        seen_at_ms BigInt, publisher Text, rank Integer;
    registry_position by "registry":
        registry Text, changed_until_ms BigInt, read_whole_at_ms BigInt, began_at_ms BigInt, next_page Text,
        latest_ms BigInt, failures Integer, page_entries Integer;
};

impl Table {
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        TABLES.iter().find(|table| table.name == name)
    }

    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|(name, _)| *name == column)
    }

    /// A SELECT of every row. Numbers are BIGINT.
    pub(crate) fn select(&self) -> String {
        let column = |(name, kind): &(&str, Kind)| match kind {
            Integer | BigInt => format!("CAST({name} AS BIGINT) AS {name}"),
            Text | Bytes => (*name).to_owned(),
        };
        let columns: Vec<String> = self.columns.iter().map(column).collect();
        format!("SELECT {} FROM {} ORDER BY {}", columns.join(", "), self.name, self.key)
    }

    /// An INSERT of rows from a JSON array of arrays. `unhex` decodes hexadecimal digits.
    pub(crate) fn insert(&self, unhex: impl Fn(&str) -> String) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        let value = |(at, (_, kind)): (usize, &(&str, Kind))| match kind {
            Text => format!("value ->> {at}"),
            Integer => format!("CAST(value ->> {at} AS INTEGER)"),
            BigInt => format!("CAST(value ->> {at} AS BIGINT)"),
            Bytes => unhex(&format!("value ->> {at}")),
        };
        let values: Vec<String> = self.columns.iter().enumerate().map(value).collect();
        format!(
            "INSERT INTO {} ({}) SELECT {} FROM json_each($1)",
            self.name,
            names.join(", "),
            values.join(", ")
        )
    }

    /// The first column whose value has the wrong type, or is a number that no program writes.
    fn misfit(&self, values: &[Value]) -> Option<&'static str> {
        let fits = |value: &Value, kind| {
            value.is_null()
                || match kind {
                    Text | Bytes => value.is_string(),
                    Integer => {
                        value.as_i64().is_some_and(|number| (0..=i64::from(i32::MAX)).contains(&number))
                    }
                    BigInt => value.as_i64().is_some_and(|number| (0..=NEVER_MS).contains(&number)),
                }
        };
        let misfit = |(value, (_, kind)): &(&Value, &(&str, Kind))| !fits(value, *kind);
        values.iter().zip(self.columns).find(misfit).map(|(_, (column, _))| *column)
    }
}
