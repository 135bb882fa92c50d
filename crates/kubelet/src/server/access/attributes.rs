//! Authorization attributes of kubelet API requests: a verb on a subresource of `nodes`.

use http::Method;

pub(super) fn verb(method: &Method) -> &'static str {
    match method.as_str() {
        "POST" => "create",
        "GET" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
}

/// The subresources of `nodes`; access to any of them suffices.
pub(super) fn subresources(path: &str) -> &'static [&'static str] {
    let first = path
        .trim_start_matches('/')
        .split('/')
        .next()
        .unwrap_or_default();

    match first {
        "pods" | "runningpods" => &["pods", "proxy"],
        "healthz" => &["healthz", "proxy"],
        "configz" => &["configz", "proxy"],
        "stats" => &["stats"],
        "metrics" => &["metrics"],
        "logs" => &["log"],
        "checkpoint" => &["checkpoint"],
        "statusz" => &["statusz"],
        "flagz" => &["configz"],
        _ => &["proxy"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_subresources_of_the_node() {
        let check = |path, expected: &[&str]| assert_eq!(subresources(path), expected, "{path}");
        check("/pods", &["pods", "proxy"]);
        check("/runningpods/", &["pods", "proxy"]);
        check("/healthz/syncloop", &["healthz", "proxy"]);
        check("/stats/summary", &["stats"]);
        check("/metrics/cadvisor", &["metrics"]);
        check("/logs/", &["log"]);
        check("/exec/a/b/c", &["proxy"]);
        check("/containerLogs/a/b/c", &["proxy"]);
        check("/podsandmore", &["proxy"]);
        check("/", &["proxy"]);
    }
}
