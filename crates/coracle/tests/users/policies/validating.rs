//! Validations, and the parameters of policies.

use coracle_api::Value;

use super::{MAPS, Target, about, accepted, map, refused, text};
use crate::custom_resources::{BOATS, define};

#[test]
fn a_validation_that_fails_denies_warns_or_is_audited() {
    let target = Target::start();
    let spec = format!(
        "{}, failurePolicy: Fail, validations: [\
         {{expression: \"object.data.k != 'bad'\", message: no bad data, reason: Forbidden}}, \
         {{expression: \"object.data.k.size() < 9\", messageExpression: \"'too long: ' + object.data.k\"}}, \
         {{expression: \"!has(object.data.other)\"}}]",
        about("configmaps", "CREATE, UPDATE")
    );
    let bind = |actions: &str| {
        let actions = format!("validationActions: [{actions}]");
        target.bind("Validating", "data", &spec, &actions);
    };

    bind("Deny");
    accepted(&target.create("good", r#"{"k":"good"}"#));
    let denied = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'data' with binding 'data' denied request";
    let answer = target.create("a", r#"{"k":"bad"}"#);
    refused(&answer, 403, &format!("{denied}: no bad data"));
    assert_eq!(text(&answer, &["reason"]), "Forbidden");
    let causes = answer.body.at(&["details", "causes"]).unwrap();
    let cause = &causes.as_array().unwrap()[0];
    assert_eq!(
        cause.get("message").and_then(Value::as_str),
        Some("ValidatingAdmissionPolicy 'data' with binding 'data' denied request: no bad data")
    );

    let answer = target.create("a", r#"{"k":"123456789"}"#);
    refused(&answer, 422, &format!("{denied}: too long: 123456789"));
    let answer = target.create("a", r#"{"k":"v","other":"w"}"#);
    refused(
        &answer,
        422,
        &format!("{denied}: failed expression: !has(object.data.other)"),
    );
    let answer = target.create("a", r#"{"other":"w"}"#);
    refused(
        &answer,
        422,
        &format!("{denied}: expression 'object.data.k != 'bad'' resulted in error: no such key: k"),
    );
    let dry = format!("{MAPS}?dryRun=All");
    let answer = target.raw.post(&dry, &map("a", r#"{"k":"bad"}"#));
    assert_eq!(answer.status, 403, "a dry run is checked too");

    bind("Warn, Audit");
    let answer = target.create("a", r#"{"k":"bad","other":"w"}"#);
    accepted(&answer);
    let warned =
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'data' with binding 'data'";
    assert_eq!(
        answer.warnings,
        [
            format!("{warned}: no bad data\""),
            format!("{warned}: failed expression: !has(object.data.other)\"")
        ]
    );

    bind("Audit");
    let answer = target
        .raw
        .put(&format!("{MAPS}/a"), &map("a", r#"{"k":"bad","n":"1"}"#));
    accepted(&answer);
    assert_eq!(answer.warnings, [""; 0]);

    target.stop();
}

#[test]
fn parameters_are_found_by_name_or_selector_in_their_namespace() {
    let target = Target::start();
    let spec = format!(
        "{}, paramKind: {{apiVersion: v1, kind: ConfigMap}}, \
         matchConditions: [{{name: other, expression: \"!has(object.metadata.labels) || !('limits' in object.metadata.labels)\"}}], \
         variables: [{{name: most, expression: 'int(params.data.most)'}}], \
         validations: [{{expression: 'object.data.size() <= variables.most', \
         messageExpression: \"'at most ' + string(variables.most) + ' by ' + params.metadata.name\"}}]",
        about("configmaps", "CREATE")
    );
    let bind = |params: &str| {
        let binding = format!("validationActions: [Deny], paramRef: {{{params}}}");
        target.bind("Validating", "few", &spec, &binding);
    };
    let limits = |namespace: &str, name: &str, most: u32| {
        target.apply(&format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}, labels: {{limits: 'yes'}}}}\n\
             data: {{most: '{most}'}}\n"
        ));
    };
    let denied = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'few' with binding 'few' denied request";

    bind("name: limits, parameterNotFoundAction: Deny");
    refused(
        &target.create("a", r#"{"k":"v"}"#),
        422,
        &format!(
            "{denied}: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
        ),
    );
    bind("name: limits, parameterNotFoundAction: Allow");
    accepted(&target.create("b", r#"{"k":"v"}"#));

    limits("default", "limits", 0);
    refused(
        &target.create("a", r#"{"k":"v"}"#),
        422,
        &format!("{denied}: at most 0 by limits"),
    );
    limits("default", "limits", 1);
    accepted(&target.create("c", r#"{"k":"v"}"#));

    target.server.kubectl(&["create", "namespace", "rules"]);
    limits("rules", "one", 2);
    limits("rules", "two", 1);
    bind(
        "namespace: rules, selector: {matchLabels: {limits: 'yes'}}, parameterNotFoundAction: Deny",
    );
    refused(
        &target.create("a", r#"{"k":"v","l":"w"}"#),
        422,
        &format!("{denied}: at most 1 by two"),
    );
    target
        .server
        .kubectl(&["-n", "rules", "delete", "configmap", "two"]);
    accepted(&target.create("d", r#"{"k":"v","l":"w"}"#));

    target.stop();
}

#[test]
fn custom_resources_are_parameters_and_objects() {
    let target = Target::start();
    let spec = format!(
        "{}, paramKind: {{apiVersion: harbour.example.com/v1, kind: Boat}}, \
         validations: [{{expression: \"object.spec.oars <= params.spec.oars\", message: too many oars}}]",
        about("harbour.example.com/v1/boats", "CREATE, UPDATE")
    );
    let binding = "validationActions: [Deny], \
                   paramRef: {name: largest, namespace: default, parameterNotFoundAction: Allow}";
    target.bind("Validating", "oars", &spec, binding);
    define(&target.server, target.folder.path());

    let boat = |name: &str, oars: u32| {
        let body = format!(
            r#"{{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{{"name":"{name}"}},"spec":{{"oars":{oars}}}}}"#
        );
        target.raw.post(BOATS, &body)
    };
    accepted(&boat("largest", 4));
    accepted(&boat("skiff", 3));
    let why = "ValidatingAdmissionPolicy 'oars' with binding 'oars' denied request: too many oars";
    let denied = |name: &str| format!("boats.harbour.example.com \"{name}\" is forbidden: {why}");
    refused(&boat("galley", 40), 422, &denied("galley"));

    // In another version, and through the subresource, which is another request.
    let old = r#"{"apiVersion":"harbour.example.com/v1beta1","kind":"Boat","metadata":{"name":"galley"},"spec":{"oars":40}}"#;
    let answer = target.raw.post(&BOATS.replace("v1/", "v1beta1/"), old);
    refused(&answer, 422, &denied("galley"));
    let scale = r#"{"spec":{"replicas":5}}"#;
    accepted(
        &target
            .raw
            .patch(&format!("{BOATS}/skiff/scale"), "merge", scale),
    );
    let more = r#"{"spec":{"harbour":"away"}}"#;
    let answer = target.raw.patch(&format!("{BOATS}/skiff"), "merge", more);
    refused(&answer, 422, &denied("skiff"));

    // Without its definition the policy cannot be evaluated.
    target.server.kubectl(&["delete", "boats", "--all"]);
    let spec = spec.replace("kind: Boat", "kind: Ship");
    target.bind("Validating", "oars", &spec, binding);
    refused(
        &boat("a", 1),
        422,
        "boats.harbour.example.com \"a\" is forbidden: ValidatingAdmissionPolicy 'oars' denied request: \
         failed to configure policy: failed to find resource referenced by paramKind: \
         'harbour.example.com/v1, Kind=Ship'",
    );

    target.stop();
}

#[test]
fn who_names_parameters_must_be_allowed_to_read_them() {
    let target = Target::start();
    target.apply(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: policies}\n\
         rules: [{apiGroups: [admissionregistration.k8s.io], resources: ['*'], verbs: ['*']}]\n\
         ---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: policies}\n\
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: policies}\n\
         subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}]\n",
    );
    let refused = |text: &str, why: &str| {
        let file = target.folder.path().join("refused.yaml");
        std::fs::write(&file, text).unwrap();
        let said = target
            .server
            .refused(&["create", "--as=ann", "-f", file.to_str().unwrap()]);
        assert!(said.contains(why), "{said}");
    };

    let spec = format!(
        "{}, paramKind: {{apiVersion: v1, kind: Secret}}, validations: [{{expression: 'true'}}]",
        about("configmaps", "CREATE")
    );
    refused(
        &format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n\
             metadata: {{name: a}}\nspec: {{{spec}}}\n"
        ),
        "spec.paramKind: Forbidden: user &{ann  [system:authenticated] map[]} must have \"get\" permission on all \
         objects of the referenced paramKind (kind=Secret, apiVersion=v1)",
    );
    target.bind("Validating", "b", &spec, "validationActions: [Deny]");
    refused(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: c}\n\
         spec: {policyName: b, validationActions: [Deny], paramRef: {name: s, namespace: default, parameterNotFoundAction: Deny}}\n",
        "spec.paramRef: Forbidden: user &{ann  [system:authenticated] map[]} does not have \"get\" permission on the \
         object referenced by paramRef",
    );

    target.stop();
}

#[test]
fn policies_never_see_policies() {
    let target = Target::start();
    let spec = "matchConstraints: {resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*']}]}, \
                validations: [{expression: 'false'}]";
    target.bind("Validating", "nothing", spec, "validationActions: [Deny]");
    assert_eq!(target.create("a", "{}").status, 422);
    // Reviews are not refused either: kubectl asks what it may do.
    assert_eq!(
        target.server.kubectl(&["auth", "can-i", "get", "pods"]),
        "yes\n"
    );
    target
        .server
        .kubectl(&["delete", "validatingadmissionpolicy", "nothing"]);
    accepted(&target.create("a", "{}"));

    target.stop();
}
