use super::{kind, object};
use crate::Value;
use crate::codec::json;
use crate::patch::strategic::restore;

#[test]
fn type_errors_are_those_of_upstreams_conversion() {
    let check = |of: &str, text: &str, expected: &str| {
        let mut merged = object(text);
        assert_eq!(
            restore(&mut merged, kind(of)).unwrap_err().to_string(),
            expected,
            "{text}"
        );
    };

    check(
        "ConfigMap",
        r#"{"kind":5}"#,
        "cannot convert int64 to string",
    );

    check(
        "ConfigMap",
        r#"{"data":"x"}"#,
        "cannot restore map from string",
    );

    check(
        "ConfigMap",
        r#"{"data":{"a":1}}"#,
        "cannot convert int64 to string",
    );

    check(
        "ConfigMap",
        r#"{"immutable":"x"}"#,
        "unrecognized type: bool",
    );

    check(
        "ConfigMap",
        r#"{"metadata":"x"}"#,
        "cannot restore struct from: string",
    );

    check(
        "ConfigMap",
        r#"{"metadata":{"labels":["x"]}}"#,
        "cannot restore map from slice",
    );

    check(
        "ConfigMap",
        r#"{"metadata":{"generation":"x"}}"#,
        "unrecognized type: int64",
    );

    check(
        "ConfigMap",
        r#"{"metadata":{"generation":1.5}}"#,
        "cannot convert float64 to int64",
    );

    check(
        "ConfigMap",
        r#"{"metadata":{"finalizers":{"a":1}}}"#,
        "cannot restore slice from map",
    );

    check(
        "ConfigMap",
        r#"{"metadata":{"finalizers":"x"}}"#,
        "cannot restore slice from string",
    );

    check(
        "ConfigMap",
        r#"{"metadata":{"ownerReferences":[5]}}"#,
        "cannot restore struct from: int64",
    );

    check(
        "ConfigMap",
        r#"{"metadata":{"ownerReferences":[{"controller":"y"}]}}"#,
        "unrecognized type: bool",
    );

    check(
        "ConfigMap",
        r#"{"binaryData":{"a":"???"}}"#,
        "error decoding from json: illegal base64 data at input byte 0",
    );

    check(
        "ConfigMap",
        r#"{"metadata":{"creationTimestamp":"x"}}"#,
        r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
    );

    check(
        "Deployment",
        r#"{"spec":{"replicas":"x"}}"#,
        "unrecognized type: int32",
    );

    check(
        "Pod",
        r#"{"spec":{"restartPolicy":5}}"#,
        "cannot convert int64 to v1.RestartPolicy",
    );
}

#[test]
fn numbers_are_converted_as_go_converts_them() {
    let check = |text: &str, expected: &str| {
        let mut merged = object(text);
        restore(&mut merged, kind("Deployment")).unwrap();
        assert_eq!(json::to_string(&Value::Object(merged)), expected);
    };

    check(r#"{"spec":{"replicas":3.0}}"#, r#"{"spec":{"replicas":3}}"#);
    check(
        r#"{"spec":{"replicas":4294967297}}"#,
        r#"{"spec":{"replicas":1}}"#,
    );

    check(
        r#"{"spec":{"other":"stays"}}"#,
        r#"{"spec":{"other":"stays"}}"#,
    );
}
