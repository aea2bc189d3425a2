//! Fuzzes llms.txt and ai.txt, which are Markdown and prose. No input may cause a panic, two readings must be equal, and the manifest must
//! respect the caps.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest_fuzz::llms_txt(data));
