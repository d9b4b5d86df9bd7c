#![no_main]

#[path = "../../engine/tests/engine/fuzz_entries.rs"]
mod fuzz_entries;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_entries::query_plan(data));
