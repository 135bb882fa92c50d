//! The node controllers against a real server, under their upstream identities.

use crate::common;

use std::time::Duration;

use common::{Controlled, number};
use coracle_api::Value;
use coracle_api::codec::json;
use coracle_client::{DeleteOptions, Patch};
use coracle_controllers::{Manager, nodeipam, nodelifecycle};
use coracle_testkit::eventually;
use coracle_testkit::objects::object;

fn node(name: &str, conditions: &str) -> Value {
    object(&format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{kubernetes.io/os: linux}}}}, \
         status: {{conditions: [{conditions}]}}}}"
    ))
}

const READY: &str = "{type: Ready, status: 'True'}";

fn pod(name: &str, node: &str) -> Value {
    object(&format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: default}}, \
         spec: {{nodeName: '{node}', terminationGracePeriodSeconds: 0, containers: [{{name: c, image: i}}]}}}}"
    ))
}

fn merge(text: &str) -> Patch {
    Patch::Merge(json::parse(text.as_bytes()).unwrap())
}

async fn taints(cluster: &Controlled, name: &str) -> Vec<String> {
    let node = cluster.of("", "nodes").get(name).await.unwrap();
    let taints = node
        .at(&["spec", "taints"])
        .and_then(Value::as_array)
        .unwrap_or_default()
        .to_vec();

    let text = |taint: &Value, name: &str| {
        taint
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_string()
    };

    taints
        .iter()
        .map(|taint| format!("{}:{}", text(taint, "key"), text(taint, "effect")))
        .collect()
}

