//! Fuzz target `xml`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::xml(data));
