use super::*;
use crate::catalog::ServedApis;
use crate::codec::json;

fn read(kind: &Kind, text: &str) -> Value {
    let text = format!(
        r#"{{"apiVersion":"{}","kind":"{}",{text}}}"#,
        kind.api_version(),
        kind.name
    );
    json::decode(text.as_bytes(), Some(BUILTIN.root(kind).node()))
        .unwrap()
        .value
}

/// Compares an object after it is created, or replaces another (`old`; empty: it is new).
fn check(of: &str, new: &str, old: &str, expected: &str) {
    let (api_version, name) = of.split_once(' ').unwrap();
    let kind = BUILTIN.kind_of(api_version, name).unwrap();
    let mut object = read(kind, new);
    let old = (!old.is_empty()).then(|| read(kind, old));
    drop_disabled(&mut object, old.as_ref(), kind);
    assert_eq!(
        json::to_string(&object),
        json::to_string(&read(kind, expected)),
        "{of} {new} after {old:?}"
    );
}

#[test]
fn a_field_is_removed_unless_it_is_in_use() {
    let of = "storage.k8s.io/v1 CSIDriver";
    let set = r#""spec":{"attachRequired":true,"preventPodSchedulingIfMissing":true}"#;
    let unset = r#""spec":{"attachRequired":true}"#;
    check(of, set, "", unset);
    check(of, set, unset, unset);
    check(of, set, set, set);
    check(of, unset, set, unset);
}

#[test]
fn fields_of_one_gate_are_removed_independently() {
    let of = "coordination.k8s.io/v1 Lease";
    let both = r#""spec":{"preferredHolder":"a","strategy":"OldestEmulationVersion"}"#;
    check(of, both, "", r#""spec":{}"#);
    check(
        of,
        both,
        r#""spec":{"strategy":"x"}"#,
        r#""spec":{"strategy":"OldestEmulationVersion"}"#,
    );
}

#[test]
fn a_field_that_is_in_use_anywhere_is_kept_everywhere() {
    let source = r#"{"clusterTrustBundle":{"path":"p"}}"#;
    let volume = |name: &str, source: &str| {
        format!(r#"{{"name":"{name}","projected":{{"sources":[{source}]}}}}"#)
    };

    let spec = |volumes: &[String]| format!(r#""spec":{{"volumes":[{}]}}"#, volumes.join(","));
    let new = spec(&[volume("a", source), volume("b", source)]);
    check("v1 Pod", &new, &spec(&[volume("c", source)]), &new);
    check(
        "v1 Pod",
        &new,
        &spec(&[volume("c", "{}")]),
        &spec(&[volume("a", "{}"), volume("b", "{}")]),
    );

    let template = |of: &str| format!(r#""spec":{{"template":{{{of}}}}}"#);
    check(
        "apps/v1 Deployment",
        &template(&new),
        "",
        &template(&spec(&[volume("a", "{}"), volume("b", "{}")])),
    );
}

#[test]
fn a_stop_signal_removes_its_lifecycle_only_if_it_has_no_hooks() {
    let containers = |of: &str, lifecycle: &str| format!(r#""{of}":[{{"name":"c"{lifecycle}}}]"#);
    let check_in = |of: &str, before: &str, after: &str| {
        let spec = |lifecycle: &str| format!(r#""spec":{{{}}}"#, containers(of, lifecycle));
        check("v1 Pod", &spec(before), "", &spec(after));
    };

    for of in ["containers", "initContainers", "ephemeralContainers"] {
        check_in(of, r#","lifecycle":{"stopSignal":"SIGTERM"}"#, "");
        check_in(of, r#","lifecycle":{}"#, r#","lifecycle":{}"#);
        let hook = r#","lifecycle":{"preStop":{"sleep":{"seconds":1}}}"#;
        check_in(
            of,
            r#","lifecycle":{"preStop":{"sleep":{"seconds":1}},"stopSignal":"SIGTERM"}"#,
            hook,
        );
    }

    let reported = r#""status":{"containerStatuses":[{"name":"c","stopSignal":"SIGTERM"}]}"#;
    check("v1 Pod", reported, "", reported);
}

#[test]
fn lists_of_attributes_are_kept_together() {
    let attributes =
        |of: &str| format!(r#""spec":{{"devices":[{{"name":"d","attributes":{{{of}}}}}]}}"#);
    let new = attributes(r#""a":{"ints":[1]},"b":{"string":"x"}"#);
    let of = "resource.k8s.io/v1 ResourceSlice";
    check(of, &new, "", &attributes(r#""a":{},"b":{"string":"x"}"#));
    check(of, &new, &attributes(r#""z":{"bools":[true]}"#), &new);
}

#[test]
fn a_source_in_another_namespace_is_removed_only_from_claims() {
    let spec = |source: &str| format!(r#""spec":{{"volumeName":"v"{source}}}"#);
    let near = r#","dataSourceRef":{"kind":"K","name":"n"}"#;
    let far = r#","dataSourceRef":{"kind":"K","name":"n","namespace":"o"}"#;
    let of = "v1 PersistentVolumeClaim";
    check(of, &spec(far), "", &spec(""));
    check(of, &spec(near), "", &spec(near));
    check(of, &spec(far), &spec(near), &spec(far));

    let set = |spec: &str| format!(r#""spec":{{"volumeClaimTemplates":[{{{spec}}}]}}"#);
    check(
        "apps/v1 StatefulSet",
        &set(&spec(far)),
        "",
        &set(&spec(far)),
    );
}

#[test]
fn fields_of_removed_features_are_removed() {
    let used = r#""spec":{"configSource":{}},"status":{"config":{}}"#;
    check("v1 Node", used, "", r#""spec":{},"status":{}"#);
    check("v1 Node", used, used, used);
}

#[test]
fn most_kinds_have_no_gated_fields() {
    let gated = |kind: &&Kind| of_kind(kind).is_some();
    let served = ServedApis::default();
    let stored = served
        .resources()
        .filter(|resource| resource.storage.is_some());
    let stored = stored.filter_map(|of| BUILTIN.kind(&of.group, &of.version, &of.kind));

    let mut names: Vec<&str> = stored
        .filter(gated)
        .map(|kind| kind.name.as_str())
        .collect();
    names.sort_unstable();

    assert_eq!(
        names,
        [
            "CSIDriver",
            "CronJob",
            "DaemonSet",
            "Deployment",
            "Job",
            "Lease",
            "Node",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicaSet",
            "ReplicationController",
            "ResourceSlice",
            "StatefulSet"
        ]
    );
}
