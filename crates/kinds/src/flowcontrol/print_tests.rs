//! Rows of the flowcontrol.apiserver.k8s.io group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row(
        "flowcontrol.apiserver.k8s.io",
        kind,
        &object.replace("META", meta),
        expected,
    );
}

#[test]
fn schemas_and_levels() {
    check("FlowSchema", "{META}}", "x |  | 0 | <none> | 5m | ?");
    check(
        "FlowSchema",
        r#"{META},"spec":{"priorityLevelConfiguration":{"name":"l"},"matchingPrecedence":100,
        "distinguisherMethod":{"type":"ByUser"}},"status":{"conditions":[{"type":"Dangling","status":"False"}]}}"#,
        "x | l | 100 | ByUser | 5m | False",
    );

    check(
        "PriorityLevelConfiguration",
        r#"{META},"spec":{"type":"Exempt"}}"#,
        "x | Exempt | <none> | <none> | <none> | <none> | 5m",
    );

    check(
        "PriorityLevelConfiguration",
        r#"{META},"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":30,"limitResponse":{"type":"Queue",
        "queuing":{"queues":64,"handSize":6,"queueLengthLimit":50}}}}}"#,
        "x | Limited | 30 | 64 | 6 | 50 | 5m",
    );

    check(
        "PriorityLevelConfiguration",
        r#"{META},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}}"#,
        "x | Limited | 0 | <none> | <none> | <none> | 5m",
    );
}
