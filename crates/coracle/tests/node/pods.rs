//! Basic pods; tests add to them.

use serde_json::{Value, json};

use crate::tools_image::TOOLS;

/// A pod that runs a script in a shell.
pub(crate) fn shell(name: &str, script: &str) -> Value {
    with_container(
        name,
        &json!({"name": "c", "image": TOOLS, "command": ["sh", "-c", script]}),
    )
}

/// A pod that runs the built-in image.
pub(crate) fn echo(name: &str, arguments: &[&str]) -> Value {
    let image = "coracle.local/echo";
    with_container(
        name,
        &json!({"name": "c", "image": image, "imagePullPolicy": "IfNotPresent", "args": arguments}),
    )
}

fn with_container(name: &str, container: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"for": "test"}},
        "spec": {"terminationGracePeriodSeconds": 2, "containers": [container]},
    })
}
