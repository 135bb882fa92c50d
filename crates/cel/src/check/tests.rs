//! Types and errors of expressions. All expectations are cel-go's answers.

use crate::env::Env;
use crate::types::{Fields, ObjectType, ObjectTypes, Type};

fn env() -> Env {
    let mut objects = ObjectTypes::default();
    objects.insert(ObjectType {
        name: "Self".into(),
        fields: Fields::Named([("name".into(), Type::String)].into()),
    });
    Env::base()
        .with_objects(objects)
        .with_variable("self", Type::object("Self"))
        .with_variable("any", Type::Dyn)
        .with_variable("l", Type::list(Type::Int))
        .with_variable("authorizer.requestResource", Type::Int)
}

fn check_type(text: &str, expected: &str) {
    let checked = env()
        .compile(text)
        .unwrap_or_else(|issues| panic!("{text}: {issues}"));
    assert_eq!(checked.output().to_string(), expected, "{text}");
}

fn check_errors(text: &str, expected: &[(i32, &str)]) {
    let issues = env().compile(text).expect_err(text);
    let found: Vec<(i32, &str)> = issues
        .sorted()
        .into_iter()
        .map(|issue| (issue.location.column + 1, issue.message.as_str()))
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn every_expression_has_a_type() {
    check_type("self.name", "string");
    check_type("any.a.b[0]", "dyn");
    check_type("l.map(i, [i])", "list(list(int))");
    check_type("[[], [1]]", "list(list(int))");
    check_type("{'a': 1}.?a", "optional_type(int)");
    check_type(
        "duration('1s') + timestamp('2020-01-01T00:00:00Z')",
        "google.protobuf.Timestamp",
    );
    check_type("authorizer.requestResource", "int");
    check_type("type(1)", "type(int)");
    check_type("google.protobuf.Value{null_value: 0}", "dyn");
    check_type("true ? 1 : dyn('a')", "dyn");
}

#[test]
fn every_error_is_reported_at_its_place() {
    check_errors(
        "x + 1",
        &[(1, "undeclared reference to 'x' (in container '')")],
    );
    check_errors("self.nam", &[(5, "undefined field 'nam'")]);
    check_errors(
        "1 + 'a'",
        &[(
            3,
            "found no matching overload for '_+_' applied to '(int, string)'",
        )],
    );
    check_errors(
        "quantity('1').sub()",
        &[(
            18,
            "found no matching overload for 'sub' applied to 'kubernetes.Quantity.()'",
        )],
    );

    check_errors(
        "1.all(x, x)",
        &[(
            1,
            "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        )],
    );
    check_errors(
        "x.f()",
        &[
            (1, "undeclared reference to 'x' (in container '')"),
            (4, "undeclared reference to 'f' (in container '')"),
        ],
    );
    check_errors(
        "quantity('1').x",
        &[(14, "unexpected failed resolution of 'kubernetes.Quantity'")],
    );
    check_errors(
        "Self{name: 1}",
        &[(
            10,
            "expected type of field 'name' is 'string' but provided type is 'int'",
        )],
    );
    check_errors("l{}", &[(2, "'list' is not a type")]);
    check_errors("int{}", &[(4, "'int' is not a message type")]);
    check_errors("1 && true", &[(1, "expected type 'bool' but found 'int'")]);
}

#[test]
fn literals_are_validated_after_the_types() {
    check_errors("[1, 'a']", &[(5, "expected type 'int' but found 'string'")]);
    check_errors("duration('x')", &[(10, "invalid duration argument")]);
    check_errors(
        "timestamp('2020-01-01')",
        &[(11, "invalid timestamp argument")],
    );
    check_errors("'a'.matches('[')", &[(13, "invalid matches argument")]);

    check_errors(
        "'%d'.format(['a'])",
        &[(
            14,
            "error during formatting: decimal clause can only be used on integers, was given string",
        )],
    );
    check_errors(
        "'%q'.format([1])",
        &[(
            12,
            "could not parse formatting clause: unrecognized formatting clause \"q\"",
        )],
    );
    check_errors(
        "'%s'.format([1, 2])",
        &[(
            12,
            "too many arguments supplied to string.format (expected 1, got 2)",
        )],
    );
}

#[test]
fn types_that_double_with_each_call_are_refused() {
    check_errors(
        &format!("[1]{}", ".map(a, {a: a})".repeat(60)),
        &[(0, "types in the expression are too large")],
    );
}
