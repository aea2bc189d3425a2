//! The quality of searches: public tool-retrieval sets and labelled requests, evaluated on any engine.
//!
//! [`sets`] reads them, [`judge`] gives the numbers, [`engines`] ranks: the index of agentdex through its query path, and the
//! full text of SQLite and of PostgreSQL over the same words.

pub mod engines;
pub mod judge;
pub mod labelled;
pub mod sets;
