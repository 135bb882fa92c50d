//! The objects of the benchmark.

use coracle_api::Value;
use coracle_api::codec::{json, yaml};
use coracle_client::Resource;

fn object(text: &str) -> Value {
    yaml::decode(text.as_bytes()).expect("the text is YAML")
}

/// A number that is small enough.
pub(crate) fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("it is small"))
}

pub(crate) fn resource(name: &str) -> Resource {
    Resource::new("bench.example", "v1", name, &kind(name), true)
}

fn kind(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_uppercase() + rest
}

const SPEC: &str = "spec:
              type: object
              properties:
                oars: {type: integer}
                name: {type: string, maxLength: 40}
                crew: {type: array, maxItems: 10, items: {type: string, maxLength: 20}}";

/// Rules as definitions have them: some of a field, some of the elements of a list.
const KINDS_OF_RULES: [&str; 5] = [
    "self.oars >= 0 && self.oars < 1000",
    "self.name.startsWith('ship') || self.name.size() < 40",
    "self.crew.all(one, one.size() < 20)",
    "!has(self.crew) || self.crew.size() <= 10",
    "self.name.matches('^[a-z0-9-]+$')",
];

/// A definition whose spec has so many rules.
pub(crate) fn definition(name: &str, rules: usize) -> Value {
    let written = (0..rules).map(|number| {
        let rule = KINDS_OF_RULES[number % KINDS_OF_RULES.len()];
        // Different ones: equal expressions might be shared.
        format!("\n              - {{rule: \"{rule} && self.oars != -{number}\"}}")
    });
    let rules = match rules {
        0 => String::new(),
        _ => format!(
            "\n              x-kubernetes-validations:{}",
            written.collect::<String>()
        ),
    };
    object(&format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {name}.bench.example}}
spec:
  group: bench.example
  scope: Namespaced
  names: {{kind: {kind}, plural: {name}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
          type: object
          properties:
            {SPEC}{rules}
",
        kind = kind(name),
    ))
}

/// A definition with a second version, to which a webhook converts.
pub(crate) fn converted(url: &str, ca: &str) -> Value {
    object(&format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: turned.bench.example}}
spec:
  group: bench.example
  scope: Namespaced
  names: {{kind: Turned, plural: turned}}
  conversion:
    strategy: Webhook
    webhook: {{conversionReviewVersions: [v1], clientConfig: {{url: '{url}/convert', caBundle: {ca}}}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
          type: object
          properties:
            {SPEC}
  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema:
          type: object
          properties:
            {SPEC}
"
    ))
}

pub(crate) fn ship(name: &str, version: &str, called: &str) -> Value {
    let kind = kind(name);
    let text = format!(
        r#"{{"apiVersion":"bench.example/{version}","kind":"{kind}","metadata":{{"name":"{called}"}},
        "spec":{{"oars":4,"name":"ship-of-theseus","crew":["orpheus","heracles","lynceus","tiphys"]}}}}"#
    );
    json::parse(text.as_bytes()).expect("the text is JSON")
}

pub(crate) fn config_map(name: &str) -> Value {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"key":"value"}}}}"#
    );
    json::parse(text.as_bytes()).expect("the text is JSON")
}

/// A policy about Deployments, with its binding; each with its plural name.
pub(crate) fn policy(number: usize) -> [(&'static str, Value); 2] {
    [
        (
            "validatingadmissionpolicies",
            object(&format!(
                "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: p{number}}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}}]
  validations: [{{expression: object.spec.replicas < {limit}}}]
",
                limit = number + 5
            )),
        ),
        (
            "validatingadmissionpolicybindings",
            object(&format!(
                "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: p{number}}}
spec: {{policyName: p{number}, validationActions: [Deny]}}
"
            )),
        ),
    ]
}

/// A mutating and a validating webhook for ConfigMaps, each with its plural name.
pub(crate) fn webhooks(url: &str, ca: &str) -> [(&'static str, Value); 2] {
    let of = |kind: &str, path: &str| {
        object(&format!(
            "apiVersion: admissionregistration.k8s.io/v1
kind: {kind}WebhookConfiguration
metadata: {{name: bench}}
webhooks:
- name: {path}.bench.example
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  rules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}}]
  namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: default}}}}
  clientConfig: {{url: '{url}/{path}', caBundle: {ca}}}
"
        ))
    };
    [
        ("mutatingwebhookconfigurations", of("Mutating", "mutate")),
        (
            "validatingwebhookconfigurations",
            of("Validating", "validate"),
        ),
    ]
}
