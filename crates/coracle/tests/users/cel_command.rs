//! `coracle cel`, as a user runs it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {tier: front}}
spec: {replicas: 3, template: {spec: {containers: [{image: 'a:1'}, {image: 'b'}]}}}
";

const SCHEMA: &str = "type: object
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata: {type: object}
  spec:
    type: object
    properties:
      replicas: {type: integer}
      names: {type: array, maxItems: 10, items: {type: string, maxLength: 8}}
";

const SHOP: &str = "apiVersion: example.org/v1
kind: Shop
metadata: {name: a}
spec: {replicas: 3, names: [p, q]}
";

/// Runs the command in a folder with the files above.
fn cel(arguments: &[&str], input: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("deployment.yaml", DEPLOYMENT);
    write(
        "before.yaml",
        &DEPLOYMENT.replace("replicas: 3", "replicas: 2"),
    );
    write("schema.yaml", SCHEMA);
    write("shop.yaml", SHOP);
    write("params.json", r#"{"maxReplicas": 5}"#);
    write(
        "namespace.yaml",
        "metadata: {name: shop, labels: {env: test}}",
    );
    write(
        "request.yaml",
        "userInfo: {username: alice}\noperation: CONNECT",
    );
    write("two.yaml", "a: 1\n---\nb: 2\n");
    run_in(folder.path(), arguments, input)
}

fn run_in(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_coracle"))
        .arg("cel")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

fn printed(arguments: &[&str], expected: &str) {
    let output = cel(arguments, "");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {error}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, expected, "{arguments:?}");
}

fn refused(arguments: &[&str], expected: &str) {
    let output = cel(arguments, "");
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains(expected), "{arguments:?}: {error}");
}

