//! Fuzzes the documents with the keys of signatures, and the header and the signature of an A2A card. No input may cause a panic, and the
//! manifest must respect the caps.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::keys(data));
