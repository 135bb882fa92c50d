//! Custom resources: with a schema, and without one.

use super::*;

const SCHEMA: &str = "
type: object
properties:
  spec:
    type: object
    properties:
      replicas: {type: integer}
      port: {x-kubernetes-int-or-string: true}
      tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      parts:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name, kind]
        items:
          type: object
          properties:
            name: {type: string}
            kind: {type: string, default: plain}
            size: {type: integer}
      plain: {type: array, items: {type: string}}
      color: {type: object, x-kubernetes-map-type: atomic, properties: {r: {type: integer}, g: {type: integer}}}
      labels: {type: object, additionalProperties: {type: string}}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
      template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
";

fn scenario(of: Type<'_>) -> Scenario<'_> {
    let tracker = Tracker {
        api_version: "g/v1",
        kind: "Thing",
        subresource: "",
        of,
        filters: &[],
        convert: &only_version,
    };

    Scenario {
        tracker,
        live: None,
        now: NOON,
    }
}

#[test]
fn a_schema_decides_how_fields_are_owned() {
    let declared = Declared::object(&tree(SCHEMA), false).unwrap();
    let mut scenario = scenario(Type::Declared(&declared));

    let config = "{spec: {replicas: 1, port: http, tags: [a, b], parts: [{name: x, size: 1}], plain: [p],
        color: {r: 1}, labels: {l: m}, free: {a: {b: [1]}}, template: {metadata: {finalizers: [f]}, any: {x: 1}}}}";
    scenario.apply("one", config).unwrap();
    scenario.check_owners(&[concat!(
        r#"one Apply +0 {"f:spec":{"f:color":{},"f:free":{"f:a":{".":{},"f:b":{}}},"f:labels":{"f:l":{}},"#,
        r#""f:parts":{"k:{\"kind\":\"plain\",\"name\":\"x\"}":{".":{},"f:name":{},"f:size":{}}},"f:plain":{},"f:port":{},"#,
        r#""f:replicas":{},"f:tags":{"v:\"a\"":{},"v:\"b\"":{}},"#,
        r#""f:template":{"f:any":{".":{},"f:x":{}},"f:metadata":{"f:finalizers":{"v:\"f\"":{}}}}}}"#
    )]);

    scenario
        .apply(
            "two",
            "{spec: {parts: [{name: x, kind: other}], port: http}}",
        )
        .unwrap();

    scenario.check_at(
        &["spec", "parts"],
        r#"[{"name":"x","size":1},{"kind":"other","name":"x"}]"#,
    );

    scenario.apply("one", "{spec: {}}").unwrap();
    scenario.check_at(
        &["spec"],
        r#"{"parts":[{"kind":"other","name":"x"}],"port":"http"}"#,
    );
}

#[test]
fn values_that_the_schema_does_not_allow_are_refused() {
    let declared = Declared::object(&tree(SCHEMA), false).unwrap();
    let check = |config: &str, expected: &str| {
        let refusal = scenario(Type::Declared(&declared)).refused("me", config);
        assert_eq!(
            refusal,
            format!("failed to create typed patch object (/x; g/v1, Kind=Thing): {expected}")
        );
    };

    check(
        "{spec: {nope: 1}}",
        ".spec.nope: field not declared in schema",
    );

    check(
        "{spec: {labels: {l: 1}}}",
        ".spec.labels.l: expected string, got &value.valueUnstructured{Value:1}",
    );

    check(
        "{spec: {parts: [{size: 1}, {size: 2}]}}",
        r#".spec.parts: duplicate entries for key [kind="plain"]"#,
    );

    check(
        "{metadata: {labels: []}}",
        ".metadata.labels: expected map, got &{[]}",
    );
}

