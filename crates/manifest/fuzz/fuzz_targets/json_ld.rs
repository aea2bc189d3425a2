//! Fuzzes the JSON-LD of a page, and the manifest that is read from it. Entries must respect their cap, and two readings must be equal.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::json_ld(data));
