//! The garbage collector against a real server, under its upstream identity.

use coracle_api::Value;
use coracle_api::codec::json;
use coracle_api::owner::OwnerReference;
use coracle_client::{DeleteOptions, Patch, Propagation};
use coracle_testkit::eventually;
use coracle_testkit::objects::{config_map, object, replica_set};

use crate::common::{Controlled, number};

/// Creates a ConfigMap with owners.
async fn owned(cluster: &Controlled, name: &str, owners: &[&Value], blocks: bool) -> Value {
    let mut made = config_map(name, "v");
    made.meta_mut()
        .set_owner_references(owners.iter().map(|owner| OwnerReference {
            controller: false,
            block_owner_deletion: blocks,
            ..OwnerReference::to_controller(owner.meta(), "v1", "ConfigMap")
        }));
    cluster.of("", "configmaps").create(&made).await.unwrap()
}

async fn is_gone(cluster: &Controlled, plural: &str, name: &str) {
    eventually(&format!("{name} is gone"), async || {
        cluster
            .of("", plural)
            .find(name)
            .await
            .unwrap()
            .is_none()
            .then_some(())
    })
    .await;
}

async fn delete(cluster: &Controlled, name: &str, propagation: Propagation) {
    let options = DeleteOptions {
        propagation: Some(propagation),
        ..DeleteOptions::default()
    };
    cluster
        .of("", "configmaps")
        .delete(name, &options)
        .await
        .unwrap();
}

#[tokio::test]
async fn dependents_of_deleted_objects_are_deleted_unless_they_have_another_owner() {
    let cluster = Controlled::start().await;
    let first = owned(&cluster, "first", &[], false).await;
    let second = owned(&cluster, "second", &[], false).await;
    let child = owned(&cluster, "child", &[&first], false).await;
    owned(&cluster, "grandchild", &[&child], false).await;
    owned(&cluster, "both", &[&first, &second], false).await;

    // The owner never existed: it is collected at the start, or when it is reported.
    let mut never = config_map("never", "v");
    never
        .meta_mut()
        .set_uid("00000000-0000-4000-8000-000000000000");
    owned(&cluster, "stray", &[&never], false).await;
    is_gone(&cluster, "configmaps", "stray").await;
    delete(&cluster, "first", Propagation::Background).await;
    is_gone(&cluster, "configmaps", "child").await;
    is_gone(&cluster, "configmaps", "grandchild").await;

    let left = eventually("only the dead reference is taken away", async || {
        let both = cluster.of("", "configmaps").get("both").await.unwrap();
        let names: Vec<String> = both
            .meta()
            .owner_references()
            .map(|owner| owner.name.to_string())
            .collect();
        (names == ["second"]).then_some(names)
    })
    .await;
    assert_eq!(left, ["second"]);

    cluster.stop().await;
}

