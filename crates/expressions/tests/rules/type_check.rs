//! Warnings about expressions of policies are upstream's.

use coracle_api::codec::json;
use coracle_expressions::admission::type_check::{Expressions, Kind, Schemas, check};
use serde_json::{Value, json};

use crate::oracle::Oracle;

/// Checked as validations of a policy with two variables; `count` does compile.
const EXPRESSIONS: &[&str] = &[
    "object.spec.count > 1",
    "object.spec.count > 'a'",
    "object.spec.missing == 'a' && object.also.missing",
    "has(object.spec.quantity)",
    "has(object.spec.port) && object.spec.port == 80",
    "object.spec.port > 'a' || object.spec.port.foo",
    "object.metadata.labels['a'] == 1",
    "object.metadata.name.size() > 'a'.size()",
    "object.kind + 1",
    "object.spec.since + object.spec.since",
    "object.spec.wait > duration('1s') && object.spec.bytes == b'1'",
    "object.spec.x__dash__y.foo",
    "object.spec.namespace == 1",
    "object.spec.items.all(i, i.name == i.size)",
    "object.spec.named.all(k, object.spec.named[k].on == k)",
    "object.spec.embedded.metadata.labels",
    "object.spec.embedded.metadata.name == object.spec.embedded.extra",
    "object.spec.free.x",
    "oldObject.spec.count == object.spec.ratio",
    "oldObject == null || object == 1",
    "request.operation == 1",
    "request.foo",
    "namespaceObject.metadata.UID == namespaceObject.metadata.uid",
    "authorizer.group('').resource('pods').check('create').allowed()",
    "authorizer.allowed()",
    "authorizer.requestResource.check('x').allowed()",
    "params.x",
    "variables.count > 'a'",
    "variables.bad.worse.still",
    "variables.missing",
    "object.spec.",
    "'a'.matches('[')",
    "1",
    "duration('x') > duration('1s')",
    "quantity(object.spec.count)",
    "string(object.spec.count).foo == [1, 'a']",
];

fn schema() -> Value {
    json!({
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": "g.io", "version": "v1", "kind": "Thing"}],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {
                "name": {"type": "string"},
                "generateName": {"type": "string"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            }},
            "spec": {"type": "object", "properties": {
                "count": {"type": "integer"},
                "ratio": {"type": "number"},
                "port": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
                "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
                "since": {"type": "string", "format": "date-time"},
                "wait": {"type": "string", "format": "duration"},
                "bytes": {"type": "string", "format": "byte"},
                "x-y": {"type": "boolean"},
                "namespace": {"type": "string"},
                "items": {"type": "array", "items": {"type": "object", "properties": {
                    "name": {"type": "string"}, "size": {"type": "integer"},
                }}},
                "named": {"type": "object", "additionalProperties": {"type": "object", "properties": {
                    "on": {"type": "boolean"},
                }}},
                "embedded": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
                    "extra": {"x-kubernetes-int-or-string": true},
                }},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }},
        },
    })
}

#[test]
fn warnings_are_those_of_upstream() {
    let questions: Vec<Value> = EXPRESSIONS
        .iter()
        .map(|expression| {
            json!({
                "env": "typecheck", "kind": "Thing", "schema": schema(),
                "policy": {
                    "matchConstraints": {"resourceRules": [
                        {"apiGroups": ["g.io"], "apiVersions": ["v1"], "resources": ["things"], "operations": ["*"]},
                    ]},
                    "variables": [
                        {"name": "count", "expression": "object.spec.count"},
                        {"name": "bad", "expression": "object.nothing"},
                    ],
                    "validations": [{"expression": expression, "messageExpression": expression}],
                },
            })
        })
        .collect();

    let answers = Oracle::start().ask(&questions);
    for (expression, answer) in EXPRESSIONS.iter().zip(answers) {
        let expected: Vec<(String, String)> = answer["warnings"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|warning| {
                let text = |name: &str| warning[name].as_str().unwrap().to_owned();
                (text("fieldRef"), without_number(&text("warning")))
            })
            .collect();
        assert!(answer.get("bad").is_none(), "{expression}: {answer}");
        assert_eq!(ours(expression), expected, "{expression}");
    }
}

fn ours(expression: &str) -> Vec<(String, String)> {
    let document = json!({"components": {"schemas": {"Thing": schema()}}}).to_string();
    let document = json::parse(document.as_bytes()).unwrap();
    let kind = Kind {
        group: "g.io".to_owned(),
        version: "v1".to_owned(),
        kind: "Thing".to_owned(),
    };

    let declaration = Schemas::of_document(&document).unwrap().declare(&kind);
    let expressions = Expressions {
        variables: &[("count", "object.spec.count"), ("bad", "object.nothing")],
        validations: &[(expression, expression)],
    };
    check(&expressions, &[(kind, declaration.unwrap())], None)
        .into_iter()
        .map(|warning| (warning.field, warning.text))
        .collect()
}

/// Upstream appends the time to the name of the type.
fn without_number(text: &str) -> String {
    let mut parts = text.split("Thing");
    let mut cleaned = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        cleaned.push_str("Thing");
        cleaned.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    cleaned
}
