//! Rows of the autoscaling group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row("autoscaling", kind, &object.replace("META", meta), expected);
}

#[test]
fn autoscalers() {
    let targets = |metrics: &str, current: &str, expected: &str| {
        let object = format!(
            r#"{{META}},"spec":{{"scaleTargetRef":{{"kind":"Deployment","name":"web"}},"maxReplicas":9,"minReplicas":2,
            "metrics":{metrics}}},"status":{{"currentReplicas":3,"currentMetrics":{current}}}}}"#
        );
        let expected = format!("x | Deployment/web | {expected} | 2 | 9 | 3 | 5m");
        check("HorizontalPodAutoscaler", &object, &expected);
    };

    let cpu = r#"{"type":"Resource","resource":{"name":"cpu","target":{"averageUtilization":80}}}"#;
    targets("[]", "[]", "<none>");
    targets(&format!("[{cpu}]"), "[]", "cpu: <unknown>/80%");
    targets(
        &format!("[{cpu}]"),
        r#"[{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":50}}}]"#,
        "cpu: 50%/80%",
    );

    targets(
        &format!("[{cpu},{cpu},{cpu},{cpu}]"),
        "[]",
        "cpu: <unknown>/80%, cpu: <unknown>/80% + 2 more...",
    );

    targets(
        r#"[{"type":"Resource","resource":{"name":"memory","target":{"averageValue":"1024Mi"}}}]"#,
        r#"[{"type":"Resource","resource":{"name":"memory","current":{"averageValue":"512Mi"}}}]"#,
        "memory: 512Mi/1Gi",
    );

    targets(
        r#"[{"type":"ContainerResource","containerResource":{"name":"cpu","container":"c","target":{}}}]"#,
        "[]",
        "cpu: <unknown>/<auto>",
    );

    targets(
        r#"[{"type":"Pods","pods":{"metric":{"name":"m"},"target":{"averageValue":"10"}}}]"#,
        r#"[{"type":"Pods","pods":{"metric":{"name":"m"},"current":{"averageValue":"5"}}}]"#,
        "5/10",
    );

    targets(
        r#"[{"type":"External","external":{"metric":{"name":"m"},"target":{"averageValue":"10"}}},
        {"type":"Object","object":{"metric":{"name":"m"},"describedObject":{"kind":"k","name":"n"},"target":{"value":"7"}}}]"#,
        r#"[{"type":"External","external":{"metric":{"name":"m"},"current":{"averageValue":"4"}}},
        {"type":"Object","object":{"metric":{"name":"m"},"describedObject":{"kind":"k","name":"n"},"current":{"value":"6"}}}]"#,
        "4/10 (avg), 6/7",
    );

    targets(r#"[{"type":"Weather"}]"#, "[]", "<unknown type>");
    check(
        "HorizontalPodAutoscaler",
        "{META}}",
        "x | / | <none> | <unset> | 0 | 0 | 5m",
    );
}

#[test]
fn scales() {
    check(
        "Scale",
        r#"{META},"spec":{"replicas":3},"status":{"replicas":2}}"#,
        "x | 3 | 2 | 5m",
    );
    check("Scale", "{META}}", "x | 0 | 0 | 5m");
}
