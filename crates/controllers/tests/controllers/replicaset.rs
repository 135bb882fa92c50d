//! The ReplicaSet controller against a real server, under its upstream identity.

use crate::common;

use common::{Controlled, number};
use coracle_api::Value;
use coracle_api::codec::json;
use coracle_api::owner::controller_of;
use coracle_client::{DeleteOptions, Patch};
use coracle_testkit::eventually;
use coracle_testkit::objects::{pod, replica_set};

fn merge(text: &str) -> Patch {
    Patch::Merge(json::parse(text.as_bytes()).unwrap())
}

/// The pods that a ReplicaSet controls, once there are this many.
async fn owned(cluster: &Controlled, set: &Value, count: usize) -> Vec<Value> {
    let what = format!("{count} pods of {}", set.meta().name());
    eventually(&what, async || {
        let pods = cluster.list("pods").await;
        let mine = |pod: &Value| {
            controller_of(pod.meta()).is_some_and(|owner| owner.uid == set.meta().uid())
        };
        let mine: Vec<Value> = pods.into_iter().filter(mine).collect();
        (mine.len() == count).then_some(mine)
    })
    .await
}

/// The ReplicaSet, once its status has this value.
async fn status(cluster: &Controlled, name: &str, field: &str, value: i64) -> Value {
    eventually(&format!("{field} of {name} is {value}"), async || {
        let set = cluster.of("apps", "replicasets").get(name).await.unwrap();
        (number(&set, &["status", field]) == value
            && number(&set, &["status", "observedGeneration"]) == set.meta().generation())
        .then_some(set)
    })
    .await
}

#[tokio::test]
async fn the_desired_pods_are_created_counted_and_reported() {
    let cluster = Controlled::start().await;
    let set = cluster
        .of("apps", "replicasets")
        .create(&replica_set("web", 3))
        .await
        .unwrap();

    let pods = owned(&cluster, &set, 3).await;
    for pod in &pods {
        let owner = controller_of(pod.meta()).unwrap();
        assert_eq!(
            (owner.kind, owner.name, owner.block_owner_deletion),
            ("ReplicaSet", "web", true)
        );
        assert!(pod.meta().name().starts_with("web-"));
        assert_eq!(pod.meta().label("app"), Some("web"));
    }

    let set = status(&cluster, "web", "replicas", 3).await;
    assert_eq!(number(&set, &["status", "fullyLabeledReplicas"]), 3);
    assert_eq!(number(&set, &["status", "readyReplicas"]), 0);

    for pod in &pods {
        let mut ready = pod.clone();
        let text = r#"{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}"#;
        ready
            .as_object_mut()
            .unwrap()
            .insert("status", json::parse(text.as_bytes()).unwrap());

        cluster
            .of("", "pods")
            .subresource("status")
            .update(&ready)
            .await
            .unwrap();
    }

    status(&cluster, "web", "readyReplicas", 3).await;
    status(&cluster, "web", "availableReplicas", 3).await;

    let events = eventually("three events", async || {
        let events = cluster.list("events").await;
        (events.len() == 3).then_some(events)
    })
    .await;

    for event in events {
        assert_eq!(
            event.get("reason").unwrap().as_str(),
            Some("SuccessfulCreate")
        );

        assert!(
            event
                .get("message")
                .unwrap()
                .as_str()
                .unwrap()
                .starts_with("Created pod: web-")
        );

        assert_eq!(
            event.at(&["source", "component"]).unwrap().as_str(),
            Some("replicaset-controller")
        );

        assert_eq!(
            event.at(&["involvedObject", "uid"]).unwrap().as_str(),
            Some(set.meta().uid())
        );
    }

    let journal = cluster.context.journal.of(set.meta().uid());
    assert!(
        journal
            .iter()
            .any(|stage| stage.what == "reconcile" && stage.outcome.is_empty()),
        "{journal:?}"
    );

    cluster.stop().await;
}

