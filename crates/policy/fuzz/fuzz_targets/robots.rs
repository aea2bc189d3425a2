//! Fuzzes a robots.txt and decisions on several paths. The numbers of notes and agentmaps must respect their caps, two readings must be
//! equal, and robots.txt itself must always be allowed.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| policy_fuzz::robots(data));
