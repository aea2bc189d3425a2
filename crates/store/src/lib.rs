//! All SQL of agentdex: PostgreSQL and embedded SQLite behind one contract.
//!
//! The store keeps what was asked for (seeds), who may visit what (leases), when a request may be sent (clocks), what
//! visits came to, every version of every manifest, and the ordered feed of changes that the index follows. It decides
//! nothing about politeness or schedules: those values come from the crawler, and every `now` is an argument.
//!
//! A transaction is never open while anybody waits for the network: a lease is a short statement, work happens outside,
//! and the result is saved in a second, fenced transaction.

#![warn(missing_docs)]

mod config;
mod contract;
mod dump;
mod error;
mod fault;
mod model;
mod pack;
mod packed;
mod plan;
mod postgres;
mod rest;
mod schema;
mod sqlite;
mod waiting;

pub use config::{Backend, DatabaseUrl, SLOW_STATEMENT_DEFAULT, StoreConfig};
pub use contract::Store;
pub use error::StoreError;
pub use model::*;
