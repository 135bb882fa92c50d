//! Table tests of conversions; whole objects and round trips are in the integration tests.

use super::*;
use crate::codec::json;
use crate::defaults;
use crate::time::Timestamp;

fn read(text: &str) -> Value {
    let untyped = json::parse(text.as_bytes()).unwrap();
    let kind = BUILTIN.kind_of(
        untyped.at(&["apiVersion"]).unwrap().as_str().unwrap(),
        kind_name(&untyped),
    );
    json::decode(text.as_bytes(), Some(BUILTIN.root(kind.unwrap()).node()))
        .unwrap()
        .value
}

fn kind_name(object: &Value) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap()
}

fn to(object: Value, api_version: &str) -> Result<Value, ConvertError> {
    let kind = BUILTIN.kind_of(api_version, kind_name(&object)).unwrap();
    convert(object, kind)
}

/// Compares everything but apiVersion and kind, after conversion and in canonical form.
fn check(from: &str, api_version: &str, fields: &str, expected: &str) {
    let (version, kind) = from.split_once(' ').unwrap();
    let text = format!(r#"{{"apiVersion":"{version}","kind":"{kind}",{fields}}}"#);
    let mut found = to(read(&text), api_version).unwrap();
    let root = BUILTIN
        .root(BUILTIN.kind_of(api_version, kind).unwrap())
        .node();
    canonical::canonicalize(&mut found, root);

    let mut wanted = read(&format!(
        r#"{{"apiVersion":"{api_version}","kind":"{kind}",{expected}}}"#
    ));
    canonical::canonicalize(&mut wanted, root);
    assert_eq!(json::to_string(&found), json::to_string(&wanted), "{text}");
}

fn same_version(of: &str, fields: &str, expected: &str) {
    check(of, of.split_once(' ').unwrap().0, fields, expected);
}

#[test]
fn the_two_names_of_a_service_account_agree() {
    let both = r#""spec":{"serviceAccount":"a","serviceAccountName":"a"}"#;
    same_version("v1 Pod", r#""spec":{"serviceAccount":"a"}"#, both);
    same_version("v1 Pod", r#""spec":{"serviceAccountName":"a"}"#, both);
    same_version(
        "v1 Pod",
        r#""spec":{"serviceAccount":"b","serviceAccountName":"a"}"#,
        both,
    );

    same_version(
        "v1 Pod",
        r#""spec":{"serviceAccount":"","serviceAccountName":null}"#,
        r#""spec":{}"#,
    );

    let template = |spec: &str| format!(r#""spec":{{"template":{{"spec":{spec}}}}}"#);
    for kind in ["Deployment", "ReplicaSet", "StatefulSet"] {
        same_version(
            &format!("apps/v1 {kind}"),
            &template(r#"{"serviceAccount":"a"}"#),
            &template(r#"{"serviceAccount":"a","serviceAccountName":"a"}"#),
        );
    }

    let cron = |spec: &str| {
        format!(r#""spec":{{"jobTemplate":{{"spec":{{"template":{{"spec":{spec}}}}}}}}}"#)
    };
    same_version(
        "batch/v1 CronJob",
        &cron(r#"{"serviceAccountName":"a"}"#),
        &cron(r#"{"serviceAccount":"a","serviceAccountName":"a"}"#),
    );
}

#[test]
fn a_field_that_came_to_hold_several_values_follows_the_single_one() {
    let ips = |one: &str, many: &str| format!(r#""status":{{"podIP":"{one}","podIPs":[{many}]}}"#);
    let (a, b) = (r#"{"ip":"10.0.0.1"}"#, r#"{"ip":"fd00::1"}"#);
    same_version("v1 Pod", &ips("10.0.0.1", ""), &ips("10.0.0.1", a));
    same_version(
        "v1 Pod",
        &ips("", &format!("{a},{b}")),
        &ips("10.0.0.1", &format!("{a},{b}")),
    );

    same_version(
        "v1 Pod",
        &ips("10.0.0.1", &format!("{a},{b}")),
        &ips("10.0.0.1", &format!("{a},{b}")),
    );

    same_version("v1 Pod", &ips("10.0.0.1", b), &ips("10.0.0.1", a));
    same_version("v1 Pod", &ips("", ""), r#""status":{}"#);
    let cidrs =
        |one: &str, many: &str| format!(r#""spec":{{"podCIDR":"{one}","podCIDRs":[{many}]}}"#);
    same_version(
        "v1 Node",
        &cidrs("10.0.0.0/24", ""),
        &cidrs("10.0.0.0/24", r#""10.0.0.0/24""#),
    );

    same_version(
        "v1 Node",
        &cidrs("", r#""10.0.1.0/24""#),
        &cidrs("10.0.1.0/24", r#""10.0.1.0/24""#),
    );

    same_version(
        "v1 Node",
        &cidrs("10.0.0.0/24", r#""10.0.1.0/24""#),
        &cidrs("10.0.0.0/24", r#""10.0.0.0/24""#),
    );
}

#[test]
fn obsolete_annotations_of_a_pod_are_removed() {
    let metadata = r#"{"annotations":{"a":"b","pod.beta.kubernetes.io/init-containers":"[]"}}"#;
    let (before, after) = (
        format!(r#""metadata":{metadata}"#),
        r#""metadata":{"annotations":{"a":"b"}}"#,
    );
    same_version("v1 Pod", &before, after);

    let template = |of: &str| format!(r#""template":{{{of}}}"#);
    same_version("v1 PodTemplate", &template(&before), &template(after));
    let seconds = |number| format!(r#""spec":{{"terminationGracePeriodSeconds":{number}}}"#);
    same_version("v1 Pod", &seconds(-5), &seconds(1));
    same_version("v1 Pod", &seconds(0), &seconds(0));
    let job = |number| format!(r#""spec":{{{}}}"#, template(&seconds(number)));
    same_version("batch/v1 Job", &job(-5), &job(-5));
}

#[test]
fn string_data_of_a_secret_is_merged_into_data() {
    same_version(
        "v1 Secret",
        r#""stringData":{"a":"hi"}"#,
        r#""data":{"a":"aGk="}"#,
    );

    let both = r#""data":{"a":"b25l","b":"dHdv"},"stringData":{"a":"hi","c":""}"#;
    same_version(
        "v1 Secret",
        both,
        r#""data":{"a":"aGk=","b":"dHdv","c":""}"#,
    );

    same_version("v1 Secret", r#""stringData":{}"#, r#""metadata":{}"#);
}

#[test]
fn annotations_that_represent_fields_are_converted() {
    let annotated =
        |name: &str, value: &str| format!(r#""metadata":{{"annotations":{{"{name}":"{value}"}}}}"#);
    let generation = "deprecated.daemonset.template.generation";
    same_version(
        "apps/v1 DaemonSet",
        r#""metadata":{}"#,
        &annotated(generation, "0"),
    );

    same_version(
        "apps/v1 DaemonSet",
        &annotated(generation, "+07"),
        &annotated(generation, "7"),
    );

    let rollback = "deprecated.deployment.rollback.rollbackTo";
    same_version(
        "apps/v1 Deployment",
        &annotated(rollback, "+3"),
        &annotated(rollback, "3"),
    );

    same_version(
        "apps/v1 Deployment",
        &annotated(rollback, ""),
        r#""metadata":{}"#,
    );

    let fails = |kind: &str, annotation: &str, expected: &str| {
        let metadata = annotated(annotation, "x");
        let object = read(&format!(
            r#"{{"apiVersion":"apps/v1","kind":"{kind}",{metadata}}}"#
        ));
        assert_eq!(to(object, "apps/v1").unwrap_err().to_string(), expected);
    };

    fails(
        "DaemonSet",
        generation,
        r#"strconv.ParseInt: parsing "x": invalid syntax"#,
    );

    fails(
        "Deployment",
        rollback,
        r#"failed to parse annotation[deprecated.deployment.rollback.rollbackTo]=x as int64: strconv.ParseInt: parsing "x": invalid syntax"#,
    );
}

#[test]
fn claims_in_a_stateful_set_get_api_version_and_kind() {
    same_version(
        "apps/v1 StatefulSet",
        r#""spec":{"volumeClaimTemplates":[{"metadata":{"name":"a"}},{"kind":"Other"}]}"#,
        r#""spec":{"volumeClaimTemplates":[{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a"}},
            {"apiVersion":"v1","kind":"PersistentVolumeClaim"}]}"#,
    );
}

#[test]
fn the_deprecated_key_in_a_budgets_selector_is_removed_unless_it_is_alone() {
    let mark = r#"{"key":"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match","operator":"Exists"}"#;
    let selector = |labels: &str, expressions: &str| {
        format!(
            r#""spec":{{"selector":{{"matchLabels":{{{labels}}},"matchExpressions":[{expressions}]}}}}"#
        )
    };

    let other = r#"{"key":"a","operator":"Exists"}"#;
    same_version(
        "policy/v1 PodDisruptionBudget",
        &selector("", mark),
        &selector("", mark),
    );

    same_version(
        "policy/v1 PodDisruptionBudget",
        &selector(r#""a":"b""#, mark),
        &selector(r#""a":"b""#, ""),
    );

    let two = selector("", &format!("{mark},{other}"));
    same_version("policy/v1 PodDisruptionBudget", &two, &selector("", other));
}

#[test]
fn a_v1_autoscaler_without_a_target_gets_the_default() {
    let metric = |share| {
        format!(
            r#""spec":{{"maxReplicas":3,"metrics":[{{"type":"Resource","resource":{{"name":"cpu",
            "target":{{"type":"Utilization","averageUtilization":{share}}}}}}}]}}"#
        )
    };

    let of = "autoscaling/v1 HorizontalPodAutoscaler";
    check(
        of,
        "autoscaling/v2",
        r#""spec":{"maxReplicas":3}"#,
        &metric(80),
    );

    check(
        of,
        "autoscaling/v2",
        r#""spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":0}"#,
        &metric(0),
    );

    for ignored in ["{", "x", "null", "{}", "[]", "[{\\\"type\\\":5}]"] {
        let annotations = format!(r#"{{"autoscaling.alpha.kubernetes.io/metrics":"{ignored}"}}"#);
        let fields =
            format!(r#""metadata":{{"annotations":{annotations}}},"spec":{{"maxReplicas":3}}"#);
        check(of, "autoscaling/v2", &fields, &metric(80));
    }
}

#[test]
fn v1_metrics_become_v2_metrics() {
    let check = |v1: &str, v2: &str| {
        let text = v1.replace('"', "\\\"");
        let annotations = format!(r#"{{"autoscaling.alpha.kubernetes.io/metrics":"[{text}]"}}"#);
        check(
            "autoscaling/v1 HorizontalPodAutoscaler",
            "autoscaling/v2",
            &format!(r#""metadata":{{"annotations":{annotations}}}"#),
            &format!(r#""spec":{{"metrics":[{v2}]}}"#),
        );
    };

    check(
        r#"{"type":"Object","object":{"target":{"kind":"S","name":"s"},"metricName":"m","targetValue":"0","averageValue":"2"}}"#,
        r#"{"type":"Object","object":{"describedObject":{"kind":"S","name":"s"},"metric":{"name":"m"},"target":{"type":"AverageValue","averageValue":"2"}}}"#,
    );

    check(
        r#"{"type":"Object","object":{"metricName":"m"}}"#,
        r#"{"type":"Object","object":{"metric":{"name":"m"},"target":{"type":"Value","value":"0"}}}"#,
    );

    check(
        r#"{"TYPE":"Pods","Pods":{"MetricName":"m"}}"#,
        r#"{"type":"Pods","pods":{"metric":{"name":"m"},"target":{"type":"AverageValue","averageValue":"0"}}}"#,
    );

    check(
        r#"{"type":"External","external":{"metricName":"m","metricSelector":{},"targetAverageValue":"1"}}"#,
        r#"{"type":"External","external":{"metric":{"name":"m","selector":{}},"target":{"type":"AverageValue","averageValue":"1"}}}"#,
    );

    check(
        r#"{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":5}}"#,
        r#"{"type":"Resource","resource":{"name":"memory","target":{"type":"Utilization","averageUtilization":5}}}"#,
    );
}

#[test]
fn settings_shared_by_all_versions_of_a_definition_are_stored_once() {
    let of = "apiextensions.k8s.io/v1 CustomResourceDefinition";
    let version = |name: &str, more: &str| {
        format!(r#"{{"name":"{name}","served":true,"storage":true{more}}}"#)
    };
    let shared = r#","additionalPrinterColumns":[{"name":"a","type":"string","jsonPath":".a"}],"subresources":{"status":{}}"#;

    let schema = |of: &str| format!(r#","schema":{{"openAPIV3Schema":{{"type":"{of}"}}}}"#);
    let before = format!(
        r#""spec":{{"versions":[{},{}],"conversion":{{"strategy":"Webhook","webhook":{{"conversionReviewVersions":["v1"],"clientConfig":{{"url":"u"}}}}}}}}"#,
        version("v1", &format!("{shared}{}", schema("object"))),
        version("v2", &format!("{shared}{}", schema("array"))),
    );

    let after = format!(
        r#""spec":{{"version":"v1","versions":[{},{}],"preserveUnknownFields":false,"subresources":{{"status":{{}}}},
        "additionalPrinterColumns":[{{"name":"a","type":"string","JSONPath":".a"}}],
        "conversion":{{"strategy":"Webhook","conversionReviewVersions":["v1"],"webhookClientConfig":{{"url":"u"}}}}}}"#,
        version("v1", &schema("object")),
        version("v2", &schema("array")),
    );
    check(of, "apiextensions.k8s.io/v1beta1", &before, &after);

    check(
        "apiextensions.k8s.io/v1beta1 CustomResourceDefinition",
        "apiextensions.k8s.io/v1",
        &after,
        &before,
    );

    let alone = r#""spec":{"version":"v7","validation":{"openAPIV3Schema":{}},"preserveUnknownFields":true}"#;
    let expected = version("v7", r#","schema":{"openAPIV3Schema":{}}"#);
    check(
        "apiextensions.k8s.io/v1beta1 CustomResourceDefinition",
        "apiextensions.k8s.io/v1",
        alone,
        &format!(r#""spec":{{"versions":[{expected}],"preserveUnknownFields":true}}"#),
    );
}

#[test]
fn json_in_a_schema_is_normalized() {
    let spec = |default: &str| {
        let schema = format!(r#"{{"default":{default},"items":{{"enum":[{default}]}}}}"#);
        format!(
            r#""spec":{{"versions":[{{"name":"v1","schema":{{"openAPIV3Schema":{schema}}}}}]}}"#
        )
    };

    let object = read(&format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",{}}}"#,
        spec(r#"{"b":1.0,"a":[1e2,"<"]}"#)
    ));
    let stored = to(object, "apiextensions.k8s.io/v1beta1").unwrap();

    let text = json::to_string(&to(stored, "apiextensions.k8s.io/v1").unwrap());
    assert_eq!(
        text.matches(r#"{"a":[100,"\u003c"],"b":1}"#).count(),
        2,
        "{text}"
    );
}

#[test]
fn kinds_that_are_not_versions_of_one_are_refused() {
    let pod = read(r#"{"apiVersion":"v1","kind":"Pod"}"#);
    let error = convert(pod, BUILTIN.kind_of("v1", "Node").unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "v1, Kind=Pod is not convertible to v1, Kind=Node"
    );

    let unknown = json::parse(br#"{"apiVersion":"v7","kind":"Gizmo"}"#).unwrap();
    let error = convert(unknown, BUILTIN.kind_of("v1", "Node").unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"no kind "Gizmo" is registered for version "v7""#
    );
}

#[test]
fn every_resource_converts_to_its_storage_version_and_back() {
    for resource in BUILTIN.resources() {
        let Some(storage) = &resource.storage else {
            continue;
        };
        let served = BUILTIN
            .kind(&resource.group, &resource.version, &resource.kind)
            .unwrap();
        let stored = BUILTIN
            .kind(&storage.group, &storage.version, &resource.kind)
            .unwrap();

        let mut object = Value::object();
        let fields = object.as_object_mut().unwrap();
        fields.insert("apiVersion", served.api_version());

        fields.insert("kind", served.name.clone());
        defaults::apply(&mut object, served, Timestamp::from_unix(0, 0)).unwrap();
        let kept = convert(object, stored).unwrap();
        assert_eq!(
            kept.get("apiVersion").unwrap().as_str(),
            Some(stored.api_version().as_str())
        );

        convert(kept, served).unwrap();
    }
}

#[test]
fn versions_declared_identical_are_identical() {
    // Claims and slices of this one have conversions of their own.
    let is_other = |kind: &Kind| kind.group == "resource.k8s.io" && kind.version == "v1beta1";
    let mut kinds = BUILTIN.kinds().to_vec();
    kinds.retain(|kind| is_the_same_in_all_versions(&kind.group, &kind.name) && !is_other(kind));

    for kind in &kinds {
        let same = |other: &&Kind| other.group == kind.group && other.name == kind.name;
        let first = kinds.iter().find(same).unwrap();
        let (first, other) = (BUILTIN.root(first), BUILTIN.root(kind));
        assert_same(first.node(), other.node(), &kind.name);
    }
}

#[test]
fn requests_and_devices_of_v1beta1_move() {
    let check = |kind: &str, v1beta1: &str, v1: &str| {
        let object = |version: &str, rest: &str| {
            let text = format!(
                r#"{{"apiVersion":"resource.k8s.io/{version}","kind":"{kind}","metadata":{{}},{rest}}}"#
            );
            let of = BUILTIN.kind("resource.k8s.io", version, kind).unwrap();
            let node = BUILTIN.root(of).node();
            let mut value = json::decode(text.as_bytes(), Some(node)).unwrap().value;
            canonical::canonicalize(&mut value, node);
            (value, of)
        };
        let (old, of_old) = object("v1beta1", v1beta1);
        let (new, of_new) = object("v1", v1);
        assert_eq!(convert(old.clone(), of_new).unwrap(), new);
        assert_eq!(convert(new, of_old).unwrap(), old);
    };

    check(
        "ResourceClaim",
        r#""spec":{"devices":{"requests":[{"name":"a","deviceClassName":"c","count":2,"allocationMode":"ExactCount"},{"name":"b","firstAvailable":[{"name":"s","deviceClassName":"d"}]}]}}"#,
        r#""spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"c","count":2,"allocationMode":"ExactCount"}},{"name":"b","firstAvailable":[{"name":"s","deviceClassName":"d"}]}]}}"#,
    );
    check(
        "ResourceClaimTemplate",
        r#""spec":{"spec":{"devices":{"requests":[{"name":"a","adminAccess":false}]}}}"#,
        r#""spec":{"spec":{"devices":{"requests":[{"name":"a","exactly":{"adminAccess":false}}]}}}"#,
    );
    check(
        "ResourceSlice",
        r#""spec":{"driver":"d","allNodes":true,"pool":{"name":"p"},"devices":[{"name":"a","basic":{"nodeName":"n"}},{"name":"b","basic":{}}]}"#,
        r#""spec":{"driver":"d","allNodes":true,"pool":{"name":"p"},"devices":[{"name":"a","nodeName":"n"},{"name":"b"}]}"#,
    );
}

fn assert_same(a: crate::catalog::Node<'static>, b: crate::catalog::Node<'static>, path: &str) {
    match (a.as_struct(), b.as_struct()) {
        (Some(a), Some(b)) => {
            let names = |of: crate::catalog::Struct<'static>| {
                of.iter().map(|f| f.name()).collect::<Vec<_>>()
            };
            assert_eq!(names(a), names(b), "{path}");

            for (a, b) in a.iter().zip(b.iter()) {
                let path = format!("{path}.{}", a.name());
                assert_eq!(
                    a.field.presence.pointer(),
                    b.field.presence.pointer(),
                    "{path}"
                );

                assert_eq!(
                    a.field.presence.omit_empty(),
                    b.field.presence.omit_empty(),
                    "{path}"
                );

                assert_same(a.node(), b.node(), &path);
            }
        }
        (None, None) => match (a.item(), b.item()) {
            (Some(a), Some(b)) => assert_same(a, b, path),
            (None, None) => assert_eq!(a.shape, b.shape, "{path}"),
            _ => panic!("{path}: one is a list"),
        },
        _ => panic!("{path}: one is a struct"),
    }
}

#[test]
fn a_field_has_the_name_of_the_stored_object() {
    let check = |group: &str, plural: &str, label: &str, expected: &str| {
        let resource = BUILTIN.resource(group, "v1", plural).unwrap();
        let found = field_label(resource, label);
        let found = found.map_or_else(|error| error.to_string(), str::to_owned);
        assert_eq!(found, expected, "{label} of {plural}");
    };

    check("", "pods", "spec.nodeName", "spec.nodeName");
    check("", "pods", "spec.host", "spec.nodeName");
    check("", "pods", "status.podIPs", "status.podIPs");
    check("", "pods", "spec.x", "field label not supported: spec.x");

    check("", "events", "involvedObject.name", "involvedObject.name");
    check(
        "",
        "events",
        "regarding.name",
        "field label not supported: regarding.name",
    );

    check(
        "events.k8s.io",
        "events",
        "regarding.name",
        "involvedObject.name",
    );

    check(
        "events.k8s.io",
        "events",
        "reportingController",
        "reportingComponent",
    );

    check("events.k8s.io", "events", "reason", "reason");
    check(
        "events.k8s.io",
        "events",
        "involvedObject.name",
        "field label not supported: involvedObject.name",
    );

    check(
        "batch",
        "jobs",
        "a",
        r#"field label "a" not supported for Job"#,
    );

    check(
        "resource.k8s.io",
        "resourceslices",
        "a",
        "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: a",
    );

    check(
        "",
        "configmaps",
        "data.a",
        r#""data.a" is not a known field selector: only "metadata.name", "metadata.namespace""#,
    );
}
