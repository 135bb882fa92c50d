//! Mutations.

use coracle_api::Value;

use super::{Answer, Target, about, accepted, refused, text};
use crate::custom_resources::{BOATS, define};

#[test]
fn mutations_are_merged_or_patched_and_seen_by_later_policies() {
    let target = Target::start();
    let mutation = |name: &str, more: &str, sort: &str, expression: &str| {
        let (kind, field) = match sort {
            "apply" => ("ApplyConfiguration", "applyConfiguration"),
            _ => ("JSONPatch", "jsonPatch"),
        };
        let expression = expression.replace('"', "\\\"");
        let spec = format!(
            "{}, failurePolicy: Fail, {more}, mutations: [{{patchType: {kind}, {field}: {{expression: \"{expression}\"}}}}]",
            about("configmaps", "CREATE, UPDATE")
        );
        target.bind("Mutating", name, &spec, "matchResources: {}");
    };
    let data = |answer: &Answer, key: &str| text(answer, &["data", key]).to_owned();

    // In the order of their names.
    mutation(
        "a-apply",
        "reinvocationPolicy: Never",
        "apply",
        "Object{data: {'first': 'a', 'saw': has(object.data.second) ? 'second' : 'nothing'}}",
    );
    mutation(
        "b-patch",
        "reinvocationPolicy: Never, matchConditions: [{name: k, expression: \"'k' in object.data\"}]",
        "patch",
        r#"[JSONPatch{op: "add", path: "/data/second", value: object.data.first + "b"}]"#,
    );
    let answer = target.create("one", r#"{"k":"v"}"#);
    accepted(&answer);
    assert_eq!(data(&answer, "second"), "ab");
    assert_eq!(data(&answer, "saw"), "nothing");
    let owned = answer.body.at(&["metadata", "managedFields"]).unwrap();
    assert!(
        !format!("{owned:?}").contains("f:second"),
        "what policies set has no field owner"
    );

    mutation(
        "a-apply",
        "reinvocationPolicy: IfNeeded",
        "apply",
        "Object{data: {'first': 'a', 'saw': has(object.data.second) ? 'second' : 'nothing'}}",
    );
    let answer = target.create("two", r#"{"k":"v"}"#);
    assert_eq!(data(&answer, "saw"), "second", "it is evaluated once more");

    // What cannot be done is a refusal, with a cause for each policy.
    mutation(
        "a-apply",
        "reinvocationPolicy: Never",
        "apply",
        "Object{data: {'first': string(1/int(object.data.k))}}",
    );
    mutation(
        "b-patch",
        "reinvocationPolicy: Never",
        "patch",
        r#"[JSONPatch{op: "remove", path: "/data/none"}]"#,
    );
    let answer = target.create("three", r#"{"k":"0"}"#);
    let why = "policy 'a-apply' with binding 'a-apply' denied request: expression \
               'Object{data: {'first': string(1/int(object.data.k))}}' resulted in error: division by zero";
    refused(&answer, 403, why);
    assert_eq!(text(&answer, &["reason"]), "Invalid");
    let causes = answer.body.at(&["details", "causes"]).unwrap();
    assert_eq!(causes.as_array().unwrap().len(), 2);

    target
        .server
        .kubectl(&["delete", "mutatingadmissionpolicy", "a-apply", "b-patch"]);
    let answer = target.create("four", r#"{"k":"0"}"#);
    assert_eq!(data(&answer, "first"), "", "a binding alone does nothing");

    target.stop();
}

#[test]
fn mutations_of_custom_resources_follow_their_schema() {
    let target = Target::start();
    define(&target.server, target.folder.path());
    let spec = format!(
        "{}, failurePolicy: Fail, reinvocationPolicy: Never, mutations: [{{patchType: ApplyConfiguration, applyConfiguration: \
         {{expression: \"Object{{spec: Object.spec{{crew: [Object.spec.crew{{name: 'cat', rank: 'mouser'}}]}}}}\"}}}}]",
        about("harbour.example.com/v1/boats", "CREATE")
    );
    target.bind("Mutating", "cats", &spec, "matchResources: {}");
    let body = r#"{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{"name":"skiff"},
        "spec":{"oars":2,"crew":[{"name":"ann"}]}}"#;
    let answer = target.raw.post(BOATS, body);
    accepted(&answer);
    let crew = answer.body.at(&["spec", "crew"]).and_then(Value::as_array);
    let names: Vec<_> = crew
        .unwrap()
        .iter()
        .map(|one| one.get("name").unwrap())
        .collect();
    assert_eq!(names, [&Value::from("ann"), &Value::from("cat")]);

    let spec = spec.replace(
        "Object{spec: Object.spec{crew: [Object.spec.crew{name: 'cat', rank: 'mouser'}]}}",
        "Object{spec: Object.spec{wheels: 4}}",
    );
    target.bind("Mutating", "cats", &spec, "matchResources: {}");
    let answer = target.raw.post(BOATS, &body.replace("skiff", "raft"));
    refused(
        &answer,
        403,
        "policy 'cats' with binding 'cats' denied request: error applying patch: failed to convert patch object to \
         typed object: .spec.wheels: field not declared in schema",
    );

    target.stop();
}
