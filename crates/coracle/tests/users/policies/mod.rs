//! Admission policies: what bindings make of them, with which parameters, for which requests.

mod load;
mod mutating;
mod requests;
mod validating;

use coracle_api::Value;

use crate::cluster::{Answer, Raw, Server};
use crate::simulated_nodes::apply;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server with the namespace's ServiceAccount, as no controller makes it.
struct Target {
    server: Server,
    raw: Raw,
    folder: tempfile::TempDir,
}

impl Target {
    fn start() -> Target {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(folder.path());
        server.kubectl(&["create", "serviceaccount", "default"]);
        let raw = Raw::new(&server.kubeconfig);
        Target {
            server,
            raw,
            folder,
        }
    }

    fn apply(&self, text: &str) {
        apply(&self.server, self.folder.path(), "objects.yaml", text);
    }

    /// Applies a policy of a sort (`Validating`, `Mutating`) with members of its spec in YAML's flow
    /// style, and a binding of the same name with some of its own.
    fn bind(&self, sort: &str, name: &str, spec: &str, binding: &str) {
        self.apply(&format!(
            "apiVersion: admissionregistration.k8s.io/v1
kind: {sort}AdmissionPolicy
metadata: {{name: {name}}}
spec: {{{spec}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: {sort}AdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}, {binding}}}
"
        ));
    }

    fn create(&self, name: &str, data: &str) -> Answer {
        self.raw.post(MAPS, &map(name, data))
    }

    fn stop(self) {
        self.server.stop();
    }
}

fn map(name: &str, data: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{data}}}"#
    )
}

/// The constraints of a policy for some operations on a resource.
fn about(resource: &str, operations: &str) -> String {
    let (group, version, resource) = match resource.split('/').collect::<Vec<_>>()[..] {
        [resource] => ("''", "v1", resource.to_owned()),
        [group, version, resource] => (group, version, resource.to_owned()),
        [group, version, resource, sub] => (group, version, format!("{resource}/{sub}")),
        _ => panic!("{resource}"),
    };
    format!(
        "matchConstraints: {{resourceRules: [{{apiGroups: [{group}], apiVersions: [{version}], \
         operations: [{operations}], resources: ['{resource}']}}]}}"
    )
}

fn text<'v>(answer: &'v Answer, path: &[&str]) -> &'v str {
    let found = answer.body.at(path).and_then(Value::as_str);
    found.unwrap_or_default()
}

#[track_caller]
fn accepted(answer: &Answer) {
    assert!(answer.status < 300, "{:?}", answer.refusal());
}

#[track_caller]
fn refused(answer: &Answer, code: u16, message: &str) {
    assert_eq!(answer.refusal(), (code, message));
}
