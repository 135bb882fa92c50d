//! Whether a remote server can be reached: first by the objects of the cluster, then by a request.
//! Reasons and texts are upstream's.

use std::time::Duration;

use bytes::Bytes;
use coracle_api::go_text::Quoted;
use coracle_api::{Map, Value};
use coracle_client::transport::{Body, RequestBody};
use futures_util::future::select_ok;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Limited};

use super::{Aggregation, Remote, identity};
use crate::authn::User;
use crate::network_errors::transport_in_go;
use crate::webhook_config::ServiceRef;

/// How long a server may take for a request of this server.
const WITHIN: Duration = Duration::from_secs(5);

/// After a failure the server is asked so often more, at once: one of its pods may answer.
const MORE_ATTEMPTS: usize = 4;

/// Why a server is not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unavailable {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Unavailable {
    /// Whether only another request can tell that it is available again.
    pub(super) fn is_of_request(&self) -> bool {
        self.reason == FAILED_CHECK
    }
}

pub(super) const PASSED: (&str, &str) = ("Passed", "all checks passed");
/// The condition of what this server serves itself.
pub(super) const LOCAL: (&str, &str) = ("Local", "Local APIServices are always available");
const FAILED_CHECK: &str = "FailedDiscoveryCheck";

/// What the Service and its EndpointSlices say.
pub(super) fn by_objects(
    to: &ServiceRef,
    service: Option<&Value>,
    slices: &[Value],
) -> Result<(), Unavailable> {
    let (name, namespace) = (&to.name, Quoted(&to.namespace));
    let fails = |reason, message: String| Err(Unavailable { reason, message });

    let Some(service) = service else {
        let message = format!("service/{name} in {namespace} is not present");
        return fails("ServiceNotFound", message);
    };
    let nothing = Map::new();
    let spec = service.get("spec").and_then(Value::as_object);
    let spec = spec.unwrap_or(&nothing);
    if spec.text("type") != "ClusterIP" {
        return Ok(());
    }

    let mut ports = spec.items("ports").iter().filter_map(Value::as_object);
    let port = ports.find(|port| port.int("port") == i64::from(to.port));
    let Some(port) = port.map(|port| port.text("name")) else {
        let message = format!(
            "service/{name} in {namespace} is not listening on port {}",
            to.port
        );
        return fails("ServicePortError", message);
    };

    if slices.is_empty() {
        let message = format!("cannot find endpointslices for service/{name} in {namespace}");
        return fails("EndpointsNotFound", message);
    }
    if !slices.iter().any(|slice| has_endpoint(slice, port)) {
        let message = format!(
            "endpointslices for service/{name} in {namespace} have no addresses with port name {}",
            Quoted(port)
        );
        return fails("MissingEndpoints", message);
    }

    Ok(())
}

fn has_endpoint(slice: &Value, port_name: &str) -> bool {
    let Some(slice) = slice.as_object() else {
        return false;
    };
    let is_ready = |endpoint: &Value| {
        let ready = endpoint.at(&["conditions", "ready"]);
        ready.is_none_or(|ready| ready.as_bool() != Some(false))
    };

    let mut ports = slice.items("ports").iter().filter_map(Value::as_object);
    slice.items("endpoints").iter().any(is_ready)
        && ports.any(|port| port.text("name") == port_name && port.int("port") != 0)
}

/// Requests of this server itself.
pub(super) fn own_user(groups: &[&str]) -> User {
    User {
        name: "system:kube-aggregator".to_owned(),
        groups: groups.iter().map(ToString::to_string).collect(),
        ..User::default()
    }
}

