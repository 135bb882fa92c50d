use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use coracle_api::time::Timestamp;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};

use super::*;
use crate::transport::{Body, Transport, TransportError};
use crate::world::World;

const WORLD: World = World {
    now: || Timestamp::from_unix(0, 0),
    random: || 4,
};

/// A transport with fixed answers by path.
struct Canned {
    documents: &'static [(&'static str, &'static str)],
    asked: AtomicUsize,
}

#[async_trait]
impl Transport for Canned {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let found = self
            .documents
            .iter()
            .find(|(path, _)| *path == request.uri().path());

        let body = found.map(|(_, document)| *document).unwrap_or("no");
        let mut answer = Response::new(
            Full::from(body)
                .map_err(|never| match never {})
                .boxed_unsync(),
        );

        if found.is_none() {
            *answer.status_mut() = StatusCode::NOT_FOUND;
        }

        Ok(answer)
    }
}

const AGGREGATED: &[(&str, &str)] = &[
    (
        "/api",
        r#"{"kind":"APIGroupDiscoveryList","items":[{"metadata":{},"versions":[{"version":"v1","resources":[
        {"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","singularResource":"pod","shortNames":["po"],
         "verbs":["get","list"],"subresources":[{"subresource":"status"}]},
        {"resource":"events","responseKind":{"kind":"Event"},"scope":"Namespaced","singularResource":"event","verbs":["get"]}]}]}]}"#,
    ),
    (
        "/apis",
        r#"{"kind":"APIGroupDiscoveryList","items":[
        {"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[{"resource":"deployments",
         "responseKind":{"kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","shortNames":["deploy"],"verbs":["get"]}]}]},
        {"metadata":{"name":"events.k8s.io"},"versions":[{"version":"v1","resources":[{"resource":"events",
         "responseKind":{"kind":"Event"},"scope":"Namespaced","singularResource":"event","verbs":["get"]}]}]},
        {"metadata":{"name":"gone.example.com"},"versions":[{"version":"v1","freshness":"Stale"}]}]}"#,
    ),
];

const PLAIN: &[(&str, &str)] = &[
    ("/api", r#"{"kind":"APIVersions","versions":["v1"]}"#),
    (
        "/api/v1",
        r#"{"kind":"APIResourceList","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod",
      "verbs":["get","list"],"shortNames":["po"]},{"name":"pods/status","kind":"Pod","namespaced":true,"verbs":["get"]}]}"#,
    ),
    (
        "/apis",
        r#"{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"version":"v1beta1"},{"version":"v1"}],
      "preferredVersion":{"version":"v1"}}]}"#,
    ),
    (
        "/apis/apps/v1",
        r#"{"kind":"APIResourceList","resources":[{"name":"deployments","singularName":"deployment",
      "namespaced":true,"kind":"Deployment","verbs":["get"],"shortNames":["deploy"]}]}"#,
    ),
];

fn mapper(documents: &'static [(&'static str, &'static str)]) -> (Mapper, Arc<Canned>) {
    let transport = Arc::new(Canned {
        documents,
        asked: AtomicUsize::new(0),
    });
    (
        Mapper::new(Client::new(transport.clone(), WORLD).discovery()),
        transport,
    )
}

async fn check(mapper: &Mapper, name: &str, expected: &str) {
    let found = mapper.of_name(name).await;
    let found = found.map(|found| format!("{} {}", found.resource, found.resource.version));
    assert_eq!(
        found.unwrap_or_else(|error| error.to_string()),
        expected,
        "{name}"
    );
}

#[tokio::test]
async fn names_are_found_in_both_forms_of_discovery() {
    for documents in [AGGREGATED, PLAIN] {
        let (mapper, _) = mapper(documents);
        for name in ["pods", "po", "pod", "Pod"] {
            check(&mapper, name, "pods v1").await;
        }

        for name in [
            "deploy",
            "deployments.apps",
            "deployments.v1.apps",
            "Deployment",
        ] {
            check(&mapper, name, "deployments.apps v1").await;
        }

        check(
            &mapper,
            "nothing",
            "the server doesn't have a resource type \"nothing\"",
        )
        .await;

        assert_eq!(mapper.of_name("po").await.unwrap().subresources, ["status"]);
    }
}

#[tokio::test]
async fn the_core_group_comes_first_and_a_group_can_be_named() {
    let (mapper, _) = mapper(AGGREGATED);
    check(&mapper, "events", "events v1").await;
    check(&mapper, "events.events.k8s.io", "events.events.k8s.io v1").await;
}

#[tokio::test]
async fn a_kind_has_a_resource_and_so_has_its_list() {
    let (mapper, _) = mapper(AGGREGATED);
    for kind in ["Deployment", "deployment", "DeploymentList"] {
        assert_eq!(
            mapper
                .of_kind("apps", "v1", kind)
                .await
                .unwrap()
                .resource
                .plural,
            "deployments"
        );
    }

    let error = mapper
        .of_kind("apps", "v2", "Deployment")
        .await
        .unwrap_err();

    assert_eq!(
        error.to_string(),
        "no matches for kind \"Deployment\" in version \"apps/v2\""
    );
}

#[tokio::test]
async fn discovery_is_cached_and_a_broken_group_hides_no_other() {
    let (mapper, transport) = mapper(AGGREGATED);
    check(&mapper, "pods", "pods v1").await;
    check(&mapper, "deploy", "deployments.apps v1").await;
    assert_eq!(transport.asked.load(Ordering::Relaxed), 2);

    let served = mapper.served().await.unwrap();
    assert_eq!(served.failed.len(), 1);
    assert_eq!(served.failed[0].0, "/apis/gone.example.com/v1");

    check(
        &mapper,
        "unheard",
        "the server doesn't have a resource type \"unheard\"",
    )
    .await;

    assert_eq!(
        transport.asked.load(Ordering::Relaxed),
        4,
        "discovery is repeated once for an unknown name"
    );
}
