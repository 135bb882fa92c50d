//! Create, update and patch: who owns what changed.

use super::*;

#[test]
fn the_creator_owns_everything_but_the_identity() {
    let mut scenario = Scenario::of("apps/v1", "Deployment");
    scenario.update("me", "{metadata: {labels: {a: b}, namespace: ns, generation: 3, resourceVersion: '5'}, spec: {replicas: 1, template: {spec: {containers: [{name: a, image: i}]}}}}");
    scenario.check_owners(&[concat!(
        r#"me Update +0 {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:replicas":{},"#,
        r#""f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{},"f:name":{}}}}}}}"#
    )]);
}

#[test]
fn an_update_takes_changed_fields_and_drops_removed_ones() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    scenario
        .apply("one", "{data: {a: '1', b: '1', c: '1'}}")
        .unwrap();
    scenario.update("upd", "{data: {a: '1', b: '2'}}");
    scenario.check_owners(&[
        r#"one Apply +0 {"f:data":{"f:a":{}}}"#,
        r#"upd Update +1 {"f:data":{"f:b":{}}}"#,
    ]);
}

#[test]
fn an_update_that_changes_nothing_leaves_the_times() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    scenario.update("a", "{data: {a: '1'}}");
    scenario.update("b", "{data: {a: '1'}}");
    scenario.check_owners(&[r#"a Update +0 {"f:data":{".":{},"f:a":{}}}"#]);
    scenario.update("a", "{data: {a: '1', b: '1'}}");
    scenario.check_owners(&[r#"a Update +2 {"f:data":{".":{},"f:a":{},"f:b":{}}}"#]);
}

#[test]
fn subresources_are_managers_of_their_own() {
    let mut scenario = Scenario::of("v1", "Pod");
    scenario.update("kubelet", "{spec: {nodeName: here}}");
    scenario.tracker.subresource = "status";
    scenario.update(
        "kubelet",
        "{spec: {nodeName: here}, status: {phase: Running}}",
    );

    scenario.check_owners(&[
        r#"kubelet Update +0 {"f:spec":{"f:nodeName":{}}}"#,
        r#"kubelet/status Update +1 {"f:status":{"f:phase":{}}}"#,
    ]);

    scenario.tracker.subresource = "";
    scenario
        .apply("kubelet", "{status: {phase: Running}}")
        .unwrap();

    let refusal = scenario.refused("other", "{status: {phase: Failed}}");
    assert_eq!(
        refusal,
        "Apply failed with 2 conflicts: conflicts with \"kubelet\":\n- .status.phase\n\
         conflicts with \"kubelet\" with subresource \"status\" using v1:\n- .status.phase"
    );
}

#[test]
fn what_a_strategy_resets_is_never_owned() {
    let filters = [(
        Text::new("v1"),
        Filter::Without(Set::of([FieldPath::fields(&["status"])])),
    )];

    let of = Type::of_kind("v1", "Pod").unwrap();
    let tracker = Tracker {
        api_version: "v1",
        kind: "Pod",
        subresource: "",
        of,
        filters: &filters,
        convert: &only_version,
    };

    let mut scenario = Scenario {
        tracker,
        live: None,
        now: NOON,
    };
    scenario.update("me", "{spec: {nodeName: here}, status: {phase: Running}}");

    scenario.check_owners(&[r#"me Update +0 {"f:spec":{"f:nodeName":{}}}"#]);
    scenario
        .apply("one", "{spec: {hostname: h}, status: {phase: Failed}}")
        .unwrap();
    scenario.check_owners(&[
        r#"me Update +0 {"f:spec":{"f:nodeName":{}}}"#,
        r#"one Apply +1 {"f:spec":{"f:hostname":{}}}"#,
    ]);
}

#[test]
fn an_empty_list_of_owners_gives_ownership_up() {
    for reset in ["[]", "[{}]", "[{manager: '', time: null}]"] {
        let mut scenario = Scenario::of("v1", "ConfigMap");
        scenario.apply("one", "{data: {a: '1'}}").unwrap();
        scenario.update(
            "me",
            &format!("{{metadata: {{managedFields: {reset}}}, data: {{a: '2'}}}}"),
        );

        scenario.check_at(&["metadata", "managedFields"], "absent");

        // Nothing is tracked until the next apply.
        scenario.update("me", "{data: {a: '3'}}");
        scenario.check_at(&["metadata", "managedFields"], "absent");
        scenario.apply("one", "{data: {b: '1'}}").unwrap();
        scenario.check_owners(&[
            r#"before-first-apply Update +3 {"f:data":{".":{},"f:a":{}}}"#,
            r#"one Apply +3 {"f:data":{"f:b":{}}}"#,
        ]);
    }
}

#[test]
fn owners_can_be_set_explicitly_but_invalid_or_missing_ones_are_ignored() {
    let entry = |fields: &str| {
        format!(
            "{{manager: hand, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {fields}}}"
        )
    };

    let check = |entries: &str, expected: &[&str]| {
        let mut scenario = Scenario::of("v1", "ConfigMap");
        scenario.apply("one", "{data: {a: '1'}}").unwrap();
        scenario.update(
            "me",
            &format!("{{metadata: {{managedFields: {entries}}}, data: {{a: '1'}}}}"),
        );
        scenario.check_owners(expected);
    };

    let one = r#"one Apply +0 {"f:data":{"f:a":{}}}"#;
    let hand = r#"hand Apply never {"f:data":{"f:a":{}}}"#;
    check(&format!("[{}]", entry("{'f:data': {'f:a': {}}}")), &[hand]);

    check(
        &format!(
            "[{}, {}]",
            entry("{'f:x': {}}"),
            entry("{'f:data': {'f:a': {}}}")
        ),
        &[hand],
    );

    check("null", &[one]);
    check("nonsense", &[one]);
    check("[nonsense]", &[one]);
    check("[{manager: 5}]", &[one]);
    check("[{manager: a}]", &[one]);

    check(&format!("[{}]", entry("{'nonsense': {}}")), &[one]);
    check(&format!("[{}]", entry("[]")), &[one]);
    check("[{manager: a, operation: Apply, apiVersion: v1}]", &[one]);
    check(
        "[{manager: a, operation: Apply, apiVersion: v1, fieldsType: FieldsV2}]",
        &[one],
    );

    check(
        "[{manager: a, operation: Apply, fieldsType: FieldsV1}]",
        &[one],
    );

    check(
        "[{manager: a, operation: Create, apiVersion: v1, fieldsType: FieldsV1}]",
        &[one],
    );
}

#[test]
fn owners_cannot_be_set_through_a_subresource() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    scenario.apply("one", "{data: {a: '1'}}").unwrap();
    scenario.tracker.subresource = "status";
    scenario.update("me", "{metadata: {managedFields: []}, data: {a: '1'}}");
    scenario.check_owners(&[r#"one Apply +0 {"f:data":{"f:a":{}}}"#]);
}

#[test]
fn a_write_that_cannot_be_tracked_has_no_owners() {
    let scenario = Scenario::of("v1", "ConfigMap");
    let bad = tree(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, managedFields: [{}]}, data: {a: 5}}",
    );
    let error = scenario
        .tracker
        .update(None, bad.clone(), "me", NOON)
        .unwrap_err();

    assert_eq!(
        error.to_string(),
        "failed to convert new object (/x; /v1, Kind=ConfigMap) to smd typed: \
         .data.a: expected string, got &value.valueUnstructured{Value:5}"
    );

    let forgotten = scenario.tracker.update_or_forget(None, bad, "me", NOON);
    assert_eq!(forgotten.at(&["metadata", "managedFields"]), None);
    assert_eq!(forgotten.at(&["data", "a"]), Some(&Value::Int(5)));
}

#[test]
fn a_write_without_a_manager_is_by_unknown() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    scenario.update("", "{data: {a: '1'}}");
    scenario.check_owners(&[r#"unknown Update +0 {"f:data":{".":{},"f:a":{}}}"#]);
}

#[test]
fn entries_are_sorted_by_operation_time_manager_version_and_subresource() {
    let entry = |manager: &str, operation: &str, version: &str, sub: &str, time: &str| {
        let time = if time.is_empty() {
            String::new()
        } else {
            format!(", time: '2026-03-01T12:0{time}:00Z'")
        };
        format!(
            "{{manager: {manager}, operation: {operation}, apiVersion: {version}, subresource: '{sub}', fieldsType: FieldsV1, fieldsV1: {{'f:a': {{}}}}{time}}}"
        )
    };

    let entries = [
        entry("a", "Update", "v1", "", "1"),
        entry("b", "Apply", "v1", "", "2"),
        entry("a", "Apply", "v1", "status", "2"),
        entry("a", "Apply", "v1", "", "2"),
        entry("z", "Apply", "v1", "", "1"),
        entry("a", "Update", "v0", "", "1"),
        entry("c", "Apply", "v1", "", ""),
    ];

    let object = tree(&format!(
        "{{metadata: {{managedFields: [{}]}}}}",
        entries.join(", ")
    ));
    let mut again = object.clone();
    Owners::decode(&object)
        .unwrap()
        .encode(&mut again, Form::Text);

    let found: Vec<String> = again
        .at(&["metadata", "managedFields"])
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            let text = |name: &str| {
                entry
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };

            format!(
                "{} {} {} {}",
                text("manager"),
                text("operation"),
                text("apiVersion"),
                text("subresource")
            )
        })
        .collect();

    assert_eq!(
        found,
        [
            "c Apply v1 ",
            "z Apply v1 ",
            "a Apply v1 ",
            "a Apply v1 status",
            "b Apply v1 ",
            "a Update v0 ",
            "a Update v1 ",
        ]
    );
}

#[test]
fn a_write_that_changes_only_times_is_a_no_op() {
    let entries = |minute: u8| format!("[{{manager: a, time: '2026-03-01T12:0{minute}:00Z'}}]");
    let object = |minute, data: &str, label: &str| {
        tree(&format!(
            "{{metadata: {{name: x, labels: {{l: {label}}}, managedFields: {}}}, data: {{a: {data}}}}}",
            entries(minute)
        ))
    };

    let check = |old: &Value, mut new: Value, kept: bool| {
        keep_times_of_unchanged(old, &mut new);
        assert_eq!(new == *old, kept);
    };

    check(&object(1, "x", "l"), object(2, "x", "l"), true);
    check(&object(1, "x", "l"), object(2, "z", "l"), false);
    check(&object(1, "x", "l"), object(2, "x", "z"), false);
    let mut other = object(2, "x", "l");
    other.meta_mut().members().insert(
        "managedFields",
        tree("[{manager: b, time: '2026-03-01T12:02:00Z'}]"),
    );

    check(&object(1, "x", "l"), other, false);
    let mut more = object(2, "x", "l");
    more.meta_mut()
        .members()
        .insert("managedFields", tree("[{manager: a}, {manager: b}]"));
    check(&object(1, "x", "l"), more, false);
}
