//! The DaemonSet controller against a real server, under its upstream identity.

use crate::common;

use common::{Controlled, number};
use coracle_api::Value;
use coracle_client::{ListOptions, Patch, Resource};
use coracle_testkit::objects::object;
use coracle_testkit::{eventually, run_pods};

async fn complete(cluster: &Controlled, nodes: i64) -> Value {
    eventually(&format!("a pod on each of {nodes} nodes"), async || {
        let agent = cluster.of("apps", "daemonsets").get("agent").await.unwrap();
        let counts = [
            "desiredNumberScheduled",
            "updatedNumberScheduled",
            "numberAvailable",
        ];

        let all = counts
            .iter()
            .all(|name| number(&agent, &["status", name]) == nodes);

        (all && number(&agent, &["status", "observedGeneration"]) == agent.meta().generation())
            .then_some(agent)
    })
    .await
}

#[tokio::test]
async fn every_node_gets_a_pod_and_a_new_template_reaches_all() {
    let cluster = Controlled::start().await;
    let nodes = cluster
        .client
        .resource(&Resource::builtin("", "v1", "nodes"));
    for name in ["n1", "n2", "n3"] {
        nodes
            .create(&object(&format!(
                "{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}}}"
            )))
            .await
            .unwrap();
    }

    // A new node is not ready, and no controller here removes its taint.
    for name in ["n1", "n2", "n3"] {
        // The node controllers write nodes too: a conflict is retried.
        eventually("no taints", async || {
            nodes
                .patch(name, &Patch::Merge(object("{spec: {taints: null}}")))
                .await
                .ok()
        })
        .await;
    }

    // There is no scheduler: the pod runs on the node of its affinity.
    let ready = object("{phase: Running, conditions: [{type: Ready, status: 'True'}]}");
    let running = run_pods(&cluster.client, move |_| Some(ready.clone()));

    let sets = cluster.of("apps", "daemonsets");
    sets.create(&object(
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\n\
         spec:\n  selector: {matchLabels: {app: agent}}\n  \
         template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: a}]}}\n",
    ))
    .await
    .unwrap();

    complete(&cluster, 3).await;
    let change = "{spec: {template: {spec: {containers: [{name: c, image: b}]}}}}";
    sets.patch("agent", &Patch::Strategic(object(change)))
        .await
        .unwrap();

    complete(&cluster, 3).await;
    let pods = eventually("no old pod is left", async || {
        let pods = cluster.list("pods").await;
        (pods.len() == 3).then_some(pods)
    })
    .await;

    for pod in &pods {
        let image = pod.at(&["spec", "containers"]).unwrap().as_array().unwrap()[0]
            .get("image")
            .unwrap();
        assert_eq!(image.as_str(), Some("b"));
        assert!(pod.meta().label("controller-revision-hash").is_some());
    }

    let revisions = cluster
        .of("apps", "controllerrevisions")
        .list_all(&ListOptions::default())
        .await
        .unwrap();

    let mut numbers: Vec<i64> = revisions
        .items
        .iter()
        .map(|one| number(one, &["revision"]))
        .collect();
    numbers.sort_unstable();

    assert_eq!(numbers, [1, 2]);

    running.stop().await;
    cluster.stop().await;
}
