//! The endpoints that standards define, tested as their clients use them, with a real store and a real index.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

#[path = "../support/answer.rs"]
mod answer;
mod ard;
mod descriptions;
#[path = "../support/fixture.rs"]
mod fixture;
mod hostile;
mod listings;
mod mcp;
mod mcp_registry;
mod paging;
mod private_addresses;
mod tools;
mod world;
