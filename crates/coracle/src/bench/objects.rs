//! The objects that benchmarks create.

/// A ConfigMap of about `size` bytes.
pub(super) fn config_map(name: &str, size: usize) -> String {
    let filler = "x".repeat(size.saturating_sub(300));
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"app":"bench"}}}},"data":{{"filler":"{filler}"}}}}"#
    )
}

/// A typical pod, of about `size` bytes when stored.
pub(super) fn pod(name: &str, size: usize) -> String {
    let variables: Vec<String> = (0..4)
        .map(|n| format!(r#"{{"name":"VARIABLE_{n}","value":"value-of-{n}"}}"#))
        .collect();
    let filler = "x".repeat(size.saturating_sub(3060));
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","labels":{{"app":"bench","tier":"web"}},"annotations":{{"filler":"{filler}"}}}},"spec":{{"automountServiceAccountToken":false,"containers":[{{"name":"web","image":"registry.example/web:1.2.3","ports":[{{"containerPort":8080,"name":"http"}}],"env":[{}],"resources":{{"requests":{{"cpu":"100m","memory":"128Mi"}},"limits":{{"memory":"256Mi"}}}},"readinessProbe":{{"httpGet":{{"path":"/ready","port":"http"}}}}}}]}}}}"#,
        variables.join(",")
    )
}
