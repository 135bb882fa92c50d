//! Values, and what upstream's validators say about them. Every expectation was recorded from those.

use super::check_value;

#[test]
fn a_value_has_its_type() {
    let schema = r#"{"type":"string"}"#;
    check_value(schema, r#""a""#, &[]);
    check_value(
        schema,
        "5",
        &[r#"x: Invalid value: "integer": x in body must be of type string: "integer""#],
    );
    check_value(
        schema,
        "1.5",
        &[r#"x: Invalid value: "number": x in body must be of type string: "number""#],
    );
    check_value(
        schema,
        "true",
        &[r#"x: Invalid value: "boolean": x in body must be of type string: "boolean""#],
    );
    check_value(schema, "null", &[]);
    check_value(schema, "[]", &[r#"x: Invalid value: "array": x in body must be of type string: "array""#]);
    check_value(schema, "{}", &[r#"x: Invalid value: "object": x in body must be of type string: "object""#]);
    let schema = r#"{"type":"integer"}"#;
    check_value(schema, "5", &[]);
    check_value(schema, "5.0", &[]);
    check_value(
        schema,
        "1.5",
        &[
            r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in x"#,
            r#"x: Invalid value: "number": x in body must be of type integer: "number""#,
        ],
    );
    check_value(
        schema,
        r#""5""#,
        &[r#"x: Invalid value: "string": x in body must be of type integer: "string""#],
    );
    check_value(
        schema,
        "true",
        &[r#"x: Invalid value: "boolean": x in body must be of type integer: "boolean""#],
    );
    check_value(
        schema,
        "1e+30",
        &[
            r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in x"#,
            r#"x: Invalid value: "number": x in body must be of type integer: "number""#,
        ],
    );
    let schema = r#"{"type":"number"}"#;
    check_value(schema, "5", &[]);
    check_value(schema, "1.5", &[]);
    check_value(
        schema,
        r#""x""#,
        &[r#"x: Invalid value: "string": x in body must be of type number: "string""#],
    );
    check_value(schema, "null", &[]);
    let schema = r#"{"type":"boolean"}"#;
    check_value(schema, "true", &[]);
    check_value(
        schema,
        r#""true""#,
        &[r#"x: Invalid value: "string": x in body must be of type boolean: "string""#],
    );
    check_value(
        schema,
        "0",
        &[r#"x: Invalid value: "integer": x in body must be of type boolean: "integer""#],
    );
    let schema = r#"{"type":"array","items":{"type":"string"}}"#;
    check_value(schema, r#"["a"]"#, &[]);
    check_value(
        schema,
        r#"["a",1,null]"#,
        &[
            r#"x[1]: Invalid value: "integer": x[1] in body must be of type string: "integer""#,
            r#"x[2]: Invalid value: "null": x[2] in body must be of type string: "null""#,
        ],
    );
    check_value(schema, "{}", &[r#"x: Invalid value: "object": x in body must be of type array: "object""#]);
    check_value(
        schema,
        r#""x""#,
        &[r#"x: Invalid value: "string": x in body must be of type array: "string""#],
    );
    let schema = r#"{"type":"object"}"#;
    check_value(schema, "{}", &[]);
    check_value(schema, "[]", &[r#"x: Invalid value: "array": x in body must be of type object: "array""#]);
    check_value(
        schema,
        r#""x""#,
        &[r#"x: Invalid value: "string": x in body must be of type object: "string""#],
    );
    let schema = r#"{"type":"string","nullable":true}"#;
    check_value(schema, "null", &[]);
    check_value(schema, r#""a""#, &[]);
    let schema = r#"{"x-kubernetes-int-or-string":true}"#;
    check_value(schema, "5", &[]);
    check_value(schema, r#""5%""#, &[]);
    check_value(
        schema,
        "true",
        &[r#"x: Invalid value: "boolean": x in body must be of type integer,string: "boolean""#],
    );
    check_value(
        schema,
        "1.5",
        &[r#"x: Invalid value: "number": x in body must be of type integer,string: "number""#],
    );
    check_value(schema, "2.0", &[]);
    check_value(schema, "null", &[]);
    check_value(
        schema,
        "[]",
        &[r#"x: Invalid value: "array": x in body must be of type integer,string: "array""#],
    );
    let schema = r#"{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}],"pattern":"^a","maximum":5}"#;
    check_value(schema, "7", &["x: Invalid value: 7: x in body should be less than or equal to 5"]);
    check_value(schema, r#""b""#, &[r#"x: Invalid value: "b": x in body should match '^a'"#]);
    check_value(schema, r#""a""#, &[]);
    let schema = r#"{"x-kubernetes-preserve-unknown-fields":true}"#;
    check_value(schema, "5", &[]);
    check_value(schema, r#""a""#, &[]);
    check_value(schema, "null", &[]);
    check_value(schema, r#"{"a":{"b":1}}"#, &[]);
    check_value(schema, "[1]", &[]);
    let schema = r#"{"type":"object","additionalProperties":{"type":"string"}}"#;
    check_value(schema, r#"{"a":"b"}"#, &[]);
    check_value(
        schema,
        r#"{"a":1,"b c":null}"#,
        &[r#"x.a: Invalid value: "integer": x.a in body must be of type string: "integer""#],
    );
    let schema = r#"{"type":"object","additionalProperties":true}"#;
    check_value(schema, r#"{"a":"b"}"#, &[]);
    check_value(schema, r#"{"a":1}"#, &[]);
}

#[test]
fn numbers_keep_their_bounds_and_formats() {
    let schema = r#"{"type":"integer","minimum":2,"maximum":4}"#;
    check_value(schema, "2", &[]);
    check_value(schema, "4", &[]);
    check_value(schema, "1", &["x: Invalid value: 1: x in body should be greater than or equal to 2"]);
    check_value(schema, "5", &["x: Invalid value: 5: x in body should be less than or equal to 4"]);
    check_value(
        schema,
        "3.5",
        &[
            r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in x"#,
            r#"x: Invalid value: "number": x in body must be of type integer: "number""#,
        ],
    );
    let schema =
        r#"{"type":"integer","minimum":2,"exclusiveMinimum":true,"maximum":4,"exclusiveMaximum":true}"#;
    check_value(schema, "3", &[]);
    check_value(schema, "2", &["x: Invalid value: 2: x in body should be greater than 2"]);
    check_value(schema, "4", &["x: Invalid value: 4: x in body should be less than 4"]);
    let schema = r#"{"type":"number","minimum":0.5,"maximum":1.5}"#;
    check_value(schema, "0.5", &[]);
    check_value(schema, "1", &[]);
    check_value(
        schema,
        "0.25",
        &["x: Invalid value: 0.25: x in body should be greater than or equal to 0.5"],
    );
    check_value(schema, "2", &["x: Invalid value: 2: x in body should be less than or equal to 1"]);
    check_value(schema, "1e+21", &["x: Invalid value: 1e+21: x in body should be less than or equal to 1.5"]);
    let schema = r#"{"type":"number","maximum":1e+30}"#;
    check_value(
        schema,
        "5",
        &["x: Invalid value: 5: x in body should be less than or equal to -9223372036854775808"],
    );
    let schema = r#"{"type":"integer","maximum":1.5,"minimum":0.5}"#;
    check_value(
        schema,
        "1",
        &[
            r#"<nil>: Invalid value: "": Maximum boundary value must be of type integer (default format) in x"#,
            r#"<nil>: Invalid value: "": Minimum boundary value must be of type integer (default format) in x"#,
        ],
    );
    check_value(
        schema,
        "2",
        &[
            r#"<nil>: Invalid value: "": Maximum boundary value must be of type integer (default format) in x"#,
            r#"<nil>: Invalid value: "": Minimum boundary value must be of type integer (default format) in x"#,
            "x: Invalid value: 2: x in body should be less than or equal to 1.5",
        ],
    );
    let schema = r#"{"type":"integer","multipleOf":5}"#;
    check_value(schema, "10", &[]);
    check_value(schema, "0", &[]);
    check_value(schema, "-5", &[]);
    check_value(schema, "7", &["x: Invalid value: 7: x in body should be a multiple of 5"]);
    check_value(schema, "7.0", &["x: Invalid value: 7: x in body should be a multiple of 5"]);
    let schema = r#"{"type":"number","multipleOf":0.1}"#;
    check_value(schema, "0.3", &[]);
    check_value(schema, "0.25", &["x: Invalid value: 0.25: x in body should be a multiple of 0.1"]);
    check_value(schema, "3", &["x: Invalid value: 0: factor MultipleOf declared for x must be positive: 0"]);
    let schema = r#"{"type":"integer","multipleOf":0.5}"#;
    check_value(
        schema,
        "3",
        &[r#"<nil>: Invalid value: "": MultipleOf value must be of type integer (default format) in x"#],
    );
    let schema = r#"{"type":"number","multipleOf":-1}"#;
    check_value(
        schema,
        "3",
        &["x: Invalid value: -1: factor MultipleOf declared for x must be positive: -1"],
    );
    check_value(
        schema,
        "1.5",
        &["x: Invalid value: -1: factor MultipleOf declared for x must be positive: -1"],
    );
    let schema = r#"{"type":"integer","format":"int32"}"#;
    check_value(schema, "2147483647", &[]);
    check_value(
        schema,
        "2147483648",
        &[r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x"#],
    );
    check_value(schema, "-2147483648", &[]);
    check_value(
        schema,
        "1.5",
        &[
            r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x"#,
            r#"x: Invalid value: "float64": x in body must be of type int32: "float64""#,
        ],
    );
    check_value(
        schema,
        r#""x""#,
        &[r#"x: Invalid value: "string": x in body must be of type integer: "string""#],
    );
    let schema = r#"{"type":"integer","format":"int64"}"#;
    check_value(schema, "2147483648", &[]);
    check_value(
        schema,
        "9.5",
        &[
            r#"<nil>: Invalid value: "": Checked value must be of type integer with format int64 in x"#,
            r#"x: Invalid value: "float64": x in body must be of type int64: "float64""#,
        ],
    );
    let schema = r#"{"type":"number","format":"float"}"#;
    check_value(schema, "1.5", &[]);
    check_value(
        schema,
        "1e+39",
        &[r#"<nil>: Invalid value: "": Checked value must be of type number with format float in x"#],
    );
    check_value(schema, "7", &[]);
    let schema = r#"{"type":"number","format":"double"}"#;
    check_value(schema, "1e+39", &[]);
    let schema = r#"{"type":"integer","format":"odd"}"#;
    check_value(schema, "2147483648", &[]);
    check_value(
        schema,
        r#""x""#,
        &[r#"x: Invalid value: "string": x in body must be of type integer: "string""#],
    );
}

#[test]
fn strings_keep_lengths_patterns_formats_and_enums() {
    let schema = r#"{"type":"string","minLength":2,"maxLength":3}"#;
    check_value(schema, r#""ab""#, &[]);
    check_value(schema, r#""éüö""#, &[]);
    check_value(schema, r#""a""#, &[r#"x: Invalid value: "a": x in body should be at least 2 chars long"#]);
    check_value(schema, r#""abcd""#, &["x: Too long: may not be more than 3 bytes"]);
    check_value(schema, r#""""#, &[r#"x: Invalid value: "": x in body should be at least 2 chars long"#]);
    let schema = r#"{"type":"string","maxLength":1}"#;
    check_value(schema, r#""ab""#, &["x: Too long: may not be more than 1 byte"]);
    let schema = r#"{"type":"string","pattern":"^[a-z]+$"}"#;
    check_value(schema, r#""abc""#, &[]);
    check_value(schema, r#""A""#, &[r#"x: Invalid value: "A": x in body should match '^[a-z]+$'"#]);
    check_value(schema, r#""""#, &[r#"x: Invalid value: "": x in body should match '^[a-z]+$'"#]);
    let schema = r#"{"type":"string","pattern":"\\d","minLength":3}"#;
    check_value(schema, r#""a1""#, &[r#"x: Invalid value: "a1": x in body should be at least 3 chars long"#]);
    check_value(schema, r#""abc""#, &[r#"x: Invalid value: "abc": x in body should match '\d'"#]);
    check_value(schema, r#""ab1""#, &[]);
    let schema = r#"{"type":"string","format":"ipv4"}"#;
    check_value(schema, r#""1.2.3.4""#, &[]);
    check_value(schema, r#""x""#, &[r#"x: Invalid value: "x": x in body must be of type ipv4: "x""#]);
    check_value(schema, "5", &[r#"x: Invalid value: "int64": x in body must be of type ipv4: "int64""#]);
    check_value(schema, "[1]", &[]);
    let schema = r#"{"type":"string","format":"date-time"}"#;
    check_value(schema, r#""2020-01-02T03:04:05Z""#, &[]);
    check_value(
        schema,
        r#""today""#,
        &[r#"x: Invalid value: "today": x in body must be of type date-time: "today""#],
    );
    let schema = r#"{"type":"string","format":"odd"}"#;
    check_value(schema, r#""x""#, &[]);
    check_value(
        schema,
        "5",
        &[r#"x: Invalid value: "integer": x in body must be of type string: "integer""#],
    );
    let schema = r#"{"type":"string","enum":["a","b"]}"#;
    check_value(schema, r#""a""#, &[]);
    check_value(schema, r#""c""#, &[r#"x: Unsupported value: "c": supported values: "a", "b""#]);
    check_value(
        schema,
        "5",
        &[
            r#"x: Unsupported value: 5: supported values: "a", "b""#,
            r#"x: Invalid value: "integer": x in body must be of type string: "integer""#,
        ],
    );
    check_value(schema, "null", &[]);
    let schema = r#"{"type":"integer","enum":[1,2.5]}"#;
    check_value(schema, "1", &[]);
    check_value(schema, "2", &[r#"x: Unsupported value: 2: supported values: "1", "2.5""#]);
    check_value(schema, "2.0", &[r#"x: Unsupported value: 2: supported values: "1", "2.5""#]);
    check_value(schema, "3", &[r#"x: Unsupported value: 3: supported values: "1", "2.5""#]);
    check_value(
        schema,
        r#""x""#,
        &[
            r#"x: Unsupported value: "x": supported values: "1", "2.5""#,
            r#"x: Invalid value: "string": x in body must be of type integer: "string""#,
        ],
    );
    let schema = r#"{"type":"string","nullable":true,"enum":["a",null]}"#;
    check_value(schema, "null", &[r#"x: Unsupported value: null: supported values: "a", "null""#]);
    check_value(schema, r#""a""#, &[]);
    check_value(schema, r#""b""#, &[r#"x: Unsupported value: "b": supported values: "a", "null""#]);
    let schema = r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true,"enum":[{"a":1}]}"#;
    check_value(schema, r#"{"a":1}"#, &[]);
    check_value(schema, r#"{"a":1.0}"#, &[r#"x: Unsupported value: {"a":1}: supported values: "{\"a\":1}""#]);
    check_value(schema, "{}", &[r#"x: Unsupported value: {}: supported values: "{\"a\":1}""#]);
}

#[test]
fn collections_keep_their_counts_and_have_what_is_required() {
    let schema = r#"{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":2}"#;
    check_value(schema, "[1]", &[]);
    check_value(schema, "[]", &["x: Invalid value: 0: x in body should have at least 1 items"]);
    check_value(schema, "[1,2,3]", &["x: Too many: 3: must have at most 2 items"]);
    let schema = r#"{"type":"array","items":{"type":"integer"},"maxItems":1}"#;
    check_value(schema, "[1,2]", &["x: Too many: 2: must have at most 1 item"]);
    let schema =
        r#"{"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2}"#;
    check_value(schema, r#"{"a":1}"#, &[]);
    check_value(schema, "{}", &["x: Invalid value: 0: x in body should have at least 1 properties"]);
    check_value(schema, r#"{"a":1,"b":2,"c":3}"#, &["x: Too many: 3: must have at most 2 items"]);
    let schema = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b","a"]}"#;
    check_value(schema, r#"{"a":"x","b":"y"}"#, &[]);
    check_value(schema, "{}", &["x.a: Required value", "x.b: Required value"]);
    check_value(schema, r#"{"a":"x"}"#, &["x.b: Required value"]);
    let schema = r#"{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"n":{"type":"object","required":["q"],"properties":{"q":{"type":"integer"}}}}}}"#;
    check_value(schema, r#"[{"k":"a"}]"#, &[]);
    check_value(
        schema,
        r#"[{},{"k":1,"n":{}},{"k":"a","n":{"q":"x"}}]"#,
        &[
            "x[0].k: Required value",
            "x[1].n.q: Required value",
            r#"x[1].k: Invalid value: "integer": x[1].k in body must be of type string: "integer""#,
            r#"x[2].n.q: Invalid value: "string": x[2].n.q in body must be of type integer: "string""#,
        ],
    );
}

#[test]
fn logic_shows_the_nearest_miss() {
    let schema = r#"{"type":"string","anyOf":[{"minLength":3},{"pattern":"^x"}]}"#;
    check_value(schema, r#""abc""#, &[]);
    check_value(schema, r#""x""#, &[]);
    check_value(
        schema,
        r#""ab""#,
        &[
            r#"<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)"#,
            r#"x: Invalid value: "ab": x in body should be at least 3 chars long"#,
        ],
    );
    check_value(
        schema,
        r#""""#,
        &[
            r#"<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)"#,
            r#"x: Invalid value: "": x in body should be at least 3 chars long"#,
        ],
    );
    let schema = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]}"#;
    check_value(schema, r#"{"a":"x"}"#, &[]);
    check_value(
        schema,
        "{}",
        &[
            r#"<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found none valid"#,
            "x.a: Required value",
        ],
    );
    check_value(
        schema,
        r#"{"a":"x","b":"y"}"#,
        &[
            r#"<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
        ],
    );
    let schema = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"],"properties":{"b":{"maxLength":1}}}]}"#;
    check_value(
        schema,
        r#"{"b":"xy"}"#,
        &[
            r#"<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found none valid"#,
            "x.b: Too long: may not be more than 1 byte",
        ],
    );
    let schema = r#"{"type":"integer","allOf":[{"minimum":2},{"maximum":4}]}"#;
    check_value(schema, "3", &[]);
    check_value(
        schema,
        "1",
        &[
            r#"<nil>: Invalid value: "": "x" must validate all the schemas (allOf)"#,
            "x: Invalid value: 1: x in body should be greater than or equal to 2",
        ],
    );
    check_value(
        schema,
        "5",
        &[
            r#"<nil>: Invalid value: "": "x" must validate all the schemas (allOf)"#,
            "x: Invalid value: 5: x in body should be less than or equal to 4",
        ],
    );
    let schema = r#"{"type":"integer","allOf":[{"minimum":2},{"multipleOf":2}]}"#;
    check_value(
        schema,
        "1",
        &[
            r#"<nil>: Invalid value: "": "x" must validate all the schemas (allOf). None validated"#,
            "x: Invalid value: 1: x in body should be a multiple of 2",
            "x: Invalid value: 1: x in body should be greater than or equal to 2",
        ],
    );
    let schema = r#"{"type":"string","not":{"enum":["bad"]}}"#;
    check_value(schema, r#""good""#, &[]);
    check_value(schema, r#""bad""#, &[r#"<nil>: Invalid value: "": "x" must not validate the schema (not)"#]);
    let schema = r#"{"type":"string","not":{"anyOf":[{"minLength":3},{"pattern":"^x"}]}}"#;
    check_value(schema, r#""ab""#, &[]);
    check_value(schema, r#""abc""#, &[r#"<nil>: Invalid value: "": "x" must not validate the schema (not)"#]);
    let schema = r#"{"type":"object","properties":{"k":{"type":"string"},"v":{"type":"object","properties":{"m":{"type":"integer"}}}},"anyOf":[{"properties":{"k":{"enum":["a"]},"v":{"required":["m"]}}},{"properties":{"k":{"enum":["b"]},"v":{"properties":{"m":{"maximum":3}}}}}]}"#;
    check_value(schema, r#"{"k":"b","v":{"m":3}}"#, &[]);
    check_value(
        schema,
        r#"{"k":"b","v":{"m":5}}"#,
        &[
            r#"<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)"#,
            "x.v.m: Invalid value: 5: x.v.m in body should be less than or equal to 3",
        ],
    );
    check_value(
        schema,
        r#"{"k":"c","v":{}}"#,
        &[
            r#"<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)"#,
            r#"x.k: Unsupported value: "c": supported values: "a""#,
            "x.v.m: Required value",
        ],
    );
}

#[test]
fn sets_and_maps_hold_nothing_twice() {
    let schema = r#"{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}"#;
    check_value(schema, r#"["a","b"]"#, &[]);
    check_value(
        schema,
        r#"["a","b","a","a","b"]"#,
        &[r#"x[2]: Duplicate value: "a""#, r#"x[4]: Duplicate value: "b""#],
    );
    check_value(schema, "[]", &[]);
    let schema = r#"{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object","x-kubernetes-map-type":"atomic","x-kubernetes-preserve-unknown-fields":true}}"#;
    check_value(schema, r#"[{"a":1},{"a":1}]"#, &[r#"x[1]: Duplicate value: {"a":1}"#]);
    check_value(schema, r#"[{"a":1},{"a":2}]"#, &[]);
    let schema = r#"{"type":"array","x-kubernetes-list-type":"atomic","items":{"type":"string"}}"#;
    check_value(schema, r#"["a","a"]"#, &[]);
    let schema = r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}}}"#;
    check_value(schema, r#"[{"k":"a"},{"k":"b"}]"#, &[]);
    check_value(schema, r#"[{"k":"a"},{"k":"a","v":1}]"#, &[r#"x[1]: Duplicate value: {"k":"a"}"#]);
    check_value(
        schema,
        "[{},{}]",
        &["x[0].k: Required value", "x[1].k: Required value", "x[1]: Duplicate value: {}"],
    );
    check_value(
        schema,
        "[1]",
        &[
            r#"x[0]: Invalid value: "integer": x[0] in body must be of type object: "integer""#,
            "x[0]: Invalid value: 1: must be an object for an array of list-type map",
        ],
    );
    check_value(
        schema,
        "[null,null]",
        &[
            r#"x[0]: Invalid value: "null": x[0] in body must be of type object: "null""#,
            r#"x[1]: Invalid value: "null": x[1] in body must be of type object: "null""#,
            "x[1]: Duplicate value: {}",
        ],
    );
    check_value(
        schema,
        r#"[{"k":1},{"k":1}]"#,
        &[
            r#"x[0].k: Invalid value: "integer": x[0].k in body must be of type string: "integer""#,
            r#"x[1].k: Invalid value: "integer": x[1].k in body must be of type string: "integer""#,
            r#"x[1]: Duplicate value: {"k":1}"#,
        ],
    );
    let schema = r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","p"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"p":{"type":"string","default":"TCP"}}}}"#;
    check_value(schema, r#"[{"k":"a"},{"k":"a","p":"UDP"}]"#, &[]);
    check_value(
        schema,
        r#"[{"k":"a"},{"k":"a","p":"TCP"}]"#,
        &[r#"x[1]: Duplicate value: {"k":"a","p":"TCP"}"#],
    );
    let schema = r#"{"type":"object","additionalProperties":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}}}"#;
    check_value(schema, r#"{"q":[1,1]}"#, &["x[q][1]: Duplicate value: 1"]);
}

#[test]
fn objects_within_objects_are_objects() {
    let schema = r#"{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}"#;
    check_value(schema, r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"q":1}}"#, &[]);
    check_value(schema, "{}", &["x.apiVersion: Required value", "x.kind: Required value"]);
    check_value(
        schema,
        r#"{"apiVersion":"","kind":""}"#,
        &[
            r#"x.apiVersion: Invalid value: "": must not be empty"#,
            r#"x.kind: Invalid value: "": must not be empty"#,
        ],
    );
    check_value(
        schema,
        r#"{"apiVersion":"a/b/c","kind":"P_d"}"#,
        &[
            r#"x.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#,
            r#"x.kind: Invalid value: "P_d": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#,
        ],
    );
    check_value(
        schema,
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
    );
    check_value(
        schema,
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
    );
}