#[tokio::test]
async fn in_the_foreground_the_owner_waits_for_those_that_block() {
    let cluster = Controlled::start().await;
    let parent = owned(&cluster, "parent", &[], false).await;
    let mut held = config_map("held", "v");
    held.meta_mut().add_finalizer("test/held");
    let reference = OwnerReference::to_controller(parent.meta(), "v1", "ConfigMap");
    held.meta_mut().set_owner_references([OwnerReference {
        controller: false,
        ..reference
    }]);

    cluster.of("", "configmaps").create(&held).await.unwrap();
    delete(&cluster, "parent", Propagation::Foreground).await;
    eventually("the dependent is going", async || {
        cluster
            .of("", "configmaps")
            .get("held")
            .await
            .unwrap()
            .meta()
            .is_being_deleted()
            .then_some(())
    })
    .await;

    let waiting = cluster.of("", "configmaps").get("parent").await.unwrap();
    assert!(
        waiting.meta().is_being_deleted() && waiting.meta().has_finalizer("foregroundDeletion")
    );

    let freed = Patch::Merge(json::parse(br#"{"metadata":{"finalizers":[]}}"#).unwrap());
    cluster
        .of("", "configmaps")
        .patch("held", &freed)
        .await
        .unwrap();

    is_gone(&cluster, "configmaps", "held").await;
    is_gone(&cluster, "configmaps", "parent").await;
    cluster.stop().await;
}

#[tokio::test]
async fn objects_that_own_each_other_are_deleted() {
    let cluster = Controlled::start().await;
    let one = owned(&cluster, "one", &[], false).await;
    let two = owned(&cluster, "two", &[&one], true).await;
    let mut circular = one.clone();
    let reference = OwnerReference::to_controller(two.meta(), "v1", "ConfigMap");
    circular.meta_mut().set_owner_references([OwnerReference {
        controller: false,
        ..reference
    }]);

    cluster
        .of("", "configmaps")
        .update(&circular)
        .await
        .unwrap();

    delete(&cluster, "one", Propagation::Foreground).await;
    is_gone(&cluster, "configmaps", "one").await;
    is_gone(&cluster, "configmaps", "two").await;
    cluster.stop().await;
}

#[tokio::test]
async fn orphans_stay_without_owner() {
    let cluster = Controlled::start().await;
    let sets = cluster.of("apps", "replicasets");
    sets.create(&replica_set("web", 2)).await.unwrap();
    eventually("two pods", async || {
        let set = sets.get("web").await.unwrap();
        (number(&set, &["status", "replicas"]) == 2).then_some(())
    })
    .await;

    let options = DeleteOptions {
        propagation: Some(Propagation::Orphan),
        ..DeleteOptions::default()
    };
    sets.delete("web", &options).await.unwrap();

    eventually("the set is gone", async || {
        sets.find("web").await.unwrap().is_none().then_some(())
    })
    .await;

    let left = cluster.list("pods").await;
    assert_eq!(left.len(), 2);
    assert!(
        left.iter()
            .all(|pod| pod.meta().owner_references().next().is_none())
    );

    cluster.stop().await;
}

#[tokio::test]
async fn an_owner_of_another_namespace_is_ignored_and_reported() {
    let cluster = Controlled::start().await;
    let owner = cluster
        .of("", "configmaps")
        .namespace("kube-public")
        .create(&object(
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: far, namespace: kube-public}}",
        ))
        .await
        .unwrap();

    let event = eventually("it was reported once the owner was known", async || {
        // The reference may be observed before the owner, so it is created until the other order
        // occurred as well.
        if cluster
            .of("", "configmaps")
            .find("misplaced")
            .await
            .unwrap()
            .is_none()
        {
            owned(&cluster, "misplaced", &[&owner], false).await;
        }

        let events = cluster.list("events").await;
        events
            .into_iter()
            .find(|event| event.get("reason").unwrap().as_str() == Some("OwnerRefInvalidNamespace"))
    })
    .await;

    let expected = format!(
        "ownerRef [v1/ConfigMap, namespace: default, name: far, uid: {}] does not exist in namespace \"default\"",
        owner.meta().uid()
    );

    assert_eq!(
        event.get("message").unwrap().as_str(),
        Some(expected.as_str())
    );

    is_gone(&cluster, "configmaps", "misplaced").await;
    assert!(
        cluster
            .of("", "configmaps")
            .namespace("kube-public")
            .find("far")
            .await
            .unwrap()
            .is_some()
    );

    cluster.stop().await;
}

#[tokio::test]
async fn removing_the_last_finalizer_deletes_the_object() {
    let cluster = Controlled::start().await;
    let config_maps = cluster.of("", "configmaps");
    let mut held = config_map("held", "v");
    held.meta_mut().add_finalizer("test/one");

    held.meta_mut().add_finalizer("test/two");
    config_maps.create(&held).await.unwrap();
    config_maps
        .delete("held", &DeleteOptions::default())
        .await
        .unwrap();

    let left = |names: &str| {
        Patch::Merge(
            json::parse(format!(r#"{{"metadata":{{"finalizers":{names}}}}}"#).as_bytes()).unwrap(),
        )
    };

    config_maps
        .patch("held", &left(r#"["test/two"]"#))
        .await
        .unwrap();

    assert!(
        config_maps
            .get("held")
            .await
            .unwrap()
            .meta()
            .is_being_deleted()
    );

    // By a patch or an update, and at once, without another event.
    let mut last = config_maps.get("held").await.unwrap();
    last.meta_mut().remove_finalizer("test/two");
    config_maps.update(&last).await.unwrap();
    assert!(config_maps.find("held").await.unwrap().is_none());

    cluster.stop().await;
}
