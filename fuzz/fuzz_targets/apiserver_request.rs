#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| coracle_apiserver::fuzz::apiserver_request(data));
