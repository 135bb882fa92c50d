use super::*;
use crate::Text;
use crate::Value;
use crate::apply::element::{Element, FieldPath};
use crate::apply::set::Set;

#[test]
fn canonical_texts_round_trip() {
    for text in [
        "{}",
        r#"{"f:a":{}}"#,
        r#"{"f:a":{".":{},"f:b":{}}}"#,
        r#"{"f:a":{"f:b":{}},"f:c":{}}"#,
        r#"{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}}}}"#,
        r#"{"f:":{}}"#,
        r#"{"f:a:b":{},"f:é😀":{}}"#,
        r#"{"v:1":{},"v:\"a\"":{},"v:true":{},"v:[1]":{},"v:{\"a\":1}":{},"v:null":{},"i:-1":{},"i:0":{}}"#,
        r#"{"k:{}":{},"k:{\"a\":1.5}":{},"k:{\"a\":\"\\u003c\"}":{}}"#,
        r#"{"f:a\"b\\c\n\u0001":{}}"#,
    ] {
        let set = decode(text).unwrap();
        assert_eq!(encode(&set).as_str(), text);
    }
}

#[test]
fn other_texts_decode_as_upstream_decodes_them() {
    let check = |text: &str, expected: &str| {
        let set = decode(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(encode(&set).as_str(), expected, "{text}");
    };

    check(" { \"f:a\" : { } } ", r#"{"f:a":{}}"#);
    check("null", "{}");
    check(r#"{".":{}}"#, "{}");
    check(r#"{"f:a":null}"#, r#"{"f:a":{}}"#);
    check(r#"{"f:a":{".":{}}}"#, r#"{"f:a":{}}"#);

    check(r#"{"f:a":{".":[1,{"x":"y"},true]}}"#, r#"{"f:a":{}}"#);
    check(r#"{"f:b":{},"f:a":{}}"#, r#"{"f:a":{},"f:b":{}}"#);
    check(
        r#"{"i:1":{},"v:1":{},"k:{\"a\":1}":{},"f:a":{}}"#,
        r#"{"f:a":{},"k:{\"a\":1}":{},"v:1":{},"i:1":{}}"#,
    );

    check(
        r#"{"k:{\"b\":1,\"a\":2}":{}}"#,
        r#"{"k:{\"a\":2,\"b\":1}":{}}"#,
    );

    check(r#"{"k:null":{}}"#, r#"{"k:{}":{}}"#);

    // Path elements of an unknown kind are skipped, with their children.
    check(r#"{"x:a":{"nonsense":1},"f:a":{"z:":{}}}"#, r#"{"f:a":{}}"#);

    // Of duplicates the last one with children counts, and any makes a member.
    check(
        r#"{"f:a":{},"f:a":{"f:b":{}}}"#,
        r#"{"f:a":{".":{},"f:b":{}}}"#,
    );

    check(
        r#"{"f:a":{"f:b":{}},"f:a":{"f:c":{}}}"#,
        r#"{"f:a":{"f:c":{}}}"#,
    );

    // Numbers are floats to upstream.
    check(r#"{"v:1.0":{}}"#, r#"{"v:1":{}}"#);
    check(
        r#"{"v:9007199254740993":{}}"#,
        r#"{"v:9007199254740992":{}}"#,
    );

    check(
        r#"{"v:1e-7":{},"v:1e22":{}}"#,
        r#"{"v:1e-07":{},"v:1e+22":{}}"#,
    );

    check(r#"{"\u0066:a":{}}"#, r#"{"f:a":{}}"#);
}

#[test]
fn invalid_texts_are_refused() {
    for text in [
        "",
        "{",
        "[]",
        "1",
        "true",
        "\"f:a\"",
        r#"{"f:a"}"#,
        r#"{"f:a":{}"#,
        r#"{"f:a":{},}"#,
        r#"{"f:a":[]}"#,
        r#"{"f:a":1}"#,
        r#"{"f:a":{}} x"#,
        r#"{"a":{}}"#,
        r#"{"":{}}"#,
        r#"{"fa":{}}"#,
        r#"{"v:":{}}"#,
        r#"{"v:x":{}}"#,
        r#"{"k:1":{}}"#,
        r#"{"k:{":{}}"#,
        r#"{"i:x":{}}"#,
        r#"{"i:1.5":{}}"#,
        r#"{"é:":{}}"#,
        r#"{"f:a":{"b":{}}}"#,
        r#"{".":nul}"#,
        r#"{"x:":[1,]}"#,
        "{\"f:a\n\":{}}",
        r#"{"f:\"#,
    ] {
        assert!(decode(text).is_err(), "{text:?}");
    }
}

#[test]
fn nesting_is_limited() {
    let deep = r#"{"f:a":"#.repeat(100_000);
    assert_eq!(decode(&deep), Err(FieldsError::TooDeep));
    let deep = format!(r#"{{"x:":{}"#, "[".repeat(100_000));
    assert_eq!(decode(&deep), Err(FieldsError::TooDeep));
}

#[test]
fn strings_in_keys_are_html_escaped() {
    let key = Element::key(vec![(Text::new("<n>"), Value::string("<&>\u{2028}\x08"))]);
    let set = Set::of([FieldPath(vec![key]), FieldPath::fields(&["<&>"])]);
    let expected = r#"{"f:<&>":{},"k:{\"<n>\":\"\\u003c\\u0026\\u003e\\u2028\\u0008\"}":{}}"#;
    assert_eq!(encode(&set).as_str(), expected);
    assert_eq!(decode(expected).unwrap(), set);
}