#[test]
fn an_expression_of_a_policy_sees_a_request() {
    printed(
        &["object.spec.replicas <= 5", "-f", "deployment.yaml"],
        "result: true\ntype: bool\nestimated cost: 2\nactual cost: 4\n",
    );

    let result = |expression: &str, expected: &str| {
        let output = cel(
            &[
                expression,
                "--object=deployment.yaml",
                "--old-object=before.yaml",
                "--params=params.json",
                "--namespace=namespace.yaml",
                "--variable=n=object.spec.replicas",
                "--variable=twice=variables.n * 2",
                "--authorizer=allow",
            ],
            "",
        );
        let text = String::from_utf8(output.stdout).unwrap();
        let found = text.lines().next().unwrap_or_default();
        assert_eq!(found, format!("result: {expected}"), "{expression}");
    };
    result("object.spec.replicas - oldObject.spec.replicas", "1");
    result("variables.twice", "6");
    result("params.maxReplicas > variables.n", "true");
    result("namespaceObject.metadata.labels", r#"{"env": "test"}"#);
    result("request.operation", r#""UPDATE""#);
    result("request.resource.resource", r#""deployments""#);
    result("request.namespace + '/' + request.name", r#""shop/web""#);
    result(
        "authorizer.requestResource.check('create').allowed()",
        "true",
    );
    result(
        "object.spec.template.spec.containers.filter(c, !c.image.contains(':')).map(c, c.image)",
        r#"["b"]"#,
    );

    printed(
        &[
            "request.userInfo.username + request.operation",
            "--request=request.yaml",
        ],
        "result: \"aliceCONNECT\"\ntype: string\nestimated cost: 5 to 1844674407370955269\nactual cost: 7\n",
    );
}

#[test]
fn a_mutation_makes_objects_and_patches() {
    let output = cel(
        &[
            "--for=mutation",
            "-f=deployment.yaml",
            "Object{spec: Object.spec{replicas: object.spec.replicas + 1}}",
        ],
        "",
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("result: Object{spec: Object.spec{replicas: 4}}\ntype: Object\n"),
        "{text}"
    );
}

#[test]
fn a_rule_sees_self_with_the_types_of_its_schema() {
    let typed = ["--for=rule", "--schema=schema.yaml", "-f=shop.yaml"];
    printed(
        &[&typed[..], &["self.spec.names.all(name, size(name) < 5)"]].concat(),
        "result: true\ntype: bool\nestimated cost: 4 to 64\nactual cost: 16\n",
    );
    refused(
        &[&typed[..], &["self.spec.size > 1"]].concat(),
        "coracle: the expression does not compile\nERROR: <input>:1:10: undefined field 'size'\n | self.spec.size > 1\n | .........^",
    );

    printed(
        &[
            "--for=rule",
            "-f=shop.yaml",
            "--optional-old-self",
            "!oldSelf.hasValue() && self.kind == 'Shop'",
        ],
        "result: true\ntype: bool\nestimated cost: 3 to 5\nactual cost: 6\n",
    );
}

#[test]
fn failures_have_a_place_in_the_expression() {
    refused(
        &[
            "object.kind == 'Deployment' &&\n  object.spec.foo.bar > 1",
            "-f=deployment.yaml",
        ],
        "coracle: the expression has no value\nERROR: <input>:2:14: no such key: foo\n |   object.spec.foo.bar > 1\n | .............^",
    );
    refused(
        &["authorizer.path('/a').check('get').allowed()"],
        "pass its answer with --authorizer",
    );
    refused(
        &[
            "[1, 2, 3].all(x, [1, 2, 3].all(y, string(x) + string(y) == 'a'",
            "--for=plain",
        ],
        "Syntax error: mismatched input '<EOF>'",
    );
}

#[test]
fn json_has_the_type_the_costs_and_the_errors() {
    let check = |arguments: &[&str], code: i32, expected: Value| {
        let output = cel(&[&["-o=json", "--for=plain"], arguments].concat(), "");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found, expected, "{arguments:?}");
    };

    check(
        &["x + [4]", "--set", "x=[1, 2]"],
        0,
        serde_json::json!({"type": "list(int)", "estimatedCost": {"min": 12, "max": 12},
            "cost": 2, "text": "[1, 2, 4]", "result": [1, 2, 4]}),
    );
    check(
        &["quantity('1Gi')"],
        0,
        serde_json::json!({"type": "kubernetes.Quantity", "estimatedCost": {"min": 1, "max": 1},
            "cost": 1, "text": "quantity(\"1Gi\")"}),
    );
    check(
        &["1 / 0"],
        1,
        serde_json::json!({"type": "int", "estimatedCost": {"min": 1, "max": 1}, "cost": 1,
            "errors": [{"line": 1, "column": 3, "message": "division by zero"}]}),
    );
    check(
        &["a + b"],
        1,
        serde_json::json!({"errors": [
            {"line": 1, "column": 1, "message": "undeclared reference to 'a' (in container '')"},
            {"line": 1, "column": 5, "message": "undeclared reference to 'b' (in container '')"},
        ]}),
    );
}

#[test]
fn the_expression_or_the_object_comes_from_standard_input() {
    let result = |arguments: &[&str], input: &str| {
        let output = cel(arguments, input);
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(result(&["-", "--for=plain"], "1 +\n 1\n"), "result: 2");
    assert_eq!(
        result(&["object.a", "-f=-"], r#"{"a": 1.5}"#),
        "result: 1.5"
    );
}

#[test]
fn mistakes_of_the_command_line_are_named() {
    refused(&["1", "-f=two.yaml"], "two.yaml: several objects");
    refused(&["1", "-f=nowhere.yaml"], "cannot read nowhere.yaml: ");
    refused(
        &["1", "--for=rule", "--params=params.json"],
        "--params has no meaning for a rule",
    );
    refused(
        &["1", "--variable=x=foo"],
        "the variable \"x\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo'",
    );
    refused(&["1", "--for=plain", "--set=x=["], "--set x: ");
    refused(
        &["1", "--for=rule", "--schema=params.json"],
        "params.json: expressions cannot see values of this schema",
    );
}
