//! What comparisons with upstream's engine have shown, kept as cases.

use super::*;

#[test]
fn several_elements_with_one_key_become_one_and_the_other_way_round() {
    let mut story = Story::of("v1", "Node");
    story.update("old", "{spec: {podCIDRs: [a, a, b]}}");
    story.check_owners(&[
        r#"old Update +0 {"f:spec":{"f:podCIDRs":{".":{},"v:\"a\"":{},"v:\"b\"":{}}}}"#,
    ]);
    story.update("new", "{spec: {podCIDRs: [a, b, b]}}");
    story.check_owners(&[
        r#"new Update +1 {"f:spec":{"f:podCIDRs":{"v:\"a\"":{},"v:\"b\"":{}}}}"#,
        r#"old Update +0 {"f:spec":{"f:podCIDRs":{}}}"#,
    ]);
}

#[test]
fn a_key_left_out_is_the_published_default_even_if_that_is_empty() {
    let mut story = Story::of("v1", "Pod");
    story
        .apply(
            "one",
            "{spec: {imagePullSecrets: [{}], hostAliases: [{hostnames: [h]}]}}",
        )
        .unwrap();
    story.check_owners(&[
        r#"one Apply +0 {"f:spec":{"f:hostAliases":{"k:{\"ip\":\"\"}":{".":{},"f:hostnames":{}}},"f:imagePullSecrets":{"k:{\"name\":\"\"}":{}}}}"#,
    ]);
}

#[test]
fn keys_that_are_numbers_are_sorted_as_numbers_in_texts_and_as_names_in_trees() {
    let mut story = Story::of("v1", "Pod");
    story
        .apply(
            "one",
            "{spec: {containers: [{name: a, ports: [{containerPort: 443}, {containerPort: 80}]}]}}",
        )
        .unwrap();

    let owners = Owners::decode(story.live.as_ref().unwrap()).unwrap();
    let keys = |form| {
        let mut object = Value::object();
        owners.clone().encode(&mut object, form);
        let text = json::to_string(&object);
        text.find(r#":443,"#).unwrap() < text.find(r#":80,"#).unwrap()
    };
    assert_eq!((keys(Form::Text), keys(Form::Tree)), (false, true));
}

#[test]
fn empty_lists_of_elements_are_mentioned_by_nobody_and_empty_maps_are() {
    let mut story = Story::of("v1", "ConfigMap");
    story
        .apply(
            "one",
            "{metadata: {finalizers: [], annotations: {}}, data: {}}",
        )
        .unwrap();
    story.check_owners(&[r#"one Apply +0 {"f:data":{},"f:metadata":{"f:annotations":{}}}"#]);
}

#[test]
fn a_map_emptied_by_omission_stays_if_somebody_mentions_it() {
    let mut story = Story::of("v1", "ConfigMap");
    story
        .apply("one", "{data: {a: '1'}, metadata: {labels: {l: m}}}")
        .unwrap();
    story.apply("two", "{data: {}}").unwrap();
    story.check_owners(&[
        r#"one Apply +0 {"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:l":{}}}}"#,
        r#"two Apply never {"f:data":{}}"#,
    ]);

    let config = story.complete("{}");
    let applied = story
        .tracker
        .apply(story.live.as_ref(), &config, "one", false, NOON)
        .unwrap();

    assert_eq!(
        applied.get("data").map(json::to_string).as_deref(),
        Some("{}")
    );

    assert_eq!(applied.at(&["metadata", "labels"]), None);
}

#[test]
fn what_is_below_a_null_that_is_applied_twice_goes_if_nobody_owns_it() {
    let mut story = Story::of("v1", "ConfigMap");
    story
        .apply("one", "{metadata: {finalizers: null}, data: {a: '1'}}")
        .unwrap();
    let live = story.live.as_mut().unwrap();
    live.meta_mut().add_finalizer("a/b");

    let config = story.complete("{metadata: {finalizers: null}, data: {a: '1'}}");
    let applied = story
        .tracker
        .apply(story.live.as_ref(), &config, "one", false, NOON)
        .unwrap();
    assert_eq!(applied.at(&["metadata", "finalizers"]), None);
}

#[test]
fn one_manager_that_gives_nothing_up_prunes_nothing_of_the_others() {
    let mut story = Story::of("v1", "ConfigMap");
    story.apply("one", "{data: {a: '1'}}").unwrap();
    story.update("upd", "{data: {a: '1', b: '1'}}");
    story.apply("one", "{data: {a: '1', c: '1'}}").unwrap();
    story.check_at(&["data"], r#"{"a":"1","b":"1","c":"1"}"#);
}

#[test]
fn what_nobody_owns_stays_inside_of_what_somebody_does() {
    let mut story = Story::of("v1", "Pod");
    story
        .apply("one", "{spec: {containers: [{name: a, tty: true}]}}")
        .unwrap();
    story
        .apply("two", "{spec: {containers: [{name: a}]}}")
        .unwrap();

    // The server fills something in after it was told who owns what.
    let filled = story
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

    story.apply("one", "{spec: {hostname: h}}").unwrap();
    story.check_at(
        &["spec", "containers"],
        r#"[{"image":"x","name":"a","resources":{}}]"#,
    );

    // With the last owner of the element all of it goes.
    story.apply("two", "{spec: {nodeName: node}}").unwrap();
    story.check_at(&["spec", "containers"], "null");
}
