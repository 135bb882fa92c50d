//! Objects that many tests need.

use coracle_api::Value;
use coracle_api::codec::{json, yaml};

/// An object from its YAML.
pub fn object(text: &str) -> Value {
    yaml::decode(text.as_bytes()).unwrap()
}

/// A ConfigMap with one entry.
pub fn config_map(name: &str, entry: &str) -> Value {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"default"}},"data":{{"k":"{entry}"}}}}"#
    );
    json::parse(text.as_bytes()).unwrap()
}

/// A pod with one container.
pub fn pod(name: &str) -> Value {
    object(&format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default}}\n\
         spec: {{containers: [{{name: c, image: i}}]}}\n"
    ))
}

/// A ReplicaSet of pods that are labelled `app: NAME`.
pub fn replica_set(name: &str, replicas: usize) -> Value {
    object(&format!(
        "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {{name: {name}, namespace: default}}\n\
         spec:\n  replicas: {replicas}\n  selector: {{matchLabels: {{app: {name}}}}}\n  \
         template: {{metadata: {{labels: {{app: {name}}}}}, spec: {{containers: [{{name: c, image: i}}]}}}}\n"
    ))
}
