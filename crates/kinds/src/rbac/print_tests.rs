//! Rows of the rbac.authorization.k8s.io group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row(
        "rbac.authorization.k8s.io",
        kind,
        &object.replace("META", meta),
        expected,
    );
}

#[test]
fn bindings() {
    for kind in ["RoleBinding", "ClusterRoleBinding"] {
        check(
            kind,
            r#"{META},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"admin"},"subjects":
            [{"kind":"User","name":"a"},{"kind":"Group","name":"g"},{"kind":"User","name":"b"},
            {"kind":"ServiceAccount","namespace":"n","name":"s"}]}"#,
            "x | ClusterRole/admin | 5m | a, b | g | n/s",
        );
    }
}
