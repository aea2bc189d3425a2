//! Fuzzes the response headers that decide about freshness, use and delays. No value may cause a panic, and two readings must be equal.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| policy_fuzz::headers(data));
