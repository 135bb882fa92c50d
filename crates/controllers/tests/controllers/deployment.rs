//! The Deployment and ReplicaSet controllers against a real server.

use crate::common;

use common::{Controlled, number};
use coracle_api::Value;
use coracle_api::codec::json;
use coracle_client::{Patch, Resource};
use coracle_testkit::{Cluster, eventually, run_pods};

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

fn web(replicas: usize, image: &str) -> Value {
    tree(&format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"web"}},
            "spec":{{"replicas":{replicas},"selector":{{"matchLabels":{{"app":"web"}}}},
                "template":{{"metadata":{{"labels":{{"app":"web"}}}},
                    "spec":{{"containers":[{{"name":"c","image":"{image}"}}]}}}}}}}}"#
    ))
}

/// The Deployment, once its newest generation is rolled out.
async fn rolled_out(cluster: &Controlled, replicas: i64) -> Value {
    eventually(&format!("{replicas} pods rolled out"), async || {
        let web = cluster.of("apps", "deployments").get("web").await.unwrap();
        let counts = ["replicas", "updatedReplicas", "availableReplicas"];
        let complete = counts
            .iter()
            .all(|name| number(&web, &["status", name]) == replicas)
            && number(&web, &["status", "observedGeneration"]) == web.meta().generation();
        complete.then_some(web)
    })
    .await
}

fn condition(object: &Value, kind: &str) -> String {
    let conditions = object
        .at(&["status", "conditions"])
        .unwrap()
        .as_array()
        .unwrap();
    let text = |one: &Value, name: &str| one.get(name).unwrap().as_str().unwrap().to_owned();
    let found = conditions
        .iter()
        .find(|one| text(one, "type") == kind)
        .unwrap();
    format!("{} {}", text(found, "status"), text(found, "reason"))
}

#[tokio::test]
async fn a_deployment_is_rolled_out_changed_scaled_and_taken_back() {
    let cluster = Controlled::start().await;
    let ready = tree(r#"{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}"#);
    let running = run_pods(&cluster.client, move |_| Some(ready.clone()));
    let deployments = cluster.of("apps", "deployments");
    deployments.create(&web(3, "a")).await.unwrap();

    let first = rolled_out(&cluster, 3).await;
    assert_eq!(
        first.meta().annotation("deployment.kubernetes.io/revision"),
        Some("1")
    );

    let first = eventually("the rollout is reported complete", async || {
        let web = deployments.get("web").await.unwrap();
        (condition(&web, "Progressing") == "True NewReplicaSetAvailable").then_some(web)
    })
    .await;

    assert_eq!(
        condition(&first, "Available"),
        "True MinimumReplicasAvailable"
    );

    let image = |image: &str| {
        Patch::Strategic(tree(&format!(
            r#"{{"spec":{{"template":{{"spec":{{"containers":[{{"name":"c","image":"{image}"}}]}}}}}}}}"#
        )))
    };
    deployments.patch("web", &image("b")).await.unwrap();

    let second = rolled_out(&cluster, 3).await;
    assert_eq!(
        second
            .meta()
            .annotation("deployment.kubernetes.io/revision"),
        Some("2")
    );

    deployments
        .patch("web", &Patch::Merge(tree(r#"{"spec":{"replicas":5}}"#)))
        .await
        .unwrap();

    rolled_out(&cluster, 5).await;
    deployments.patch("web", &image("a")).await.unwrap();
    let back = rolled_out(&cluster, 5).await;
    assert_eq!(
        back.meta().annotation("deployment.kubernetes.io/revision"),
        Some("3")
    );

    let sets = cluster
        .of("apps", "replicasets")
        .list_all(&coracle_client::ListOptions::default())
        .await
        .unwrap();

    let mut sizes: Vec<i64> = sets
        .items
        .iter()
        .map(|set| number(set, &["spec", "replicas"]))
        .collect();
    sizes.sort_unstable();

    assert_eq!(sizes, [0, 5], "the first ReplicaSet was taken again");

    let events = cluster.list("events").await;
    let said = |text: &str| {
        events.iter().any(|event| {
            event
                .get("message")
                .unwrap()
                .as_str()
                .unwrap()
                .starts_with(text)
        })
    };
    assert!(said("Scaled up replica set web-"), "{events:?}");

    assert!(said("Scaled down replica set web-"), "{events:?}");

    running.stop().await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_status_carries_the_revision_along_and_annotations_are_a_generation() {
    let cluster = Cluster::start().await;
    let deployments = cluster
        .client()
        .resource(&Resource::builtin("apps", "v1", "deployments"))
        .namespace("default");
    let mut made = deployments.create(&web(1, "a")).await.unwrap();
    assert_eq!(made.meta().generation(), 1);

    made.meta_mut()
        .set_annotation("deployment.kubernetes.io/revision", Some("7"));
    made.meta_mut()
        .set_label("status-may-not", Some("say-this"));
    made.as_object_mut()
        .unwrap()
        .object_mut("status")
        .insert("observedGeneration", 1);

    let status = deployments
        .clone()
        .subresource("status")
        .update(&made)
        .await
        .unwrap();

    assert_eq!(
        status
            .meta()
            .annotation("deployment.kubernetes.io/revision"),
        Some("7")
    );

    assert_eq!(
        (
            status.meta().label("status-may-not"),
            status.meta().generation()
        ),
        (None, 1)
    );

    let patch = Patch::Merge(tree(
        r#"{"metadata":{"annotations":{"kubernetes.io/change-cause":"b"}}}"#,
    ));
    assert_eq!(
        deployments
            .patch("web", &patch)
            .await
            .unwrap()
            .meta()
            .generation(),
        2
    );

    cluster.stop().await;
}