#[test]
fn a_key_without_a_default_is_required() {
    let schema = "{type: object, properties: {l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a, b],
        items: {type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}}}}}}";
    let declared = Declared::object(&tree(schema), false).unwrap();

    let mut scenario = scenario(Type::Declared(&declared));
    assert_eq!(
        scenario.refused("me", "{l: [{c: x}]}"),
        concat!(
            "failed to create typed patch object (/x; g/v1, Kind=Thing): .l: element 0: associative list with keys has an ",
            r#"element that omits all key fields ["a" "b"] (and doesn't have default values for any key fields)"#
        )
    );

    // An incomplete key is a key of its own.
    scenario.apply("me", "{l: [{a: x}, {a: x, b: z}]}").unwrap();
    scenario.check_owners(&[
        r#"me Apply +0 {"f:l":{"k:{\"a\":\"x\"}":{".":{},"f:a":{}},"k:{\"a\":\"x\",\"b\":\"z\"}":{".":{},"f:a":{},"f:b":{}}}}"#,
    ]);
}

#[test]
fn unusable_schemas_are_refused() {
    let check = |schema: &str, expected: SchemaError| {
        assert_eq!(
            Declared::object(&tree(schema), false).unwrap_err(),
            expected
        );
    };

    check("{type: thing}", SchemaError::Type("thing".into()));
    check("{type: array}", SchemaError::Items);
    check(
        "{type: object, x-kubernetes-map-type: round}",
        SchemaError::MapType("round".into()),
    );

    let list = |rest: &str| {
        format!(
            "{{type: object, properties: {{l: {{type: array, items: {{type: string}}, {rest}}}}}}}"
        )
    };

    check(
        &list("x-kubernetes-list-type: long"),
        SchemaError::ListType("long".into()),
    );

    check(&list("x-kubernetes-list-type: map"), SchemaError::Keys);
}

#[test]
fn parts_become_owned_as_a_whole_when_the_schema_turns_atomic() {
    let schema = |list: &str, map: &str| {
        let text = format!(
            "{{type: object, properties: {{
            l: {{type: array, x-kubernetes-list-type: {list}, items: {{type: string}}}},
            m: {{type: object, x-kubernetes-map-type: {map}, additionalProperties: {{type: string}}}}}}}}"
        );
        Declared::object(&tree(&text), false).unwrap()
    };
    let (parts, whole) = (schema("set", "granular"), schema("atomic", "atomic"));

    let mut before = scenario(Type::Declared(&parts));
    before.apply("one", "{l: [a], m: {k: v}}").unwrap();

    let mut after = scenario(Type::Declared(&whole));
    after.live = before.live;
    after.now = before.now;
    after.update("two", "{l: [a], m: {k: v}, metadata: {labels: {l: x}}}");
    after.check_owners(&[
        r#"one Apply +0 {"f:l":{},"f:m":{}}"#,
        r#"two Update +1 {"f:metadata":{"f:labels":{".":{},"f:l":{}}}}"#,
    ]);
}

#[test]
fn without_a_schema_maps_are_owned_by_field_and_lists_as_a_whole() {
    let mut scenario = scenario(Type::Deduced);
    scenario
        .apply(
            "one",
            "{metadata: {labels: {l: m}}, spec: {a: {b: 1}, l: [{x: 1}], e: {}, no-value: null}}",
        )
        .unwrap();

    scenario.check_owners(&[concat!(
        r#"one Apply +0 {"f:metadata":{"f:labels":{".":{},"f:l":{}}},"#,
        r#""f:spec":{".":{},"f:a":{".":{},"f:b":{}},"f:e":{},"f:l":{},"f:no-value":{}}}"#
    )]);

    assert_eq!(
        scenario.refused("two", "{spec: {l: [{x: 2}], a: 5}}"),
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.a\n- .spec.l"
    );

    scenario.force("two", "{spec: {l: [{x: 2}], a: 5}}");
    scenario.check_at(&["spec"], r#"{"a":5,"e":{},"l":[{"x":2}],"no-value":null}"#);

    // As a tree, like the whole object.
    let fields = scenario
        .live
        .as_ref()
        .unwrap()
        .at(&["metadata", "managedFields"])
        .unwrap()
        .as_array()
        .unwrap();

    assert!(
        fields
            .iter()
            .all(|entry| matches!(entry.get("fieldsV1"), Some(Value::Object(_))))
    );
}
