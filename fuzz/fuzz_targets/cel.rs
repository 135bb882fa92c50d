#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| coracle_cel::fuzz::expression(data));
