//! Table tests for updates of pods and their warnings.

use coracle_api::catalog::BUILTIN;
use coracle_api::codec::{canonical, json};
use coracle_api::field_error::FieldError;
use coracle_api::time::Timestamp;
use coracle_api::{Value, defaults, typed};
use k8s_openapi::api::core::v1::{Pod, PodSpec};

use super::options::Options;
use super::{ephemeral, resize, shape, status, update, warnings};
use crate::strategy::Errors;

const NOW: Timestamp = Timestamp::from_unix(0, 0);

/// A pod with these members and defaults, in stored form.
fn tree(members: &str) -> Value {
    let kind = BUILTIN.kind("", "v1", "Pod").unwrap();
    let of = BUILTIN.root(kind);
    let text = format!(r#"{{"apiVersion":"v1","kind":"Pod",{members}}}"#);
    let mut tree = json::decode(text.as_bytes(), Some(of.node()))
        .unwrap()
        .value;
    defaults::apply(&mut tree, kind, NOW).unwrap();
    canonical::canonicalize(&mut tree, of.node());
    tree
}

fn view(tree: &Value) -> Pod {
    typed::from_tree(tree).unwrap()
}

/// A pod with this in its spec beside one valid container.
fn with_spec(spec: &str) -> String {
    let comma = if spec.is_empty() { "" } else { "," };
    format!(
        r#""metadata":{{"name":"p"}},"spec":{{"containers":[{{"name":"c","image":"i"}}]{comma}{spec}}}"#
    )
}

fn spec_of(spec: &str) -> PodSpec {
    view(&tree(&with_spec(spec))).spec.unwrap()
}

/// `expected`: the prefix of each error.
fn compare(errors: &[FieldError], expected: &[&str], of: &str) {
    let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), expected.len(), "{of}: {found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            found.starts_with(expected),
            "{of}: {found} is not {expected}"
        );
    }
}

