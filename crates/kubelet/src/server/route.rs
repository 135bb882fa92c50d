//! Routes requests to handlers.

use std::sync::Arc;

use coracle_serving::access::Certified;
use coracle_serving::pages;
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;

use super::answer::{self, Answer};
use super::query::{Query, decode_segment};
use super::{Server, command, pods, port_forward, resource_metrics, run, stats, system_logs};

/// The route of a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route {
    Health,
    Pods,
    RunningPods,
    Summary,
    Metrics,
    ResourceMetrics,
    ProbeMetrics,
    /// `/configz`, `/flagz`, `/statusz`.
    Page,
    /// A path below the node's folder of logs.
    SystemLogs {
        path: Vec<String>,
        has_slash: bool,
    },
    Logs {
        namespace: String,
        pod: String,
        container: String,
    },
    Command {
        kind: StreamKind,
        target: ContainerPath,
    },
    Run(ContainerPath),
    Ports {
        namespace: String,
        pod: String,
        uid: String,
    },
    /// The path exists for another method.
    WrongMethod,
    NotFound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamKind {
    Exec,
    Attach,
}

/// A container of a pod. The UID is empty if it was not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ContainerPath {
    pub(super) namespace: String,
    pub(super) pod: String,
    pub(super) uid: String,
    pub(super) container: String,
}

