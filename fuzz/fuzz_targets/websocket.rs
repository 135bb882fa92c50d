#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| coracle_streams::fuzz::websocket(data));
