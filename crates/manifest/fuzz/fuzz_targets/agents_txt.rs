//! Fuzz target `agents_txt`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::agents_txt(data));
