//! What mutations do to a Deployment.

use coracle_api::Value;
use coracle_api::apply::Type;
use coracle_api::codec::{json, yaml};
use coracle_cel::eval::Budget;
use coracle_cel::program::Activation;
use coracle_cel::value::Value as CelValue;

use super::{apply_configuration, json_patch};
use crate::admission::{Compiler, Returns, Visible};

const MUTATION: Visible = Visible {
    params: false,
    authorizer: false,
    patches: true,
};

fn deployment(members: &str) -> Value {
    let text = format!("{{apiVersion: apps/v1, kind: Deployment, {members}}}");
    yaml::decode(text.as_bytes()).unwrap()
}

fn applied(expression: &str, object: &Value) -> Result<Value, String> {
    let compiled = Compiler::plain().compile(expression, MUTATION, Returns::Object);
    let expression = compiled.map_err(|error| error.to_string())?;
    let variables = Activation::default().with("object", CelValue::of(object));
    let outcome = expression.program.eval(&variables, Budget::default());
    let made = outcome.result.map_err(|error| error.to_string())?;

    let of = Type::of_kind("apps/v1", "Deployment");
    apply_configuration(&made, object, of).map_err(|error| error.to_string())
}

fn patched(expression: &str, object: &Value) -> Result<Value, String> {
    let compiled = Compiler::plain().compile(expression, MUTATION, Returns::JsonPatches);
    let expression = compiled.map_err(|error| error.to_string())?;
    let variables = Activation::default().with("object", CelValue::of(object));
    let outcome = expression.program.eval(&variables, Budget::default());
    let made = outcome.result.map_err(|error| error.to_string())?;

    match json_patch(&made, object) {
        Ok(Some(patched)) => Ok(json::parse(&json::to_vec(&patched)).unwrap()),
        Ok(None) => Ok(object.clone()),
        Err(error) => Err(error.to_string()),
    }
}

fn check_applied(expression: &str, before: &str, expected: Result<&str, &str>) {
    let found = applied(expression, &deployment(before));
    let expected = expected.map(deployment).map_err(str::to_owned);
    assert_eq!(found, expected, "{expression}");
}

fn check_patched(expression: &str, before: &str, expected: Result<&str, &str>) {
    let found = patched(expression, &deployment(before));
    let expected = expected.map(deployment).map_err(str::to_owned);
    assert_eq!(found, expected, "{expression}");
}

/// An expression that sets what is in the spec of the pods.
fn pod_spec(fields: &str) -> String {
    format!(
        "Object{{spec: Object.spec{{template: Object.spec.template{{spec: Object.spec.template.spec{{{fields}}}}}}}}}"
    )
}

#[test]
fn a_configuration_is_merged_as_apply_merges() {
    check_applied(
        &pod_spec("volumes: [Object.spec.template.spec.volumes{name: 'w'}]"),
        "spec: {template: {spec: {volumes: [{name: x}]}}}",
        Ok("spec: {template: {spec: {volumes: [{name: x}, {name: w}]}}}"),
    );

    check_applied(
        &pod_spec(
            "volumes: [Object.spec.template.spec.volumes{name: 'w', \
             hostPath: Object.spec.template.spec.volumes.hostPath{path: 'a'}}]",
        ),
        "spec: {template: {spec: {volumes: [{name: x}, {name: w}]}}}",
        Ok("spec: {template: {spec: {volumes: [{name: x}, {name: w, hostPath: {path: a}}]}}}"),
    );

    check_applied(
        "Object{spec: Object.spec{replicas: object.spec.replicas % 2 == 0 ? object.spec.replicas + 1 : 0}}",
        "spec: {replicas: 2}",
        Ok("spec: {replicas: 3}"),
    );

    check_applied(
        "Object{metadata: Object.metadata{labels: {'b': 'c'}}}",
        "metadata: {labels: {a: b}}",
        Ok("metadata: {labels: {a: b, b: c}}"),
    );

    check_applied("Object{}", "spec: {replicas: 1}", Ok("spec: {replicas: 1}"));
    check_applied(
        "Object{?spec: optional.none()}",
        "spec: {replicas: 1}",
        Ok("spec: {replicas: 1}"),
    );
}

#[test]
fn elements_of_the_object_with_equal_keys_stay_unless_they_are_set() {
    let before = "spec: {replicas: 1, template: {spec: {containers: [{name: a, env: [{name: e, value: '1'}, {name: e, value: '2'}]}]}}}";
    check_applied(
        "Object{spec: Object.spec{replicas: 3}}",
        before,
        Ok(
            "spec: {replicas: 3, template: {spec: {containers: [{name: a, env: [{name: e, value: '1'}, {name: e, value: '2'}]}]}}}",
        ),
    );

    check_applied(
        &pod_spec(
            "containers: [Object.spec.template.spec.containers{name: 'a', \
             env: [Object.spec.template.spec.containers.env{name: 'e', value: '3'}]}]",
        ),
        before,
        Ok(
            "spec: {replicas: 1, template: {spec: {containers: [{name: a, env: [{name: e, value: '3'}]}]}}}",
        ),
    );
}

