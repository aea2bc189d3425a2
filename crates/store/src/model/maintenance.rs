//! Maintenance: the schema, disk space, vacuum and housekeeping.

use chrono::{DateTime, Utc};
use serde::Serialize;

/// The schema of a database compared with this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SchemaState {
    /// Number of the last migration that the database has; 0 for an empty one.
    pub found: i64,
    /// Number of the last migration in this program.
    pub known: i64,
}

/// A table with its indexes, or the whole file of an embedded database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Space {
    /// The table; `file` for an embedded database.
    pub name: String,
    /// Bytes on disk.
    pub bytes: u64,
    /// The server's estimate; `None` for SQLite.
    pub rows: Option<u64>,
    /// Updated or deleted rows that still take space.
    pub dead_rows: Option<u64>,
    /// Unused space within the file.
    pub free_bytes: Option<u64>,
    pub vacuumed_at: Option<DateTime<Utc>>,
}

/// Tables with fewer dead rows need no vacuum.
const DEAD_ROWS_MIN: u64 = 10_000;
/// Above this percentage of dead rows, autovacuum does not keep up: five times the percentage at which it starts.
const DEAD_ROWS_PERCENT_MAX: u64 = 10;
/// Files with less free space need no vacuum.
const FREE_BYTES_MIN: u64 = 64 * 1024 * 1024;
/// Percentage of free space above which rewriting the file is worthwhile.
const FREE_PERCENT_MAX: u64 = 30;

impl Space {
    /// A statement to run with its reason; `None` if none is needed.
    pub fn vacuum_advice(&self) -> Option<String> {
        if let (Some(rows), Some(dead)) = (self.rows, self.dead_rows) {
            let is_behind = dead >= DEAD_ROWS_MIN && dead * 100 > (rows + dead) * DEAD_ROWS_PERCENT_MAX;
            return is_behind.then(|| {
                format!(
                    "VACUUM (ANALYZE) {};  -- {dead} dead beside {rows} live rows: autovacuum does not keep up; \
                     check for an open transaction, and raise autovacuum_max_workers",
                    self.name
                )
            });
        }
        let free = self.free_bytes?;
        let is_worth_it = free >= FREE_BYTES_MIN && free * 100 > self.bytes * FREE_PERCENT_MAX;
        is_worth_it.then(|| format!("VACUUM;  -- {free} of {} bytes are free", self.bytes))
    }
}

/// The results of housekeeping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Housekeeping {
    /// Deleted clocks of addresses.
    pub address_clocks: u64,
    /// Interrupted visits whose progress was deleted.
    pub interrupted_visits: u64,
    /// Sites without content that were compacted.
    pub sites_compacted: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advises_vacuum_for_dead_rows_and_free_space() {
        let table = |rows, dead_rows| Space {
            name: "site".into(),
            bytes: 1,
            rows: Some(rows),
            dead_rows: Some(dead_rows),
            free_bytes: None,
            vacuumed_at: None,
        };
        assert_eq!(table(1_000, 9_999).vacuum_advice(), None);
        assert_eq!(table(1_000_000, 50_000).vacuum_advice(), None);
        assert!(table(1_000_000, 200_000).vacuum_advice().unwrap().starts_with("VACUUM (ANALYZE) site;"));
        let file = |bytes, free| Space {
            name: "file".into(),
            bytes,
            rows: None,
            dead_rows: None,
            free_bytes: Some(free),
            vacuumed_at: None,
        };
        assert_eq!(file(1_000_000_000, 100_000_000).vacuum_advice(), None);
        assert!(file(1_000_000_000, 400_000_000).vacuum_advice().unwrap().starts_with("VACUUM;"));
    }
}
