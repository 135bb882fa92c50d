//! Schemas and upstream's errors for them. Every expectation was recorded; `s` is the path of the
//! schema.

use super::check_schema;

/// A schema and its errors.
type Row = (&'static str, &'static [&'static str]);

#[test]
fn a_schema_gives_every_value_one_type() {
    check(SHAPE);
}

#[test]
fn extensions_have_their_conditions() {
    check(EXTENSIONS);
}

#[test]
fn logic_only_restricts() {
    check(LOGIC);
}

#[test]
fn some_of_openapi_is_not_supported() {
    check(UNSUPPORTED);
}

#[test]
fn list_and_map_types_fit_the_type() {
    check(TOPOLOGY);
}

#[test]
fn defaults_are_valid_themselves() {
    check(DEFAULTS);
}

#[test]
fn rules_have_a_form() {
    check(RULES);
}

fn check(rows: &[Row]) {
    for (schema, expected) in rows {
        check_schema(schema, expected);
    }
}

const SHAPE: &[Row] = &[
    (r#"{"type":"object"}"#, &[]),
    (
        "{}",
        &["s.type: Required value: must not be empty at the root"],
    ),
    (
        r#"{"type":"string"}"#,
        &[r#"s.type: Invalid value: "string": must be object at the root"#],
    ),
    (
        r#"{"type":"object","nullable":true}"#,
        &["s.nullable: Forbidden: nullable cannot be true at the root"],
    ),
    (
        r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
        &["s.additionalProperties: Forbidden: must not be used at the root"],
    ),
    (
        r#"{"type":"object","additionalProperties":false}"#,
        &["s.additionalProperties: Forbidden: must not be used at the root"],
    ),
    (
        r#"{"type":"object","properties":{"x":{}}}"#,
        &["s.properties[x].type: Required value: must not be empty for specified object fields"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"decimal"}}}"#,
        &[
            r#"s.properties[x].type: Unsupported value: "decimal": supported values: "array", "boolean", "integer", "number", "object", "string""#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"null"}}}"#,
        &[
            "s.properties[x].type: Forbidden: type cannot be set to null, use nullable as an alternative",
            r#"s.properties[x].type: Unsupported value: "null": supported values: "array", "boolean", "integer", "number", "object", "string""#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array"}}}"#,
        &["s.properties[x].items: Required value: must be specified"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","items":{}}}}"#,
        &[
            "s.properties[x].items.type: Required value: must not be empty for specified array items",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","items":[{"type":"string"}]}}}"#,
        &["s.properties[x].items: Forbidden: items must be a schema object and not an array"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","items":{"type":"array","items":{"type":"string"}}}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"x-kubernetes-preserve-unknown-fields":true}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"x-kubernetes-preserve-unknown-fields":false}}}"#,
        &[
            "s.properties[x].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","additionalProperties":{}}}}"#,
        &[
            "s.properties[x].additionalProperties.type: Required value: must not be empty for specified object fields",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","pattern":"("}}}"#,
        &[
            r#"s.properties[x].pattern: Invalid value: "(": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","pattern":"a**"}}}"#,
        &[
            r#"s.properties[x].pattern: Invalid value: "a**": must be a valid regular expression, but isn't: error parsing regexp: invalid nested repetition operator: `**`"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","pattern":"^a"},"generateName":{"type":"string"}}}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object"}}}}}"#,
        &[
            "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ],
    ),
    (
        r#"{"type":"object","properties":{"metadata":{"type":"string"}}}"#,
        &[r#"s.properties[metadata].type: Invalid value: "string": must be object"#],
    ),
    (
        r#"{"type":"object","properties":{"metadata":{"type":"object","description":"x"}}}"#,
        &[
            "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ],
    ),
    (
        r#"{"type":"object","properties":{"metadata":{"type":"object","not":{}}}}"#,
        &[
            "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ],
    ),
    (
        r#"{"type":"object","properties":{"metadata":{"type":"object","additionalProperties":false}}}"#,
        &[
            "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ],
    ),
    (
        r#"{"type":"object","properties":{"kind":{"type":"integer"},"apiVersion":{"type":"boolean"}}}"#,
        &[
            r#"s.properties[apiVersion].type: Invalid value: "boolean": must be string"#,
            r#"s.properties[kind].type: Invalid value: "integer": must be string"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"metadata":{"type":"string"},"kind":{"type":"integer"}}}}}"#,
        &[],
    ),
];

const EXTENSIONS: &[Row] = &[
    (
        r#"{"type":"object","properties":{"x":{"x-kubernetes-int-or-string":true}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"x-kubernetes-int-or-string":true,"type":"integer"}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"string"},{"type":"integer"}]}}}"#,
        &[
            "s.properties[x].anyOf[0].type: Forbidden: must be empty to be structural",
            "s.properties[x].anyOf[1].type: Forbidden: must be empty to be structural",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"x-kubernetes-int-or-string":true,"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]},{"maximum":3}]}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"x-kubernetes-int-or-string":true,"allOf":[{"maximum":3},{"anyOf":[{"type":"integer"},{"type":"string"}]}]}}}"#,
        &[
            "s.properties[x].allOf[1].anyOf[0].type: Forbidden: must be empty to be structural",
            "s.properties[x].allOf[1].anyOf[1].type: Forbidden: must be empty to be structural",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"x-kubernetes-int-or-string":true,"x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-embedded-resource":true,"type":"object"}}}"#,
        &[
            "s.properties[x].x-kubernetes-embedded-resource: Invalid value: true: must be false if x-kubernetes-int-or-string is true",
            "s.properties[x].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","x-kubernetes-embedded-resource":true}}}"#,
        &[
            "s.properties[x].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}"#,
        &[
            "s.properties[x].type: Required value: must be object if x-kubernetes-embedded-resource is true",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","items":{"type":"string"},"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}"#,
        &[
            r#"s.properties[x].type: Invalid value: "array": must be object if x-kubernetes-embedded-resource is true"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","x-kubernetes-embedded-resource":true,"additionalProperties":{"type":"string"}}}}"#,
        &[
            "s.properties[x].additionalProperties: Forbidden: must not be used if x-kubernetes-embedded-resource is set",
            "s.properties[x].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"kind":{"type":"integer"},"metadata":{"type":"object","properties":{"q":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}}}}}"#,
        &[
            "s.properties[x].properties[metadata].properties[q].x-kubernetes-embedded-resource: Forbidden: must not be used inside of resource meta",
            r#"s.properties[x].properties[kind].type: Invalid value: "integer": must be string"#,
        ],
    ),
];

const LOGIC: &[Row] = &[
    (
        r#"{"type":"object","properties":{"x":{"type":"string","allOf":[{"minLength":2}]}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","allOf":[{"type":"string"}]}}}"#,
        &["s.properties[x].allOf[0].type: Forbidden: must be empty to be structural"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","anyOf":[{"minLength":2}]}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","anyOf":[{"type":"string"}]}}}"#,
        &["s.properties[x].anyOf[0].type: Forbidden: must be empty to be structural"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","oneOf":[{"minLength":2}]}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","oneOf":[{"type":"string"}]}}}"#,
        &["s.properties[x].oneOf[0].type: Forbidden: must be empty to be structural"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","not":{"type":"string"}}}}"#,
        &["s.properties[x].not.type: Forbidden: must be empty to be structural"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","not":{"default":"a"}}}}"#,
        &["s.properties[x].not.default: Forbidden: must be undefined to be structural"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","not":{"title":"t"}}}}"#,
        &["s.properties[x].not.title: Forbidden: must be empty to be structural"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","not":{"description":"d"}}}}"#,
        &["s.properties[x].not.description: Forbidden: must be empty to be structural"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","not":{"nullable":true}}}}"#,
        &["s.properties[x].not.nullable: Forbidden: must be false to be structural"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","not":{"additionalProperties":true}}}}"#,
        &[
            "s.properties[x].not.additionalProperties: Forbidden: must be undefined to be structural",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","not":{"x-kubernetes-preserve-unknown-fields":true}}}}"#,
        &[
            "s.properties[x].not.x-kubernetes-preserve-unknown-fields: Forbidden: must be false to be structural",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","not":{"x-kubernetes-embedded-resource":true}}}}"#,
        &[
            "s.properties[x].not.x-kubernetes-embedded-resource: Forbidden: must be false to be structural",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","not":{"x-kubernetes-int-or-string":true}}}}"#,
        &[
            "s.properties[x].not.x-kubernetes-int-or-string: Forbidden: must be false to be structural",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","not":{"x-kubernetes-list-map-keys":["a"]}}}}"#,
        &[
            "s.properties[x].not.x-kubernetes-list-map-keys: Forbidden: must be empty to be structural",
            "s.properties[x].not.x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","not":{"x-kubernetes-list-type":"map"}}}}"#,
        &[
            "s.properties[x].not.x-kubernetes-list-type: Forbidden: must be undefined to be structural",
            "s.properties[x].not.items: Required value: must have a schema if x-kubernetes-list-type is map",
            "s.properties[x].not.type: Required value: must be array if x-kubernetes-list-type is specified",
            "s.properties[x].not.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","not":{"x-kubernetes-map-type":"atomic"}}}}"#,
        &[
            "s.properties[x].not.x-kubernetes-map-type: Forbidden: must be undefined to be structural",
            "s.properties[x].not.type: Required value: must be object if x-kubernetes-map-type is specified",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","not":{"x-kubernetes-validations":[{"rule":"true"}]}}}}"#,
        &[
            "s.properties[x].not.x-kubernetes-validations: Forbidden: must be empty to be structural",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"a":{"minLength":2,"pattern":"["},"metadata":{}}}]}}}"#,
        &[
            "s.properties[x].anyOf[0].properties[metadata]: Forbidden: must not be specified in a nested context",
            r#"s.properties[x].anyOf[0].properties[a].pattern: Invalid value: "[": must be a valid regular expression, but isn't: error parsing regexp: missing closing ]: `[`"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"a":{"minLength":1},"b":{"minLength":2}}}]}"#,
        &["s.properties[b]: Required value: because it is defined in s.anyOf[0].properties[b]"],
    ),
    (
        r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"q":{"type":"string"}}}}},"allOf":[{"properties":{"a":{"items":{"properties":{"r":{}}}}}}],"not":{"properties":{"z":{"items":{}}}}}"#,
        &[
            "s.properties[a].items.properties[r]: Required value: because it is defined in s.allOf[0].properties[a].items.properties[r]",
            "s.properties[z]: Required value: because it is defined in s.not.properties[z]",
        ],
    ),
    (
        r#"{"type":"object","properties":{"a":{"type":"string"}},"oneOf":[{"items":{"minLength":1}}]}"#,
        &["s.items: Required value: because it is defined in s.oneOf[0].items"],
    ),
];

const UNSUPPORTED: &[Row] = &[
    (
        r#"{"type":"object","properties":{"x":{"type":"string","id":"x"}}}"#,
        &["s.properties[x].id: Forbidden: id is not supported"],
    ),
    (
        r##"{"type":"object","properties":{"x":{"type":"string","$ref":"#/a"}}}"##,
        &["s.properties[x].$ref: Forbidden: $ref is not supported"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","$schema":"s"}}}"#,
        &[r#"s: Invalid value: "": OpenAPIV3Schema 'schema' is not supported"#],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","additionalItems":true}}}"#,
        &["s.properties[x].additionalItems: Forbidden: additionalItems is not supported"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","patternProperties":{"a":{"type":"string"}}}}}"#,
        &["s.properties[x].patternProperties: Forbidden: patternProperties is not supported"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","definitions":{"a":{"type":"odd"}}}}}"#,
        &[
            "s.properties[x].definitions: Forbidden: definitions is not supported",
            r#"s.properties[x].definitions[a].type: Unsupported value: "odd": supported values: "array", "boolean", "integer", "number", "object", "string""#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","dependencies":{"a":["b"]}}}}"#,
        &["s.properties[x].dependencies: Forbidden: dependencies is not supported"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","uniqueItems":true}}}"#,
        &[
            "s.properties[x].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"string"}}}}"#,
        &[
            "s.properties[x].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":true}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}}}"#,
        &[
            "s.properties[x].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ],
    ),
];

const TOPOLOGY: &[Row] = &[
    (
        r#"{"type":"object","properties":{"x":{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}},"x-kubernetes-list-type":"map"}}}"#,
        &[
            "s.properties[x].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}},"x-kubernetes-list-type":"odd"}}}"#,
        &[
            r#"s.properties[x].x-kubernetes-list-type: Unsupported value: "odd": supported values: "atomic", "set", "map""#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}},"x-kubernetes-list-map-keys":["k"]}}}"#,
        &[
            "s.properties[x].x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}},"x-kubernetes-list-type":"set","x-kubernetes-list-map-keys":["k"]}}}"#,
        &[
            "s.properties[x].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
            r#"s.properties[x].x-kubernetes-list-type: Invalid value: "set": must be map if x-kubernetes-list-map-keys is non-empty"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["q"]}}}"#,
        &[
            r#"s.properties[x].x-kubernetes-list-map-keys: Invalid value: ["q"]: entries must all be names of item properties"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","k"]}}}"#,
        &[
            r#"s.properties[x].x-kubernetes-list-map-keys: Invalid value: ["k","k"]: must not contain duplicate entries"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer"}}},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","v"]}}}"#,
        &[
            "s.properties[x].items.properties[v].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","x-kubernetes-list-type":"set"}}}"#,
        &[
            r#"s.properties[x].type: Invalid value: "object": must be array if x-kubernetes-list-type is specified"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-list-type":"set"}}}"#,
        &[
            "s.properties[x].type: Required value: must be array if x-kubernetes-list-type is specified",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"string"}}}}"#,
        &[
            r#"s.properties[x].items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"object"}}}}}}"#,
        &[
            r#"s.properties[x].items.properties[k].type: Invalid value: "object": must be a scalar type if parent array's x-kubernetes-list-type is map"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","nullable":true,"properties":{"k":{"type":"string","default":"a","nullable":true}}}}}}"#,
        &[
            "s.properties[x].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map",
            "s.properties[x].items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}}}"#,
        &[
            "s.properties[x].items: Required value: must be specified",
            "s.properties[x].items: Required value: must have a schema if x-kubernetes-list-type is map",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object"}}}}"#,
        &[
            "s.properties[x].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object","x-kubernetes-map-type":"atomic"}}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"array","items":{"type":"string"}}}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}}}"#,
        &[
            r#"s.properties[x].items.x-kubernetes-list-type: Invalid value: "set": must be atomic as item of a list with x-kubernetes-list-type=set"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","nullable":true}}}}"#,
        &[
            "s.properties[x].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","x-kubernetes-map-type":"atomic"}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","x-kubernetes-map-type":"odd"}}}"#,
        &[
            r#"s.properties[x].x-kubernetes-map-type: Unsupported value: "odd": supported values: "atomic", "granular""#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","x-kubernetes-map-type":"atomic"}}}"#,
        &[
            r#"s.properties[x].type: Invalid value: "string": must be object if x-kubernetes-map-type is specified"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-map-type":"granular"}}}"#,
        &[
            "s.properties[x].type: Required value: must be object if x-kubernetes-map-type is specified",
        ],
    ),
];

const DEFAULTS: &[Row] = &[
    (
        r#"{"type":"object","properties":{"x":{"type":"string","default":"a"}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","default":5}}}"#,
        &[
            r#"s.properties[x].default: Invalid value: "integer":  in body must be of type string: "integer""#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","maxLength":1,"default":"ab"}}}"#,
        &["s.properties[x].default: Too long: may not be more than 1 byte"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","enum":["a"],"default":"b"}}}"#,
        &[r#"s.properties[x].default: Unsupported value: "b": supported values: "a""#],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","default":null}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string","default":"x"}},"default":{}}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"default":{"q":1}}}}"#,
        &[r#"s.properties[x].default: Invalid value: {"q":1}: must not have unknown fields"#],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"default":{"q":1}}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"array","items":{"type":"integer"},"default":[1,"a"]}}}"#,
        &[
            r#"s.properties[x].default.[1]: Invalid value: "string": [1] in body must be of type integer: "string""#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","additionalProperties":{"type":"string"},"default":{"a":1}}}}"#,
        &[
            r#"s.properties[x].default.a: Invalid value: "integer": .a in body must be of type string: "integer""#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"x-kubernetes-int-or-string":true,"default":true}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","format":"ipv4","default":"x"}}}"#,
        &[r#"s.properties[x].default: Invalid value: "x":  in body must be of type ipv4: "x""#],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"string","format":"odd","default":5}}}"#,
        &[
            r#"s.properties[x].default: Invalid value: "int64":  in body must be of type odd: "int64""#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","required":["a"],"properties":{"a":{"type":"string"}},"default":{}}}}"#,
        &["s.properties[x].default.a: Required value"],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"default":{}}}}"#,
        &[
            "s.properties[x].default.apiVersion: Required value",
            "s.properties[x].default.kind: Required value",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"default":{"apiVersion":"v1","kind":"P","metadata":{"name":"a/"}}}}}"#,
        &[r#"s.properties[x].default.metadata.name: Invalid value: "a/": may not contain '/'"#],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"default":{"apiVersion":"v1","kind":"P","metadata":{"name":5}}}}}"#,
        &[
            r#"s.properties[x].default.metadata: Invalid value: {"name":5}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"a":{"type":"string"}},"default":{}}"#,
        &[
            "s.default.apiVersion: Required value",
            "s.default.kind: Required value",
        ],
    ),
    (
        r#"{"type":"object","properties":{"metadata":{"type":"object","default":{"name":"a"}},"kind":{"type":"string","default":"a"}}}"#,
        &[
            "s.properties[kind].default: Forbidden: must not be set in top-level kind",
            "s.properties[metadata].default: Forbidden: must not be set in top-level metadata",
        ],
    ),
    (
        r#"{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","default":"a"}}}}}"#,
        &[
            "s.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","default":"a/b"}}}}}}}"#,
        &[
            r#"s.properties[x].properties[metadata].properties[name].default: Invalid value: "a/b": must result in valid metadata: metadata.name: Invalid value: "a/b": may not contain '/'"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","default":"ab","maxLength":1}}}}}}}"#,
        &[
            "s.properties[x].properties[metadata].properties[name].default: Too long: may not be more than 1 byte",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object","additionalProperties":{"type":"string","default":"x"}}}}}}}}"#,
        &[
            "s.properties[x].properties[metadata].properties[labels].additionalProperties.default: Forbidden: must not be set inside additionalProperties applying to object metadata",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"properties":{"metadata":{"type":"object","properties":{"name":{"type":"integer","default":5}}}}}}}"#,
        &[
            r#"s.properties[x].properties[metadata].properties[name].default: Invalid value: 5: must result in valid metadata: metadata: Invalid value: {"name":5}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"#,
        ],
    ),
];

const RULES: &[Row] = &[
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{}]}}}"#,
        &[
            "s.properties[x].x-kubernetes-validations[0].rule: Required value: rule is not specified",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":" "}]}}}"#,
        &[
            "s.properties[x].x-kubernetes-validations[0].rule: Required value: rule is not specified",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"true","message":" "}]}}}"#,
        &[
            r#"s.properties[x].x-kubernetes-validations[0].message: Invalid value: " ": must be non-empty if specified"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"true","message":"a\nb"}]}}}"#,
        &[
            r#"s.properties[x].x-kubernetes-validations[0].message: Invalid value: "a\nb": must not contain line breaks"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"tr\nue"}]}}}"#,
        &[
            "s.properties[x].x-kubernetes-validations[0].message: Required value: message must be specified if rule contains line breaks",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"true","messageExpression":" "}]}}}"#,
        &[
            "s.properties[x].x-kubernetes-validations[0].messageExpression: Required value: messageExpression must be non-empty if specified",
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"true","reason":"Odd"}]}}}"#,
        &[
            r#"s.properties[x].x-kubernetes-validations[0].reason: Unsupported value: "Odd": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired""#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"true","fieldPath":" "}]}}}"#,
        &[
            r#"s.properties[x].x-kubernetes-validations[0].fieldPath: Invalid value: " ": must be a valid path"#,
            r#"s.properties[x].x-kubernetes-validations[0].fieldPath: Invalid value: " ": must be non-empty if specified"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"true","fieldPath":".q"}]}}}"#,
        &[
            r#"s.properties[x].x-kubernetes-validations[0].fieldPath: Invalid value: ".q": must be a valid path"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"true","fieldPath":".a\n"}]}}}"#,
        &[
            r#"s.properties[x].x-kubernetes-validations[0].fieldPath: Invalid value: ".a\n": must be a valid path"#,
            r#"s.properties[x].x-kubernetes-validations[0].fieldPath: Invalid value: ".a\n": must not contain line breaks"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"true","fieldPath":"x"}]}}}"#,
        &[
            r#"s.properties[x].x-kubernetes-validations[0].fieldPath: Invalid value: "x": must be a valid path"#,
        ],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"true","fieldPath":"['a']"}]}}}"#,
        &[],
    ),
    (
        r#"{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"true","fieldPath":".a"}]}}}"#,
        &[],
    ),
];
