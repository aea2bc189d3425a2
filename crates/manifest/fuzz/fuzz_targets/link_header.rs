//! Fuzzes a `Link` header. The number of links and the lengths of their targets must respect their caps.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::link_header(data));
