#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| coracle_store::embedded::fuzz::recovery(data));
