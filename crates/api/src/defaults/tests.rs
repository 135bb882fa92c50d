//! Cases that the recorded objects do not cover: zeros, nulls and absences, and the order of
//! defaults.

use super::*;
use crate::codec::{canonical, json};

/// Defaults an object and compares parts of it, each at its path; `-` means absent.
fn check(object: &str, expected: &[(&str, &str)]) {
    let untyped = json::parse(object.as_bytes()).unwrap();
    let text = |name: &str| untyped.get(name).and_then(Value::as_str).unwrap();
    let kind = BUILTIN.kind_of(text("apiVersion"), text("kind")).unwrap();
    let root = BUILTIN.root(kind).node();
    let mut value = json::decode(object.as_bytes(), Some(root)).unwrap().value;
    apply(&mut value, kind, Timestamp::from_unix(0, 0)).unwrap();
    canonical::canonicalize(&mut value, root);

    for (path, expected) in expected {
        let step = |value: &Value, step: &str| match step.parse::<usize>() {
            Ok(index) => value.as_array()?.get(index).cloned(),
            Err(_) => value.get(step).cloned(),
        };

        let found = path
            .split('.')
            .try_fold(value.clone(), |value, name| step(&value, name));
        let found = found.map_or_else(|| "-".to_owned(), |value| json::to_string(&value));
        assert_eq!(found, *expected, "{path} of {object}");
    }
}

fn pod(spec: &str, expected: &[(&str, &str)]) {
    check(
        &format!(r#"{{"apiVersion":"v1","kind":"Pod","spec":{spec}}}"#),
        expected,
    );
}

fn spec_of(api_version: &str, kind: &str, spec: &str, expected: &[(&str, &str)]) {
    check(
        &format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}","spec":{spec}}}"#),
        expected,
    );
}

