//! Connecting subresources: logs, exec, attach and port-forward at the pod's kubelet, and proxies
//! to pods, services and nodes.
//!
//! [`options`] are parsed from the query, [`backend`] resolves the backend, [`nodes`] has its TLS
//! settings, [`dial`] connects and [`forward`] forwards. Upgraded connections are copied unread;
//! [`rewrite`] and [`page`] make the rest fit the proxy's paths, [`websocket`] sends a stream as
//! messages.

mod backend;
mod dial;
mod forward;
pub(crate) mod forwarding;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod links;
mod nodes;
mod options;
mod page;
mod rewrite;
mod websocket;

use std::sync::Arc;

use coracle_api::Map;
use coracle_api::catalog::{BUILTIN, Resource};
use coracle_api::typed;
use coracle_client::Tasks;
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service};
use rustls::ClientConfig;
use serde::de::DeserializeOwned;

pub use nodes::{Identity, KubeletConfig};
pub(crate) use websocket::Streamed;

use self::backend::{Backend, ProxyName};
use self::forward::{ForwardedRequest, needs_slash};
use self::forwarding::wants_upgrade;
use self::nodes::BackendKind;
use self::options::{CommandOptions, LogOptions};
use crate::ApiError;
use crate::answer::{self, Answer};
use crate::authn::Caller;
use crate::authz::{Attributes, attributes_of};
use crate::registry::{Registry, RequiredVersion, Scope};
use crate::request::RequestBody;
use crate::request::{ResourceRequest, Target, Verb};
use crate::status::{Details, Reason};

/// How much of a kubelet's error is read.
const MAX_ERROR_BYTES: usize = 50_000;

/// Connects clients to nodes and pods.
pub struct Connect {
    config: KubeletConfig,
    identity: Identity,
    registry: Arc<Registry>,
    /// Connections that last longer than their requests; they end with the server.
    tasks: Tasks,
}

/// Whether the server's certificate is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verification {
    Required,
    Skipped,
}

/// The subresource that a request connects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subresource {
    Log,
    Exec,
    Attach,
    PortForward,
    Proxy,
}

impl Subresource {
    /// `None`: the request is one for objects.
    pub(crate) fn of(target: &Target) -> Option<Subresource> {
        if !target.group.is_empty() || target.version != "v1" || target.name.is_empty() {
            return None;
        }
        match (target.resource.as_str(), target.subresource.as_str()) {
            ("pods", "log") => Some(Subresource::Log),
            ("pods", "exec") => Some(Subresource::Exec),
            ("pods", "attach") => Some(Subresource::Attach),
            ("pods", "portforward") => Some(Subresource::PortForward),
            ("pods" | "services" | "nodes", "proxy") => Some(Subresource::Proxy),
            _ => None,
        }
    }
}

impl Connect {
    pub fn new(config: KubeletConfig, identity: Identity, registry: Arc<Registry>) -> Connect {
        Connect {
            config,
            identity,
            registry,
            tasks: Tasks::new(),
        }
    }

