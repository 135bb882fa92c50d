//! Rows of the admissionregistration.k8s.io group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row(
        "admissionregistration.k8s.io",
        kind,
        &object.replace("META", meta),
        expected,
    );
}

#[test]
fn webhooks() {
    for kind in [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ] {
        check(kind, "{META}}", "x | 0 | 5m");
        check(
            kind,
            r#"{META},"webhooks":[{"name":"a"},{"name":"b"}]}"#,
            "x | 2 | 5m",
        );
    }
}

#[test]
fn policies() {
    for (kind, rules) in [
        ("MutatingAdmissionPolicy", "mutations"),
        ("ValidatingAdmissionPolicy", "validations"),
    ] {
        check(kind, "{META}}", "x | 0 | <unset> | 5m");
        let object = format!(
            r#"{{META}},"spec":{{"{rules}":[{{"expression":"true"}}],"paramKind":{{"apiVersion":"v1","kind":"ConfigMap"}}}}}}"#
        );
        check(kind, &object, "x | 1 | v1/ConfigMap | 5m");
    }
}

#[test]
fn bindings() {
    for kind in [
        "MutatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicyBinding",
    ] {
        let params = |params: &str, expected: &str| {
            let object = format!(r#"{{META}},"spec":{{"policyName":"p","paramRef":{params}}}}}"#);
            check(kind, &object, &format!("x | p | {expected} | 5m"));
        };

        check(kind, "{META}}", "x |  | <unset> | 5m");
        params("{}", "<unset>");
        params(r#"{"name":"n"}"#, "*/n");
        params(r#"{"name":"n","namespace":"s"}"#, "s/n");
        params(
            r#"{"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"k","operator":"In","values":["v","w"]}]}}"#,
            "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement\
             {LabelSelectorRequirement{Key:k,Operator:In,Values:[v w],},},}",
        );
    }
}
