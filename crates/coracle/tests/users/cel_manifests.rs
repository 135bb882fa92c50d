//! `coracle cel --with`, as a user runs it: whole policies and definitions.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {tier: front}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'a:1'}]}
";

/// Few replicas, as many as the parameters say, in namespaces of one environment.
const POLICY: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    namespaceSelector: {matchLabels: {env: test}}
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: ['*'], resources: [deployments]}]
  variables: [{name: most, expression: 'int(params.data.most)'}]
  validations:
  - expression: request.operation == 'DELETE' || object.spec.replicas <= variables.most
    messageExpression: \"'at most ' + string(variables.most) + ' replicas'\"
    reason: Forbidden
  auditAnnotations:
  - {key: user, valueExpression: request.userInfo.username}
";

const PARAMS: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: limits, namespace: shop}
data: {most: '2'}
";

const NAMESPACE: &str = "metadata: {name: shop, labels: {env: test}}";

const BINDING: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: few}
spec:
  policyName: few
  validationActions: [Warn, Audit]
  paramRef: {name: limits, namespace: shop, parameterNotFoundAction: Deny}
";

const LABELS: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: labels}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {\"tier\": \"back\", \"a/b\": \"c\"}}}'}
";

const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Ship, plural: ships}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: 'self.oars % 2 == 0', message: an odd number of oars}
            - {rule: 'self.oars >= oldSelf.oars', message: oars are not thrown away}
            properties: {oars: {type: integer}}
";

const SHIP: &str = "apiVersion: example.org/v1
kind: Ship
metadata: {name: argo}
spec: {oars: 4}
";

/// Runs the command in a folder with the files above.
fn cel(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("deployment.yaml", DEPLOYMENT);
    write(
        "small.yaml",
        &DEPLOYMENT.replace("replicas: 3", "replicas: 1"),
    );
    write("policy.yaml", POLICY);
    write("params.yaml", PARAMS);
    write("namespace.yaml", NAMESPACE);
    write("bound.yaml", &[POLICY, BINDING, PARAMS].join("---\n"));
    write("labels.yaml", LABELS);

    write("crd.yaml", DEFINITION);
    write("ship.yaml", SHIP);
    write("odd.yaml", &SHIP.replace("oars: 4", "oars: 5"));
    write("smaller.yaml", &SHIP.replace("oars: 4", "oars: 2"));
    write("broken.yaml", &POLICY.replace("<=", "<= 'x' +"));
    write(
        "typo.yaml",
        &POLICY.replace("spec.replicas", "spec.replica"),
    );
    write(
        "costly.yaml",
        &DEFINITION
            .replace(
                "self.oars % 2 == 0",
                "self.crew.all(a, self.crew.all(b, a == b))",
            )
            .replace(
                "{oars: {type: integer}}",
                "{oars: {type: integer}, crew: {type: array, items: {type: string}}}",
            ),
    );
    run_in(folder.path(), arguments)
}

