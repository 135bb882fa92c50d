//! Groups that another server serves, as HTTPS servers of the test behind an API server: a
//! well-behaved one, and ones that attack.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod attacks;
mod availability;
mod discovery;
mod forwarding;

use bytes::Bytes;
use coracle_api::Value;
use coracle_api::codec::json;
use coracle_client::transport::Body;
use coracle_client::{Access, Resource};
use coracle_testkit::objects::object;
use coracle_testkit::{Asked, Cluster, Extension, Reply, eventually};
use http::{Request, Response};
use http_body_util::BodyExt;

/// An answer that has arrived.
struct Answered {
    head: http::response::Parts,
    body: Bytes,
}

impl Answered {
    fn code(&self) -> u16 {
        self.head.status.as_u16()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn tree(&self) -> Value {
        json::parse(&self.body).unwrap()
    }
}

async fn arrived(answer: Response<Body>) -> Answered {
    let (head, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answered { head, body }
}

/// A request of the administrator, over the in-process connection.
async fn ask(cluster: &Cluster, method: &str, path: &str, headers: &[(&str, &str)]) -> Answered {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Bytes::new()).unwrap();
    arrived(cluster.transport().send(request).await.unwrap()).await
}

fn services(cluster: &Cluster) -> Access {
    let resource = Resource::builtin("apiregistration.k8s.io", "v1", "apiservices");
    cluster.client().resource(&resource)
}

/// The Service `extension`, which leads to loopback.
async fn lead_to_loopback(cluster: &Cluster) {
    let service = object(
        "apiVersion: v1
kind: Service
metadata: {name: extension, namespace: default}
spec: {type: ExternalName, externalName: localhost}
",
    );
    let resource = Resource::builtin("", "v1", "services");
    let services = cluster.client().resource(&resource).namespace("default");
    services.create(&service).await.unwrap();
}

fn api_service(group: &str, version: &str, port: u16, settings: &str) -> Value {
    object(&format!(
        "apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: {version}.{group}}}
spec: {{group: {group}, version: {version}, groupPriorityMinimum: 2000, versionPriority: 15,
  service: {{namespace: default, name: extension, port: {port}}}, {settings}}}
"
    ))
}

/// Registers the server for `v1` of `a.example`, and waits until it is available.
async fn register(cluster: &Cluster, extension: &Extension) {
    lead_to_loopback(cluster).await;
    let settings = format!("caBundle: {}", extension.ca_bundle());
    let registered = api_service("a.example", "v1", extension.port(), &settings);
    services(cluster).create(&registered).await.unwrap();
    let says = "True Passed: all checks passed";
    eventually("the server is available", async || {
        (condition(cluster, "v1.a.example").await == says).then_some(())
    })
    .await;
}

/// `STATUS REASON: MESSAGE` of the condition.
async fn condition(cluster: &Cluster, name: &str) -> String {
    let found = services(cluster).get(name).await.unwrap();
    let conditions = found.at(&["status", "conditions"]);
    let Some(conditions) = conditions.and_then(Value::as_array) else {
        return String::new();
    };
    let condition = conditions[0].as_object().unwrap();
    let text = |name: &str| condition.text(name).to_owned();
    format!("{} {}: {}", text("status"), text("reason"), text("message"))
}

/// What a server of `v1` of `a.example` says of itself, and for all else what `other` says.
fn serving(
    other: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> impl Fn(&Asked) -> Reply + Send + Sync {
    move |asked| {
        match asked.path.as_str() {
        "/apis/a.example/v1" => Reply::Json(
            json::parse(
                br#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"a.example/v1","resources":[
                {"name":"boats","singularName":"boat","namespaced":true,"kind":"Boat","verbs":["get","list"]}]}"#,
            )
            .unwrap(),
        ),
        "/apis" | "/openapi/v3" => Reply::Text(404, Vec::new(), "no".to_owned()),
        _ => other(asked),
    }
    }
}
