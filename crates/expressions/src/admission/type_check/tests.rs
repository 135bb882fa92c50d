use coracle_api::Value;
use coracle_api::codec::yaml;

use super::{Declaration, Expressions, Kind, Schemas, check};

const DOCUMENT: &str = "
components:
  schemas:
    Meta:
      type: object
      properties: {name: {type: string}, generateName: {type: string}, labels: {type: object, additionalProperties: {type: string}}}
    Pod:
      type: object
      x-kubernetes-group-version-kind: [{group: '', version: v1, kind: Pod}]
      properties:
        apiVersion: {type: string}
        kind: {type: string}
        metadata: {allOf: [{$ref: '#/components/schemas/Meta'}], default: {}}
        spec:
          type: object
          properties:
            count: {type: integer}
            port: {format: int-or-string, oneOf: [{type: integer}, {type: string}]}
            quantity: {oneOf: [{type: string}, {type: number}]}
            since: {type: string, format: date-time}
            'x-y': {type: string}
    Tree:
      type: object
      x-kubernetes-group-version-kind: [{group: g.io, version: v1, kind: Tree}]
      properties:
        spec: {$ref: '#/components/schemas/Branch'}
    Branch:
      type: object
      properties:
        size: {type: integer}
        branches: {type: array, items: {$ref: '#/components/schemas/Branch'}}
";

fn kind(group: &str, name: &str) -> Kind {
    Kind {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: name.to_owned(),
    }
}

fn declared(document: &Value, kind: &Kind) -> Declaration {
    let schemas = Schemas::of_document(document).unwrap();
    schemas.declare(kind).unwrap()
}

/// The warnings about one expression.
fn warnings(kinds: &[Kind], params: Option<&Kind>, expression: &str) -> String {
    let document = yaml::decode(DOCUMENT.as_bytes()).unwrap();
    let kinds: Vec<(Kind, Declaration)> = kinds
        .iter()
        .map(|kind| (kind.clone(), declared(&document, kind)))
        .collect();
    let params = params.map(|kind| declared(&document, kind));

    let expressions = Expressions {
        variables: &[
            ("count", "object.spec.count"),
            ("bad", "object.nothing"),
            ("again", "variables.count + 1"),
        ],
        validations: &[(expression, "")],
    };
    let found = check(&expressions, &kinds, params.as_ref());
    found.into_iter().map(|warning| warning.text).collect()
}

#[test]
fn expressions_are_checked_with_the_types_of_the_schema() {
    let check = |expression: &str, expected: &str| {
        let text = warnings(&[kind("", "Pod")], None, expression);
        let expected = match expected {
            "" => String::new(),
            what => format!("/v1, Kind=Pod: ERROR: <input>:1:{what}\n"),
        };
        assert_eq!(text, expected, "{expression}");
    };

    check("object.spec.count > 1", "");
    check("object.metadata.labels['a'] == oldObject.metadata.name", "");
    check("object.spec.port == 'http' || object.spec.port == 80", "");
    check("object.spec.since < timestamp('2024-01-01T00:00:00Z')", "");
    check("object.spec.x__dash__y == ''", "");
    check(
        "variables.count > 1 && variables.bad && variables.again > 2",
        "",
    );
    // No type is demanded of the result.
    check("object.spec", "");

    check(
        "object.foo",
        "7: undefined field 'foo'\n | object.foo\n | ......^",
    );
    check(
        "object.spec.count == 'a'",
        "19: found no matching overload for '_==_' applied to '(int, string)'\n | object.spec.count == 'a'\n | ..................^",
    );
    check(
        "has(object.spec.quantity)",
        "4: undefined field 'quantity'\n | has(object.spec.quantity)\n | ...^",
    );
    check(
        "variables.count == 'a'",
        "17: found no matching overload for '_==_' applied to '(int, string)'\n | variables.count == 'a'\n | ................^",
    );
    check(
        "variables.missing",
        "10: undefined field 'missing'\n | variables.missing\n | .........^",
    );
    check(
        "params.a",
        "1: undeclared reference to 'params' (in container '')\n | params.a\n | ^",
    );
}

#[test]
fn each_kind_has_a_warning_of_its_own() {
    let text = warnings(
        &[kind("", "Pod"), kind("g.io", "Tree")],
        None,
        "object.spec.size > 1 && object.spec.count > 1",
    );
    assert_eq!(
        text,
        "/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'size'\n \
         | object.spec.size > 1 && object.spec.count > 1\n \
         | ...........^\n\n\
         g.io/v1, Kind=Tree: ERROR: <input>:1:36: undefined field 'count'\n \
         | object.spec.size > 1 && object.spec.count > 1\n \
         | ...................................^\n"
    );
}

#[test]
fn a_schema_that_refers_to_itself_has_an_end() {
    let check = |expression: &str, expected: bool| {
        let text = warnings(&[kind("g.io", "Tree")], None, expression);
        assert_eq!(text.is_empty(), expected, "{expression}: {text}");
    };

    check("object.metadata.name == object.kind", true);
    check("object.metadata.labels", false);
    check("object.spec.branches[0] == object.spec.branches[1]", true);
    check("object.spec.branches[0].size", false);
}

#[test]
fn parameters_have_the_type_of_their_kind() {
    let tree = kind("g.io", "Tree");
    let check = |expression: &str, expected: bool| {
        let text = warnings(&[kind("", "Pod")], Some(&tree), expression);
        assert_eq!(text.is_empty(), expected, "{expression}: {text}");
    };
    check("params.spec.size > object.spec.count", true);
    check("params.spec.count > 1", false);
}
