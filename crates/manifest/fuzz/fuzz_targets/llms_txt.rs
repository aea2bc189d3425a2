//! Fuzz target `llms_txt`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::llms_txt(data));