#[test]
fn a_pointer_to_zero_is_set_and_a_null_is_not() {
    pod(
        r#"{"terminationGracePeriodSeconds":0}"#,
        &[("spec.terminationGracePeriodSeconds", "0")],
    );

    pod(
        r#"{"terminationGracePeriodSeconds":null}"#,
        &[("spec.terminationGracePeriodSeconds", "30")],
    );

    pod(
        r#"{"enableServiceLinks":false}"#,
        &[("spec.enableServiceLinks", "false")],
    );

    pod(
        r#"{"restartPolicy":"","securityContext":null}"#,
        &[
            ("spec.restartPolicy", r#""Always""#),
            ("spec.securityContext", "{}"),
        ],
    );

    spec_of(
        "apps/v1",
        "Deployment",
        r#"{"replicas":0}"#,
        &[("spec.replicas", "0")],
    );

    spec_of(
        "apps/v1",
        "Deployment",
        r#"{"replicas":null}"#,
        &[("spec.replicas", "1")],
    );

    spec_of(
        "batch/v1",
        "Job",
        r#"{"parallelism":0}"#,
        &[("spec.parallelism", "0"), ("spec.completions", "-")],
    );

    spec_of(
        "batch/v1",
        "Job",
        r#"{"completions":0}"#,
        &[("spec.parallelism", "1"), ("spec.completions", "0")],
    );

    spec_of(
        "batch/v1",
        "Job",
        r#"{"backoffLimitPerIndex":0}"#,
        &[("spec.backoffLimit", "2147483647")],
    );

    spec_of(
        "v1",
        "Service",
        r#"{"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":0}}}"#,
        &[("spec.sessionAffinityConfig.clientIP.timeoutSeconds", "0")],
    );

    spec_of(
        "v1",
        "Service",
        r#"{"internalTrafficPolicy":null,"type":"ExternalName"}"#,
        &[("spec.internalTrafficPolicy", "-")],
    );
}

#[test]
fn a_null_in_a_list_of_structs_is_an_empty_struct() {
    pod(
        r#"{"containers":[null],"volumes":[null]}"#,
        &[
            ("spec.containers.0.imagePullPolicy", r#""IfNotPresent""#),
            ("spec.containers.0.terminationMessagePolicy", r#""File""#),
            ("spec.volumes.0.emptyDir", "{}"),
        ],
    );

    spec_of(
        "v1",
        "Service",
        r#"{"ports":[null]}"#,
        &[("spec.ports.0.protocol", r#""TCP""#)],
    );
}

#[test]
fn a_volume_whose_sources_are_null_has_none() {
    pod(
        r#"{"volumes":[{"name":"v","secret":null,"hostPath":null}]}"#,
        &[("spec.volumes.0.emptyDir", "{}")],
    );
    pod(
        r#"{"volumes":[{"name":"v","secret":{}}]}"#,
        &[
            ("spec.volumes.0.emptyDir", "-"),
            ("spec.volumes.0.secret.defaultMode", "420"),
        ],
    );
}

#[test]
fn settings_of_another_strategy_are_unchanged() {
    let strategy = r#"{"strategy":{"type":"Recreate","rollingUpdate":{}}}"#;
    spec_of(
        "apps/v1",
        "Deployment",
        strategy,
        &[("spec.strategy.rollingUpdate", "{}")],
    );

    let strategy = r#"{"updateStrategy":{"type":"OnDelete","rollingUpdate":{}}}"#;
    spec_of(
        "apps/v1",
        "DaemonSet",
        strategy,
        &[("spec.updateStrategy.rollingUpdate", "{}")],
    );

    spec_of(
        "apps/v1",
        "StatefulSet",
        strategy,
        &[("spec.updateStrategy.rollingUpdate", "{}")],
    );

    let strategy = r#"{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}}}"#;
    spec_of(
        "apps/v1",
        "StatefulSet",
        strategy,
        &[("spec.updateStrategy.rollingUpdate", r#"{"partition":0}"#)],
    );
}

#[test]
fn quantities_are_rounded_after_they_were_added_up() {
    let container =
        |name: &str| format!(r#"{{"name":"{name}","resources":{{"limits":{{"cpu":"0.0001"}}}}}}"#);
    let containers = format!("[{},{}]", container("a"), container("b"));
    pod(
        &format!(r#"{{"containers":{containers},"resources":{{"limits":{{"cpu":"1"}}}}}}"#),
        &[
            (
                "spec.containers.0.resources",
                r#"{"limits":{"cpu":"1m"},"requests":{"cpu":"1m"}}"#,
            ),
            ("spec.resources.requests.cpu", r#""1m""#),
        ],
    );
}

#[test]
fn a_pods_request_is_the_larger_of_its_containers_and_its_init_phase() {
    let container = |more: &str, cpu: &str| {
        format!(r#"{{{more}"resources":{{"requests":{{"cpu":"{cpu}"}}}}}}"#)
    };
    let check = |init: &[&str], expected: &str| {
        let containers = container("", "500m");
        let spec = format!(
            r#"{{"containers":[{containers}],"initContainers":[{}],"resources":{{"limits":{{"cpu":"9"}}}}}}"#,
            init.join(",")
        );

        pod(
            &spec,
            &[("spec.resources.requests.cpu", &format!("\"{expected}\""))],
        );
    };

    let sidecar = container(r#""restartPolicy":"Always","#, "200m");
    check(&[], "500m");
    check(&[&container("", "2")], "2");
    check(&[&sidecar], "700m");
    check(&[&sidecar, &container("", "600m")], "800m");
    check(&[&container("", "600m"), &sidecar], "700m");
}

#[test]
fn resources_not_allowed_at_pod_level_are_left_to_containers() {
    let containers =
        r#"[{"resources":{"limits":{"example.com/gpu":"1","ephemeral-storage":"1Gi"}}}]"#;
    pod(
        &format!(r#"{{"containers":{containers},"resources":{{"limits":{{"cpu":"1"}}}}}}"#),
        &[(
            "spec.resources",
            r#"{"limits":{"cpu":"1"},"requests":{"cpu":"1"}}"#,
        )],
    );
}

#[test]
fn a_wrong_name_label_of_a_namespace_is_corrected() {
    let labels = r#"{"kubernetes.io/metadata.name":"other","a":"b"}"#;
    let object = format!(
        r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"n","labels":{labels}}}}}"#
    );
    check(
        &object,
        &[(
            "metadata.labels",
            r#"{"a":"b","kubernetes.io/metadata.name":"n"}"#,
        )],
    );

    let unnamed = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"generateName":"n-"}}"#;
    check(unnamed, &[("metadata.labels", "-")]);
}
