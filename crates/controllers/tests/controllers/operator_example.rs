//! The example operator against a real server over HTTPS.

#[path = "../../examples/operator/operator.rs"]
mod operator;

use coracle_api::Value;
use coracle_api::codec::json;
use coracle_client::{Client, DeleteOptions, ListOptions, Patch, Resource, Tasks};
use coracle_controllers::Context;
use coracle_testkit::objects::{config_map, pod};
use coracle_testkit::{Cluster, eventually};

fn merge(text: &str) -> Patch {
    Patch::Merge(json::parse(text.as_bytes()).unwrap())
}

fn entry<'a>(map: &'a Value, name: &str) -> Option<&'a str> {
    map.at(&["data", name]).and_then(Value::as_str)
}

#[tokio::test]
async fn pods_are_counted_listed_and_the_list_goes_before_the_object() {
    let cluster = Cluster::start_with_https().await;
    let client = Client::connect(cluster.https(), cluster.world)
        .await
        .unwrap();
    let tasks = Tasks::new();
    let own = client.clone();
    let context = Context::new(&client, move |_| own.clone(), tasks.clone());
    let running = context.clone();
    tasks.spawn(async move { operator::run(&running).await });

    let of = |plural: &str| {
        cluster
            .client()
            .resource(&Resource::builtin("", "v1", plural))
            .namespace("default")
    };

    let (maps, pods) = (of("configmaps"), of("pods"));
    for name in ["one", "two", "three"] {
        let mut labelled = pod(name);
        labelled
            .meta_mut()
            .set_label("app", Some(if name == "three" { "other" } else { "web" }));
        pods.create(&labelled).await.unwrap();
    }

    let mut request = config_map("web", "unused");
    request
        .meta_mut()
        .set_label("example.com/pod-count", Some("true"));
    request
        .as_object_mut()
        .unwrap()
        .object_mut("data")
        .insert("selector", "app=web");

    maps.create(&request).await.unwrap();

    let counted = async |count: &str| {
        eventually(&format!("{count} are counted"), async || {
            let map = maps.get("web").await.unwrap();
            (entry(&map, "count") == Some(count)).then_some(map)
        })
        .await
    };
    let map = counted("2").await;
    assert!(map.meta().has_finalizer("example.com/pod-list"));

    assert_eq!(
        entry(&maps.get("web-pods").await.unwrap(), "pods"),
        Some("one\ntwo")
    );

    pods.delete("one", &DeleteOptions::default()).await.unwrap();
    counted("1").await;

    // An invalid selector causes an event, and nothing else.
    maps.patch("web", &merge(r#"{"data":{"selector":"=,="}}"#))
        .await
        .unwrap();
    eventually("a complaint", async || {
        let events = of("events")
            .list_all(&ListOptions::default())
            .await
            .unwrap();

        events
            .items
            .iter()
            .any(|event| event.get("reason").unwrap().as_str() == Some("BadSelector"))
            .then_some(())
    })
    .await;

    maps.patch("web", &merge(r#"{"data":{"selector":"app"}}"#))
        .await
        .unwrap();
    counted("2").await;

    // When the state is reported, nothing is written any more.
    eventually("it makes no more writes", async || {
        let before = cluster.store.revision();
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        (cluster.store.revision() == before).then_some(())
    })
    .await;

    maps.delete("web", &DeleteOptions::default()).await.unwrap();
    eventually("it is gone, and its list", async || {
        let left = maps.list_all(&ListOptions::default()).await.unwrap().items;
        left.iter()
            .all(|map| !map.meta().name().starts_with("web"))
            .then_some(())
    })
    .await;

    assert_eq!(
        pods.list_all(&ListOptions::default())
            .await
            .unwrap()
            .items
            .len(),
        2,
        "pods are left alone"
    );

    tasks.stop().await;
    cluster.stop().await;
}
