//! Values and the errors of upstream's validators. Every expectation was recorded.

use super::check_value;

/// A schema, and values with their errors.
pub(super) type Row = (
    &'static str,
    &'static [(&'static str, &'static [&'static str])],
);

#[test]
fn a_value_has_its_type() {
    check(TYPES);
}

#[test]
fn numbers_keep_their_bounds_and_formats() {
    check(NUMBERS);
}

#[test]
fn strings_keep_lengths_patterns_formats_and_enums() {
    check(STRINGS);
}

#[test]
fn collections_keep_their_counts_and_have_what_is_required() {
    check(COLLECTIONS);
}

#[test]
fn logic_reports_the_closest_alternative() {
    check(LOGIC);
}

pub(super) fn check(rows: &[Row]) {
    for (schema, values) in rows {
        for (value, expected) in *values {
            check_value(schema, value, expected);
        }
    }
}

const TYPES: &[Row] = &[
    (
        r#"{"type":"string"}"#,
        &[
            (r#""a""#, &[]),
            (
                "5",
                &[r#"x: Invalid value: "integer": x in body must be of type string: "integer""#],
            ),
            (
                "1.5",
                &[r#"x: Invalid value: "number": x in body must be of type string: "number""#],
            ),
            (
                "true",
                &[r#"x: Invalid value: "boolean": x in body must be of type string: "boolean""#],
            ),
            ("null", &[]),
            (
                "[]",
                &[r#"x: Invalid value: "array": x in body must be of type string: "array""#],
            ),
            (
                "{}",
                &[r#"x: Invalid value: "object": x in body must be of type string: "object""#],
            ),
        ],
    ),
    (
        r#"{"type":"integer"}"#,
        &[
            ("5", &[]),
            ("5.0", &[]),
            (
                "1.5",
                &[
                    r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in x"#,
                    r#"x: Invalid value: "number": x in body must be of type integer: "number""#,
                ],
            ),
            (
                r#""5""#,
                &[r#"x: Invalid value: "string": x in body must be of type integer: "string""#],
            ),
            (
                "true",
                &[r#"x: Invalid value: "boolean": x in body must be of type integer: "boolean""#],
            ),
            (
                "1e+30",
                &[
                    r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in x"#,
                    r#"x: Invalid value: "number": x in body must be of type integer: "number""#,
                ],
            ),
        ],
    ),
    (
        r#"{"type":"number"}"#,
        &[
            ("5", &[]),
            ("1.5", &[]),
            (
                r#""x""#,
                &[r#"x: Invalid value: "string": x in body must be of type number: "string""#],
            ),
            ("null", &[]),
        ],
    ),
    (
        r#"{"type":"boolean"}"#,
        &[
            ("true", &[]),
            (
                r#""true""#,
                &[r#"x: Invalid value: "string": x in body must be of type boolean: "string""#],
            ),
            (
                "0",
                &[r#"x: Invalid value: "integer": x in body must be of type boolean: "integer""#],
            ),
        ],
    ),
    (
        r#"{"type":"array","items":{"type":"string"}}"#,
        &[
            (r#"["a"]"#, &[]),
            (
                r#"["a",1,null]"#,
                &[
                    r#"x[1]: Invalid value: "integer": x[1] in body must be of type string: "integer""#,
                    r#"x[2]: Invalid value: "null": x[2] in body must be of type string: "null""#,
                ],
            ),
            (
                "{}",
                &[r#"x: Invalid value: "object": x in body must be of type array: "object""#],
            ),
            (
                r#""x""#,
                &[r#"x: Invalid value: "string": x in body must be of type array: "string""#],
            ),
        ],
    ),
    (
        r#"{"type":"object"}"#,
        &[
            ("{}", &[]),
            (
                "[]",
                &[r#"x: Invalid value: "array": x in body must be of type object: "array""#],
            ),
            (
                r#""x""#,
                &[r#"x: Invalid value: "string": x in body must be of type object: "string""#],
            ),
        ],
    ),
    (
        r#"{"type":"string","nullable":true}"#,
        &[("null", &[]), (r#""a""#, &[])],
    ),
    (
        r#"{"x-kubernetes-int-or-string":true}"#,
        &[
            ("5", &[]),
            (r#""5%""#, &[]),
            (
                "true",
                &[
                    r#"x: Invalid value: "boolean": x in body must be of type integer,string: "boolean""#,
                ],
            ),
            (
                "1.5",
                &[
                    r#"x: Invalid value: "number": x in body must be of type integer,string: "number""#,
                ],
            ),
            ("2.0", &[]),
            ("null", &[]),
            (
                "[]",
                &[
                    r#"x: Invalid value: "array": x in body must be of type integer,string: "array""#,
                ],
            ),
        ],
    ),
    (
        r#"{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}],"pattern":"^a","maximum":5}"#,
        &[
            (
                "7",
                &["x: Invalid value: 7: x in body should be less than or equal to 5"],
            ),
            (
                r#""b""#,
                &[r#"x: Invalid value: "b": x in body should match '^a'"#],
            ),
            (r#""a""#, &[]),
        ],
    ),
    (
        r#"{"x-kubernetes-preserve-unknown-fields":true}"#,
        &[
            ("5", &[]),
            (r#""a""#, &[]),
            ("null", &[]),
            (r#"{"a":{"b":1}}"#, &[]),
            ("[1]", &[]),
        ],
    ),
    (
        r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
        &[
            (r#"{"a":"b"}"#, &[]),
            (
                r#"{"a":1,"b c":null}"#,
                &[
                    r#"x.a: Invalid value: "integer": x.a in body must be of type string: "integer""#,
                ],
            ),
        ],
    ),
    (
        r#"{"type":"object","additionalProperties":true}"#,
        &[(r#"{"a":"b"}"#, &[]), (r#"{"a":1}"#, &[])],
    ),
];

const NUMBERS: &[Row] = &[
    (
        r#"{"type":"integer","minimum":2,"maximum":4}"#,
        &[
            ("2", &[]),
            ("4", &[]),
            (
                "1",
                &["x: Invalid value: 1: x in body should be greater than or equal to 2"],
            ),
            (
                "5",
                &["x: Invalid value: 5: x in body should be less than or equal to 4"],
            ),
            (
                "3.5",
                &[
                    r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in x"#,
                    r#"x: Invalid value: "number": x in body must be of type integer: "number""#,
                ],
            ),
        ],
    ),
    (
        r#"{"type":"integer","minimum":2,"exclusiveMinimum":true,"maximum":4,"exclusiveMaximum":true}"#,
        &[
            ("3", &[]),
            (
                "2",
                &["x: Invalid value: 2: x in body should be greater than 2"],
            ),
            (
                "4",
                &["x: Invalid value: 4: x in body should be less than 4"],
            ),
        ],
    ),
    (
        r#"{"type":"number","minimum":0.5,"maximum":1.5}"#,
        &[
            ("0.5", &[]),
            ("1", &[]),
            (
                "0.25",
                &["x: Invalid value: 0.25: x in body should be greater than or equal to 0.5"],
            ),
            (
                "2",
                &["x: Invalid value: 2: x in body should be less than or equal to 1"],
            ),
            (
                "1e+21",
                &["x: Invalid value: 1e+21: x in body should be less than or equal to 1.5"],
            ),
        ],
    ),
    (
        r#"{"type":"number","maximum":1e+30}"#,
        &[(
            "5",
            &[
                "x: Invalid value: 5: x in body should be less than or equal to -9223372036854775808",
            ],
        )],
    ),
    (
        r#"{"type":"integer","maximum":1.5,"minimum":0.5}"#,
        &[
            (
                "1",
                &[
                    r#"<nil>: Invalid value: "": Maximum boundary value must be of type integer (default format) in x"#,
                    r#"<nil>: Invalid value: "": Minimum boundary value must be of type integer (default format) in x"#,
                ],
            ),
            (
                "2",
                &[
                    r#"<nil>: Invalid value: "": Maximum boundary value must be of type integer (default format) in x"#,
                    r#"<nil>: Invalid value: "": Minimum boundary value must be of type integer (default format) in x"#,
                    "x: Invalid value: 2: x in body should be less than or equal to 1.5",
                ],
            ),
        ],
    ),
    (
        r#"{"type":"integer","multipleOf":5}"#,
        &[
            ("10", &[]),
            ("0", &[]),
            ("-5", &[]),
            (
                "7",
                &["x: Invalid value: 7: x in body should be a multiple of 5"],
            ),
            (
                "7.0",
                &["x: Invalid value: 7: x in body should be a multiple of 5"],
            ),
        ],
    ),
    (
        r#"{"type":"number","multipleOf":0.1}"#,
        &[
            ("0.3", &[]),
            (
                "0.25",
                &["x: Invalid value: 0.25: x in body should be a multiple of 0.1"],
            ),
            (
                "3",
                &["x: Invalid value: 0: factor MultipleOf declared for x must be positive: 0"],
            ),
        ],
    ),
    (
        r#"{"type":"integer","multipleOf":0.5}"#,
        &[(
            "3",
            &[
                r#"<nil>: Invalid value: "": MultipleOf value must be of type integer (default format) in x"#,
            ],
        )],
    ),
    (
        r#"{"type":"number","multipleOf":-1}"#,
        &[
            (
                "3",
                &["x: Invalid value: -1: factor MultipleOf declared for x must be positive: -1"],
            ),
            (
                "1.5",
                &["x: Invalid value: -1: factor MultipleOf declared for x must be positive: -1"],
            ),
        ],
    ),
    (
        r#"{"type":"integer","format":"int32"}"#,
        &[
            ("2147483647", &[]),
            (
                "2147483648",
                &[
                    r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x"#,
                ],
            ),
            ("-2147483648", &[]),
            (
                "1.5",
                &[
                    r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x"#,
                    r#"x: Invalid value: "float64": x in body must be of type int32: "float64""#,
                ],
            ),
            (
                r#""x""#,
                &[r#"x: Invalid value: "string": x in body must be of type integer: "string""#],
            ),
        ],
    ),
    (
        r#"{"type":"integer","format":"int64"}"#,
        &[
            ("2147483648", &[]),
            (
                "9.5",
                &[
                    r#"<nil>: Invalid value: "": Checked value must be of type integer with format int64 in x"#,
                    r#"x: Invalid value: "float64": x in body must be of type int64: "float64""#,
                ],
            ),
        ],
    ),
    (
        r#"{"type":"number","format":"float"}"#,
        &[
            ("1.5", &[]),
            (
                "1e+39",
                &[
                    r#"<nil>: Invalid value: "": Checked value must be of type number with format float in x"#,
                ],
            ),
            ("7", &[]),
        ],
    ),
    (r#"{"type":"number","format":"double"}"#, &[("1e+39", &[])]),
    (
        r#"{"type":"integer","format":"odd"}"#,
        &[
            ("2147483648", &[]),
            (
                r#""x""#,
                &[r#"x: Invalid value: "string": x in body must be of type integer: "string""#],
            ),
        ],
    ),
];

const STRINGS: &[Row] = &[
    (
        r#"{"type":"string","minLength":2,"maxLength":3}"#,
        &[
            (r#""ab""#, &[]),
            (r#""éüö""#, &[]),
            (
                r#""a""#,
                &[r#"x: Invalid value: "a": x in body should be at least 2 chars long"#],
            ),
            (r#""abcd""#, &["x: Too long: may not be more than 3 bytes"]),
            (
                r#""""#,
                &[r#"x: Invalid value: "": x in body should be at least 2 chars long"#],
            ),
        ],
    ),
    (
        r#"{"type":"string","maxLength":1}"#,
        &[(r#""ab""#, &["x: Too long: may not be more than 1 byte"])],
    ),
    (
        r#"{"type":"string","pattern":"^[a-z]+$"}"#,
        &[
            (r#""abc""#, &[]),
            (
                r#""A""#,
                &[r#"x: Invalid value: "A": x in body should match '^[a-z]+$'"#],
            ),
            (
                r#""""#,
                &[r#"x: Invalid value: "": x in body should match '^[a-z]+$'"#],
            ),
        ],
    ),
    (
        r#"{"type":"string","pattern":"\\d","minLength":3}"#,
        &[
            (
                r#""a1""#,
                &[r#"x: Invalid value: "a1": x in body should be at least 3 chars long"#],
            ),
            (
                r#""abc""#,
                &[r#"x: Invalid value: "abc": x in body should match '\d'"#],
            ),
            (r#""ab1""#, &[]),
        ],
    ),
    (
        r#"{"type":"string","format":"ipv4"}"#,
        &[
            (r#""1.2.3.4""#, &[]),
            (
                r#""x""#,
                &[r#"x: Invalid value: "x": x in body must be of type ipv4: "x""#],
            ),
            (
                "5",
                &[r#"x: Invalid value: "int64": x in body must be of type ipv4: "int64""#],
            ),
            ("[1]", &[]),
        ],
    ),
    (
        r#"{"type":"string","format":"date-time"}"#,
        &[
            (r#""2020-01-02T03:04:05Z""#, &[]),
            (
                r#""today""#,
                &[r#"x: Invalid value: "today": x in body must be of type date-time: "today""#],
            ),
        ],
    ),
    (
        r#"{"type":"string","format":"odd"}"#,
        &[
            (r#""x""#, &[]),
            (
                "5",
                &[r#"x: Invalid value: "integer": x in body must be of type string: "integer""#],
            ),
        ],
    ),
    (
        r#"{"type":"string","enum":["a","b"]}"#,
        &[
            (r#""a""#, &[]),
            (
                r#""c""#,
                &[r#"x: Unsupported value: "c": supported values: "a", "b""#],
            ),
            (
                "5",
                &[
                    r#"x: Unsupported value: 5: supported values: "a", "b""#,
                    r#"x: Invalid value: "integer": x in body must be of type string: "integer""#,
                ],
            ),
            ("null", &[]),
        ],
    ),
    (
        r#"{"type":"integer","enum":[1,2.5]}"#,
        &[
            ("1", &[]),
            (
                "2",
                &[r#"x: Unsupported value: 2: supported values: "1", "2.5""#],
            ),
            (
                "2.0",
                &[r#"x: Unsupported value: 2: supported values: "1", "2.5""#],
            ),
            (
                "3",
                &[r#"x: Unsupported value: 3: supported values: "1", "2.5""#],
            ),
            (
                r#""x""#,
                &[
                    r#"x: Unsupported value: "x": supported values: "1", "2.5""#,
                    r#"x: Invalid value: "string": x in body must be of type integer: "string""#,
                ],
            ),
        ],
    ),
    (
        r#"{"type":"string","nullable":true,"enum":["a",null]}"#,
        &[
            (
                "null",
                &[r#"x: Unsupported value: null: supported values: "a", "null""#],
            ),
            (r#""a""#, &[]),
            (
                r#""b""#,
                &[r#"x: Unsupported value: "b": supported values: "a", "null""#],
            ),
        ],
    ),
    (
        r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true,"enum":[{"a":1}]}"#,
        &[
            (r#"{"a":1}"#, &[]),
            (
                r#"{"a":1.0}"#,
                &[r#"x: Unsupported value: {"a":1}: supported values: "{\"a\":1}""#],
            ),
            (
                "{}",
                &[r#"x: Unsupported value: {}: supported values: "{\"a\":1}""#],
            ),
        ],
    ),
];

const COLLECTIONS: &[Row] = &[
    (
        r#"{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":2}"#,
        &[
            ("[1]", &[]),
            (
                "[]",
                &["x: Invalid value: 0: x in body should have at least 1 items"],
            ),
            ("[1,2,3]", &["x: Too many: 3: must have at most 2 items"]),
        ],
    ),
    (
        r#"{"type":"array","uniqueItems":true,"items":{"x-kubernetes-preserve-unknown-fields":true}}"#,
        &[
            (r#"[1,2,"1",{"a":1},{"a":2}]"#, &[]),
            (
                "[1,1]",
                &[r#"x: Invalid value: "": x in body shouldn't contain duplicates"#],
            ),
            (
                r#"["a","b","a"]"#,
                &[r#"x: Invalid value: "": x in body shouldn't contain duplicates"#],
            ),
            (
                r#"[{"a":1},{"a":1}]"#,
                &[r#"x: Invalid value: "": x in body shouldn't contain duplicates"#],
            ),
        ],
    ),
    (
        r#"{"type":"array","items":{"type":"integer"},"maxItems":1}"#,
        &[("[1,2]", &["x: Too many: 2: must have at most 1 item"])],
    ),
    (
        r#"{"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2}"#,
        &[
            (r#"{"a":1}"#, &[]),
            (
                "{}",
                &["x: Invalid value: 0: x in body should have at least 1 properties"],
            ),
            (
                r#"{"a":1,"b":2,"c":3}"#,
                &["x: Too many: 3: must have at most 2 items"],
            ),
        ],
    ),
    (
        r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b","a"]}"#,
        &[
            (r#"{"a":"x","b":"y"}"#, &[]),
            ("{}", &["x.a: Required value", "x.b: Required value"]),
            (r#"{"a":"x"}"#, &["x.b: Required value"]),
        ],
    ),
    (
        r#"{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"n":{"type":"object","required":["q"],"properties":{"q":{"type":"integer"}}}}}}"#,
        &[
            (r#"[{"k":"a"}]"#, &[]),
            (
                r#"[{},{"k":1,"n":{}},{"k":"a","n":{"q":"x"}}]"#,
                &[
                    "x[0].k: Required value",
                    "x[1].n.q: Required value",
                    r#"x[1].k: Invalid value: "integer": x[1].k in body must be of type string: "integer""#,
                    r#"x[2].n.q: Invalid value: "string": x[2].n.q in body must be of type integer: "string""#,
                ],
            ),
        ],
    ),
];

const LOGIC: &[Row] = &[
    (
        r#"{"type":"string","anyOf":[{"minLength":3},{"pattern":"^x"}]}"#,
        &[
            (r#""abc""#, &[]),
            (r#""x""#, &[]),
            (
                r#""ab""#,
                &[
                    r#"<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)"#,
                    r#"x: Invalid value: "ab": x in body should be at least 3 chars long"#,
                ],
            ),
            (
                r#""""#,
                &[
                    r#"<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)"#,
                    r#"x: Invalid value: "": x in body should be at least 3 chars long"#,
                ],
            ),
        ],
    ),
    (
        r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]}"#,
        &[
            (r#"{"a":"x"}"#, &[]),
            (
                "{}",
                &[
                    r#"<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found none valid"#,
                    "x.a: Required value",
                ],
            ),
            (
                r#"{"a":"x","b":"y"}"#,
                &[
                    r#"<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
                ],
            ),
        ],
    ),
    (
        r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"],"properties":{"b":{"maxLength":1}}}]}"#,
        &[(
            r#"{"b":"xy"}"#,
            &[
                r#"<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found none valid"#,
                "x.b: Too long: may not be more than 1 byte",
            ],
        )],
    ),
    (
        r#"{"type":"integer","allOf":[{"minimum":2},{"maximum":4}]}"#,
        &[
            ("3", &[]),
            (
                "1",
                &[
                    r#"<nil>: Invalid value: "": "x" must validate all the schemas (allOf)"#,
                    "x: Invalid value: 1: x in body should be greater than or equal to 2",
                ],
            ),
            (
                "5",
                &[
                    r#"<nil>: Invalid value: "": "x" must validate all the schemas (allOf)"#,
                    "x: Invalid value: 5: x in body should be less than or equal to 4",
                ],
            ),
        ],
    ),
    (
        r#"{"type":"integer","allOf":[{"minimum":2},{"multipleOf":2}]}"#,
        &[(
            "1",
            &[
                r#"<nil>: Invalid value: "": "x" must validate all the schemas (allOf). None validated"#,
                "x: Invalid value: 1: x in body should be a multiple of 2",
                "x: Invalid value: 1: x in body should be greater than or equal to 2",
            ],
        )],
    ),
    (
        r#"{"type":"string","not":{"enum":["bad"]}}"#,
        &[
            (r#""good""#, &[]),
            (
                r#""bad""#,
                &[r#"<nil>: Invalid value: "": "x" must not validate the schema (not)"#],
            ),
        ],
    ),
    (
        r#"{"type":"string","not":{"anyOf":[{"minLength":3},{"pattern":"^x"}]}}"#,
        &[
            (r#""ab""#, &[]),
            (
                r#""abc""#,
                &[r#"<nil>: Invalid value: "": "x" must not validate the schema (not)"#],
            ),
        ],
    ),
    (
        r#"{"type":"object","properties":{"k":{"type":"string"},"v":{"type":"object","properties":{"m":{"type":"integer"}}}},"anyOf":[{"properties":{"k":{"enum":["a"]},"v":{"required":["m"]}}},{"properties":{"k":{"enum":["b"]},"v":{"properties":{"m":{"maximum":3}}}}}]}"#,
        &[
            (r#"{"k":"b","v":{"m":3}}"#, &[]),
            (
                r#"{"k":"b","v":{"m":5}}"#,
                &[
                    r#"<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)"#,
                    "x.v.m: Invalid value: 5: x.v.m in body should be less than or equal to 3",
                ],
            ),
            (
                r#"{"k":"c","v":{}}"#,
                &[
                    r#"<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)"#,
                    r#"x.k: Unsupported value: "c": supported values: "a""#,
                    "x.v.m: Required value",
                ],
            ),
        ],
    ),
];
