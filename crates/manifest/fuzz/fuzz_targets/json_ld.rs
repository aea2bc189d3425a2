//! Fuzz target `json_ld`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::json_ld(data));
