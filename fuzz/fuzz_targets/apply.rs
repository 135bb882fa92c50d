#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| coracle_api::fuzz::apply(data));
