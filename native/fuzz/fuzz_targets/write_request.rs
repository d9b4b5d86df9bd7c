#![no_main]

#[path = "../../engine/tests/fuzz_entries/mod.rs"]
mod fuzz_entries;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_entries::write_request(data));