fn run_in(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_coracle"))
        .arg("cel")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// What is printed, and the error; which there is when the request is refused.
#[track_caller]
fn answers(arguments: &[&str], printed: &str, error: &str) {
    let output = cel(arguments);
    let found = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(found, printed, "{arguments:?}: {said}");
    assert_eq!(said, error, "{arguments:?}");
    assert_eq!(output.status.success(), error.is_empty(), "{arguments:?}");
}

#[test]
fn a_policy_with_parameters_refuses_or_allows() {
    let given = [
        "--with=policy.yaml",
        "--params=params.yaml",
        "--namespace=namespace.yaml",
    ];
    let with = |more: &[&'static str]| [&given[..], more].concat();
    answers(
        &with(&["-f=deployment.yaml"]),
        "CREATE Deployment shop/web: refused\naudit annotation: few/user=kubernetes-admin\n",
        "coracle: the server refuses the request: deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'few' with binding 'few' denied request: at most 2 replicas\n",
    );
    answers(
        &with(&["-f=small.yaml"]),
        "CREATE Deployment shop/web: allowed\naudit annotation: few/user=kubernetes-admin\n",
        "",
    );
    answers(
        &with(&["-f=deployment.yaml", "--old-object=small.yaml"]),
        "UPDATE Deployment shop/web: refused\naudit annotation: few/user=kubernetes-admin\n",
        "coracle: the server refuses the request: deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'few' with binding 'few' denied request: at most 2 replicas\n",
    );
    answers(
        &with(&["--old-object=deployment.yaml"]),
        "DELETE Deployment shop/web: allowed\naudit annotation: few/user=kubernetes-admin\n",
        "",
    );

    // Nothing is bound to a namespace that the policy does not select.
    answers(
        &[
            "--with=policy.yaml",
            "--params=params.yaml",
            "-f=deployment.yaml",
        ],
        "CREATE Deployment shop/web: allowed\n",
        "",
    );
    answers(
        &["--with=policy.yaml", "-f=deployment.yaml"],
        "",
        "coracle: ValidatingAdmissionPolicy few has parameters: pass a binding with --with, or an object with --params\n",
    );
}

#[test]
fn a_binding_warns_and_the_report_is_json() {
    let output = cel(&[
        "--with=bound.yaml",
        "--namespace=namespace.yaml",
        "-f=deployment.yaml",
        "-o=json",
    ]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success());

    assert_eq!(found["allowed"], json!(true));
    assert_eq!(found["operation"], json!("CREATE"));
    assert_eq!(
        found["warnings"],
        json!([
            "Validation failed for ValidatingAdmissionPolicy 'few' with binding 'few': at most 2 replicas"
        ])
    );

    let annotations = &found["auditAnnotations"];
    assert_eq!(annotations["few/user"], json!("kubernetes-admin"));
    let failure = annotations["validation.policy.admission.k8s.io/validation_failure"].as_str();
    assert!(
        failure.unwrap().contains("at most 2 replicas"),
        "{annotations}"
    );
    assert_eq!(found["object"]["spec"]["replicas"], json!(3));
}

#[test]
fn a_mutation_is_told_by_what_it_changes() {
    answers(
        &["--with=labels.yaml", "-f=deployment.yaml"],
        "CREATE Deployment shop/web: allowed
changed: metadata.labels[\"a/b\"] added: \"c\"
changed: metadata.labels.tier from \"front\" to \"back\"
",
        "",
    );
}

#[test]
fn a_user_needs_rights_that_manifests_grant() {
    let roles = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: seller}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {sells: 'yes'}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: deployments, labels: {sells: 'yes'}}
rules: [{apiGroups: [apps], resources: [deployments], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: seller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: seller}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: sellers}]
";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("roles.yaml"), roles).unwrap();
    std::fs::write(folder.path().join("deployment.yaml"), DEPLOYMENT).unwrap();
    let run = |more: &[&str]| {
        let given = ["--with=roles.yaml", "-f=deployment.yaml", "--as=alice"];
        run_in(folder.path(), &[&given[..], more].concat())
    };
    assert!(run(&["--as-group=sellers"]).status.success());
    let error = String::from_utf8(run(&[]).stderr).unwrap();
    assert!(
        error.contains("User \"alice\" cannot create resource \"deployments\""),
        "{error}"
    );
}

#[test]
fn a_definition_validates_objects_and_their_changes() {
    answers(
        &["--with=crd.yaml", "-f=ship.yaml"],
        "CREATE Ship argo: allowed\n",
        "",
    );
    answers(
        &["--with=crd.yaml", "-f=odd.yaml"],
        "CREATE Ship argo: refused\n",
        "coracle: the server refuses the request: Ship.example.org \"argo\" is invalid: spec: Invalid value: an odd number of oars\n",
    );
    answers(
        &[
            "--with=crd.yaml",
            "-f=smaller.yaml",
            "--old-object=ship.yaml",
        ],
        "UPDATE Ship argo: refused\n",
        "coracle: the server refuses the request: Ship.example.org \"argo\" is invalid: spec: Invalid value: oars are not thrown away\n",
    );
}

#[test]
fn what_the_server_says_to_the_manifests_themselves_is_told() {
    let refused = |arguments: &[&str], expected: &[&str]| {
        let output = cel(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        for part in expected {
            assert!(error.contains(part), "{arguments:?}: {error}");
        }
    };
    refused(
        &["--with=broken.yaml", "-f=deployment.yaml"],
        &[
            "the server refuses ValidatingAdmissionPolicy few of --with: ",
            "spec.validations[0].expression: Invalid value",
            "found no matching overload for '_+_'",
        ],
    );
    refused(
        &["--with=costly.yaml", "-f=ship.yaml"],
        &[
            "CustomResourceDefinition ships.example.org",
            "exceeds budget",
        ],
    );
    refused(
        &["-f=ship.yaml", "--with=namespace.yaml"],
        &["has no apiVersion, kind and name"],
    );
    refused(&["--with=policy.yaml"], &["pass an object with --object"]);
    refused(
        &[
            "--with=crd.yaml",
            "-f=ship.yaml",
            "--old-object=deployment.yaml",
        ],
        &["Ship argo is not of one kind, namespace and name with the old object"],
    );
    refused(
        &["--with=policy.yaml", "-f=ship.yaml"],
        &["no matches for kind \"Ship\" in version \"example.org/v1\""],
    );

    // Types are checked without a request, and warned of.
    let output = cel(&[
        "--with=typo.yaml",
        "--params=params.yaml",
        "-f=deployment.yaml",
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("warning: few, spec.validations[0].expression: apps/v1, Kind=Deployment: ERROR: <input>:")
            && text.contains("undefined field 'replica'"),
        "{text}"
    );
}