// The clock advances only when nothing else can run: a heartbeat is never late because the machine
// is busy.
#[tokio::test(start_paused = true)]
async fn a_node_that_falls_silent_is_unknown_and_loses_its_pods() {
    let node_lifecycle = nodelifecycle::Config {
        monitor_grace: Duration::from_secs(1),
        ..nodelifecycle::Config::default()
    };

    let cluster = Controlled::start_with(Manager {
        node_lifecycle,
        ..Manager::default()
    })
    .await;
    let nodes = cluster.of("", "nodes");
    nodes.create(&node("silent", READY)).await.unwrap();

    nodes.create(&node("alive", READY)).await.unwrap();
    let alive = async {
        for beat in 0.. {
            let heartbeat = format!(
                r#"{{"status":{{"conditions":[{{"type":"Ready","status":"True","lastHeartbeatTime":"2026-03-01T11:{:02}:{:02}Z"}}]}}}}"#,
                beat / 60,
                beat % 60
            );

            nodes
                .clone()
                .subresource("status")
                .patch("alive", &merge(&heartbeat))
                .await
                .unwrap();

            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };

    let seen = async {
        let mut pod = cluster
            .of("", "pods")
            .create(&pod("p", "silent"))
            .await
            .unwrap();

        pod.as_object_mut().unwrap().insert(
            "status",
            object("{phase: Running, conditions: [{type: Ready, status: 'True'}]}"),
        );

        cluster
            .of("", "pods")
            .subresource("status")
            .update(&pod)
            .await
            .unwrap();

        let unreachable = "node.kubernetes.io/unreachable";
        let expected = [
            format!("{unreachable}:NoSchedule"),
            format!("{unreachable}:NoExecute"),
        ];

        eventually("it is unreachable", async || {
            (taints(&cluster, "silent").await == expected).then_some(())
        })
        .await;

        let label = nodes.get("silent").await.unwrap();
        assert_eq!(label.meta().label("beta.kubernetes.io/os"), Some("linux"));

        eventually("the pod is marked as not ready", async || {
            let pod = cluster.of("", "pods").get("p").await.unwrap();
            let conditions = pod.at(&["status", "conditions"])?.as_array()?.to_vec();
            let ready = conditions
                .iter()
                .find(|one| one.get("type").unwrap().as_str() == Some("Ready"))?;
            (ready.get("status")?.as_str() == Some("False")).then_some(())
        })
        .await;

        assert!(taints(&cluster, "alive").await.is_empty());
    };

    tokio::select! {
        () = seen => {}
        () = alive => {}
    }

    cluster.stop().await;
}

#[tokio::test]
async fn pods_leave_a_node_whose_taint_they_do_not_tolerate() {
    let cluster = Controlled::start().await;
    cluster
        .of("", "nodes")
        .create(&node("n1", READY))
        .await
        .unwrap();

    eventually("its first taint is removed", async || {
        taints(&cluster, "n1").await.is_empty().then_some(())
    })
    .await;

    cluster
        .of("", "pods")
        .create(&pod("leaves", "n1"))
        .await
        .unwrap();

    let mut stays = pod("stays", "n1");
    let tolerations = object("{t: [{key: k, operator: Exists}]}")
        .get("t")
        .unwrap()
        .clone();

    stays
        .as_object_mut()
        .unwrap()
        .object_mut("spec")
        .insert("tolerations", tolerations);

    cluster.of("", "pods").create(&stays).await.unwrap();
    let taint = r#"{"spec":{"taints":[{"key":"k","effect":"NoExecute"}]}}"#;
    cluster
        .of("", "nodes")
        .patch("n1", &merge(taint))
        .await
        .unwrap();

    eventually("one is gone", async || {
        cluster
            .of("", "pods")
            .find("leaves")
            .await
            .unwrap()
            .is_none()
            .then_some(())
    })
    .await;

    let left = cluster.list("pods").await;
    assert_eq!((left.len(), left[0].meta().name()), (1, "stays"));
    assert_eq!(
        number(&left[0], &["spec", "terminationGracePeriodSeconds"]),
        0
    );

    cluster.stop().await;
}

#[tokio::test]
async fn every_node_gets_ranges_of_its_own() {
    let node_ipam = nodeipam::Config {
        allocate: true,
        cluster_cidrs: vec![
            "10.244.0.0/16".parse().unwrap(),
            "fd00::/56".parse().unwrap(),
        ],
        ..nodeipam::Config::default()
    };

    let cluster = Controlled::start_with(Manager {
        node_ipam,
        ..Manager::default()
    })
    .await;

    let mut has = node("has", READY);
    let spec = object("{podCIDR: 10.244.0.0/24, podCIDRs: [10.244.0.0/24, 'fd00::/64']}");
    has.as_object_mut().unwrap().insert("spec", spec);
    cluster.of("", "nodes").create(&has).await.unwrap();
    cluster
        .of("", "nodes")
        .create(&node("gets", READY))
        .await
        .unwrap();

    let ranges = eventually("its ranges", async || {
        let node = cluster.of("", "nodes").get("gets").await.unwrap();
        node.at(&["spec", "podCIDRs"])
            .and_then(Value::as_array)
            .map(<[Value]>::to_vec)
    })
    .await;

    // Ranges are assigned in turn; one that was taken for a failed write is reused later.
    let texts: Vec<&str> = ranges.iter().filter_map(Value::as_str).collect();
    assert!(
        texts[0].starts_with("10.244.") && texts[0] != "10.244.0.0/24",
        "{texts:?}"
    );

    assert!(
        texts[1].starts_with("fd00:") && texts[1] != "fd00::/64",
        "{texts:?}"
    );

    cluster.stop().await;
}

#[tokio::test]
async fn a_pod_that_goes_and_never_had_a_node_is_removed() {
    let cluster = Controlled::start().await;
    let mut waiting = pod("p", "");
    waiting.meta_mut().add_finalizer("test/held");
    cluster.of("", "pods").create(&waiting).await.unwrap();
    cluster
        .of("", "pods")
        .delete("p", &DeleteOptions::default())
        .await
        .unwrap();

    eventually("it counts as failed", async || {
        let pod = cluster.of("", "pods").get("p").await.unwrap();
        (pod.at(&["status", "phase"])?.as_str() == Some("Failed")).then_some(())
    })
    .await;

    cluster
        .of("", "pods")
        .patch("p", &merge(r#"{"metadata":{"finalizers":null}}"#))
        .await
        .unwrap();

    eventually("it is gone", async || {
        cluster
            .of("", "pods")
            .find("p")
            .await
            .unwrap()
            .is_none()
            .then_some(())
    })
    .await;

    cluster.stop().await;
}
