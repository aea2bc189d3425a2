//! The HTTP API with a real SQLite store and a real index, called as a client calls it.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

mod abuse;
mod addresses;
#[path = "../support/answer.rs"]
mod answer;
mod claims;
mod conventions;
mod declarations;
mod documents;
mod feedback;
mod feeds;
mod filters;
#[path = "../support/fixture.rs"]
mod fixture;
mod identity;
mod openapi;
mod origins;
mod owners;
mod page_states;
mod page_truth;
mod pages;
mod protection;
mod reader_keys;
mod readiness;
mod records;
mod resources;
mod search_watches;
mod searching;
mod speakers;
mod stability;
mod validate;
mod watches;
mod world;