    pub(crate) async fn answer<B: RequestBody>(
        &self,
        subresource: Subresource,
        request: &ResourceRequest<'_>,
        body: B,
    ) -> Result<Answer, ApiError> {
        self.registry
            .reach(RequiredVersion::before(Verb::Get))
            .await?;
        match (subresource, &request.head.method) {
            (Subresource::Log, &Method::GET) => self.log(request).await,
            (
                Subresource::Exec | Subresource::Attach | Subresource::PortForward,
                &Method::GET | &Method::POST,
            ) => {
                let (options, warnings) = self.admit(subresource, request).await?;
                let answer = self.stream(subresource, request, &options).await?;
                Ok(answer::with_warnings(answer, &warnings))
            }
            (Subresource::Proxy, _) => {
                let (options, warnings) = self.admit(subresource, request).await?;
                let answer = self.proxy_request(request, &options, body).await?;
                Ok(answer::with_warnings(answer, &warnings))
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    /// Asks admission about a connection; returns its options and warnings for the client.
    async fn admit(
        &self,
        subresource: Subresource,
        request: &ResourceRequest<'_>,
    ) -> Result<(Map, Vec<String>), ApiError> {
        let target = request.target;
        let options = match subresource {
            Subresource::Exec | Subresource::Attach => {
                CommandOptions::parse(request.query).fields(subresource)
            }
            Subresource::PortForward => options::ports(request.query)?,
            _ => options::path(request.head.uri.path(), split(request.head.uri.path()).1),
        };

        let resource = core_resource(&target.resource)?;
        let scope = Scope::new(resource, &target.namespace, request.caller);
        self.registry
            .connects(&scope, &target.name, &target.subresource, options)
            .await
    }

    async fn log(&self, request: &ResourceRequest<'_>) -> Result<Answer, ApiError> {
        let name = request.target.name.as_str();
        let options = LogOptions::parse(request.query, name)?;
        let pod: Pod = self.object(request.caller, "pods", &request.target.namespace, name)?;
        let container = backend::container(&pod, name, &options.container)?;

        let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
        if node.is_empty() {
            return Ok(answer::empty(StatusCode::NO_CONTENT));
        }

        let backend = self.kubelet(request.caller, &node)?;
        let path = format!(
            "/containerLogs/{}/{name}/{container}?{}",
            request.target.namespace,
            options.for_kubelet()
        );

        let verification = if options.insecure {
            Verification::Skipped
        } else {
            Verification::Required
        };
        let fetched = self.fetch(&backend, &path, verification).await;
        let fetched = fetched.map_err(|error| {
            let url = format!("https://{}{path}", backend.authority());
            ApiError::unexplained(format!("Get \"{url}\": {error}"))
        })?;

        if !(200..=206).contains(&fetched.status().as_u16()) {
            return Err(kubelet_error(fetched, name).await);
        }

        let mut answer = forward::response_to_client(fetched);
        rewrite::remove_hop_by_hop(answer.headers_mut());
        *answer.status_mut() = StatusCode::OK;
        answer
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));

        Ok(self.over_websocket(request.head, answer, Streamed::Bytes))
    }

    async fn stream(
        &self,
        subresource: Subresource,
        request: &ResourceRequest<'_>,
        options: &Map,
    ) -> Result<Answer, ApiError> {
        // A WebSocket begins as a GET, but connecting needs the permission to create.
        let attributes = attributes_of(&request.caller.user, request.info, request.query);
        self.registry
            .access
            .authorization
            .check(&Attributes {
                verb: "create",
                ..attributes
            })
            .await?;

        let (name, namespace) = (
            request.target.name.as_str(),
            request.target.namespace.as_str(),
        );
        let pod: Pod = self.object(request.caller, "pods", namespace, name)?;
        let (path, query) = match subresource {
            Subresource::PortForward => (
                format!("/portForward/{namespace}/{name}"),
                options::ports_for_kubelet(options),
            ),
            _ => {
                let options = CommandOptions::of(options);
                let container = backend::container(&pod, name, &options.container)?;
                let verb = if subresource == Subresource::Exec {
                    "exec"
                } else {
                    "attach"
                };
                (
                    format!("/{verb}/{namespace}/{name}/{container}"),
                    options.for_kubelet(),
                )
            }
        };

        let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
        if node.is_empty() {
            return Err(ApiError::bad_request(format!(
                "pod {name} does not have a host assigned"
            )));
        }

        let backend = self.kubelet(request.caller, &node)?;

        if !wants_upgrade(request.head) {
            return Err(ApiError::bad_request("Upgrade request required"));
        }

        self.upgrade(&ForwardedRequest {
            head: request.head,
            backend,
            path: format!("{path}?{query}"),
            prefix: "",
        })
        .await
    }

    async fn proxy_request<B: RequestBody>(
        &self,
        request: &ResourceRequest<'_>,
        options: &Map,
        body: B,
    ) -> Result<Answer, ApiError> {
        let backend = match request.target.resource.as_str() {
            "pods" => {
                let named = ProxyName::parse(&request.target.name, "pod")?;
                backend::pod(
                    &self.object(
                        request.caller,
                        "pods",
                        &request.target.namespace,
                        named.name,
                    )?,
                    &named,
                )?
            }
            "services" => self.service(request)?,
            _ => self.node(request)?,
        };

        let (prefix, rest) = split(request.head.uri.path());
        if needs_slash(request.head, rest) && !wants_upgrade(request.head) {
            let query = request
                .head
                .uri
                .query()
                .map(|query| format!("?{query}"))
                .unwrap_or_default();

            let mut answer = answer::empty(StatusCode::MOVED_PERMANENTLY);
            if let Ok(location) =
                HeaderValue::from_str(&format!("{}/{query}", request.head.uri.path()))
            {
                answer.headers_mut().insert(header::LOCATION, location);
            }

            return Ok(answer);
        }

        let query = request
            .head
            .uri
            .query()
            .map(|query| format!("?{query}"))
            .unwrap_or_default();

        // What the client wrote, unless admission has changed it.
        let requested = options::path(request.head.uri.path(), rest);
        let rest = match requested.get("path") == options.get("path") {
            true => rest,
            false => options.text("path"),
        };
        let path = format!("/{}{query}", rest.trim_start_matches('/'));
        let forwarded = ForwardedRequest {
            head: request.head,
            backend,
            path,
            prefix,
        };

        match wants_upgrade(request.head) {
            true => self.upgrade(&forwarded).await,
            false => self.proxy(&forwarded, body).await,
        }
    }

    /// A node itself: its kubelet, or another port of it.
    fn node(&self, request: &ResourceRequest<'_>) -> Result<Backend, ApiError> {
        let named = ProxyName::parse(&request.target.name, "node")?;
        let kubelet = self.kubelet(request.caller, named.name)?;
        backend::check_proxyable(&kubelet.host)?;

        match named.port_number() {
            None => Ok(kubelet),
            Some(port) if port == kubelet.port => Ok(kubelet),
            Some(port) => Ok(Backend {
                is_kubelet: false,
                tls: named.tls,
                host: kubelet.host,
                port,
            }),
        }
    }

    /// One of the pods behind a service.
    fn service(&self, request: &ResourceRequest<'_>) -> Result<Backend, ApiError> {
        let named = ProxyName::parse(&request.target.name, "service")?;
        let namespace = request.target.namespace.as_str();

        let mut port = named.port.to_owned();
        if let Some(number) = named.port_number() {
            let service: Service =
                self.object(request.caller, "services", namespace, named.name)?;
            let ports = service.spec.and_then(|spec| spec.ports).unwrap_or_default();

            let Some(found) = ports
                .into_iter()
                .find(|port| port.port == i32::from(number))
            else {
                let text = format!(
                    "no service port {number} found for service {:?}",
                    named.name
                );
                return Err(ApiError::service_unavailable(text));
            };
            port = found.name.unwrap_or_default();
        }

        let endpoints = self.object(request.caller, "endpoints", namespace, named.name);
        let endpoints: Endpoints = match endpoints {
            // Upstream names the Service, whether that exists or not.
            Err(missing) if missing.code == StatusCode::NOT_FOUND => {
                return Err(ApiError::not_found(core_resource("services")?, named.name));
            }
            found => found?,
        };
        let found = self.endpoint(request.caller, namespace, &endpoints, &port);
        let (host, port) = found.ok_or_else(|| {
            ApiError::service_unavailable(format!(
                "no endpoints available for service {:?}",
                request.target.name.as_str()
            ))
        })?;

        Ok(Backend {
            is_kubelet: false,
            tls: named.tls,
            host,
            port,
        })
    }

    /// An address and port that belong to a pod, chosen by lot.
    fn endpoint(
        &self,
        caller: &Caller,
        namespace: &str,
        endpoints: &Endpoints,
        port: &str,
    ) -> Option<(String, u16)> {
        let mut found = Vec::new();
        for subset in endpoints.subsets.iter().flatten() {
            let mut ports = subset.ports.iter().flatten();
            let named = ports.find(|given| given.name.as_deref().unwrap_or_default() == port);
            let Some(port) = named.and_then(|port| u16::try_from(port.port).ok()) else {
                continue;
            };
            let addresses = subset.addresses.iter().flatten();
            found.extend(addresses.map(|address| (address, port)));
        }

        let is_of_pod = |ip: &str, pod: &str| {
            let pod: Option<Pod> = self.object(caller, "pods", namespace, pod).ok();
            let ips = pod.and_then(|pod| pod.status?.pod_ips).unwrap_or_default();
            ips.iter().any(|given| given.ip == ip)
        };

        let start = usize::try_from((self.registry.random)() >> 33).unwrap_or_default();
        (0..found.len())
            .map(|at| found[(start + at) % found.len()])
            .find_map(|(address, port)| {
                let pod = address
                    .target_ref
                    .as_ref()
                    .filter(|target| target.kind.as_deref() == Some("Pod"))?;
                is_of_pod(&address.ip, pod.name.as_deref()?).then(|| (address.ip.clone(), port))
            })
    }

    fn kubelet(&self, caller: &Caller, node: &str) -> Result<Backend, ApiError> {
        let node: Node = self.object(caller, "nodes", "", node)?;
        backend::kubelet(
            &node,
            &self.config.preferred_address_types,
            self.config.port,
        )
    }

    /// An object of the core group, from the cache.
    fn object<T: DeserializeOwned>(
        &self,
        caller: &Caller,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Result<T, ApiError> {
        let resource = core_resource(plural)?;
        let scope = Scope::new(resource, namespace, caller);
        let entry = self.registry.get(&scope, name)?;
        typed::view(&entry.value(scope.storage_version.of))
            .map_err(|error| ApiError::internal(error.to_string()))
    }

    fn settings(&self, backend: &Backend, verification: Verification) -> Arc<ClientConfig> {
        // Servers in pods have arbitrary certificates, and do not get this server's client
        // certificate.
        let kind = match (backend.is_kubelet, verification) {
            (false, _) => BackendKind::Other,
            (true, Verification::Skipped) => BackendKind::UnverifiedKubelet,
            (true, Verification::Required) => BackendKind::Kubelet,
        };
        self.identity.settings((self.registry.now)(), kind)
    }
}

/// A resource of the core group.
fn core_resource(plural: &str) -> Result<&'static Resource, ApiError> {
    BUILTIN
        .resource("", "v1", plural)
        .ok_or_else(ApiError::no_such_resource)
}

/// The path of a proxy, and the rest after it.
fn split(path: &str) -> (&str, &str) {
    // `/api/v1/namespaces/NS/pods/NAME/proxy`, or `/api/v1/nodes/NAME/proxy`.
    let parts = if path.starts_with("/api/v1/namespaces/") {
        8
    } else {
        6
    };
    let end = path
        .match_indices('/')
        .nth(parts - 1)
        .map_or(path.len(), |(at, _)| at);
    path.split_at(end)
}

/// A kubelet's error as the client gets it.
async fn kubelet_error(answer: http::Response<hyper::body::Incoming>, name: &str) -> ApiError {
    let status = answer.status();
    let text = match Limited::new(answer.into_body(), MAX_ERROR_BYTES)
        .collect()
        .await
    {
        Ok(body) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        Err(error) => return ApiError::internal(error.to_string()),
    };

    let (reason, message) = match status {
        StatusCode::INTERNAL_SERVER_ERROR => return ApiError::internal(text),
        StatusCode::BAD_REQUEST => return ApiError::bad_request(text),
        StatusCode::NOT_FOUND => (
            Reason::NotFound,
            "the server could not find the requested resource".to_owned(),
        ),
        StatusCode::UNAUTHORIZED => (
            Reason::Unauthorized,
            "the server has asked for the client to provide credentials".to_owned(),
        ),
        StatusCode::FORBIDDEN => (Reason::Forbidden, text),
        StatusCode::UNPROCESSABLE_ENTITY => (
            Reason::Invalid,
            "the server rejected our request due to an error in our request".to_owned(),
        ),
        status => {
            let text = format!(
                "the server responded with the status code {} but did not return more information",
                status.as_u16()
            );
            (Reason::None, text)
        }
    };

    let mut error = ApiError::new(status, reason, format!("{message} ( pods/log {name})"));
    error.details = Some(Box::new(Details {
        name: name.to_owned(),
        kind: "pods/log".to_owned(),
        ..Details::default()
    }));

    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxys_path_has_two_parts() {
        let check = |path, expected| assert_eq!(split(path), expected, "{path}");
        check(
            "/api/v1/namespaces/a/pods/b/proxy",
            ("/api/v1/namespaces/a/pods/b/proxy", ""),
        );

        check(
            "/api/v1/namespaces/a/pods/b/proxy/",
            ("/api/v1/namespaces/a/pods/b/proxy", "/"),
        );

        check(
            "/api/v1/namespaces/a/pods/b/proxy/x/y%2Fz/",
            ("/api/v1/namespaces/a/pods/b/proxy", "/x/y%2Fz/"),
        );

        check(
            "/api/v1/nodes/n/proxy/logs/",
            ("/api/v1/nodes/n/proxy", "/logs/"),
        );
    }
}
