//! How well searches find what was meant: public tool-retrieval sets and our own labelled requests, judged on any engine.
//!
//! [`sets`] reads them, [`judge`] gives the numbers, [`engines`] ranks: our index through its own query path, beside the
//! full text of SQLite and of PostgreSQL over the same words.

pub mod engines;
pub mod judge;
pub mod labelled;
pub mod learning;
pub mod sets;
