use super::*;
use crate::catalog::BUILTIN;

#[test]
fn syntax_errors_have_upstreams_texts() {
    let check = |text: &str, expected: &str| {
        assert_eq!(parse(text.as_bytes()).unwrap_err().0, expected, "{text:?}");
        // The scanner for raw values must agree.
        assert_eq!(
            raw(text.as_bytes()).unwrap_err().0,
            expected,
            "raw {text:?}"
        );
    };

    check("", "unexpected end of JSON input");
    check("  ", "unexpected end of JSON input");
    check("{", "unexpected end of JSON input");
    check("{\"a\"", "unexpected end of JSON input");
    check("{\"a\":1", "unexpected end of JSON input");
    check("[1,", "unexpected end of JSON input");

    check("\"abc", "unexpected end of JSON input");
    check("tru", "unexpected end of JSON input");
    check("x", "invalid character 'x' looking for beginning of value");
    check(
        "[1,]",
        "invalid character ']' looking for beginning of value",
    );

    check(
        "{a:1}",
        "invalid character 'a' looking for beginning of object key string",
    );

    check(
        "{\"a\":1,}",
        "invalid character '}' looking for beginning of object key string",
    );

    check("{\"a\" 1}", "invalid character '1' after object key");
    check(
        "{\"a\":1 \"b\":2}",
        "invalid character '\"' after object key:value pair",
    );

    check("[1 2]", "invalid character '2' after array element");
    check("1 2", "invalid character '2' after top-level value");
    check("01", "invalid character '1' after top-level value");
    check("[01]", "invalid character '1' after array element");

    check("\"a\nb\"", "invalid character '\\n' in string literal");
    check("\"\u{1}\"", "invalid character '\\x01' in string literal");
    check("\"\\x\"", "invalid character 'x' in string escape code");
    check(
        "\"\\u12g4\"",
        "invalid character 'g' in \\u hexadecimal character escape",
    );

    check("-x", "invalid character 'x' in numeric literal");
    check(
        "1.x",
        "invalid character 'x' after decimal point in numeric literal",
    );

    check(
        "1ex",
        "invalid character 'x' in exponent of numeric literal",
    );

    check(
        "trux",
        "invalid character 'x' in literal true (expecting 'e')",
    );

    check(
        "nul1",
        "invalid character '1' in literal null (expecting 'l')",
    );

    check(
        "'a'",
        "invalid character '\\'' looking for beginning of value",
    );
}

#[test]
fn nesting_has_a_limit_with_a_clear_error() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(parse(nested(MAX_TREE_DEPTH).as_bytes()).is_ok());

    let refused = "invalid character '[' exceeded max depth";
    assert_eq!(
        parse(nested(MAX_TREE_DEPTH + 1).as_bytes()).unwrap_err().0,
        refused
    );

    assert!(raw(nested(MAX_DEPTH).as_bytes()).is_ok());
    assert_eq!(
        raw(nested(MAX_DEPTH + 1).as_bytes()).unwrap_err().0,
        refused
    );

    // Unterminated text is neither slower nor deeper.
    assert_eq!(raw("[".repeat(1 << 20).as_bytes()).unwrap_err().0, refused);
}

