//! Owners in other versions than the request's.

use super::*;

/// In `g/v2` the field `size` is called `count`.
fn convert<'a>(object: &Value, version: &str) -> Conversion<'a> {
    let (from, to) = match version {
        "g/v1" => ("count", "size"),
        "g/v2" => ("size", "count"),
        "g/broken" => return Conversion::Failed("out of order".to_owned()),
        _ => return Conversion::NoSuchVersion,
    };

    let mut object = object.clone();
    let members = object.as_object_mut().unwrap();
    members.insert("apiVersion", version);

    if let Some(spec) = members.get_mut("spec").and_then(Value::as_object_mut)
        && let Some(value) = spec.remove(from)
    {
        spec.insert(to, value);
    }

    Conversion::Done(object, Type::Deduced)
}

fn scenario() -> Scenario<'static> {
    let tracker = Tracker {
        api_version: "g/v1",
        kind: "Thing",
        subresource: "",
        of: Type::Deduced,
        filters: &[],
        convert: &convert,
    };

    Scenario {
        tracker,
        live: None,
        now: NOON,
    }
}

fn switch_version(scenario: &mut Scenario<'static>, version: &'static str) {
    if let Conversion::Done(object, _) = convert(scenario.live.as_ref().unwrap(), version) {
        scenario.live = Some(object);
    }
    scenario.tracker.api_version = version;
}

#[test]
fn conflicts_are_found_across_versions() {
    let mut scenario = scenario();
    scenario
        .apply("one", "{spec: {size: 1, color: red}}")
        .unwrap();
    switch_version(&mut scenario, "g/v2");
    assert_eq!(
        scenario.refused("two", "{spec: {count: 2}}"),
        r#"Apply failed with 1 conflict: conflict with "one": .spec.size"#
    );

    scenario.force("two", "{spec: {count: 2}}");
    scenario.check_owners(&[
        r#"one Apply +0 {"f:spec":{".":{},"f:color":{}}}"#,
        r#"two Apply +1 {"f:spec":{".":{},"f:count":{}}}"#,
    ]);

    assert_eq!(
        Owners::decode(scenario.live.as_ref().unwrap())
            .unwrap()
            .api_versions(),
        ["g/v1", "g/v2"]
    );
}

#[test]
fn fields_applied_in_one_version_are_given_up_in_another() {
    let mut scenario = scenario();
    scenario
        .apply("one", "{spec: {size: 1, color: red, shape: round}}")
        .unwrap();
    scenario.apply("two", "{spec: {size: 1}}").unwrap();
    switch_version(&mut scenario, "g/v2");

    scenario.apply("one", "{spec: {shape: round}}").unwrap();
    scenario.check_at(&["spec"], r#"{"count":1,"shape":"round"}"#);
    scenario.check_owners(&[
        r#"one Apply +2 {"f:spec":{".":{},"f:shape":{}}}"#,
        r#"two Apply never {"f:spec":{".":{},"f:size":{}}}"#,
    ]);

    switch_version(&mut scenario, "g/v1");
    scenario.apply("two", "{spec: {}}").unwrap();
    scenario.check_at(&["spec"], r#"{"shape":"round"}"#);
}

#[test]
fn updates_in_two_versions_are_two_managers() {
    let mut scenario = scenario();
    scenario.update("one", "{spec: {size: 1, color: red}}");
    switch_version(&mut scenario, "g/v2");
    scenario.update("one", "{spec: {count: 2, color: red}}");
    scenario.check_owners(&[
        r#"one Update +0 {"f:spec":{".":{},"f:color":{}}}"#,
        r#"one Update +1 {"f:spec":{"f:count":{}}}"#,
    ]);
}

#[test]
fn owners_in_a_removed_version_are_dropped() {
    let mut scenario = scenario();
    scenario.tracker.api_version = "g/v0";
    scenario.apply("old", "{spec: {color: red}}").unwrap();

    scenario.update("older", "{spec: {color: red, shape: flat}}");
    scenario.tracker.api_version = "g/v1";
    scenario
        .live
        .as_mut()
        .unwrap()
        .as_object_mut()
        .unwrap()
        .insert("apiVersion", "g/v1");

    scenario.apply("new", "{spec: {color: blue}}").unwrap();
    scenario.check_owners(&[r#"new Apply +2 {"f:spec":{".":{},"f:color":{}}}"#]);
    scenario.check_at(&["spec"], r#"{"color":"blue","shape":"flat"}"#);
}

#[test]
fn a_conversion_that_fails_is_an_error() {
    let mut scenario = scenario();
    scenario.tracker.api_version = "g/broken";
    scenario.apply("old", "{spec: {color: red}}").unwrap();
    scenario.tracker.api_version = "g/v1";
    assert_eq!(
        scenario.refused("new", "{spec: {color: blue}}"),
        "out of order"
    );
}

#[test]
fn the_replicas_of_a_parent_have_the_owners_of_its_scale() {
    let path = FieldPath::fields(&["spec", "replicas"]);
    let replicas = [(Text::new("apps/v1"), Some(path))];
    let scale = Scale {
        api_version: "apps/v1",
        replicas: &replicas,
    };

    let mut parent = Scenario::of("apps/v1", "Deployment");
    parent
        .apply("one", "{spec: {replicas: 1, paused: true}}")
        .unwrap();
    parent.update(
        "two",
        "{spec: {replicas: 1, paused: true, minReadySeconds: 1}}",
    );

    let owners = Owners::decode(parent.live.as_ref().unwrap()).unwrap();
    let of_scale = scale.owners_of_scale(&owners);
    assert_eq!(
        of_scale.iter().map(show_owner).collect::<Vec<_>>(),
        [r#"one Apply +0 {"f:spec":{"f:replicas":{}}}"#]
    );

    assert_eq!(of_scale.api_versions(), ["autoscaling/v1"]);

    let unchanged = scale.owners_of_parent(&owners, &of_scale);
    assert_eq!(unchanged, owners);

    let mut updated = Scenario::of("apps/v1", "Deployment");
    updated.update("maker", "{spec: {replicas: 1, paused: true}}");
    let of_maker = Owners::decode(updated.live.as_ref().unwrap()).unwrap();

    let split = scale.owners_of_parent(&of_maker, &scale.owners_of_scale(&of_maker));
    assert_eq!(
        split.iter().map(show_owner).collect::<Vec<_>>(),
        [
            r#"maker Update +0 {"f:spec":{"f:paused":{}}}"#,
            r#"maker Update never {"f:spec":{"f:replicas":{}}}"#,
        ]
    );

    let mut child = Scenario::of("autoscaling/v1", "Scale");
    child.tracker.subresource = "scale";
    let mut live = tree(
        "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: x, uid: u}, spec: {replicas: 1}}",
    );
    of_scale.encode(&mut live, Form::Text);
    child.live = Some(live);
    child.update("hpa", "{spec: {replicas: 5}}");

    let after = Owners::decode(child.live.as_ref().unwrap()).unwrap();
    let mut shown: Vec<String> = scale
        .owners_of_parent(&owners, &after)
        .iter()
        .map(show_owner)
        .collect();
    shown.sort();

    assert_eq!(
        shown,
        [
            r#"hpa/scale Update never {"f:spec":{"f:replicas":{}}}"#,
            r#"one Apply +0 {"f:spec":{"f:paused":{}}}"#,
            r#"two Update +1 {"f:spec":{"f:minReadySeconds":{}}}"#,
        ]
    );
}
