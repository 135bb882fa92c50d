//! Rows of the coordination.k8s.io group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row(
        "coordination.k8s.io",
        kind,
        &object.replace("META", meta),
        expected,
    );
}

#[test]
fn leases() {
    check("Lease", "{META}}", "x |  | 5m");
    check(
        "Lease",
        r#"{META},"spec":{"holderIdentity":"me"}}"#,
        "x | me | 5m",
    );
}
