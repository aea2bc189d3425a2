//! How the database is doing: its schema, what takes how much space, and what vacuum left undone.

use chrono::{DateTime, Utc};
use serde::Serialize;

/// The schema of a database beside that of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SchemaState {
    /// Number of the last migration that the database has; 0 for an empty one.
    pub found: i64,
    /// Number of the last migration that this program brings.
    pub known: i64,
}

/// A table with its indexes, or the whole file of an embedded database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Space {
    /// The table; `file` for an embedded database.
    pub name: String,
    /// What it takes on disk.
    pub bytes: u64,
    /// Rows, as the server counts them for itself; `None` where it does not.
    pub rows: Option<u64>,
    /// Rows that were replaced or removed and still take space.
    pub dead_rows: Option<u64>,
    /// Space within the file that nothing takes.
    pub free_bytes: Option<u64>,
    /// When it was last vacuumed.
    pub vacuumed_at: Option<DateTime<Utc>>,
}

/// Dead rows below this are no matter.
const DEAD_ROWS_MIN: u64 = 10_000;
/// Share of dead rows above which vacuum does not keep up, in per cent: five times what starts it.
const DEAD_ROWS_PERCENT_MAX: u64 = 10;
/// Free space of a file below this is no matter.
const FREE_BYTES_MIN: u64 = 64 * 1024 * 1024;
/// Share of free space above which a file is worth rewriting, in per cent.
const FREE_PERCENT_MAX: u64 = 30;

impl Space {
    /// What to do about it, as a statement and why; `None` where all is well.
    pub fn vacuum_advice(&self) -> Option<String> {
        if let (Some(rows), Some(dead)) = (self.rows, self.dead_rows) {
            let is_behind = dead >= DEAD_ROWS_MIN && dead * 100 > (rows + dead) * DEAD_ROWS_PERCENT_MAX;
            return is_behind.then(|| {
                format!(
                    "VACUUM (ANALYZE) {};  -- {dead} dead beside {rows} live rows: autovacuum does not keep up; \
                     look for a transaction that is left open, and raise autovacuum_max_workers",
                    self.name
                )
            });
        }
        let free = self.free_bytes?;
        let is_worth_it = free >= FREE_BYTES_MIN && free * 100 > self.bytes * FREE_PERCENT_MAX;
        is_worth_it.then(|| format!("VACUUM;  -- {free} of {} bytes are free", self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_given_where_vacuum_is_behind_or_a_file_is_hollow() {
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
