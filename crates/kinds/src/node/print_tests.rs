//! Rows of the node.k8s.io group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row("node.k8s.io", kind, &object.replace("META", meta), expected);
}

#[test]
fn runtimes() {
    check(
        "RuntimeClass",
        r#"{META},"handler":"runc"}"#,
        "x | runc | 5m",
    );
}
