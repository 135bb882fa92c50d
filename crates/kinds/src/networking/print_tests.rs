//! Rows of the networking.k8s.io group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row(
        "networking.k8s.io",
        kind,
        &object.replace("META", meta),
        expected,
    );
}

#[test]
fn ingresses() {
    check("Ingress", "{META}}", "x | <none> | * |  | 80 | 5m");
    check(
        "Ingress",
        r#"{META},"spec":{"ingressClassName":"c","tls":[{}],"rules":[{"host":"a"},{"host":"b"},{},{"host":"c"},{}]},
        "status":{"loadBalancer":{"ingress":[{"hostname":"h"},{"ip":"1.1.1.1"}]}}}"#,
        "x | c | a,b,c + 2 more... | 1.1.1.1,h | 80, 443 | 5m",
    );

    check(
        "Ingress",
        r#"{META},"spec":{"rules":[{"host":"a"},{"host":"b"},{"host":"c"}]}}"#,
        "x | <none> | a,b,c |  | 80 | 5m",
    );
}

#[test]
fn classes_and_policies() {
    check("IngressClass", "{META}}", "x |  | <none> | 5m");
    check(
        "IngressClass",
        r#"{META,"annotations":{"ingressclass.kubernetes.io/is-default-class":"true"}},"spec":{"controller":"c",
        "parameters":{"apiGroup":"g.io","kind":"Params","name":"p"}}}"#,
        "x (default) | c | Params.g.io/p | 5m",
    );

    check(
        "IngressClass",
        r#"{META},"spec":{"parameters":{"kind":"Params","name":"p"}}}"#,
        "x |  | Params/p | 5m",
    );

    check(
        "NetworkPolicy",
        r#"{META},"spec":{"podSelector":{}}}"#,
        "x | <none> | 5m",
    );

    check(
        "NetworkPolicy",
        r#"{META},"spec":{"podSelector":{"matchExpressions":[{"key":"a","operator":"Exists"}]}}}"#,
        "x | a | 5m",
    );

    check(
        "NetworkPolicy",
        r#"{META},"spec":{"podSelector":{"matchExpressions":[{"key":"a","operator":"Sometimes"}]}}}"#,
        "x | <error> | 5m",
    );
}

#[test]
fn addresses() {
    check(
        "ServiceCIDR",
        r#"{META},"spec":{"cidrs":["10.0.0.0/16","fd00::/108"]}}"#,
        "x | 10.0.0.0/16,fd00::/108 | 5m",
    );

    check("IPAddress", "{META}}", "x | <none> | 5m");
    check(
        "IPAddress",
        r#"{META},"spec":{"parentRef":{"resource":"services","namespace":"default","name":"kubernetes"}}}"#,
        "x | services/default/kubernetes | 5m",
    );

    check(
        "IPAddress",
        r#"{META},"spec":{"parentRef":{"group":"g.io","resource":"widgets","name":"w"}}}"#,
        "x | widgets.g.io/w | 5m",
    );
}