#[test]
fn parts_of_the_object_can_be_used_in_a_configuration() {
    check_applied(
        &pod_spec(
            "containers: object.spec.template.spec.containers.map(c, \
             Object.spec.template.spec.containers{name: c.name, image: 'r/' + c.image})",
        ),
        "spec: {template: {spec: {containers: [{name: a, image: x}]}}}",
        Ok("spec: {template: {spec: {containers: [{name: a, image: r/x}]}}}"),
    );

    check_applied(
        "Object{metadata: Object.metadata{labels: object.spec.template.metadata.labels}}",
        "spec: {template: {metadata: {labels: {a: b}}}}",
        Ok("metadata: {labels: {a: b}}, spec: {template: {metadata: {labels: {a: b}}}}"),
    );
}

#[test]
fn what_is_owned_as_a_whole_is_refused() {
    check_applied(
        "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'l': 'v'}}}}",
        "spec: {replicas: 1}",
        Err(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector",
        ),
    );

    check_applied(
        &pod_spec(
            "containers: [Object.spec.template.spec.containers{name: 'a', args: ['x'], command: ['y']}]",
        ),
        "spec: {replicas: 1}",
        Err(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: \
             .spec.template.spec.containers[0].args, .spec.template.spec.containers[0].command",
        ),
    );
}

#[test]
fn a_configuration_must_be_one_of_the_kind() {
    check_applied(
        "Object{spec: Object.specx{replicas: 1}}",
        "spec: {replicas: 1}",
        Err(
            "type mismatch: unexpected type name \"Object.specx\", expected \"Object.spec\", which matches field name path from root Object type",
        ),
    );

    check_applied(
        "Object{spec: Object.spec{replicasx: 1}}",
        "spec: {replicas: 1}",
        Err(
            "error applying patch: failed to convert patch object to typed object: .spec.replicasx: field not declared in schema",
        ),
    );

    check_applied(
        "Object{spec: Object.spec{replicas: 'one'}}",
        "spec: {replicas: 1}",
        Err(
            "error applying patch: failed to convert patch object to typed object: .spec.replicas: expected numeric (int or float), got string",
        ),
    );

    check_applied(
        "'a teapot'",
        "spec: {}",
        Err("must evaluate to Object but got string"),
    );
    check_applied(
        "Object.spec{}",
        "spec: {}",
        Err("must evaluate to Object but got Object.spec"),
    );
}

#[test]
fn values_that_no_object_has_are_refused() {
    check_applied(
        "Object{spec: Object.spec{replicas: null}}",
        "spec: {replicas: 1}",
        Err(
            "error applying patch: failed to convert patch object to typed object: .spec.replicas: expected numeric (int or float), got structpb.NullValue",
        ),
    );

    check_applied(
        "Object{metadata: null}",
        "spec: {replicas: 1}",
        Err(
            "error applying patch: failed to convert patch object to typed object: .metadata: expected map, got &{NULL_VALUE}",
        ),
    );

    // A map in a list is no object to the merge.
    check_applied(
        &pod_spec("volumes: [{'name': 'w'}]"),
        "spec: {}",
        Err(
            "error applying patch: failed to convert patch object to typed object: .spec.template.spec.volumes: element 0: associative list with keys may not have non-map elements",
        ),
    );

    check_applied(
        "Object{metadata: Object.metadata{labels: {1: 'a'}}}",
        "spec: {}",
        Err(
            "error applying patch: failed to convert patch object to typed object: .metadata: expected map, got &{Object.metadata{labels: {1: a}}}",
        ),
    );
    check_applied(
        "Object{metadata: {1: 'a'}}",
        "spec: {}",
        Err("invalid return type: *dynamic.ObjectVal"),
    );
}

