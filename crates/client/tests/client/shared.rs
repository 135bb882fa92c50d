//! Informers of the same process share one tree for each version of an object.

use std::sync::Arc;

use coracle_client::{Informer, Informers, ObjectKey, Patch, Resource, Selection, Tasks, Whole};
use coracle_testkit::objects::{config_map, object};
use coracle_testkit::{Cluster, Setup, eventually, simulated};

#[tokio::test]
async fn informers_of_one_process_share_the_trees_that_they_hold() {
    let cluster = Cluster::with(Setup {
        world: simulated(11),
        bare: true,
        ..Setup::default()
    })
    .await;

    let default = object("{apiVersion: v1, kind: Namespace, metadata: {name: default}}");
    cluster
        .client()
        .resource(&Resource::builtin("", "v1", "namespaces"))
        .create(&default)
        .await
        .unwrap();

    let config_maps = Resource::builtin("", "v1", "configmaps");
    let maps = cluster.client().resource(&config_maps).namespace("default");
    maps.create(&config_map("before", "x")).await.unwrap();
    let tasks = Tasks::new();

    // Two independent factories.
    let informers: Vec<Informer<Whole>> = (0..2)
        .map(|_| Informers::new(cluster.client(), tasks.clone()).of(Selection::all(&config_maps)))
        .collect();
    for informer in &informers {
        informer.synced().await;
    }

    maps.create(&config_map("after", "x")).await.unwrap();
    let changed = Patch::Merge(object("{data: {k: changed}}"));
    let version = maps
        .patch("after", &changed)
        .await
        .unwrap()
        .meta()
        .resource_version()
        .to_string();

    let key = |name: &str| ObjectKey::new("default", name);
    for informer in &informers {
        let newest = async || {
            informer
                .get(&key("after"))
                .filter(|map| map.meta().resource_version() == version)
        };
        eventually("the change is delivered", newest).await;
    }

    for name in ["before", "after"] {
        let [one, other] = [0, 1].map(|place| informers[place].get(&key(name)).unwrap());
        assert!(Arc::ptr_eq(&one.object, &other.object), "{name}");
        assert!(one.at(&["metadata", "managedFields"]).is_none(), "{name}");
        assert!(!one.meta().resource_version().is_empty(), "{name}");
    }

    tasks.stop().await;
    cluster.stop().await;
}
