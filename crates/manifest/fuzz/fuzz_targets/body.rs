//! Fuzzes the JSON of a request body or of a registry. JSON over its budget must never be parsed.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::body(data));
