//! Fuzzes the detection of dialects and every parser behind it, with any path, forced format and response headers. No input may cause a
//! panic, two readings must be equal, and the manifest must respect the caps.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::document(data));
