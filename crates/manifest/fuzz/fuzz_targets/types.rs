//! Fuzzes the types, rates and durations of an AWP manifest. No input may cause a panic, two readings must be equal, and the manifest must
//! respect the caps.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::types(data));
