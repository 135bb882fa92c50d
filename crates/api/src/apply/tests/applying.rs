//! Applying: ownership, conflicts, force, omission, and the types of lists and maps.

use super::*;

#[test]
fn an_applier_owns_the_fields_of_its_configuration() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    scenario
        .apply(
            "one",
            "{metadata: {labels: {l: '1'}}, data: {k: '1', x: '1'}}",
        )
        .unwrap();
    scenario.check_owners(&[
        r#"one Apply +0 {"f:data":{"f:k":{},"f:x":{}},"f:metadata":{"f:labels":{"f:l":{}}}}"#,
    ]);
}

#[test]
fn applying_the_same_again_changes_nothing_not_even_a_time() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    let config = "{data: {k: '1'}}";
    scenario.apply("one", config).unwrap();
    let before = scenario.live.clone();
    scenario.apply("one", config).unwrap();
    assert_eq!(scenario.live, before);
}

#[test]
fn a_new_owner_of_what_is_there_already_has_no_time() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    scenario.apply("one", "{data: {k: '1'}}").unwrap();
    scenario.apply("two", "{data: {k: '1'}}").unwrap();
    scenario.check_owners(&[
        r#"one Apply +0 {"f:data":{"f:k":{}}}"#,
        r#"two Apply never {"f:data":{"f:k":{}}}"#,
    ]);
}

#[test]
fn changing_a_field_that_another_manager_owns_is_a_conflict() {
    let mut scenario = Scenario::of("apps/v1", "Deployment");
    scenario
        .apply(
            "one",
            "{spec: {replicas: 1, template: {spec: {containers: [{name: a, image: x}]}}}}",
        )
        .unwrap();

    assert_eq!(
        scenario.refused("two", "{spec: {replicas: 2}}"),
        r#"Apply failed with 1 conflict: conflict with "one": .spec.replicas"#
    );

    assert_eq!(
        scenario.refused(
            "two",
            "{spec: {replicas: 2, template: {spec: {containers: [{name: a, image: w}]}}}}"
        ),
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.replicas\n\
         - .spec.template.spec.containers[name=\"a\"].image"
    );

    scenario.update(
        "upd",
        "{spec: {replicas: 3, template: {spec: {containers: [{name: a, image: x}]}}}}",
    );

    let refusal = scenario.apply("two", "{spec: {replicas: 2}}").unwrap_err();
    assert_eq!(
        refusal.to_string(),
        r#"Apply failed with 1 conflict: conflict with "upd" using apps/v1: .spec.replicas"#
    );

    let ApplyError::Conflicts(conflicts) = refusal else {
        panic!("{refusal}")
    };
    assert_eq!(
        conflicts.0[0].message(),
        r#"conflict with "upd" using apps/v1"#
    );

    assert_eq!(
        conflicts.0[0].path,
        FieldPath::fields(&["spec", "replicas"])
    );
}

#[test]
fn conflicts_are_listed_by_manager() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    scenario.apply("b", "{data: {b: '1', c: '1'}}").unwrap();
    scenario.apply("a", "{data: {a: '1'}}").unwrap();
    scenario.tracker.subresource = "status";

    scenario.update("a", "{data: {a: '1', b: '1', c: '1', d: '1'}}");
    scenario.tracker.subresource = "";
    assert_eq!(
        scenario.refused("me", "{data: {a: '2', b: '2', c: '2', d: '2'}}"),
        "Apply failed with 4 conflicts: conflicts with \"a\":\n- .data.a\n\
         conflicts with \"a\" with subresource \"status\" using v1:\n- .data.d\n\
         conflicts with \"b\":\n- .data.b\n- .data.c"
    );
}

#[test]
fn force_takes_exactly_what_changes() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    scenario
        .apply("one", "{data: {k: '1', x: '1', z: '1'}}")
        .unwrap();
    scenario.force("two", "{data: {k: '2', x: '1'}}");
    scenario.check_owners(&[
        r#"one Apply +0 {"f:data":{"f:x":{},"f:z":{}}}"#,
        r#"two Apply +1 {"f:data":{"f:k":{},"f:x":{}}}"#,
    ]);
    scenario.check_at(&["data"], r#"{"k":"2","x":"1","z":"1"}"#);
}

