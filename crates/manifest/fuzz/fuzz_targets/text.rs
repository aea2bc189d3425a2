//! Fuzzes a generic JSON manifest whose names, descriptions, ids and URLs are all the same untrusted text. Names and descriptions must
//! respect their caps and contain no bidi or tag characters.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::text(data));