#[tokio::test]
async fn pods_are_released_and_adopted_as_the_selector_matches() {
    let cluster = Controlled::start().await;
    let pods = cluster.of("", "pods");

    let set = cluster
        .of("apps", "replicasets")
        .create(&replica_set("web", 2))
        .await
        .unwrap();
    let first = owned(&cluster, &set, 2).await.swap_remove(0);

    let name = first.meta().name();
    pods.patch(name, &merge(r#"{"metadata":{"labels":{"app":"other"}}}"#))
        .await
        .unwrap();

    eventually("the pod is released", async || {
        let released = pods.get(name).await.unwrap();
        controller_of(released.meta()).is_none().then_some(())
    })
    .await;

    owned(&cluster, &set, 2).await;
    assert_eq!(cluster.list("pods").await.len(), 3);

    pods.patch(name, &merge(r#"{"metadata":{"labels":{"app":"web"}}}"#))
        .await
        .unwrap();
    eventually("it is taken back, and one is too many", async || {
        (cluster.list("pods").await.len() == 2).then_some(())
    })
    .await;

    owned(&cluster, &set, 2).await;
    status(&cluster, "web", "replicas", 2).await;
    cluster.stop().await;
}

#[tokio::test]
async fn an_orphan_that_was_there_first_is_adopted() {
    let cluster = Controlled::start().await;
    let mut orphan = pod("first");
    orphan.meta_mut().set_label("app", Some("web"));
    cluster.of("", "pods").create(&orphan).await.unwrap();

    let set = cluster
        .of("apps", "replicasets")
        .create(&replica_set("web", 1))
        .await
        .unwrap();
    let pods = owned(&cluster, &set, 1).await;
    assert_eq!(pods[0].meta().name(), "first");

    status(&cluster, "web", "replicas", 1).await;
    assert_eq!(cluster.list("pods").await.len(), 1);

    cluster.stop().await;
}

#[tokio::test]
async fn scaling_deletes_the_pods_that_are_missed_least() {
    let cluster = Controlled::start().await;
    let set = cluster
        .of("apps", "replicasets")
        .create(&replica_set("web", 3))
        .await
        .unwrap();
    let pods = owned(&cluster, &set, 3).await;

    let dear =
        r#"{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"10"}}}"#;
    let kept = pods[1].meta().name();
    cluster
        .of("", "pods")
        .patch(kept, &merge(dear))
        .await
        .unwrap();

    cluster
        .of("apps", "replicasets")
        .patch("web", &merge(r#"{"spec":{"replicas":1}}"#))
        .await
        .unwrap();

    let left = owned(&cluster, &set, 1).await;
    assert_eq!(left[0].meta().name(), kept);

    status(&cluster, "web", "replicas", 1).await;
    cluster
        .of("apps", "replicasets")
        .patch("web", &merge(r#"{"spec":{"replicas":0}}"#))
        .await
        .unwrap();

    status(&cluster, "web", "replicas", 0).await;
    assert!(cluster.list("pods").await.is_empty());

    cluster.stop().await;
}

#[tokio::test]
async fn a_deleted_pod_is_replaced_and_a_set_that_goes_makes_nothing() {
    let cluster = Controlled::start().await;
    let sets = cluster.of("apps", "replicasets");
    let mut going = replica_set("web", 2);
    going.meta_mut().add_finalizer("test/held");
    let set = sets.create(&going).await.unwrap();

    let pods = owned(&cluster, &set, 2).await;
    cluster
        .of("", "pods")
        .delete(pods[0].meta().name(), &DeleteOptions::default())
        .await
        .unwrap();

    eventually("another pod", async || {
        let now = cluster.list("pods").await;
        let replaced = now.len() == 2
            && now
                .iter()
                .all(|pod| pod.meta().uid() != pods[0].meta().uid());
        replaced.then_some(())
    })
    .await;

    sets.delete("web", &DeleteOptions::default()).await.unwrap();
    status(&cluster, "web", "replicas", 2).await;
    let one = cluster.list("pods").await.swap_remove(0);
    cluster
        .of("", "pods")
        .delete(one.meta().name(), &DeleteOptions::default())
        .await
        .unwrap();

    status(&cluster, "web", "replicas", 1).await;
    assert_eq!(
        cluster.list("pods").await.len(),
        1,
        "it still counts, and makes nothing"
    );

    cluster.stop().await;
}