#[test]
fn omitted_fields_are_removed_unless_another_manager_owns_them() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    scenario
        .apply(
            "one",
            "{metadata: {labels: {l: '1'}}, data: {k: '1', x: '1', z: '1'}}",
        )
        .unwrap();

    scenario.apply("two", "{data: {k: '1'}}").unwrap();
    scenario.update(
        "upd",
        "{metadata: {labels: {l: '1'}}, data: {k: '1', x: '2', z: '1', free: '1'}}",
    );

    scenario.apply("one", "{data: {}}").unwrap();
    scenario.check_at(&["data"], r#"{"free":"1","k":"1","x":"2"}"#);
    scenario.check_at(&["metadata", "labels"], "absent");
    scenario.check_owners(&[
        r#"one Apply +3 {"f:data":{}}"#,
        r#"two Apply never {"f:data":{"f:k":{}}}"#,
        r#"upd Update +2 {"f:data":{"f:free":{},"f:x":{}}}"#,
    ]);
}

#[test]
fn elements_of_a_keyed_list_have_their_own_owners() {
    let mut scenario = Scenario::of("v1", "Service");
    scenario
        .apply(
            "one",
            "{spec: {ports: [{port: 80, name: a}, {port: 443, name: b}]}}",
        )
        .unwrap();

    scenario
        .apply(
            "two",
            "{spec: {ports: [{port: 80, targetPort: 8080}, {port: 80, protocol: UDP, name: c}]}}",
        )
        .unwrap();

    scenario.check_at(
        &["spec", "ports"],
        concat!(
            r#"[{"name":"a","port":80,"targetPort":8080},{"name":"b","port":443,"targetPort":0},"#,
            r#"{"name":"c","port":80,"protocol":"UDP","targetPort":0}]"#
        ),
    );

    scenario
        .apply("one", "{spec: {ports: [{port: 443, name: b}]}}")
        .unwrap();
    scenario.check_owners(&[
        r#"one Apply +2 {"f:spec":{"f:ports":{"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}"#,
        concat!(
            r#"two Apply +1 {"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"#,
            r#""f:targetPort":{}},"k:{\"port\":80,\"protocol\":\"UDP\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{}}}}}"#
        ),
    ]);

    // The defaulted protocol is not in the configuration, but part of the key.
    scenario.check_at(
        &["spec", "ports"],
        concat!(
            r#"[{"port":80,"targetPort":8080},{"name":"b","port":443,"targetPort":0},"#,
            r#"{"name":"c","port":80,"protocol":"UDP","targetPort":0}]"#
        ),
    );
}

#[test]
fn the_order_of_a_keyed_list_follows_the_configuration() {
    let check = |live: &str, config: &str, expected: &str| {
        let names = |text: &str| {
            let items: Vec<String> = text
                .chars()
                .map(|name| format!("{{name: {name}, image: i}}"))
                .collect();
            format!("{{spec: {{containers: [{}]}}}}", items.join(", "))
        };

        let mut scenario = Scenario::of("v1", "Pod");
        scenario.update("someone", &names(live));
        scenario.apply("one", &names(config)).unwrap();

        let object = scenario.live.unwrap();
        let containers = object
            .at(&["spec", "containers"])
            .unwrap()
            .as_array()
            .unwrap();

        let found: String = containers
            .iter()
            .map(|item| item.get("name").unwrap().as_str().unwrap())
            .collect();
        assert_eq!(found, expected, "{config} applied to {live}");
    };

    check("abc", "abc", "abc");
    check("abc", "cba", "cba");
    check("abc", "b", "abc");
    check("abc", "cd", "abcd");
    check("abc", "dc", "abdc");
    check("abc", "da", "dabc");
    check("abcd", "dxb", "acdxb");
    check("", "ba", "ba");
}

