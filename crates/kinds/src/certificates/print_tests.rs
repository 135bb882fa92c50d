//! Rows of the certificates.k8s.io group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row(
        "certificates.k8s.io",
        kind,
        &object.replace("META", meta),
        expected,
    );
}

#[test]
fn requests() {
    let request = |status: &str, expected: &str| {
        let object = format!(
            r#"{{META}},"spec":{{"signerName":"s","username":"u","expirationSeconds":86400}},"status":{status}}}"#
        );
        check(
            "CertificateSigningRequest",
            &object,
            &format!("x | 5m | s | u | 24h | {expected}"),
        );
    };

    request("{}", "Pending");
    request(r#"{"conditions":[{"type":"Approved"}]}"#, "Approved");
    request(
        r#"{"conditions":[{"type":"Approved"}],"certificate":"QQ=="}"#,
        "Approved,Issued",
    );

    request(
        r#"{"conditions":[{"type":"Approved"},{"type":"Failed"}]}"#,
        "Approved,Failed",
    );

    request(
        r#"{"conditions":[{"type":"Approved"},{"type":"Denied"}]}"#,
        "Denied",
    );

    check(
        "CertificateSigningRequest",
        "{META}}",
        "x | 5m | <none> |  | <none> | Pending",
    );
}
