//! Rows of the policy group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row("policy", kind, &object.replace("META", meta), expected);
}

#[test]
fn budgets() {
    check("PodDisruptionBudget", "{META}}", "x | N/A | N/A | 0 | 5m");
    check(
        "PodDisruptionBudget",
        r#"{META},"spec":{"minAvailable":"50%","maxUnavailable":1},"status":{"disruptionsAllowed":2}}"#,
        "x | 50% | 1 | 2 | 5m",
    );
}