impl Aggregation {
    /// Asks the server for what it must serve.
    pub(super) async fn probe(&self, remote: &Remote) -> Result<(), Unavailable> {
        let Err(first) = self.attempt(remote).await else {
            return Ok(());
        };
        remote.backend.forget_connections();

        let more = (0..MORE_ATTEMPTS).map(|_| Box::pin(self.attempt(remote)));
        match select_ok(more).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Unavailable {
                reason: FAILED_CHECK,
                message: first,
            }),
        }
    }

    async fn attempt(&self, remote: &Remote) -> Result<(), String> {
        let (host, port) = remote.backend.resolve(self)?;
        let host = match host.contains(':') {
            true => format!("[{host}]"),
            false => host,
        };
        let url = format!("https://{host}:{port}{}", remote.path());

        let user = own_user(&["system:masters"]);
        let answered = self.ask(remote, &remote.path(), &user, &[]).await;
        let answered = answered.map_err(|why| {
            format!("failing or missing response from {url}: Get \"{url}\": {why}")
        })?;
        match answered.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!(
                "failing or missing response from {url}: bad status from {url}: {}",
                status.as_u16()
            )),
        }
    }

    /// A request of this server itself; the error is a text for users.
    pub(super) async fn ask(
        &self,
        remote: &Remote,
        path: &str,
        user: &User,
        headers: &[(header::HeaderName, &str)],
    ) -> Result<Response<Body>, String> {
        let connections = remote.backend.connections.as_ref().map_err(Clone::clone)?;
        let mut request: Request<RequestBody> = Request::new(
            Empty::<Bytes>::new()
                .map_err(|never| match never {})
                .boxed_unsync(),
        );
        *request.uri_mut() = path
            .parse()
            .map_err(|error: http::uri::InvalidUri| error.to_string())?;

        identity::set(request.headers_mut(), user)?;
        let agent = (header::USER_AGENT, "kube-apiserver");
        for (name, text) in headers.iter().chain([&agent]) {
            let value = HeaderValue::from_str(text).map_err(|error| error.to_string())?;
            request.headers_mut().insert(name, value);
        }

        match tokio::time::timeout(WITHIN, connections.shared.forward(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(transport_in_go(&error, self.world.now())),
            Err(_) => Err(
                "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
                    .to_owned(),
            ),
        }
    }

    /// A document of the server, with at most so many bytes; `None`: it does not have it.
    pub(super) async fn fetch(
        &self,
        remote: &Remote,
        path: &str,
        headers: &[(header::HeaderName, &str)],
        limit: usize,
    ) -> Result<Option<Response<Bytes>>, String> {
        let user = own_user(&["system:masters"]);
        let answered = self.ask(remote, path, &user, headers).await?;
        let (head, body) = answered.into_parts();
        let arrived = tokio::time::timeout(WITHIN, Limited::new(body, limit).collect()).await;
        let body = match arrived {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) => return Err(format!("{path}: {error}")),
            Err(_) => return Err(format!("{path}: the answer did not end in time")),
        };

        match head.status {
            StatusCode::OK | StatusCode::NOT_MODIFIED => Ok(Some(Response::from_parts(head, body))),
            StatusCode::NOT_FOUND | StatusCode::NOT_ACCEPTABLE | StatusCode::FORBIDDEN => Ok(None),
            status => Err(format!("{path}: bad status: {}", status.as_u16())),
        }
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    fn tree(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn check(service: &str, slices: &[&str], expected: Result<(), (&str, &str)>) {
        let to = ServiceRef {
            namespace: "ns".to_owned(),
            name: "api".to_owned(),
            path: String::new(),
            port: 443,
        };
        let service = (!service.is_empty()).then(|| tree(service));
        let slices: Vec<Value> = slices.iter().map(|text| tree(text)).collect();
        let found = by_objects(&to, service.as_ref(), &slices);
        let found = found.map_err(|why| (why.reason, why.message));
        let expected = expected.map_err(|(reason, message)| (reason, message.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn the_objects_of_the_cluster_say_why_a_server_cannot_be_reached() {
        let service = r#"{"spec":{"type":"ClusterIP","ports":[{"port":443,"name":"https"}]}}"#;
        let ready =
            r#"{"endpoints":[{"addresses":["10.0.0.1"]}],"ports":[{"name":"https","port":8443}]}"#;

        check(
            "",
            &[],
            Err(("ServiceNotFound", r#"service/api in "ns" is not present"#)),
        );
        check(
            r#"{"spec":{"type":"ClusterIP","ports":[{"port":80}]}}"#,
            &[ready],
            Err((
                "ServicePortError",
                r#"service/api in "ns" is not listening on port 443"#,
            )),
        );
        check(
            service,
            &[],
            Err((
                "EndpointsNotFound",
                r#"cannot find endpointslices for service/api in "ns""#,
            )),
        );
        let missing = Err((
            "MissingEndpoints",
            r#"endpointslices for service/api in "ns" have no addresses with port name "https""#,
        ));
        check(
            service,
            &[
                r#"{"endpoints":[{"conditions":{"ready":false}}],"ports":[{"name":"https","port":8443}]}"#,
            ],
            missing,
        );
        check(
            service,
            &[r#"{"endpoints":[{}],"ports":[{"name":"other","port":8443}]}"#],
            missing,
        );
        check(service, &[ready], Ok(()));
        check(r#"{"spec":{"type":"ExternalName"}}"#, &[], Ok(()));
    }
}
