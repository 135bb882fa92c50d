//! Regression tests for differences found in comparisons with upstream's engine.

use super::*;

#[test]
fn several_elements_with_one_key_become_one_and_the_other_way_round() {
    let mut scenario = Scenario::of("v1", "Node");
    scenario.update("old", "{spec: {podCIDRs: [a, a, b]}}");
    scenario.check_owners(&[
        r#"old Update +0 {"f:spec":{"f:podCIDRs":{".":{},"v:\"a\"":{},"v:\"b\"":{}}}}"#,
    ]);
    scenario.update("new", "{spec: {podCIDRs: [a, b, b]}}");
    scenario.check_owners(&[
        r#"new Update +1 {"f:spec":{"f:podCIDRs":{"v:\"a\"":{},"v:\"b\"":{}}}}"#,
        r#"old Update +0 {"f:spec":{"f:podCIDRs":{}}}"#,
    ]);
}

#[test]
fn a_key_left_out_is_the_published_default_even_if_that_is_empty() {
    let mut scenario = Scenario::of("v1", "Pod");
    scenario
        .apply(
            "one",
            "{spec: {imagePullSecrets: [{}], hostAliases: [{hostnames: [h]}]}}",
        )
        .unwrap();
    scenario.check_owners(&[
        r#"one Apply +0 {"f:spec":{"f:hostAliases":{"k:{\"ip\":\"\"}":{".":{},"f:hostnames":{}}},"f:imagePullSecrets":{"k:{\"name\":\"\"}":{}}}}"#,
    ]);
}

#[test]
fn keys_that_are_numbers_are_sorted_as_numbers_in_texts_and_as_names_in_trees() {
    let mut scenario = Scenario::of("v1", "Pod");
    scenario
        .apply(
            "one",
            "{spec: {containers: [{name: a, ports: [{containerPort: 443}, {containerPort: 80}]}]}}",
        )
        .unwrap();

    let owners = Owners::decode(scenario.live.as_ref().unwrap()).unwrap();
    let keys = |form| {
        let mut object = Value::object();
        owners.clone().encode(&mut object, form);
        let text = json::to_string(&object);
        text.find(r#":443,"#).unwrap() < text.find(r#":80,"#).unwrap()
    };
    assert_eq!((keys(Form::Text), keys(Form::Tree)), (false, true));
}

#[test]
fn empty_maps_are_owned_and_empty_keyed_lists_are_not() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    scenario
        .apply(
            "one",
            "{metadata: {finalizers: [], annotations: {}}, data: {}}",
        )
        .unwrap();
    scenario.check_owners(&[r#"one Apply +0 {"f:data":{},"f:metadata":{"f:annotations":{}}}"#]);
}

#[test]
fn a_map_emptied_by_omission_stays_if_a_manager_owns_it() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    scenario
        .apply("one", "{data: {a: '1'}, metadata: {labels: {l: m}}}")
        .unwrap();
    scenario.apply("two", "{data: {}}").unwrap();
    scenario.check_owners(&[
        r#"one Apply +0 {"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:l":{}}}}"#,
        r#"two Apply never {"f:data":{}}"#,
    ]);

    let config = scenario.complete("{}");
    let applied = scenario
        .tracker
        .apply(scenario.live.as_ref(), &config, "one", false, NOON)
        .unwrap();

    assert_eq!(
        applied.get("data").map(json::to_string).as_deref(),
        Some("{}")
    );

    assert_eq!(applied.at(&["metadata", "labels"]), None);
}

#[test]
fn unowned_fields_below_a_null_that_is_applied_twice_are_removed() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    scenario
        .apply("one", "{metadata: {finalizers: null}, data: {a: '1'}}")
        .unwrap();
    let live = scenario.live.as_mut().unwrap();
    live.meta_mut().add_finalizer("a/b");

    let config = scenario.complete("{metadata: {finalizers: null}, data: {a: '1'}}");
    let applied = scenario
        .tracker
        .apply(scenario.live.as_ref(), &config, "one", false, NOON)
        .unwrap();
    assert_eq!(applied.at(&["metadata", "finalizers"]), None);
}

#[test]
fn one_manager_that_gives_nothing_up_prunes_nothing_of_the_others() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    scenario.apply("one", "{data: {a: '1'}}").unwrap();
    scenario.update("upd", "{data: {a: '1', b: '1'}}");
    scenario.apply("one", "{data: {a: '1', c: '1'}}").unwrap();
    scenario.check_at(&["data"], r#"{"a":"1","b":"1","c":"1"}"#);
}

#[test]
fn unowned_fields_stay_inside_of_owned_elements() {
    let mut scenario = Scenario::of("v1", "Pod");
    scenario
        .apply("one", "{spec: {containers: [{name: a, tty: true}]}}")
        .unwrap();
    scenario
        .apply("two", "{spec: {containers: [{name: a}]}}")
        .unwrap();

    // The server sets a field after ownership was computed.
    let filled = scenario
        .live
        .as_mut()
        .unwrap()
        .as_object_mut()
        .unwrap()
        .object_mut("spec");

    let containers = filled
        .get_mut("containers")
        .and_then(Value::as_array_mut)
        .unwrap();
    containers[0].as_object_mut().unwrap().insert("image", "x");

    scenario.apply("one", "{spec: {hostname: h}}").unwrap();
    scenario.check_at(
        &["spec", "containers"],
        r#"[{"image":"x","name":"a","resources":{}}]"#,
    );

    // When its last owner is gone, the whole element is removed.
    scenario.apply("two", "{spec: {nodeName: node}}").unwrap();
    scenario.check_at(&["spec", "containers"], "null");
}
