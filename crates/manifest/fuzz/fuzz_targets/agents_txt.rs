//! Fuzzes every grammar of agents.txt. No input may cause a panic, two readings must be equal, and the manifest must respect the caps.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::agents_txt(data));
