//! Rows of the discovery.k8s.io group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row(
        "discovery.k8s.io",
        kind,
        &object.replace("META", meta),
        expected,
    );
}

#[test]
fn slices() {
    check(
        "EndpointSlice",
        r#"{META},"addressType":"IPv4"}"#,
        "x | IPv4 | <unset> | <unset> | 5m",
    );
    check(
        "EndpointSlice",
        r#"{META},"addressType":"IPv4","ports":[{"port":80},{"name":"http"},{},{"port":81}],
        "endpoints":[{"addresses":["10.0.0.1","10.0.0.2"]},{"addresses":["10.0.0.3","10.0.0.4","10.0.0.5"]}]}"#,
        "x | IPv4 | 80,http,* + 1 more... | 10.0.0.1,10.0.0.2,10.0.0.3 + 2 more... | 5m",
    );
}
