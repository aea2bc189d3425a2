//! A database as lines of JSON: the way from an embedded database to a server and back, feed positions included.
//!
//! The first line says what follows; every other line is one row: the table's name and the values of its columns in the
//! order of [`TABLES`], bytes as hexadecimal digits. What belongs to running processes is left out: leases, workers, clocks of
//! addresses and the groups of these. The reader takes a dump into an empty database only, in one transaction.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The form of the lines. A reader refuses any other.
pub(crate) const FORM: u32 = 1;
/// Rows of one statement when a dump is read.
pub(crate) const BATCH_ROWS: usize = 500;
/// Bytes of one statement when a dump is read; a document has some megabytes at the most.
pub(crate) const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) agentdex_dump: u32,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    BigInt,
    Bytes,
}

/// A table as it is dumped.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Columns of the primary key, in whose order rows are written.
    pub(crate) key: &'static str,
    pub(crate) columns: &'static [(&'static str, Kind)],
}

use Kind::{BigInt, Bytes, Integer, Text};

/// Every table that is dumped. A table comes after those that it refers to.
pub(crate) const TABLES: [Table; 17] = [
    Table {
        name: "feed_state",
        key: "id",
        columns: &[("id", Integer), ("feed_id", Text), ("last_position", BigInt), ("first_position", BigInt)],
    },
    Table {
        name: "site",
        key: "name",
        columns: &[
            ("name", Text),
            ("priority", Integer),
            ("next_visit_at_ms", BigInt),
            ("fence", BigInt),
            ("packed", Bytes),
            ("visits_at_rest", Integer),
        ],
    },
    Table {
        name: "site_state",
        key: "name",
        columns: &[
            ("name", Text),
            ("status", Text),
            ("first_seen_at_ms", BigInt),
            ("visits", Integer),
            ("changes", Integer),
            ("first_visit_at_ms", BigInt),
            ("last_visit_at_ms", BigInt),
            ("last_end", Text),
            ("next_visit_reason", Text),
            ("failures_in_row", Integer),
            ("negatives_in_row", Integer),
            ("paths_checked", Bytes),
            ("hinted_at_ms", BigInt),
            ("parked_until_ms", BigInt),
            ("parked_reason", Text),
            ("parked_progress", Text),
            ("manifests", Integer),
            ("capabilities", Integer),
            ("formats", Text),
        ],
    },
    Table {
        name: "host",
        key: "host",
        columns: &[
            ("host", Text),
            ("site", Text),
            ("seeded", Integer),
            ("next_ok_at_ms", BigInt),
            ("not_before_ms", BigInt),
            ("requests_today", Integer),
            ("requests_day", Integer),
        ],
    },
    Table {
        name: "robots",
        key: "host",
        columns: &[
            ("host", Text),
            ("site", Text),
            ("kind", Text),
            ("cause", Text),
            ("status", Integer),
            ("body", Bytes),
            ("fetched_at_ms", BigInt),
            ("expires_at_ms", BigInt),
            ("failures_in_row", Integer),
            ("etag", Text),
            ("last_modified", Text),
        ],
    },
    Table {
        name: "document",
        key: "hash",
        columns: &[
            ("hash", Text),
            ("body", Bytes),
            ("bytes", BigInt),
            ("first_seen_at_ms", BigInt),
            ("body_hash", Text),
        ],
    },
    Table {
        name: "resource",
        key: "id",
        columns: &[
            ("id", Text),
            ("site", Text),
            ("url", Text),
            ("discovery", Text),
            ("linked_from", Text),
            ("outcome", Text),
            ("status", Integer),
            ("etag", Text),
            ("last_modified", Text),
            ("cache", Text),
            ("fresh_until_ms", BigInt),
            ("content_hash", Text),
            ("fetched_at_ms", BigInt),
            ("changed_at_ms", BigInt),
            ("misses_in_row", Integer),
            ("document_hash", Text),
        ],
    },
    Table {
        name: "manifest",
        key: "id",
        columns: &[
            ("id", Text),
            ("site", Text),
            ("url", Text),
            ("format", Text),
            ("status", Text),
            ("version", Integer),
            ("content_hash", Text),
            ("capabilities", Integer),
            ("first_seen_at_ms", BigInt),
            ("last_seen_at_ms", BigInt),
            ("changed_at_ms", BigInt),
            ("removed_at_ms", BigInt),
            ("conformance", Text),
        ],
    },
    Table {
        name: "manifest_version",
        key: "manifest_id, version",
        columns: &[
            ("manifest_id", Text),
            ("version", Integer),
            ("content_hash", Text),
            ("document_hash", Text),
            ("model", Bytes),
            ("capabilities", Integer),
            ("findings", Integer),
            ("first_seen_at_ms", BigInt),
            ("last_seen_at_ms", BigInt),
        ],
    },
    Table {
        name: "capability",
        key: "id",
        columns: &[
            ("id", Text),
            ("manifest_id", Text),
            ("site", Text),
            ("native_id", Text),
            ("name", Text),
            ("kind", Text),
        ],
    },
    Table {
        name: "capability_type",
        key: "name, capability_id",
        columns: &[
            ("name", Text),
            ("capability_id", Text),
            ("manifest_id", Text),
            ("site", Text),
            ("declared", Integer),
        ],
    },
    Table {
        name: "visit",
        key: "id",
        columns: &[
            ("id", BigInt),
            ("site", Text),
            ("started_at_ms", BigInt),
            ("ended_at_ms", BigInt),
            ("visit_end", Text),
            ("status", Text),
            ("next_visit_at_ms", BigInt),
            ("next_visit_reason", Text),
            ("requests", Integer),
            ("bytes_in", BigInt),
            ("dns_ms", Integer),
            ("connect_ms", Integer),
            ("tls_ms", Integer),
            ("ttfb_ms", Integer),
            ("body_ms", Integer),
            ("outcomes", Text),
            ("crawler_version", Text),
            ("fetches", Bytes),
        ],
    },
    Table {
        name: "block",
        key: "site",
        columns: &[("site", Text), ("reason", Text), ("blocked_at_ms", BigInt)],
    },
    Table {
        name: "feed_reader",
        key: "name",
        columns: &[("name", Text), ("position", BigInt), ("seen_at_ms", BigInt)],
    },
    Table {
        name: "feed",
        key: "position",
        columns: &[
            ("position", BigInt),
            ("at_ms", BigInt),
            ("change", Text),
            ("site", Text),
            ("manifest_id", Text),
            ("reason", Text),
        ],
    },
    Table {
        name: "feedback",
        key: "id",
        columns: &[
            ("id", BigInt),
            ("at_ms", BigInt),
            ("query", Text),
            ("capability_id", Text),
            ("site", Text),
            ("place", Integer),
            ("client", Text),
        ],
    },
    Table {
        name: "site_link",
        key: "site",
        columns: &[("site", Text), ("linked_by", Text), ("is_open", Integer)],
    },
];