#[test]
fn strings_decode_as_upstream_decodes_them() {
    let check = |text: &[u8], expected: &str| {
        assert_eq!(
            parse(text).unwrap(),
            Value::string(expected),
            "{}",
            String::from_utf8_lossy(text)
        );
    };

    check(br#""a\"b\\c\/d\b\f\n\r\t""#, "a\"b\\c/d\u{8}\u{c}\n\r\t");
    check(br#""\u00e9\ud83d\ude00""#, "é😀");
    check(br#""\ud83d""#, "\u{fffd}");
    check(br#""\ud83dx""#, "\u{fffd}x");
    check(br#""\ude00\ud83d""#, "\u{fffd}\u{fffd}");
    check(b"\"\xff\"", "\u{fffd}");
}

#[test]
fn encoded_values_decode_to_the_same() {
    let check = |text: &str, expected: &str| {
        assert_eq!(
            to_string(&parse(text.as_bytes()).unwrap()),
            expected,
            "{text}"
        );
    };

    check(
        r#" { "b" : [ 1 , 2.5 , -3e2 ] , "a" : null } "#,
        r#"{"a":null,"b":[1,2.5,-300]}"#,
    );

    check(
        r#"[1e21, 1e20, 1e-7, 0.000001, 1.0, -0.0]"#,
        r#"[1e+21,100000000000000000000,1e-7,0.000001,1,-0]"#,
    );

    check(
        r#""<a&b>\u2028\u2029\u007f\u0000é""#,
        "\"\\u003ca\\u0026b\\u003e\\u2028\\u2029\u{7f}\\u0000é\"",
    );

    check(
        "[-9223372036854775808,9223372036854775807,0]",
        "[-9223372036854775808,9223372036854775807,0]",
    );
}

fn decode_pod(text: &str) -> Result<Decoded, DecodeError> {
    let kind = BUILTIN.kind_of("v1", "Pod").unwrap();
    decode(text.as_bytes(), Some(BUILTIN.root(kind).node()))
}

#[test]
fn a_type_error_names_the_field() {
    let check = |text: &str, expected: &str| {
        assert_eq!(
            decode_pod(text).unwrap_err().to_string(),
            format!("json: cannot unmarshal {expected}"),
            "{text}"
        );
    };

    check("[]", "array into Go value of type v1.Pod");
    check(
        r#"{"metadata":{"name":5}}"#,
        "number into Go struct field ObjectMeta.metadata.name of type string",
    );

    check(
        r#"{"metadata":{"labels":{"a":true}}}"#,
        "bool into Go struct field ObjectMeta.metadata.labels of type string",
    );

    check(
        r#"{"spec":{"containers":[{},{"ports":[{"containerPort":"x"}]}]}}"#,
        "string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
    );

    check(
        r#"{"spec":{"containers":{}}}"#,
        "object into Go struct field PodSpec.spec.containers of type []v1.Container",
    );

    check(
        r#"{"spec":{"terminationGracePeriodSeconds":1.5}}"#,
        "number 1.5 into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
    );

    check(
        r#"{"metadata":{"creationTimestamp":5}}"#,
        "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
    );
}

#[test]
fn the_exact_path_is_returned_beside_the_message() {
    let text = r#"{"spec":{"containers":[{"ports":[{},{"containerPort":"x"}]}]}}"#;
    let DecodeError::Type { path, .. } = decode_pod(text).unwrap_err() else {
        panic!("a type error")
    };
    assert_eq!(path, "spec.containers[0].ports[1].containerPort");
}

#[test]
fn a_later_syntax_error_takes_precedence_over_a_type_error() {
    let error = decode_pod(r#"{"metadata":{"name":5},"#).unwrap_err();
    assert_eq!(error.to_string(), "unexpected end of JSON input");
}

#[test]
fn a_field_that_is_there_twice_is_merged_as_upstream_does() {
    let check = |text: &str, expected: &str| {
        let kind = BUILTIN.kind("", "v1", "Pod").unwrap();
        let decoded = decode(text.as_bytes(), Some(BUILTIN.root(kind).node())).unwrap();
        assert_eq!(to_string(&decoded.value), expected, "{text}");
        assert_eq!(decoded.strict.len(), 1, "{text}");
    };

    check(
        r#"{"metadata":{"name":"a","uid":"u"},"metadata":{"name":"b"}}"#,
        r#"{"metadata":{"name":"b","uid":"u"}}"#,
    );
    check(
        r#"{"metadata":{"labels":{"a":"1","b":"2"},"labels":{"b":"3"}}}"#,
        r#"{"metadata":{"labels":{"a":"1","b":"3"}}}"#,
    );
    check(
        r#"{"metadata":{"name":"a"},"metadata":null}"#,
        r#"{"metadata":{"name":"a"}}"#,
    );
    check(
        r#"{"spec":{"containers":[{"name":"a","image":"x"},{"name":"b"}],"containers":[{"name":"c"}]}}"#,
        r#"{"spec":{"containers":[{"image":"x","name":"c"}]}}"#,
    );
    check(
        r#"{"spec":{"securityContext":{"runAsUser":1},"securityContext":null}}"#,
        r#"{"spec":{"securityContext":null}}"#,
    );
}

#[test]
fn unknown_and_duplicate_fields_are_reported_once_and_in_order() {
    let text = r#"{"zzz":1,"metadata":{"name":"a","name":"b","labels":{"x/y":"1","x/y":"2"}},
        "spec":{"containers":[{"name":"c","foo":{"bar":[1]}},{"foo":1}]},"zzz":2}"#;
    let decoded = decode_pod(text).unwrap();
    assert_eq!(
        decoded.strict,
        [
            "unknown field \"zzz\"",
            "duplicate field \"metadata.name\"",
            "duplicate field \"metadata.labels.x/y\"",
            "unknown field \"spec.containers[0].foo\"",
            "unknown field \"spec.containers[1].foo\"",
        ]
    );

    assert_eq!(
        to_string(&decoded.value),
        r#"{"metadata":{"labels":{"x/y":"2"},"name":"b"},"spec":{"containers":[{"name":"c"},{}]}}"#
    );
}

#[test]
fn strict_errors_are_bounded() {
    let members: Vec<String> = (0..1000).map(|n| format!("\"u{n}\":1")).collect();
    assert_eq!(
        decode_pod(&format!("{{{}}}", members.join(",")))
            .unwrap()
            .strict
            .len(),
        100
    );
}

#[test]
fn a_raw_value_keeps_its_text_without_white_space() {
    let kind = BUILTIN.kind_of("apps/v1", "ControllerRevision").unwrap();
    let text = br#"{"data": { "b" : 1e3, "a" : [ 1.0 , "x y" ] , "a": {} }, "revision": 1}"#;
    let decoded = decode(text, Some(BUILTIN.root(kind).node())).unwrap();
    assert_eq!(
        to_string(&decoded.value),
        r#"{"data":{"b":1e3,"a":[1.0,"x y"],"a":{}},"revision":1}"#
    );
    assert!(decoded.strict.is_empty());
}
