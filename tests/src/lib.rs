//! The politeness audit and the shared parts of the end-to-end tests.
//!
//! [`audit`] checks a crawl from the log of the test web alone. [`harness`] provides the resources of a test: a separate database, a data
//! directory, binaries of the workspace. [`relevance`] measures the quality of searches, and [`speed`] contains the parts of the speed
//! benchmark.

pub mod audit;
pub mod harness;
pub mod relevance;
pub mod speed;