#[test]
fn a_patch_is_applied_to_the_text_of_the_object() {
    let check = |operations: &str, before: &str, after: &str| {
        check_patched(&format!("[{operations}]"), before, Ok(after));
    };

    check(
        "JSONPatch{op: 'test', path: '/spec/replicas', value: 1}, JSONPatch{op: 'replace', path: '/spec/replicas', value: 3}",
        "spec: {replicas: 1}",
        "spec: {replicas: 3}",
    );
    // A failed test changes nothing, and is no error.
    check(
        "JSONPatch{op: 'replace', path: '/spec/replicas', value: 3}, JSONPatch{op: 'test', path: '/spec/replicas', value: 1}",
        "spec: {replicas: 1}",
        "spec: {replicas: 1}",
    );
    check(
        "JSONPatch{op: 'remove', path: '/metadata/labels/w'}",
        "metadata: {labels: {x: '1', w: '1'}}",
        "metadata: {labels: {x: '1'}}",
    );
    check(
        "JSONPatch{op: 'copy', from: '/metadata/labels/x', path: '/metadata/labels/w'}",
        "metadata: {labels: {x: '1'}}",
        "metadata: {labels: {x: '1', w: '1'}}",
    );
    check(
        "JSONPatch{op: 'move', from: '/spec/l/0', path: '/spec/l/-'}",
        "spec: {l: [a, b, c]}",
        "spec: {l: [b, c, a]}",
    );
    check(
        "JSONPatch{op: 'add', path: '/metadata/labels', value: {}}, \
         JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('k8s.io/x~y'), value: 'true'}",
        "metadata: {name: a}",
        "metadata: {name: a, labels: {k8s.io/x~y: 'true'}}",
    );
    check(
        "JSONPatch{op: 'add', path: '/spec/l/-', value: Object.spec.l{name: 'x', ports: [Object.spec.l.ports{port: 80}]}}",
        "spec: {l: []}",
        "spec: {l: [{name: x, ports: [{port: 80}]}]}",
    );
    // The first object is what the path of the types begins with.
    check(
        "JSONPatch{op: 'add', path: '/spec', value: Object.invalid{replicas: 1}}",
        "spec: {}",
        "spec: {replicas: 1}",
    );
}

#[test]
fn a_patch_that_does_not_apply_is_refused() {
    check_patched(
        "[JSONPatch{op: 'replace', path: '/spec/l/-', value: 1}]",
        "spec: {l: [1]}",
        Err(
            "JSON Patch: replace operation does not apply: doc is missing key: /spec/l/-: missing value",
        ),
    );
    check_patched(
        "[JSONPatch{op: 'invent', path: '/spec'}]",
        "spec: {}",
        Err("JSON Patch: Unexpected kind: invent"),
    );

    check_patched(
        "[JSONPatch{op: 'add', path: '/spec', value: Object.spec{a: [Object.spec.b{}]}}]",
        "spec: {}",
        Err(
            "type mismatch: unexpected type name \"Object.spec.b\", expected \"Object.spec.a\", which matches field name path from root Object type",
        ),
    );
    check_patched(
        "[JSONPatch{op: 'add', path: '/spec', value: quantity('1')}]",
        "spec: {}",
        Err(
            "JSONPath valueExpression evaluated to a type that could not marshal to JSON: type conversion error from 'kubernetes.Quantity' to JSON",
        ),
    );
    check_patched(
        "'add'",
        "spec: {}",
        Err("must evaluate to list(JSONPatch) but got string"),
    );
}

#[test]
fn patches_and_objects_have_fields_and_can_be_compared() {
    let check = |value: &str, expected: &str| {
        check_patched(
            &format!(
                "[JSONPatch{{op: 'add', path: '/metadata', value: {{'v': string({value})}}}}]"
            ),
            "metadata: {}",
            Ok(&format!("metadata: {{v: '{expected}'}}")),
        );
    };

    check("JSONPatch{op: 'o'}.op", "o");
    check("JSONPatch{value: 'x'}.value", "x");
    check("JSONPatch{}.path", "");
    check("has(JSONPatch{op: 'o'}.op)", "true");

    check("has(JSONPatch{}.op)", "false");
    check("has(JSONPatch{op: ''}.op)", "false");
    check("has(JSONPatch{}.value)", "false");
    check("has(JSONPatch{value: 1}.value)", "true");

    check("JSONPatch{} == JSONPatch{}", "true");
    check(
        "JSONPatch{op: 'a', value: 1} == JSONPatch{op: 'a', value: 1}",
        "true",
    );
    check(
        "JSONPatch{op: 'a', value: 1} == JSONPatch{op: 'a', value: '1'}",
        "false",
    );
    check("JSONPatch{op: 'a'} == JSONPatch{op: 'b'}", "false");

    check("Object{field: 'x'}.field", "x");
    check("has(Object{field: 'x'}.field)", "true");
    check("has(Object{}.field)", "false");
    check("Object{} == Object{}", "true");

    check("Object{field: 'x'} == Object{field: 'y'}", "false");
    check(
        "dyn(Object{field: 'x'}) == Object.field{field: 'x'}",
        "false",
    );
}

#[test]
fn values_that_nest_too_deeply_are_refused() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let nested = format!(
        "[JSONPatch{{op: 'add', path: '/spec', value: {}}}]",
        deep(200)
    );
    assert!(patched(&nested, &deployment("spec: {}")).is_ok());

    let object = format!("Object{{metadata: {}}}", deep(200));
    let error = applied(&object, &deployment("spec: {}")).unwrap_err();
    assert!(error.contains(".metadata: expected map"), "{error}");
}
