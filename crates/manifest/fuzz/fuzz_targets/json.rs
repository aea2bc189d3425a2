//! Fuzz target `json`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::json(data));
