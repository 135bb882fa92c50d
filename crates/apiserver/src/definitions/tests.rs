//! What definitions are compiled into.

use coracle_api::codec::json;
use coracle_kinds::apiextensions::custom_resource_definition::condition;

use super::*;

const BOATS: &str = r#"{"metadata":{"name":"boats.a.b","uid":"u"},"spec":{"group":"a.b","scope":"Namespaced",
    "names":{"plural":"boats","singular":"boat","kind":"Boat","listKind":"BoatList"},"versions":[
    {"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
        "properties":{"oars":{"type":"integer","default":2},"flag":{"type":"string"}}}}}},
        "selectableFields":[{"jsonPath":".spec.flag"}]},
    {"name":"v1beta1","served":true,"deprecated":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object",
        "properties":{"spec":{"type":"object","properties":{"oars":{"type":"integer"}}}}}}},
    {"name":"v1alpha1","served":false,"deprecated":true,"deprecationWarning":"it goes","storage":false,
        "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}"#;

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

fn boats() -> Compiled {
    Compiled::new(&tree(BOATS)).unwrap()
}

#[test]
fn every_version_is_a_resource_and_only_served_ones_are_found() {
    let boats = boats();
    assert_eq!(boats.served_version("v1"), Some(0));
    assert_eq!(boats.served_version("v1alpha1"), None);
    assert_eq!(boats.served_version("v2"), None);
    assert_eq!(boats.kind(1).api_version(), "a.b/v1beta1");
    assert_eq!(
        boats.resource(2).storage.as_ref().unwrap().prefix,
        "a.b/boats"
    );

    let selectable = |version| -> Vec<Text> {
        boats
            .resource(version)
            .selectable
            .iter()
            .map(|field| field.name.clone())
            .collect()
    };

    assert_eq!(
        selectable(0),
        ["spec.flag", "metadata.name", "metadata.namespace"]
    );

    assert_eq!(selectable(1), ["metadata.name", "metadata.namespace"]);

    let shown: Vec<&str> = boats
        .documented
        .resources()
        .iter()
        .map(|known| known.version.as_str())
        .collect();
    assert_eq!(shown, ["v1", "v1beta1"]);
}

#[test]
fn objects_are_kept_in_one_version_and_shown_in_all() {
    let boats = boats();
    let check = |found: Value, expected: &str| assert_eq!(json::to_string(&found), expected);

    // Stored before the schema of the version was changed.
    let old = tree(r#"{"apiVersion":"a.b/v1beta1","kind":"Boat","spec":{"flag":"red","gone":1}}"#);
    check(
        boats.read(old),
        r#"{"apiVersion":"a.b/v1","kind":"Boat","spec":{"oars":2}}"#,
    );

    let kept = tree(r#"{"apiVersion":"a.b/v1","kind":"Boat","spec":{"flag":"red","oars":3}}"#);
    check(
        boats.shown(kept.clone(), "v1beta1"),
        r#"{"apiVersion":"a.b/v1beta1","kind":"Boat","spec":{"oars":3}}"#,
    );

    check(
        boats.shown(kept, "v1alpha1"),
        r#"{"apiVersion":"a.b/v1alpha1","kind":"Boat","spec":{"flag":"red","oars":3}}"#,
    );

    // It has yet to be validated by its own version: no field is dropped until it is stored.
    let mut new = boats.kept(tree(r#"{"apiVersion":"a.b/v1alpha1","spec":{"any":1}}"#));
    check(new.clone(), r#"{"apiVersion":"a.b/v1","spec":{"any":1}}"#);
    boats.finish(&mut new).unwrap();
    check(new, r#"{"apiVersion":"a.b/v1","spec":{"oars":2}}"#);
}

#[test]
fn deprecated_versions_have_a_warning() {
    let warnings: Vec<Option<String>> = boats()
        .versions
        .iter()
        .map(|version| version.warning.clone())
        .collect();
    let default = "a.b/v1beta1 Boat is deprecated; use a.b/v1 Boat";
    assert_eq!(
        warnings,
        [None, Some(default.to_owned()), Some("it goes".to_owned())]
    );
}

#[test]
fn what_a_definition_defines_changes_with_its_spec_and_not_with_its_status() {
    let mut definition = tree(BOATS);
    let boats = boats();
    condition::set(
        &mut definition,
        &condition::Condition {
            of: "Established",
            status: true,
            reason: "r",
            message: "m",
        },
        coracle_api::time::Time(coracle_api::time::Timestamp::from_unix(1, 0)),
    );

    assert!(boats.is_of(&definition));

    definition
        .as_object_mut()
        .unwrap()
        .object_mut("spec")
        .insert("scope", "Cluster");

    assert!(!boats.is_of(&definition));
}
