//! The front door on one machine: crawler, indexer and api in one process.

fn main() {}
