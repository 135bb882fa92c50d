//! Rows of the apiregistration.k8s.io group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row(
        "apiregistration.k8s.io",
        kind,
        &object.replace("META", meta),
        expected,
    );
}

#[test]
fn services() {
    let available = |conditions: &str, expected: &str| {
        check(
            "APIService",
            &format!(r#"{{META}},"status":{{"conditions":{conditions}}}}}"#),
            &format!("x | Local | {expected} | 5m"),
        );
    };

    available("[]", "Unknown");
    available(
        r#"[{"type":"Available","status":"True","reason":"Local"}]"#,
        "True",
    );

    available(
        r#"[{"type":"Available","status":"False","reason":"MissingEndpoints"}]"#,
        "False (MissingEndpoints)",
    );

    available(r#"[{"type":"Available","status":"Unknown"}]"#, "Unknown");
    check(
        "APIService",
        r#"{META},"spec":{"service":{"namespace":"n","name":"s"}}}"#,
        "x | n/s | Unknown | 5m",
    );
}
