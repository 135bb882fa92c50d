//! What the status of an APIService says, and what clients get meanwhile.

use coracle_client::{DeleteOptions, Patch, Resource};
use coracle_testkit::objects::object;
use coracle_testkit::{Cluster, Extension, Reply, eventually};

use crate::{api_service, ask, condition, register, services, serving};

#[tokio::test]
async fn a_server_that_is_not_there_is_reported_with_the_reason() {
    let cluster = Cluster::start_with_https().await;
    let says = async |expected: &str| {
        eventually(expected, async || {
            (condition(&cluster, "v1.a.example").await == expected).then_some(())
        })
        .await;
    };

    let registered = api_service("a.example", "v1", 443, "insecureSkipTLSVerify: true");
    services(&cluster).create(&registered).await.unwrap();
    says("False ServiceNotFound: service/extension in \"default\" is not present").await;

    let answered = ask(&cluster, "GET", "/apis/a.example/v1/boats", &[]).await;
    assert_eq!(
        (answered.code(), answered.text().as_str()),
        (503, "service unavailable\n")
    );
    assert_eq!(
        answered.head.headers["content-type"],
        "text/plain; charset=utf-8"
    );

    let core = |plural: &str| {
        let resource = Resource::builtin("", "v1", plural);
        cluster.client().resource(&resource).namespace("default")
    };
    let service = object(
        "apiVersion: v1
kind: Service
metadata: {name: extension, namespace: default}
spec: {ports: [{name: https, port: 80}]}
",
    );
    core("services").create(&service).await.unwrap();
    says("False ServicePortError: service/extension in \"default\" is not listening on port 443")
        .await;

    let patch = Patch::Merge(object("spec: {ports: [{name: https, port: 443}]}"));
    core("services").patch("extension", &patch).await.unwrap();
    says(
        "False EndpointsNotFound: cannot find endpointslices for service/extension in \"default\"",
    )
    .await;

    let slice = object(
        "apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: extension-1, namespace: default, labels: {kubernetes.io/service-name: extension}}
addressType: IPv4
ports: [{name: https, port: 443}]
endpoints: [{addresses: [10.1.2.3], conditions: {ready: false}}]
",
    );
    let slices = Resource::builtin("discovery.k8s.io", "v1", "endpointslices");
    let slices = cluster.client().resource(&slices).namespace("default");
    slices.create(&slice).await.unwrap();
    says("False MissingEndpoints: endpointslices for service/extension in \"default\" have no addresses with port name \"https\"").await;

    services(&cluster)
        .delete("v1.a.example", &DeleteOptions::default())
        .await
        .unwrap();
    eventually("the path is gone", async || {
        let answered = ask(&cluster, "GET", "/apis/a.example/v1/boats", &[]).await;
        (answered.code() == 404).then_some(())
    })
    .await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_server_with_a_certificate_of_another_authority_is_not_asked() {
    let cluster = Cluster::start_with_https().await;
    let authority = cluster.file("front-proxy-ca.crt");
    let extension = Extension::start(&authority, serving(|_| Reply::HangUp)).await;
    register(&cluster, &extension).await;

    let other = Extension::start(&authority, serving(|_| Reply::HangUp)).await;
    let patch = format!("spec: {{caBundle: {}}}", other.ca_bundle());
    let patch = Patch::Merge(object(&patch));
    services(&cluster)
        .patch("v1.a.example", &patch)
        .await
        .unwrap();

    let says = eventually("the check fails", async || {
        let says = condition(&cluster, "v1.a.example").await;
        says.starts_with("False FailedDiscoveryCheck: ")
            .then_some(says)
    })
    .await;
    let url = format!("https://localhost:{}/apis/a.example/v1", extension.port());
    assert_eq!(
        says,
        format!(
            "False FailedDiscoveryCheck: failing or missing response from {url}: Get \"{url}\": tls: failed to verify \
             certificate: x509: certificate signed by unknown authority"
        )
    );

    // Not verified at all, it is available again.
    let patch = Patch::Merge(object(
        "spec: {caBundle: null, insecureSkipTLSVerify: true}",
    ));
    services(&cluster)
        .patch("v1.a.example", &patch)
        .await
        .unwrap();
    eventually("the server is available", async || {
        let says = condition(&cluster, "v1.a.example").await;
        says.starts_with("True Passed").then_some(())
    })
    .await;

    // It becomes this server's own.
    let patch = Patch::Merge(object(
        "spec: {service: null, insecureSkipTLSVerify: false}",
    ));
    services(&cluster)
        .patch("v1.a.example", &patch)
        .await
        .unwrap();
    let local = "True Local: Local APIServices are always available";
    eventually("it is local", async || {
        (condition(&cluster, "v1.a.example").await == local).then_some(())
    })
    .await;
    cluster.stop().await;
}
