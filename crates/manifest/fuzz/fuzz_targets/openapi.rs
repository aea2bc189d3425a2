//! Fuzzes OpenAPI in YAML and JSON, alone and as the tools of an ARWS manifest. No input may cause a panic, two readings must be equal, and
//! the manifest must respect the caps.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::openapi(data));
