#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| coracle_kubelet::server::fuzz::kubelet_request(data));
