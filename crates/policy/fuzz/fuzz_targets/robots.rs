//! Entry point of the fuzzer for `robots`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| policy_fuzz::robots(data));
