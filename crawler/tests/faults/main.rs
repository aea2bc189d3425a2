//! Faults to survive: each row of the fault table is a test with its pass mark, judged by the server's own log.
//!
//! Some are small here and at their full measure by `tests/faults full`.

#![expect(clippy::unwrap_used, reason = "a failing test should show where it failed")]

mod answers;
mod clocks;
mod disk;
mod drips;
mod kills;
mod names;
mod slow;

#[path = "../support/fixture.rs"]
mod fixture;
#[path = "../support/full.rs"]
mod full;
#[path = "../support/mod.rs"]
mod support;
