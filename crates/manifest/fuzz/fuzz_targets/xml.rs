//! Fuzzes XML, alone and as the content of a sitemap or an OPML file. URLs must respect their cap, and two readings must be equal.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::xml(data));
