//! Fuzzes the head of an HTML page. The number and lengths of its links must respect their caps, and two readings must be equal.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::html(data));
