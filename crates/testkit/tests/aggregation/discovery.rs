//! What clients see of another server's group.

use coracle_api::Value;
use coracle_api::codec::json;
use coracle_client::DeleteOptions;
use coracle_testkit::{Cluster, Extension, Reply, eventually};

use crate::{ask, register, services, serving};

const EVERYTHING: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn items<'v>(tree: &'v Value, name: &str) -> &'v [Value] {
    tree.get(name).and_then(Value::as_array).unwrap_or_default()
}

/// The group in the document of everything.
async fn group(cluster: &Cluster, name: &str) -> Option<String> {
    let all = ask(cluster, "GET", "/apis", &[("accept", EVERYTHING)]).await;
    let all = all.tree();
    let mut groups = items(&all, "items").iter();
    let found = groups.find(|group| group.meta().name() == name)?;
    Some(json::to_string(found))
}

#[tokio::test]
async fn its_group_is_among_all_others() {
    let cluster = Cluster::start_with_https().await;
    let authority = cluster.file("front-proxy-ca.crt");
    let extension = Extension::start(&authority, serving(|_| Reply::HangUp)).await;
    register(&cluster, &extension).await;

    let expected = r#"{"metadata":{"name":"a.example"},"versions":[{"freshness":"Current","resources":[{"resource":"boats","responseKind":{"group":"","kind":"Boat","version":""},"scope":"Namespaced","singularResource":"boat","verbs":["get","list"]}],"version":"v1"}]}"#;
    assert_eq!(
        group(&cluster, "a.example").await.as_deref(),
        Some(expected)
    );

    let list = ask(&cluster, "GET", "/apis", &[]).await.tree();
    let names: Vec<&str> = items(&list, "groups")
        .iter()
        .map(|group| group.get("name").unwrap().as_str().unwrap())
        .collect();
    assert_eq!(names[..2], ["apiregistration.k8s.io", "apps"]);
    assert_eq!(
        names.last(),
        Some(&"a.example"),
        "it has the least priority"
    );

    let one = ask(&cluster, "GET", "/apis/a.example", &[]).await.tree();
    assert_eq!(
        one.at(&["preferredVersion", "groupVersion"]),
        Some(&Value::string("a.example/v1"))
    );
    let resources = ask(&cluster, "GET", "/apis/a.example/v1", &[]).await.tree();
    assert_eq!(items(&resources, "resources").len(), 1);
    let index = ask(&cluster, "GET", "/", &[]).await.text();
    assert!(index.contains("/apis/a.example/v1"), "{index}");

    services(&cluster)
        .delete("v1.a.example", &DeleteOptions::default())
        .await
        .unwrap();
    eventually("the group is gone", async || {
        group(&cluster, "a.example").await.is_none().then_some(())
    })
    .await;
    cluster.stop().await;
}
