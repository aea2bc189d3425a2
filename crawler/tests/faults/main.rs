//! Fault tests: each row of the fault table is a test with a pass criterion, which is checked in the server's log.
//!
//! Some run at a small size here; `tests/faults full` runs them at full size.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

mod answers;
mod clocks;
mod disk;
mod drips;
mod kills;
mod liveness;
mod liveness_shares;
mod names;
mod slow;

#[path = "../support/fixture.rs"]
mod fixture;
#[path = "../support/full.rs"]
mod full;
#[path = "../support/program.rs"]
mod program_path;
#[path = "../support/skipped.rs"]
mod skipped;
#[path = "../support/mod.rs"]
mod support;