impl Table {
    /// The table of a name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        TABLES.iter().find(|table| table.name == name)
    }

    /// Reads every row in the order of its key; numbers come as 64 bits.
    pub(crate) fn select(&self) -> String {
        let column = |(name, kind): &(&str, Kind)| match kind {
            Integer | BigInt => format!("CAST({name} AS BIGINT) AS {name}"),
            Text | Bytes => (*name).to_owned(),
        };
        let columns: Vec<String> = self.columns.iter().map(column).collect();
        format!("SELECT {} FROM {} ORDER BY {}", columns.join(", "), self.name, self.key)
    }

    /// Writes rows that come as one JSON array of arrays. `unhex` turns digits into bytes.
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
}

/// A row of a dump, or why a line is none.
pub(crate) fn row_of(line: &str) -> Result<(&'static Table, Vec<Value>), String> {
    let (name, values): (String, Vec<Value>) =
        serde_json::from_str(line).map_err(|error| error.to_string())?;
    let table = Table::find(&name).ok_or_else(|| format!("there is no table {name}"))?;
    let fits = |(value, (_, kind)): (&Value, &(&str, Kind))| {
        value.is_null()
            || match kind {
                Text | Bytes => value.is_string(),
                Integer | BigInt => value.is_i64(),
            }
    };
    if values.len() != table.columns.len() || !values.iter().zip(table.columns).all(fits) {
        return Err(format!("its values are not those of the table {name}"));
    }
    Ok((table, values))
}
