//! Rows of the resource.k8s.io group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row(
        "resource.k8s.io",
        kind,
        &object.replace("META", meta),
        expected,
    );
}

#[test]
fn claims() {
    let claim = |rest: &str, status: &str, expected: &str| {
        check(
            "ResourceClaim",
            &format!(r#"{{META{rest}}},"status":{status}}}"#),
            &format!("x | {expected} | 5m"),
        );
    };

    let deleted = r#","deletionTimestamp":"2026-03-01T12:00:00Z""#;
    claim("", "{}", "pending");
    claim("", r#"{"allocation":{}}"#, "allocated");
    claim(
        "",
        r#"{"allocation":{},"reservedFor":[{"name":"p"}]}"#,
        "allocated,reserved",
    );

    claim(deleted, "{}", "deleted");
    claim(deleted, r#"{"allocation":{}}"#, "deleted,allocated");
}

#[test]
fn small_kinds() {
    check("DeviceClass", "{META}}", "x | 5m");
    check("ResourceClaimTemplate", "{META}}", "x | 5m");
    check(
        "ResourceSlice",
        r#"{META},"spec":{"nodeName":"n","driver":"d","pool":{"name":"p","generation":1,"resourceSliceCount":1}}}"#,
        "x | n | d | p | 5m",
    );
}
