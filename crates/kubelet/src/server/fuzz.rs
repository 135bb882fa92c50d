//! Properties that hold for any path and query of the kubelet's API, and any line of a container's log: the target of `fuzz/`
//! panics on a violation.

use coracle_api::time::Timestamp;
use http::Method;

use super::logs::{LogOptions, print_lines};
use super::query::Query;
use super::route::route;
use super::{command, port_forward};

/// The first line is a path and a query, the rest a log.
pub fn kubelet_request(data: &[u8]) {
    let end = data
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(data.len());
    let (request, log) = data.split_at(end);
    let request = String::from_utf8_lossy(request);
    let (path, query) = request.split_once('?').unwrap_or((&request, ""));
    for method in [Method::GET, Method::POST] {
        route(&method, path);
    }

    let query = Query::parse(query);
    let encoded: Vec<String> = query
        .pairs()
        .map(|(name, value)| format!("{}={}", escaped(name), escaped(value)))
        .collect();
    assert_eq!(Query::parse(&encoded.join("&")), query);

    std::hint::black_box(command::options(&query).err().map_or(0, str::len));
    if let Ok(ports) = port_forward::named(&query) {
        assert!((1..=port_forward::MOST_PORTS).contains(&ports.len()) && !ports.contains(&0));
    }
    if let Ok(options) = LogOptions::parse(&query, Timestamp::from_unix(1_000_000_000, 0)) {
        let limit = options.limit_bytes;
        let printed = print_lines(options, log);
        let length = u64::try_from(printed.len()).expect("a length fits");
        assert!(limit.is_none_or(|limit| length <= limit));
    }
}

/// Every byte escaped.
fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use crate::fuzz_corpus;

    #[test]
    fn any_request_keeps_every_property() {
        fuzz_corpus::run("kubelet_request", super::kubelet_request, 4000);
    }
}