/// Authorizes and handles a request.
pub(super) async fn answer(
    server: Arc<Server>,
    request: Request<Incoming>,
    certified: Arc<Certified>,
) -> Answer {
    let path = request.uri().path().to_owned();
    let allowed = server
        .access
        .check(&certified, request.headers(), request.method(), &path)
        .await;

    if let Err(denial) = allowed {
        let status = match denial {
            super::access::Denial::Unknown => StatusCode::UNAUTHORIZED,
            super::access::Denial::Forbidden { .. } => StatusCode::FORBIDDEN,
            super::access::Denial::NoAnswer { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        return answer::text(status, denial.to_string());
    }

    let query = Query::parse(request.uri().query().unwrap_or_default());
    let _counted = server.requests.begin(request.method(), &path);

    match route(request.method(), &path) {
        Route::Health => answer::text(StatusCode::OK, "ok"),
        Route::Pods => pods::desired(&server),
        Route::RunningPods => pods::running(&server).await,
        Route::Summary => stats::summary(&server, &query).await,
        Route::Metrics => pages::metrics(&server.metrics),
        Route::ResourceMetrics => resource_metrics::page(&server).await,
        Route::ProbeMetrics => pages::metrics(&server.probe_metrics),
        Route::Page => server.pages.answer(&request),
        Route::SystemLogs { path, has_slash } => {
            system_logs::answer(system_logs::FOLDER, &path, has_slash).await
        }
        Route::Logs {
            namespace,
            pod,
            container,
        } => pods::logs(&server, &namespace, &pod, &container, &query).await,
        Route::Command { kind, target } => {
            command::answer(&server, kind, &target, &query, request).await
        }
        Route::Run(target) => run::answer(&server, &target, &query).await,
        Route::Ports {
            namespace,
            pod,
            uid,
        } => port_forward::answer(&server, &namespace, &pod, &uid, &query, request).await,
        Route::WrongMethod => {
            answer::text(StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed")
        }
        Route::NotFound => answer::text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

pub(super) fn route(method: &Method, path: &str) -> Route {
    let Some(parts) = path
        .trim_matches('/')
        .split('/')
        .map(decode_segment)
        .collect::<Option<Vec<_>>>()
    else {
        return Route::NotFound;
    };

    let ends_in_slash = path.ends_with('/');
    let (is_get, is_post) = (*method == Method::GET, *method == Method::POST);
    let target = |parts: &[String]| {
        let (container, uid) = (
            parts.last().cloned(),
            parts.get(2).filter(|_| parts.len() == 4).cloned(),
        );

        ContainerPath {
            namespace: parts[0].clone(),
            pod: parts[1].clone(),
            uid: uid.unwrap_or_default(),
            container: container.unwrap_or_default(),
        }
    };

    let texts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (found, allowed) = match texts[..] {
        ["healthz"] | ["healthz", "ping" | "log"] => (Route::Health, true),
        ["pods"] => (Route::Pods, is_get),
        ["runningpods"] => (Route::RunningPods, is_get),
        ["stats", "summary"] => (Route::Summary, is_get || is_post),
        ["metrics"] => (Route::Metrics, true),
        ["metrics", "resource"] => (Route::ResourceMetrics, true),
        ["metrics", "probes"] => (Route::ProbeMetrics, true),
        ["configz" | "flagz" | "statusz"] => (Route::Page, true),
        ["logs", ..] => {
            let path = parts[1..].to_vec();
            let has_slash = path.is_empty() || ends_in_slash;
            (Route::SystemLogs { path, has_slash }, is_get)
        }
        ["containerLogs", namespace, pod, container] => {
            let [namespace, pod, container] = [namespace, pod, container].map(str::to_owned);
            (
                Route::Logs {
                    namespace,
                    pod,
                    container,
                },
                is_get,
            )
        }
        ["exec", _, _, _] | ["exec", _, _, _, _] => (
            Route::Command {
                kind: StreamKind::Exec,
                target: target(&parts[1..]),
            },
            is_get || is_post,
        ),
        ["attach", _, _, _] | ["attach", _, _, _, _] => (
            Route::Command {
                kind: StreamKind::Attach,
                target: target(&parts[1..]),
            },
            is_get || is_post,
        ),
        ["run", _, _, _] | ["run", _, _, _, _] => (Route::Run(target(&parts[1..])), is_post),
        ["portForward", namespace, pod, ref uid @ ..] if uid.len() < 2 => {
            let uid = uid.first().copied().unwrap_or_default();
            let [namespace, pod, uid] = [namespace, pod, uid].map(str::to_owned);
            (
                Route::Ports {
                    namespace,
                    pod,
                    uid,
                },
                is_get || is_post,
            )
        }
        _ => return Route::NotFound,
    };

    if allowed { found } else { Route::WrongMethod }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_upstreams_routes() {
        let check = |method: &str, path: &str, expected: Route| {
            assert_eq!(
                route(&Method::from_bytes(method.as_bytes()).unwrap(), path),
                expected,
                "{path}"
            );
        };

        let target = |uid: &str| ContainerPath {
            namespace: "a".into(),
            pod: "b".into(),
            uid: uid.into(),
            container: "c".into(),
        };

        check("GET", "/healthz", Route::Health);
        check("GET", "/configz", Route::Page);
        check("GET", "/pods", Route::Pods);
        check("POST", "/pods", Route::WrongMethod);

        check("GET", "/runningpods/", Route::RunningPods);
        check(
            "GET",
            "/exec/a/b/c",
            Route::Command {
                kind: StreamKind::Exec,
                target: target(""),
            },
        );

        check(
            "POST",
            "/exec/a/b/u/c",
            Route::Command {
                kind: StreamKind::Exec,
                target: target("u"),
            },
        );

        check(
            "POST",
            "/attach/a/b/c",
            Route::Command {
                kind: StreamKind::Attach,
                target: target(""),
            },
        );

        check("POST", "/run/a/b/c", Route::Run(target("")));
        check("GET", "/run/a/b/c", Route::WrongMethod);

        let ports = |uid: &str| Route::Ports {
            namespace: "a".into(),
            pod: "b".into(),
            uid: uid.into(),
        };

        check("POST", "/portForward/a/b", ports(""));
        check("GET", "/portForward/a/b/u", ports("u"));
        check("GET", "/portForward/a/b/u/x", Route::NotFound);
        check(
            "GET",
            "/containerLogs/a/b/c%20d",
            Route::Logs {
                namespace: "a".into(),
                pod: "b".into(),
                container: "c d".into(),
            },
        );

        let system = |path: &[&str], has_slash| Route::SystemLogs {
            path: path.iter().map(|part| (*part).to_owned()).collect(),
            has_slash,
        };
        check("GET", "/logs", system(&[], true));
        check("GET", "/logs/", system(&[], true));
        check("GET", "/logs/a/b%20c", system(&["a", "b c"], false));
        check("GET", "/logs/a/", system(&["a"], true));
        check("POST", "/logs/", Route::WrongMethod);

        check("GET", "/exec/a/b", Route::NotFound);
        check("GET", "/%zz", Route::NotFound);
        check("GET", "/", Route::NotFound);
    }
}
