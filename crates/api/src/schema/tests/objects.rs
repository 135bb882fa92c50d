//! Decoded objects, compared with upstream's results: pruned, nulls removed, coerced, defaulted.

use super::{check_object, check_update, compiled, tree};
use crate::codec::json;
use crate::schema::Flags;

#[test]
fn undeclared_fields_are_dropped_and_unset_ones_defaulted() {
    for (schema, sent, expected, unknown) in ADMITTED {
        check_object(schema, sent, expected, unknown);
    }
}

#[test]
fn an_update_ignores_existing_errors() {
    for (schema, old, new, expected) in UPDATED {
        check_update(schema, old, new, expected);
    }
}

#[test]
fn an_embedded_object_of_wrong_types_is_refused_on_write_and_repaired_on_read() {
    let schema = compiled(
        r#"{"type":"object","properties":{"x":{"type":"object","x-kubernetes-embedded-resource":true,
        "x-kubernetes-preserve-unknown-fields":true}}}"#,
    );

    let check = |sent: &str, refusal: &str, mended: &str| {
        let mut object = tree(sent);
        assert_eq!(
            schema.coerce(&mut object, false).unwrap_err().to_string(),
            refusal
        );
        let mut object = tree(sent);
        assert_eq!(schema.coerce(&mut object, true), Ok(Vec::new()), "{sent}");
        assert_eq!(json::to_string(&object), mended);
    };

    check(
        r#"{"x":{"apiVersion":"v1","kind":5,"more":true}}"#,
        "x.kind: Invalid value: 5: must be a string",
        r#"{"x":{"apiVersion":"v1","more":true}}"#,
    );

    check(
        r#"{"x":{"metadata":{"name":"a","labels":{"b":1},"generation":"2"}}}"#,
        concat!(
            r#"x.metadata: Invalid value: {"generation":"2","labels":{"b":1},"name":"a"}: "#,
            "json: cannot unmarshal string into Go struct field ObjectMeta.generation of type int64"
        ),
        r#"{"x":{"metadata":{"name":"a"}}}"#,
    );

    check(
        r#"{"x":{"metadata":[]}}"#,
        "x.metadata: Invalid value: []: json: cannot unmarshal array into Go value of type v1.ObjectMeta",
        r#"{"x":{"metadata":[]}}"#,
    );
}

#[test]
fn rules_are_in_the_compiled_schema() {
    let schema = compiled(
        r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","x-kubernetes-validations":[
        {"rule":"self.min <= self.max","message":"m","reason":"FieldValueForbidden","fieldPath":".min","optionalOldSelf":true},
        {"rule":"true","messageExpression":"'x'"}]}},"b":{"type":"string"}}}"#,
    );
    let list = schema.member(schema.root(), "a").unwrap();

    let [first, second] = &*schema.item(list).unwrap().rules else {
        panic!("two rules")
    };
    assert_eq!(
        (first.rule.as_str(), first.message.as_str()),
        ("self.min <= self.max", "m")
    );

    assert_eq!(
        (
            first.reason.as_deref(),
            first.field_path.as_str(),
            first.optional_old_self
        ),
        (Some("FieldValueForbidden"), ".min", Some(true))
    );

    assert_eq!(
        (second.rule.as_str(), second.message_expression.as_str()),
        ("true", "'x'")
    );

    // Flags lead to the rules, so that other subtrees can be skipped.
    assert!(schema.root().flags.has(Flags::RULES) && list.flags.has(Flags::RULES));
    assert!(
        !schema
            .member(schema.root(), "b")
            .unwrap()
            .flags
            .has(Flags::RULES)
    );
}

