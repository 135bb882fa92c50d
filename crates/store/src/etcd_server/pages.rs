//! etcd's plain HTTP endpoints on the same address: `/health`, `/livez`, `/readyz`, `/version`,
//! `/metrics`.

use super::ServerState;
use super::maintenance::minor;
use crate::{Store, StoreStatus};
use axum::{Router, body::Body};
use coracle_metrics::{CONTENT_TYPE, Foreign, Kind, Registry, process};
use http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use tonic::{Status, service::Routes};

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

const PATHS: [&str; 5] = ["/health", "/livez", "/readyz", "/version", "/metrics"];

type Page = Response<Body>;

/// The routes of the API and of these endpoints.
pub(super) fn routes(calls: Routes, state: &ServerState) -> Routes {
    with_pages(calls.into_axum_router(), state)
}

/// The routes of these endpoints only.
pub(super) fn alone(state: &ServerState) -> Routes {
    with_pages(Router::new(), state)
}

fn with_pages(router: Router, state: &ServerState) -> Routes {
    let state = state.clone();
    let page =
        move |request: Request<Body>| async move { state.page(&request.into_parts().0).await };
    Routes::from(router.fallback(page))
}

fn answer(status: StatusCode, kind: &'static str, text: impl Into<Body>) -> Page {
    let mut page = Response::new(text.into());
    *page.status_mut() = status;
    page.headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    page
}

impl ServerState {
    /// The response to a request that is no call of the API.
    async fn page(&self, request: &Parts) -> Page {
        let path = request.uri.path();
        let kind = request
            .headers
            .get(header::CONTENT_TYPE)
            .map(HeaderValue::as_bytes)
            .unwrap_or_default();

        if kind.starts_with(b"application/grpc") {
            return Status::unimplemented("").into_http();
        }
        if !PATHS.contains(&path) {
            return answer(StatusCode::NOT_FOUND, TEXT, "404 page not found\n");
        }

        if request.method != Method::GET {
            let mut refused = answer(StatusCode::METHOD_NOT_ALLOWED, TEXT, "Method Not Allowed\n");
            refused
                .headers_mut()
                .insert(header::ALLOW, HeaderValue::from_static("GET"));
            return refused;
        }

        match path {
            "/version" => self.version().await,
            "/metrics" => self.metrics().await,
            "/health" => self.health(),
            _ => self.ready(),
        }
    }

    fn health(&self) -> Page {
        match self.store.is_closed() {
            false => answer(StatusCode::OK, JSON, r#"{"health":"true","reason":""}"#),
            true => {
                let text = r#"{"health":"false","reason":"the store is closed"}"#;
                answer(StatusCode::SERVICE_UNAVAILABLE, JSON, text)
            }
        }
    }

    fn ready(&self) -> Page {
        match self.store.is_closed() {
            false => answer(StatusCode::OK, TEXT, "ok\n"),
            true => answer(
                StatusCode::SERVICE_UNAVAILABLE,
                TEXT,
                "the store is closed\n",
            ),
        }
    }

    async fn version(&self) -> Page {
        match self.store.status().await {
            Ok(StoreStatus { version, .. }) => {
                let minor = minor(&version);
                let text = format!(
                    r#"{{"etcdserver":"{version}","etcdcluster":"{minor}.0","storage":"{minor}.0"}}"#
                );
                answer(StatusCode::OK, JSON, text)
            }
            Err(error) => answer(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{error}\n")),
        }
    }

    async fn metrics(&self) -> Page {
        match self.store.status().await {
            Ok(status) => answer(StatusCode::OK, CONTENT_TYPE, self.metrics_text(&status)),
            Err(error) => answer(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{error}\n")),
        }
    }

    /// The metrics of this store under etcd's names.
    fn metrics_text(&self, status: &StoreStatus) -> String {
        let registry = Registry::default();
        let version = status.version.clone();
        let of_cluster = minor(&version).to_string();
        let gauge = |name, help, number: u64| {
            registry.read(Foreign, name, Kind::Gauge, help, [], move |reading| {
                reading.add_count(&[], number);
            });
        };
        let one = |name, help, label, text: String| {
            registry.read(Foreign, name, Kind::Gauge, help, [label], move |reading| {
                reading.add_count(&[&text], 1);
            });
        };

        let is_open = u64::from(!self.store.is_closed());
        one(
            "etcd_cluster_version",
            "The version of the cluster.",
            "cluster_version",
            of_cluster,
        );
        gauge(
            "etcd_debugging_mvcc_compact_revision",
            "The oldest revision that is not compacted.",
            status.compacted.get(),
        );
        gauge(
            "etcd_debugging_mvcc_current_revision",
            "The current revision.",
            status.revision.get(),
        );
        gauge(
            "etcd_debugging_mvcc_keys_total",
            "The number of keys.",
            self.store.memory().live_keys,
        );
        gauge(
            "etcd_mvcc_db_total_size_in_bytes",
            "The total size of all files in bytes.",
            status.file_bytes,
        );
        gauge(
            "etcd_mvcc_db_total_size_in_use_in_bytes",
            "The size of live data and history in bytes.",
            status.used_bytes,
        );
        gauge(
            "etcd_server_has_leader",
            "Whether there is a leader: 1 while the store is open.",
            is_open,
        );
        one(
            "etcd_server_id",
            "The ID of the member.",
            "server_id",
            format!("{:x}", self.member_id()),
        );
        gauge(
            "etcd_server_is_leader",
            "Whether this member is the leader.",
            is_open,
        );
        one(
            "etcd_server_version",
            "The etcd version that this server is compatible with.",
            "server_version",
            version,
        );

        process::register(&registry);
        registry.text()
    }
}