#[test]
fn only_few_fields_of_a_pod_are_mutable() {
    let check = |old: &str, new: &str, expected: &[&str]| {
        let (old, new) = (spec_of(old), spec_of(new));
        let mut errors = Errors::new();
        update::validate_update(&new, &old, &Options::of_pod(None, true), &mut errors);
        compare(&errors, expected, &format!("{old:?} {new:?}"));
    };

    let other =
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,";
    check("", "", &[]);
    check("", r#""hostname":"h""#, &[other]);

    check(r#""hostname":"h""#, "", &[other]);
    check("", r#""activeDeadlineSeconds":5"#, &[]);
    check(
        r#""activeDeadlineSeconds":5"#,
        r#""activeDeadlineSeconds":4"#,
        &[],
    );

    let deadline = "spec.activeDeadlineSeconds: Invalid value: ";
    check(
        r#""activeDeadlineSeconds":5"#,
        r#""activeDeadlineSeconds":6"#,
        &[&format!("{deadline}6: must be less")],
    );

    check(
        r#""activeDeadlineSeconds":5"#,
        "",
        &[&format!("{deadline}null: must not update")],
    );

    check(
        r#""terminationGracePeriodSeconds":-1"#,
        r#""terminationGracePeriodSeconds":1"#,
        &[],
    );

    check(
        r#""terminationGracePeriodSeconds":3"#,
        r#""terminationGracePeriodSeconds":1"#,
        &[other],
    );

    // The same quantity written otherwise is no change.
    check(
        r#""overhead":{"memory":"1Gi"}"#,
        r#""overhead":{"memory":"1073741824"}"#,
        &[],
    );

    check(
        "",
        r#""initContainers":[{"name":"i","image":"i"}]"#,
        &["spec.initContainers: Forbidden: pod updates may not add"],
    );
}

#[test]
fn tolerations_are_added_and_gates_taken_away() {
    let check = |old: &str, new: &str, expected: &[&str]| {
        let (old, new) = (spec_of(old), spec_of(new));
        let mut errors = Errors::new();
        update::validate_update(&new, &old, &Options::of_pod(None, true), &mut errors);
        compare(&errors, expected, &format!("{old:?} {new:?}"));
    };

    let one = r#"{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}"#;
    let longer = r#"{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":9}"#;
    let two = r#"{"key":"b","operator":"Exists"}"#;

    let list = |items: &[&str]| format!(r#""tolerations":[{}]"#, items.join(","));
    check(&list(&[one]), &list(&[two, longer]), &[]);
    check(
        &list(&[one]),
        &list(&[two]),
        &["spec.tolerations: Forbidden: existing toleration can not be modified"],
    );

    let gates = r#""schedulingGates":[{"name":"a"},{"name":"b"}]"#;
    check(gates, r#""schedulingGates":[{"name":"b"}]"#, &[]);
    check(
        gates,
        r#""schedulingGates":[{"name":"b"},{"name":"x"}]"#,
        &[
            "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'x'",
        ],
    );
}

#[test]
fn gated_pod_may_restrict_its_scheduling() {
    let check = |old: &str, new: &str, expected: &[&str]| {
        let gated = |spec: &str| spec_of(&format!(r#""schedulingGates":[{{"name":"a"}}],{spec}"#));
        let (old, new) = (gated(old), gated(new));
        let mut errors = Errors::new();
        update::validate_update(&new, &old, &Options::of_pod(None, true), &mut errors);
        compare(&errors, expected, &format!("{old:?} {new:?}"));
    };

    check(
        r#""nodeSelector":{"a":"b"}"#,
        r#""nodeSelector":{"a":"b","c":"d"}"#,
        &[],
    );

    check(
        r#""nodeSelector":{"a":"b"}"#,
        r#""nodeSelector":{"a":"c"}"#,
        &[
            "spec.nodeSelector: Invalid value: {\"a\":\"c\"}: only additions to spec.nodeSelector are allowed",
        ],
    );

    let affinity = |terms: &str| {
        format!(
            r#""affinity":{{"nodeAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":{{"nodeSelectorTerms":[{terms}]}}}}}}"#
        )
    };

    let a = r#"{"matchExpressions":[{"key":"a","operator":"Exists"}]}"#;
    let a_and_b =
        r#"{"matchExpressions":[{"key":"a","operator":"Exists"},{"key":"b","operator":"Exists"}]}"#;
    let b = r#"{"matchExpressions":[{"key":"b","operator":"Exists"}]}"#;
    check(
        r#""hostname":"h""#,
        &format!(r#""hostname":"h",{}"#, affinity(a)),
        &[],
    );

    check(&affinity(a), &affinity(a_and_b), &[]);
    let at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    check(
        &affinity(a),
        &affinity(b),
        &[&format!(
            "{at}[0]: Invalid value: {{\"MatchExpressions\":[{{\"Key\":\"b\",\"Operator\":\"Exists\",\"Values\":null}}],\
             \"MatchFields\":null}}: only additions"
        )],
    );

    check(
        &affinity(a),
        r#""hostname":"""#,
        &[&format!(
            "{at}: Invalid value: null: no additions/deletions"
        )],
    );
}

#[test]
fn ephemeral_containers_are_added_and_never_changed() {
    let check = |old: &str, new: &str, expected: &[&str]| {
        let list = |items: &str| spec_of(&format!(r#""ephemeralContainers":[{items}]"#));
        let mut errors = Errors::new();
        ephemeral::validate_update(&list(new), &list(old), &mut errors);
        compare(&errors, expected, new);
    };

    let (a, b) = (r#"{"name":"a","image":"i"}"#, r#"{"name":"b","image":"i"}"#);
    check(a, &format!("{b},{a}"), &[]);
    check(
        a,
        b,
        &[
            "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"a\" may not be removed",
        ],
    );

    check(
        a,
        r#"{"name":"a","image":"j"}"#,
        &[
            "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"a\" may not be changed\n- image: \"i\"",
        ],
    );
}

#[test]
fn only_amounts_of_cpu_and_memory_are_resized() {
    let pod = |resources: &str, rest: &str| {
        tree(&format!(
            r#""metadata":{{"name":"p"}},"spec":{{"containers":[{{"name":"c","image":"i","resources":{resources}}}]{rest}}}"#
        ))
    };

    let check = |old: &Value, new: &Value, expected: &[&str]| {
        let mut shaped = new.clone();
        resize::shape(&mut shaped, old);
        let (new, old) = (view(&shaped).spec.unwrap(), view(old));
        let mut errors = Errors::new();
        let status = old.status.clone().unwrap_or_default();
        resize::validate_update(&new, old.spec.as_ref().unwrap(), &status, &mut errors);
        compare(&errors, expected, &format!("{new:?}"));
    };

    let old = pod(r#"{"requests":{"cpu":"1","memory":"1Gi"}}"#, "");
    check(
        &old,
        &pod(r#"{"requests":{"cpu":"2","memory":"1Gi"}}"#, ""),
        &[],
    );

    // Fields that are not the subresource's are ignored.
    check(
        &old,
        &pod(
            r#"{"requests":{"cpu":"2","memory":"1Gi"}}"#,
            r#","hostname":"h""#,
        ),
        &[],
    );

    check(
        &old,
        &pod(r#"{"requests":{"cpu":"2"}}"#, ""),
        &["spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"],
    );

    check(
        &old,
        &pod(
            r#"{"requests":{"cpu":"1","memory":"1Gi","ephemeral-storage":"1"}}"#,
            "",
        ),
        &["spec: Forbidden: only cpu and memory resources are mutable"],
    );

    check(
        &old,
        &pod(
            r#"{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1","memory":"1Gi"}}"#,
            "",
        ),
        &["spec: Invalid value: \"\": Pod QOS Class may not change as a result of resizing"],
    );

    check(
        &old,
        &pod(
            r#"{"requests":{"cpu":"1","memory":"1Gi"}}"#,
            r#","initContainers":[{"name":"i","image":"i"}]"#,
        ),
        &["spec.initContainers: Forbidden: initContainers may not be added or removed on resize"],
    );
}

#[test]
fn invalid_status_changes_are_refused() {
    let pod = |spec: &str, status: &str| tree(&format!(r#"{},"status":{status}"#, with_spec(spec)));
    let check = |spec: &str, old: &str, new: &str, expected: &[&str]| {
        let mut errors = Errors::new();
        status::validate_update(&view(&pod(spec, new)), &view(&pod(spec, old)), &mut errors);
        compare(&errors, expected, new);
    };

    let ended = r#"{"containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":1}}}]}"#;
    let runs = r#"{"containerStatuses":[{"name":"c","state":{"running":{}}}]}"#;
    let again = "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state";
    check("", ended, runs, &[]);

    check(r#""restartPolicy":"Never""#, ended, runs, &[again]);
    check(r#""restartPolicy":"OnFailure""#, ended, runs, &[]);
    check(
        "",
        "{}",
        r#"{"podIPs":[{"ip":"1.2.3.4"},{"ip":"1.2.3.5"}],"hostIPs":[{"ip":"1.1.1.1"}],"hostIP":"1.1.1.2"}"#,
        &[
            "status.podIPs: Invalid value: [{\"IP\":\"1.2.3.4\"},{\"IP\":\"1.2.3.5\"}]: may specify no more than one IP",
            "status.hostIPs[0].ip: Invalid value: \"1.1.1.1\": must be equal to `hostIP`",
        ],
    );

    check(
        "",
        "{}",
        r#"{"podIPs":[{"ip":"010.1.1.1"}]}"#,
        &["status.podIPs[0]: Invalid value: \"010.1.1.1\": must not have"],
    );

    check(
        "",
        r#"{"podIPs":[{"ip":"010.1.1.1"}]}"#,
        r#"{"podIPs":[{"ip":"010.1.1.1"}]}"#,
        &[],
    );

    check(
        r#""nodeName":"n""#,
        "{}",
        r#"{"nominatedNodeName":"m","qosClass":"Burstable","conditions":[{"type":"a b","status":"True"}]}"#,
        &[
            "status.conditions[0].Type: Invalid value: \"a b\": name part must consist",
            "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node",
            "status.qosClass: Invalid value: \"Burstable\": field is immutable",
        ],
    );
}

#[test]
fn status_fields_that_are_left_out_are_kept() {
    let old = tree(&format!(
        r#"{},"status":{{"qosClass":"Burstable","observedGeneration":3,
            "conditions":[{{"type":"Ready","status":"True","observedGeneration":2}}]}}"#,
        with_spec("")
    ));

    let mut new = tree(&format!(
        r#"{},"status":{{"conditions":[{{"type":"Ready","status":"False"}},{{"type":"Ready","status":"True"}}]}}"#,
        with_spec("")
    ));
    status::shape(&mut new, &old);

    let status = view(&new).status.unwrap();
    assert_eq!(status.qos_class.as_deref(), Some("Burstable"));
    assert_eq!(status.observed_generation, Some(3));

    let seen: Vec<Option<i64>> = status
        .conditions
        .unwrap()
        .iter()
        .map(|condition| condition.observed_generation)
        .collect();
    assert_eq!(seen, [Some(2), None]);
}

#[test]
fn match_label_keys_take_the_pods_own_labels() {
    let mut pod = tree(
        r#""metadata":{"name":"p","labels":{"a":"x"}},"spec":{"schedulingGates":[{"name":"g"}],
            "containers":[{"name":"c","image":"i"}],
            "topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"k","whenUnsatisfiable":"DoNotSchedule",
                "labelSelector":{},"matchLabelKeys":["a","b"]}]}"#,
    );
    shape::new_pod(&mut pod, NOW);

    let pod = view(&pod);
    let constraint = &pod.spec.unwrap().topology_spread_constraints.unwrap()[0];

    let expressions = constraint
        .label_selector
        .as_ref()
        .unwrap()
        .match_expressions
        .as_ref()
        .unwrap();
    assert_eq!(expressions.len(), 1);

    assert_eq!(
        (
            expressions[0].key.as_str(),
            expressions[0].operator.as_str()
        ),
        ("a", "In")
    );

    let status = pod.status.unwrap();
    assert_eq!(status.phase.as_deref(), Some("Pending"));
    assert_eq!(
        status.conditions.unwrap()[0].reason.as_deref(),
        Some("SchedulingGated")
    );
}

#[test]
fn app_armor_annotations_become_fields_with_a_warning() {
    let annotated = |value: &str| {
        tree(&format!(
            r#""metadata":{{"name":"p","annotations":{{"container.apparmor.security.beta.kubernetes.io/c":"{value}"}}}},
                "spec":{{"containers":[{{"name":"c","image":"i"}}]}}"#
        ))
    };

    let check = |value: &str, expected: Option<&str>| {
        let mut pod = annotated(value);
        assert_eq!(shape::notices(&pod).len(), 1, "{value}");

        shape::new_pod(&mut pod, NOW);
        let context = view(&pod).spec.unwrap().containers[0]
            .security_context
            .clone();

        let profile = context.and_then(|context| context.app_armor_profile);
        assert_eq!(
            profile.as_ref().map(|profile| profile.type_.as_str()),
            expected,
            "{value}"
        );
    };

    check("runtime/default", Some("RuntimeDefault"));
    check("localhost/x", Some("Localhost"));
    check("bogus", None);
}

#[test]
fn questionable_pods_cause_warnings() {
    let check = |spec: &str, expected: &[&str]| {
        let found = warnings::new_pod(&view(&tree(&with_spec(spec))));
        assert_eq!(found, expected, "{spec}");
    };

    check("", &[]);
    check(
        r#""nodeSelector":{"beta.kubernetes.io/os":"linux"}"#,
        &[
            "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
        ],
    );

    check(
        r#""hostAliases":[{"ip":"::0a"},{"ip":"::0a"}]"#,
        &[
            "spec.hostAliases[1].ip: duplicate ip \"::0a\"",
            "spec.hostAliases[0].ip: IPv6 address \"::0a\" should be in RFC 5952 canonical format (\"::a\")",
            "spec.hostAliases[1].ip: IPv6 address \"::0a\" should be in RFC 5952 canonical format (\"::a\")",
        ],
    );

    check(
        r#""initContainers":[{"name":"i","image":"i","env":[{"name":"A","value":"1"},{"name":"A","value":"$(A)2"},{"name":"A"}],
            "ports":[{"name":"p","containerPort":80,"hostIP":"1.1.1.1"},{"name":"p","containerPort":80,"hostPort":81}]}]"#,
        &[
            "spec.initContainers[0].env[2]: hides previous definition of \"A\", which may be dropped when using apply",
            "spec.initContainers[0].ports[0]: hostIP set without hostPort: {Name:p HostPort:0 ContainerPort:80 Protocol:TCP \
             HostIP:1.1.1.1}",
            "spec.initContainers[0].ports[1]: overlapping port definition with spec.initContainers[0].ports[0]",
            "spec.initContainers[0].ports[1]: duplicate port name \"p\" with spec.initContainers[0].ports[0], services and \
             probes that select ports by name will use spec.initContainers[0].ports[0]",
        ],
    );

    check(
        r#""volumes":[{"name":"v","configMap":{"name":"m","items":[{"key":"a","path":"x"},{"key":"b","path":"x/y"}]}}]"#,
        &["volume \"v\" (ConfigMap \"m\"): overlapping paths: \"x/y\" with \"x\""],
    );
}
