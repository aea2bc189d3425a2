//! The index on a distributed engine: a broker with three servers, started for each test. `tests/cluster` runs it.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]
#![expect(clippy::disallowed_methods, reason = "processes take real time")]
#![expect(clippy::cast_precision_loss, reason = "numbers of documents are small")]

mod engine;
mod faults;
mod programs;
mod servers;
#[expect(dead_code, reason = "shared with the end-to-end tests, which use all of it")]
#[path = "../end_to_end/world.rs"]
mod world;
