use coracle_api::codec::json;
use coracle_api::schema::{Props, Schema};

use super::{Declared, Shape};

fn root(schema: &str) -> Option<Declared> {
    let tree = json::parse(schema.as_bytes()).expect("the test's schema is JSON");
    Declared::of_root(&Schema::new(Props::of(&tree)).expect("the test's schema compiles"))
}

/// The declaration of the property `a`.
fn property(schema: &str) -> Option<Declared> {
    let object = format!(r#"{{"type":"object","properties":{{"a":{schema}}}}}"#);
    Some(Declared::clone(root(&object)?.field("a")?))
}

#[test]
fn sizes_are_those_that_the_schema_states_or_a_request_holds() {
    let check = |schema: &str, largest: u64, least_json: u64| {
        let found = property(schema).expect("expressions can see it");
        assert_eq!(
            (found.largest, found.least_json),
            (largest, least_json),
            "{schema}"
        );
    };

    check(r#"{"type":"string"}"#, 3_145_726, 2);
    check(r#"{"type":"string","maxLength":10}"#, 40, 2);
    check(r#"{"type":"string","maxLength":-1}"#, 0, 2);
    check(r#"{"type":"string","enum":["a","abc"]}"#, 3, 2);
    check(r#"{"type":"string","format":"byte","maxLength":10}"#, 10, 2);
    check(r#"{"type":"string","format":"duration"}"#, 32, 3);
    check(r#"{"type":"string","format":"date"}"#, 12, 12);
    check(r#"{"type":"string","format":"date-time"}"#, 32, 21);
    check(r#"{"x-kubernetes-int-or-string":true}"#, 3_145_726, 1);
    check(
        r#"{"x-kubernetes-int-or-string":true,"maxLength":3}"#,
        12,
        1,
    );
    check(r#"{"type":"boolean"}"#, 0, 4);
    check(r#"{"type":"integer"}"#, 0, 1);
    check(
        r#"{"type":"array","items":{"type":"integer"}}"#,
        1_572_863,
        2,
    );
    check(
        r#"{"type":"array","maxItems":7,"items":{"type":"integer"}}"#,
        7,
        2,
    );
    check(
        r#"{"type":"object","additionalProperties":{"type":"integer"}}"#,
        449_389,
        2,
    );
    check(
        r#"{"type":"object","required":["b","c"],"properties":
            {"b":{"type":"integer"},"c":{"type":"integer","default":1}}}"#,
        0,
        8,
    );
}

#[test]
fn values_without_a_known_type_are_not_visible() {
    for schema in [
        r#"{"x-kubernetes-preserve-unknown-fields":true}"#,
        r#"{"type":"array"}"#,
        r#"{"type":"array","items":{}}"#,
        r#"{"type":"object","additionalProperties":{}}"#,
    ] {
        assert!(property(schema).is_none(), "{schema}");
    }
}

#[test]
fn a_root_has_a_type_and_a_name() {
    let names = |declared: &Declared| match &declared.of {
        Shape::Object(fields) => fields.keys().cloned().collect::<Vec<_>>(),
        _ => Vec::new(),
    };

    let found = root(
        r#"{"type":"object","properties":{"metadata":{"type":"object"},"a.b":{"type":"string"},
            "a$":{"type":"string"}}}"#,
    )
    .expect("a root is visible");
    assert_eq!(
        names(&found),
        ["a__dot__b", "apiVersion", "kind", "metadata"]
    );
    let metadata = found.field("metadata").expect("it has metadata");
    assert_eq!(names(metadata), ["generateName", "name"]);
}

#[test]
fn sizes_are_found_by_path() {
    let found = root(
        r#"{"type":"object","properties":{"l":{"type":"array","maxItems":3,"items":
            {"type":"object","properties":{"s":{"type":"string","maxLength":5}}}},
            "m":{"type":"object","maxProperties":4,"additionalProperties":{"type":"string","maxLength":6}}}}"#,
    )
    .expect("a root is visible");

    let check = |path: &[&str], expected| assert_eq!(found.largest_at(path), expected, "{path:?}");
    check(&[], Some(0));
    check(&["l"], Some(3));
    check(&["l", "@items", "s"], Some(20));
    check(&["m", "@values"], Some(24));
    check(&["m", "@keys"], Some(0));
    check(&["m", "@keys", "a"], None);
    check(&["none"], None);
}