/// Schema, request, result, unknown fields.
const ADMITTED: &[(&str, &str, &str, &[&str])] = &[
    (
        r#"{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"object","properties":{"b":{"type":"integer"}}}}}"#,
        r#"{"apiVersion":"v1","kind":"K","metadata":{"q":1},"a":"x","z":1,"n":{"b":1,"c":{"d":1}}}"#,
        r#"{"a":"x","apiVersion":"v1","kind":"K","metadata":{"q":1},"n":{"b":1}}"#,
        &["n.c", "z"],
    ),
    (
        r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
        r#"{"a":{"b":1},"q":[{"c":1}]}"#,
        r#"{"a":{}}"#,
        &["a.b", "q"],
    ),
    (
        r#"{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}}}}}}"#,
        r#"{"l":[{"k":"a","q":1},{"z":1},5,null]}"#,
        r#"{"l":[{"k":"a"},{},5,null]}"#,
        &["l[0].q", "l[1].z"],
    ),
    (
        r#"{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"object","properties":{"k":{"type":"string"}}}}}}"#,
        r#"{"m":{"a":{"k":"x","q":1},"b":{}}}"#,
        r#"{"m":{"a":{"k":"x"},"b":{}}}"#,
        &["m.a.q"],
    ),
    (
        r#"{"type":"object","properties":{"m":{"type":"object","additionalProperties":true}}}"#,
        r#"{"m":{"a":{"k":"x"},"b":1,"c":[{"d":1}]}}"#,
        r#"{"m":{"a":{},"b":1,"c":[{}]}}"#,
        &["m.a.k", "m.c[0].d"],
    ),
    (
        r#"{"type":"object","properties":{"m":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"additionalProperties":true}}}"#,
        r#"{"m":{"a":{"k":"x"},"b":1}}"#,
        r#"{"m":{"a":{},"b":1}}"#,
        &["m.a.k"],
    ),
    (
        r#"{"type":"object","properties":{"p":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"t":{"type":"object","properties":{"k":{"type":"string"}}}}}}}"#,
        r#"{"p":{"any":{"thing":1},"t":{"k":"x","q":1}}}"#,
        r#"{"p":{"any":{"thing":1},"t":{"k":"x"}}}"#,
        &["p.t.q"],
    ),
    (
        r#"{"type":"object","properties":{"p":{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object","properties":{"t":{"type":"object"}}}}}}"#,
        r#"{"p":[{"any":1,"t":{"q":1}}]}"#,
        r#"{"p":[{"any":1,"t":{}}]}"#,
        &["p[0].t.q"],
    ),
    (
        r#"{"type":"object","properties":{},"x-kubernetes-preserve-unknown-fields":true}"#,
        r#"{"a":{"b":1}}"#,
        r#"{"a":{"b":1}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}}}}"#,
        r#"{"e":{"apiVersion":"v1","kind":"P","metadata":{"name":"x","odd":1,"labels":null},"spec":{"q":1},"z":1}}"#,
        r#"{"e":{"apiVersion":"v1","kind":"P","metadata":{"name":"x"},"spec":{}}}"#,
        &["e.metadata.odd", "e.spec.q", "e.z"],
    ),
    (
        r#"{"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}"#,
        r#"{"e":{"apiVersion":"v1","kind":"P","metadata":{"creationTimestamp":null,"name":"a"},"x":{"y":1}}}"#,
        r#"{"e":{"apiVersion":"v1","kind":"P","metadata":{"name":"a"},"x":{"y":1}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","default":"x"},"c":{"type":"string","nullable":true},"d":{"type":"string","nullable":true,"default":"y"}}}"#,
        r#"{"a":null,"b":null,"c":null,"d":null}"#,
        r#"{"b":"x","c":null,"d":null}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","default":"x"},"c":{"type":"string","nullable":true},"d":{"type":"string","nullable":true,"default":"y"}}}"#,
        "{}",
        r#"{"b":"x","d":"y"}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"o":{"type":"object","default":{},"properties":{"a":{"type":"integer","default":1},"b":{"type":"object","properties":{"c":{"type":"integer","default":2}}}}}}}"#,
        "{}",
        r#"{"o":{"a":1}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"o":{"type":"object","default":{},"properties":{"a":{"type":"integer","default":1},"b":{"type":"object","properties":{"c":{"type":"integer","default":2}}}}}}}"#,
        r#"{"o":{"a":5,"b":{}}}"#,
        r#"{"o":{"a":5,"b":{"c":2}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string","default":"x"}}}}}}"#,
        r#"{"l":[{},{"a":"y"},null]}"#,
        r#"{"l":[{"a":"x"},{"a":"y"},null]}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"l":{"type":"array","items":{"type":"string","default":"x"}},"m":{"type":"object","additionalProperties":{"type":"string","default":"z"}}}}"#,
        r#"{"l":["a",null],"m":{"a":null,"b":"c"}}"#,
        r#"{"l":["a","x"],"m":{"a":"z","b":"c"}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"string","default":"x"}}}}}}"#,
        r#"{"m":{"q":{},"r":{"a":"b"}}}"#,
        r#"{"m":{"q":{"a":"x"},"r":{"a":"b"}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}"#,
        r#"{"a":{"b":null,"c":null}}"#,
        r#"{"a":{}}"#,
        &["a.c"],
    ),
];

