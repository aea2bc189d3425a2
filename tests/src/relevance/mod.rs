//! The quality of searches, evaluated for any engine with public tool-retrieval sets and labelled requests.
//!
//! [`sets`] and [`labelled`] read them, [`judge`] scores one request, and [`measures`] scores a set and its parts. [`engines`] ranks with
//! the index of agentdex through its query path, and with the full-text search of SQLite and PostgreSQL over the same words. [`examples`]
//! uses requests as examples of tools.

pub mod engines;
pub mod examples;
pub mod judge;
pub mod labelled;
pub mod measures;
pub mod sets;
pub mod spam;
