//! Fuzz target `link_header`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::link_header(data));
