//! All SQL of agentdex, for PostgreSQL and embedded SQLite, as methods of [`Store`].
//!
//! The store keeps seeds, leases, politeness clocks, visits, every version of every manifest, and the ordered feed of changes that the
//! index follows. It makes no decisions about politeness or schedules: the crawler passes these values, and `now` is always an argument.
//!
//! No transaction is open during network requests: a lease is a short statement, and a second, fenced transaction saves the result.

mod compaction;
mod config;
mod convert;
mod disk;
mod dump;
mod error;
mod failure_log;
mod fault;
mod from_row;
mod known;
mod model;
mod open;
mod operations;
mod outage;
mod packed;
mod plan;
mod postgres;
mod prepare;
mod resource_change;
mod room;
mod rows;
mod schema;
mod sqlite;
mod tasks;
#[cfg(test)]
mod test_log;
mod verdict;

pub use config::{Backend, DatabaseUrl, SITE_LISTS_MAX, SLOW_STATEMENT_DEFAULT, StoreConfig, url_to_type};
pub use error::StoreError;
pub use model::*;
pub use operations::Store;
pub use outage::{OUTAGE, Outage, RetriedOperation, SlowOperation};
pub use packed::PackedManifest;
pub use tasks::{TaskFailure, TaskMonitor, machine};
pub use verdict::Verdict;
