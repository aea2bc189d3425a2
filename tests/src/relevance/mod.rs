//! The quality of searches: public tool-retrieval sets and labelled requests, evaluated on any engine.
//!
//! [`sets`] and [`labelled`] read them, [`judge`] scores one request, [`measures`] a set and parts of it, [`engines`] ranks: the
//! index of agentdex through its query path, and the full text of SQLite and of PostgreSQL over the same words. [`examples`]
//! uses requests as examples of tools.

pub mod engines;
pub mod examples;
pub mod judge;
pub mod labelled;
pub mod measures;
pub mod sets;
pub mod spam;
