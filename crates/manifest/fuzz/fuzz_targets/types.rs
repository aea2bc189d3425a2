//! Fuzz target `types`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::types(data));
