//! Rows of the apps group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row("apps", kind, &object.replace("META", meta), expected);
}

const SPEC: &str = r#""spec":{"replicas":4,"selector":{"matchLabels":{"b":"c"},"matchExpressions":
    [{"key":"a","operator":"In","values":["y","x"]}]},"template":{"spec":{"nodeSelector":{"n":"m"},
    "containers":[{"name":"c","image":"i"},{"name":"d","image":"j"}]}}}"#;

#[test]
fn workloads() {
    let check = |kind: &str, object: &str, expected: &str| {
        check(kind, &object.replace("SPEC", SPEC), expected)
    };

    check(
        "Deployment",
        r#"{META},SPEC,"status":{"readyReplicas":1,"updatedReplicas":2,"availableReplicas":3}}"#,
        "x | 1/4 | 2 | 3 | 5m | c,d | i,j | a in (x,y),b=c",
    );
    check("Deployment", "{META}}", "x | 0/0 | 0 | 0 | 5m |  |  | ");
    check(
        "Deployment",
        r#"{META},"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"Sometimes"}]}}}"#,
        "x | 0/0 | 0 | 0 | 5m |  |  | <invalid>",
    );

    check(
        "ReplicaSet",
        r#"{META},SPEC,"status":{"replicas":2,"readyReplicas":1}}"#,
        "x | 4 | 2 | 1 | 5m | c,d | i,j | a in (x,y),b=c",
    );

    check("ReplicaSet", "{META}}", "x | 0 | 0 | 0 | 5m |  |  | <none>");
    check(
        "StatefulSet",
        r#"{META},SPEC,"status":{"readyReplicas":1}}"#,
        "x | 1/4 | 5m | c,d | i,j",
    );

    check(
        "DaemonSet",
        r#"{META},SPEC,"status":{"desiredNumberScheduled":5,"currentNumberScheduled":4,"numberReady":3,
        "updatedNumberScheduled":2,"numberAvailable":1}}"#,
        "x | 5 | 4 | 3 | 2 | 1 | n=m | 5m | c,d | i,j | a in (x,y),b=c",
    );

    check(
        "DaemonSet",
        "{META}}",
        "x | 0 | 0 | 0 | 0 | 0 | <none> | 5m |  |  | <none>",
    );
}

#[test]
fn revisions_name_their_controller() {
    check(
        "ControllerRevision",
        r#"{META},"revision":7}"#,
        "x | <none> | 7 | 5m",
    );

    check(
        "ControllerRevision",
        r#"{META,"ownerReferences":[{"kind":"Other","name":"o"},
        {"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","controller":true}]}}"#,
        "x | statefulset.apps/web | 0 | 5m",
    );

    check(
        "ControllerRevision",
        r#"{META,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","controller":true}]}}"#,
        "x | pod/p | 0 | 5m",
    );
}
