//! Rows of the scheduling.k8s.io group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row(
        "scheduling.k8s.io",
        kind,
        &object.replace("META", meta),
        expected,
    );
}

#[test]
fn priorities() {
    check("PriorityClass", "{META}}", "x | 0 | false | 5m | ");
    check(
        "PriorityClass",
        r#"{META},"value":2000000000,"globalDefault":true,"preemptionPolicy":"Never"}"#,
        "x | 2000000000 | true | 5m | Never",
    );
}