/// Schema, before, after, errors.
const UPDATED: &[(&str, &str, &str, &[&str])] = &[
    (
        r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"x":{"type":"string","maxLength":1},"y":{"type":"string"}}}}}"#,
        r#"{"spec":{"x":"long","y":"old"}}"#,
        r#"{"spec":{"x":"long","y":"new"}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"x":{"type":"string","maxLength":1},"y":{"type":"string"}}}}}"#,
        r#"{"spec":{"x":"long","y":"old"}}"#,
        r#"{"spec":{"x":"longer","y":"old"}}"#,
        &["spec.x: Too long: may not be more than 1 byte"],
    ),
    (
        r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"string"}},"required":["z"]}}}"#,
        r#"{"spec":{"x":"a"}}"#,
        r#"{"spec":{"x":"a"}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"string"}},"required":["z"]}}}"#,
        r#"{"spec":{"x":"a"}}"#,
        r#"{"spec":{"x":"b"}}"#,
        &["spec.z: Required value"],
    ),
    (
        r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"string"}},"allOf":[{"properties":{"x":{"maxLength":1}}}]}}}"#,
        r#"{"spec":{"x":"long","y":"old"}}"#,
        r#"{"spec":{"x":"long","y":"new"}}"#,
        &[
            r#"<nil>: Invalid value: "": "spec" must validate all the schemas (allOf). None validated"#,
            "spec.x: Too long: may not be more than 1 byte",
        ],
    ),
    (
        r#"{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"string","maxLength":1}}}}}}"#,
        r#"{"l":[{"k":"a","v":"long"},{"k":"b"}]}"#,
        r#"{"l":[{"k":"c"},{"k":"a","v":"long"}]}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"l":{"type":"array","items":{"type":"string","maxLength":1}}}}"#,
        r#"{"l":["long"]}"#,
        r#"{"l":["long","b"]}"#,
        &["l[0]: Too long: may not be more than 1 byte"],
    ),
    (
        r#"{"type":"object","properties":{"l":{"type":"array","items":{"type":"string","maxLength":1}}}}"#,
        r#"{"l":["long"]}"#,
        r#"{"l":["long"]}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string","maxLength":1}}}}"#,
        r#"{"m":{"a":"long"}}"#,
        r#"{"m":{"a":"long","b":"longer"}}"#,
        &["m.b: Too long: may not be more than 1 byte"],
    ),
    (
        r#"{"type":"object","properties":{"p":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"maxProperties":1}}}"#,
        r#"{"p":{"a":1,"b":2}}"#,
        r#"{"p":{"a":1,"b":2}}"#,
        &["p: Too many: 2: must have at most 1 item"],
    ),
];
