//! The politeness audit, and what the end-to-end tests share.
//!
//! [`audit`] judges a crawl from the log of the test web alone. [`harness`] starts what a test needs: a database of its
//! own, a data directory, binaries of the workspace. [`relevance`] measures the quality of searches, [`speed`]
//! has the parts of the speed benchmark.

pub mod audit;
pub mod harness;
pub mod relevance;
pub mod speed;
