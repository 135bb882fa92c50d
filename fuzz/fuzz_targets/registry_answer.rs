#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| coracle_runtime::images::fuzz::registry_answer(data));
