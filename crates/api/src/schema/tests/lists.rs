//! Lists of type set or map, and embedded objects: upstream's errors, as recorded.

use super::values::{Row, check};

#[test]
fn sets_and_maps_have_no_duplicates() {
    check(LISTS);
}

#[test]
fn embedded_objects_are_validated() {
    check(EMBEDDED);
}

const LISTS: &[Row] = &[
    (
        r#"{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}"#,
        &[
            (r#"["a","b"]"#, &[]),
            (
                r#"["a","b","a","a","b"]"#,
                &[
                    r#"x[2]: Duplicate value: "a""#,
                    r#"x[4]: Duplicate value: "b""#,
                ],
            ),
            ("[]", &[]),
        ],
    ),
    (
        r#"{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object","x-kubernetes-map-type":"atomic","x-kubernetes-preserve-unknown-fields":true}}"#,
        &[
            (
                r#"[{"a":1},{"a":1}]"#,
                &[r#"x[1]: Duplicate value: {"a":1}"#],
            ),
            (r#"[{"a":1},{"a":2}]"#, &[]),
        ],
    ),
    (
        r#"{"type":"array","x-kubernetes-list-type":"atomic","items":{"type":"string"}}"#,
        &[(r#"["a","a"]"#, &[])],
    ),
    (
        r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}}}"#,
        &[
            (r#"[{"k":"a"},{"k":"b"}]"#, &[]),
            (
                r#"[{"k":"a"},{"k":"a","v":1}]"#,
                &[r#"x[1]: Duplicate value: {"k":"a"}"#],
            ),
            (
                "[{},{}]",
                &[
                    "x[0].k: Required value",
                    "x[1].k: Required value",
                    "x[1]: Duplicate value: {}",
                ],
            ),
            (
                "[1]",
                &[
                    r#"x[0]: Invalid value: "integer": x[0] in body must be of type object: "integer""#,
                    "x[0]: Invalid value: 1: must be an object for an array of list-type map",
                ],
            ),
            (
                "[null,null]",
                &[
                    r#"x[0]: Invalid value: "null": x[0] in body must be of type object: "null""#,
                    r#"x[1]: Invalid value: "null": x[1] in body must be of type object: "null""#,
                    "x[1]: Duplicate value: {}",
                ],
            ),
            (
                r#"[{"k":1},{"k":1}]"#,
                &[
                    r#"x[0].k: Invalid value: "integer": x[0].k in body must be of type string: "integer""#,
                    r#"x[1].k: Invalid value: "integer": x[1].k in body must be of type string: "integer""#,
                    r#"x[1]: Duplicate value: {"k":1}"#,
                ],
            ),
        ],
    ),
    (
        r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","p"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"p":{"type":"string","default":"TCP"}}}}"#,
        &[
            (r#"[{"k":"a"},{"k":"a","p":"UDP"}]"#, &[]),
            (
                r#"[{"k":"a"},{"k":"a","p":"TCP"}]"#,
                &[r#"x[1]: Duplicate value: {"k":"a","p":"TCP"}"#],
            ),
        ],
    ),
    (
        r#"{"type":"object","additionalProperties":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}}}"#,
        &[(r#"{"q":[1,1]}"#, &["x[q][1]: Duplicate value: 1"])],
    ),
];

const EMBEDDED: &[Row] = &[(
    r#"{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}"#,
    &[
        (
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"q":1}}"#,
            &[],
        ),
        (
            "{}",
            &["x.apiVersion: Required value", "x.kind: Required value"],
        ),
        (
            r#"{"apiVersion":"","kind":""}"#,
            &[
                r#"x.apiVersion: Invalid value: "": must not be empty"#,
                r#"x.kind: Invalid value: "": must not be empty"#,
            ],
        ),
        (
            r#"{"apiVersion":"a/b/c","kind":"P_d"}"#,
            &[
                r#"x.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#,
                r#"x.kind: Invalid value: "P_d": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#,
            ],
        ),
        (
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a/b","labels":{"x y":"z z"},"annotations":{"A B":""},"namespace":"N","generation":-1,"finalizers":["orphan","foregroundDeletion","f f"],"generateName":"%"}}"#,
            &[
                r#"x.metadata.annotations: Invalid value: "A B": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#,
                r#"x.metadata.finalizers: Invalid value: "f f": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#,
                r#"x.metadata.finalizers: Invalid value: ["orphan","foregroundDeletion","f f"]: finalizer orphan and foregroundDeletion cannot be both set"#,
                r#"x.metadata.generateName: Invalid value: "%": may not contain '%'"#,
                "x.metadata.generation: Invalid value: -1: must be greater than or equal to 0",
                r#"x.metadata.labels: Invalid value: "x y": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#,
                r#"x.metadata.labels: Invalid value: "z z": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#,
                r#"x.metadata.name: Invalid value: "a/b": may not contain '/'"#,
                r#"x.metadata.namespace: Invalid value: "N": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"#,
            ],
        ),
        (
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"e","uid":"u","controller":true},{"controller":true}],"managedFields":[{"operation":"X","fieldsType":"Y"}]}}"#,
            &[
                r#"x.metadata.managedFields[0].fieldsType: Invalid value: "Y": must be `FieldsV1`"#,
                r#"x.metadata.managedFields[0].operation: Invalid value: "X": must be `Apply` or `Update`"#,
                r#"x.metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty"#,
                r#"x.metadata.ownerReferences.kind: Invalid value: "": must not be empty"#,
                r#"x.metadata.ownerReferences.name: Invalid value: "": must not be empty"#,
                r#"x.metadata.ownerReferences.uid: Invalid value: "": must not be empty"#,
                r#"x.metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Event","name":"e","uid":"u","controller":true},{"apiVersion":"","kind":"","name":"","uid":"","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for Event/e and /"#,
                r#"x.metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"e","uid":"u","controller":true}: /v1, Kind=Event is disallowed from being an owner"#,
            ],
        ),
    ],
)];