#[test]
fn a_set_has_an_owner_for_each_value() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    scenario
        .apply("one", "{metadata: {finalizers: [a/b, c/d]}}")
        .unwrap();
    scenario
        .apply("two", "{metadata: {finalizers: [c/d, e/f]}}")
        .unwrap();

    scenario
        .apply("one", "{metadata: {finalizers: []}}")
        .unwrap();
    scenario.check_at(&["metadata", "finalizers"], r#"["c/d","e/f"]"#);
    scenario.check_owners(&[
        r#"two Apply +1 {"f:metadata":{"f:finalizers":{"v:\"c/d\"":{},"v:\"e/f\"":{}}}}"#,
    ]);
}

#[test]
fn lists_maps_and_structs_can_be_owned_as_a_whole() {
    let mut scenario = Scenario::of("v1", "Pod");
    let one = "{spec: {nodeSelector: {a: b}, containers: [{name: c, args: [x, z], env: [{name: E, valueFrom: {fieldRef: {fieldPath: p}}}]}]}}";
    scenario.apply("one", one).unwrap();
    scenario.check_owners(&[concat!(
        r#"one Apply +0 {"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:args":{},"f:env":{"k:{\"name\":\"E\"}":"#,
        r#"{".":{},"f:name":{},"f:valueFrom":{"f:fieldRef":{}}}},"f:name":{}}},"f:nodeSelector":{}}}"#
    )]);

    assert_eq!(
        scenario.refused("two", "{spec: {nodeSelector: {c: d}}}"),
        r#"Apply failed with 1 conflict: conflict with "one": .spec.nodeSelector"#
    );

    scenario.force("two", "{spec: {nodeSelector: {c: d}}}");
    scenario.check_at(&["spec", "nodeSelector"], r#"{"c":"d"}"#);
}

#[test]
fn null_owns_a_field_without_setting_it() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    scenario
        .apply("one", "{data: {a: '1'}, binaryData: null}")
        .unwrap();
    scenario.check_owners(&[r#"one Apply +0 {"f:binaryData":{},"f:data":{"f:a":{}}}"#]);
    scenario.apply("two", "{data: null}").unwrap();
    scenario.check_at(&["data"], r#"{"a":"1"}"#);
    scenario.force("two", "{data: {a: null}}");
    // As a struct is written: the zero value of a string.
    scenario.check_at(&["data"], r#"{"a":""}"#);
}

#[test]
fn existing_duplicates_are_owned_together() {
    let mut scenario = Scenario::of("v1", "Pod");
    scenario.update(
        "old",
        "{spec: {containers: [{name: a, image: x}, {name: a, image: w}, {name: b, image: z}]}}",
    );

    scenario.check_owners(&[concat!(
        r#"old Update +0 {"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{},"#,
        r#""k:{\"name\":\"b\"}":{".":{},"f:image":{},"f:name":{}}}}}"#
    )]);

    scenario
        .apply("one", "{spec: {containers: [{name: b, command: [c]}]}}")
        .unwrap();
    scenario.check_at(
        &["spec", "containers"],
        concat!(
            r#"[{"image":"x","name":"a","resources":{}},{"image":"w","name":"a","resources":{}},"#,
            r#"{"command":["c"],"image":"z","name":"b","resources":{}}]"#
        ),
    );

    // One replaces several.
    scenario.force("one", "{spec: {containers: [{name: a, image: v}]}}");
    scenario.check_at(
        &["spec", "containers"],
        r#"[{"image":"v","name":"a","resources":{}},{"image":"z","name":"b","resources":{}}]"#,
    );
}

/// The error for a configuration that is not of its type.
fn type_error(api_version: &'static str, kind: &'static str, config: &str) -> String {
    let refusal = Scenario::of(api_version, kind).refused("me", config);
    let (start, type_error) = refusal.split_once("): ").unwrap();
    assert!(
        start.starts_with("failed to create typed patch object (/x; "),
        "{start}"
    );
    type_error.to_owned()
}

#[test]
fn a_configuration_must_be_of_its_type() {
    let check = |config: &str, expected: &str| {
        assert_eq!(type_error("v1", "ConfigMap", config), expected, "{config}")
    };

    check(
        "{data: {k: 5}}",
        ".data.k: expected string, got &value.valueUnstructured{Value:5}",
    );
    check(
        "{data: {k: 1234567.5}}",
        ".data.k: expected string, got &value.valueUnstructured{Value:1.2345675e+06}",
    );

    check(
        "{data: {k: {a: [x]}}}",
        concat!(
            ".data.k: expected string, got &value.valueUnstructured{Value:",
            r#"map[string]interface {}{"a":[]interface {}{"x"}}}"#
        ),
    );

    check("{foo: 1}", ".foo: field not declared in schema");
    check("{data: [1, a]}", ".data: expected map, got &{[1 a]}");
    check(
        "{immutable: 'yes'}",
        ".immutable: expected boolean, got &{yes}",
    );

    let check = |config: &str, expected: &str| {
        assert_eq!(type_error("apps/v1", "Deployment", config), expected)
    };

    check(
        "{spec: {replicas: many}}",
        ".spec.replicas: expected numeric (int or float), got string",
    );
    check(
        "{spec: {strategy: {rollingUpdate: {maxSurge: [1]}}, replicas: x}}",
        "errors:\n  .spec.replicas: expected numeric (int or float), got string\n  \
         .spec.strategy.rollingUpdate.maxSurge: expected any scalar, got &{[1]}",
    );
}

#[test]
fn the_elements_of_a_list_must_be_distinguishable() {
    let check = |finalizers: &str, expected: &str| {
        let found = type_error(
            "v1",
            "ConfigMap",
            &format!("{{metadata: {{finalizers: {finalizers}}}}}"),
        );
        assert_eq!(found, format!(".metadata.finalizers: {expected}"));
    };

    check("[a, a]", r#"duplicate entries for key [="a"]"#);
    check("{a: b}", "expected list, got &{map[a:b]}");
    check(
        "[null]",
        "element 0: associative list without keys has an element that's an explicit null",
    );

    check(
        "[[a]]",
        "element 0: not supported: associative list with lists as elements",
    );

    check(
        "[{}]",
        "element 0: associative list without keys has an element that's a map type",
    );

    let check = |containers: &str, expected: &str| {
        let config = format!("{{spec: {{template: {{spec: {{containers: {containers}}}}}}}}}");
        let found = type_error("apps/v1", "Deployment", &config);
        assert_eq!(found, format!(".spec.template.spec.containers{expected}"));
    };

    check(
        "[a]",
        ": element 0: associative list with keys may not have non-map elements",
    );

    check(
        "[null]",
        ": element 0: associative list with keys may not have a null element",
    );

    check(
        "[{name: a, imag: x}]",
        r#"[name="a"].imag: field not declared in schema"#,
    );

    check(
        "[{name: a}, {name: a}]",
        r#": duplicate entries for key [name="a"]"#,
    );
}

#[test]
fn a_configuration_must_not_have_managed_fields() {
    let refusal = Scenario::of("v1", "ConfigMap").refused("me", "{metadata: {managedFields: []}}");
    assert_eq!(refusal, "metadata.managedFields must be nil");
}

#[test]
fn a_configuration_must_be_of_the_requested_kind() {
    let scenario = Scenario::of("apps/v1", "Deployment");
    let check = |config: &str, expected: &str| {
        let refusal = scenario
            .tracker
            .apply(None, &tree(config), "me", false, NOON)
            .unwrap_err();
        assert_eq!(refusal.to_string(), expected);
    };

    check(
        "{apiVersion: apps/v1, kind: StatefulSet}",
        "invalid object type: apps/v1, Kind=StatefulSet",
    );

    check(
        "{apiVersion: v1, kind: Deployment}",
        "invalid object type: /v1, Kind=Deployment",
    );

    check("{}", "invalid object type: /, Kind=");
}

#[test]
fn fields_from_before_the_first_apply_get_an_owner() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    scenario.live = Some(tree(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, uid: u}, data: {a: '1', b: '1'}}",
    ));
    scenario.apply("one", "{data: {b: '1', c: '1'}}").unwrap();
    scenario.check_owners(&[
        r#"before-first-apply Update +0 {"f:data":{".":{},"f:a":{},"f:b":{}}}"#,
        r#"one Apply +0 {"f:data":{"f:b":{},"f:c":{}}}"#,
    ]);
}
