//! Requests to a real server, in process and over HTTPS: both must give the same result.

use coracle_api::Value;
use coracle_api::codec::json;
use coracle_client::{
    Client, DeleteOptions, Deleted, Error, ListOptions, Mapper, Patch, Resource, WatchEvent,
};
use coracle_testkit::objects::{config_map, object, pod, replica_set};
use coracle_testkit::{Cluster, REAL};
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};

/// Runs a check through both transports.
async fn both<F: Future<Output = ()>>(check: impl Fn(Client) -> F) {
    let cluster = Cluster::start_with_https().await;
    with_account(&cluster.client()).await;
    check(cluster.client()).await;
    cluster.stop().await;
    let cluster = Cluster::start_with_https().await;
    with_account(&cluster.client()).await;
    check(Client::connect(cluster.https(), REAL).await.unwrap()).await;
    cluster.stop().await;
}

/// Pods are rejected in a namespace without a default service account.
async fn with_account(client: &Client) {
    let account = object(
        "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: default}}",
    );
    client
        .resource(&Resource::builtin("", "v1", "serviceaccounts"))
        .create(&account)
        .await
        .unwrap();
}

fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

fn config_maps() -> Resource {
    Resource::builtin("", "v1", "configmaps")
}

#[tokio::test]
async fn every_verb_does_what_it_says() {
    both(async |client| {
        let maps = client.resource(&config_maps()).namespace("default");
        let made = maps.create(&config_map("a", "1")).await.unwrap();
        assert!(!made.meta().uid().is_empty());
        assert!(
            maps.create(&config_map("a", "1"))
                .await
                .unwrap_err()
                .is_already_exists()
        );

        let mut changed = maps.get("a").await.unwrap();
        changed.meta_mut().set_label("tier", Some("web"));
        let updated = maps.update(&changed).await.unwrap();
        assert_ne!(
            updated.meta().resource_version(),
            made.meta().resource_version()
        );

        assert!(
            maps.update(&changed).await.unwrap_err().is_conflict(),
            "the version is old by now"
        );

        let merged = maps
            .patch("a", &Patch::Merge(value(r#"{"data":{"k":null,"m":"1"}}"#)))
            .await
            .unwrap();
        assert_eq!(json::to_string(merged.get("data").unwrap()), r#"{"m":"1"}"#);

        let operations = value(r#"[{"op":"add","path":"/data/j","value":"2"}]"#);
        maps.patch("a", &Patch::Json(operations)).await.unwrap();
        maps.patch("a", &Patch::Strategic(value(r#"{"data":{"s":"3"}}"#)))
            .await
            .unwrap();

        let object = value(
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"p":"4"}}"#,
        );
        let apply = Patch::Apply {
            object,
            manager: "tester".to_string(),
            force: false,
        };

        let applied = maps.patch("a", &apply).await.unwrap();
        assert_eq!(
            json::to_string(applied.get("data").unwrap()),
            r#"{"j":"2","m":"1","p":"4","s":"3"}"#
        );

        assert_eq!(
            maps.list(&ListOptions::labels("tier=web"))
                .await
                .unwrap()
                .items
                .len(),
            1
        );

        assert_eq!(
            maps.list(&ListOptions::labels("tier!=web"))
                .await
                .unwrap()
                .items
                .len(),
            0
        );

        assert_eq!(
            maps.delete("a", &DeleteOptions::default()).await.unwrap(),
            Deleted::Gone
        );

        assert!(maps.get("a").await.unwrap_err().is_not_found());
        assert_eq!(maps.find("a").await.unwrap(), None);

        for name in ["x", "y", "z"] {
            maps.create(&config_map(name, "1")).await.unwrap();
        }

        let gone = maps
            .delete_collection(&DeleteOptions::default(), &ListOptions::default())
            .await
            .unwrap();
        assert_eq!(gone.items.len(), 3);
    })
    .await;
}

#[tokio::test]
async fn concurrent_patches_all_apply_and_those_with_an_old_version_do_not() {
    both(async |client| {
        let maps = client.resource(&config_maps()).namespace("default");
        let made = maps.create(&config_map("a", "1")).await.unwrap();
        let all = 0..16;

        // Every kind of patch; each is based on the object before any of the others.
        let patches = all.clone().map(|index| match index % 4 {
            0 => Patch::Merge(value(&format!(r#"{{"data":{{"k{index}":"v"}}}}"#))),
            1 => Patch::Strategic(value(&format!(r#"{{"data":{{"k{index}":"v"}}}}"#))),
            2 => Patch::Json(value(&format!(r#"[{{"op":"add","path":"/data/k{index}","value":"v"}}]"#))),
            _ => Patch::Apply {
                object: object(&format!(
                    "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{k{index}: v}}}}"
                )),
                manager: format!("tester-{index}"),
                force: false,
            },
        });
        let patched = join_all(patches.map(async |patch| maps.patch("a", &patch).await)).await;
        assert_eq!(patched.into_iter().find_map(Result::err).map(|error| error.to_string()), None);

        let data = maps.get("a").await.unwrap();
        let data = data.get("data").and_then(Value::as_object).unwrap();
        assert!(all.clone().all(|index| data.contains_key(&format!("k{index}"))), "{data:?}");

        let version = maps.get("a").await.unwrap().meta().resource_version().to_string();
        let named = |version: &str| {
            Patch::Merge(value(&format!(
                r#"{{"metadata":{{"resourceVersion":"{version}"}},"data":{{"n":"{version}"}}}}"#
            )))
        };
        let old = maps.patch("a", &named(made.meta().resource_version())).await;
        assert!(old.unwrap_err().is_conflict());

        // Of those with the current version, one succeeds.
        let named = all.map(|_| named(&version)).collect::<Vec<_>>();
        let results = join_all(named.iter().map(|patch| maps.patch("a", patch))).await;
        let refused = results.iter().filter(|result| result.as_ref().is_err_and(Error::is_conflict));

        // The same patch again changes nothing, but its version is old.
        assert_eq!((results.iter().filter(|result| result.is_ok()).count(), refused.count()), (1, 15));
    })
    .await;
}

#[tokio::test]
async fn the_last_finalizer_is_removed_despite_concurrent_writes() {
    both(async |client| {
        let maps = client.resource(&config_maps()).namespace("default");
        let mut held = config_map("a", "1");
        held.meta_mut().add_finalizer("test/held");
        maps.create(&held).await.unwrap();
        maps.delete("a", &DeleteOptions::default()).await.unwrap();

        let label = Patch::Merge(value(r#"{"metadata":{"labels":{"l":"v"}}}"#));
        let release = Patch::Merge(value(r#"{"metadata":{"finalizers":null}}"#));
        let (labelled, released) = tokio::join!(maps.patch("a", &label), maps.patch("a", &release));
        released.unwrap();
        assert!(
            labelled.is_ok() || labelled.unwrap_err().is_not_found(),
            "it came first, or too late"
        );

        assert_eq!(maps.find("a").await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn refusals_come_with_their_reasons() {
    both(async |client| {
        let pods = client.resource(&Resource::builtin("", "v1", "pods"));
        let mut bad = pod("p");
        bad.meta_mut().set_name("Not_A_Name");
        let error = pods.create(&bad).await.unwrap_err();
        assert!(error.is_invalid(), "{error}");

        let status = error.status().unwrap();
        assert_eq!(
            (status.code, status.causes[0].field.as_str()),
            (422, "metadata.name")
        );

        assert!(status.has_cause("FieldValueInvalid"));

        let mut nowhere = pod("p");
        nowhere.meta_mut().set_namespace("");
        let error = pods.create(&nowhere).await.unwrap_err();
        assert!(
            error.to_string().contains("an empty namespace"),
            "not even sent: {error}"
        );

        let error = pods
            .clone()
            .namespace("default")
            .get("a/b")
            .await
            .unwrap_err();

        assert!(
            error.to_string().contains("may not be or contain"),
            "not even sent: {error}"
        );

        let uid = DeleteOptions::only("another");
        pods.create(&pod("p")).await.unwrap();
        assert!(
            pods.namespace("default")
                .delete("p", &uid)
                .await
                .unwrap_err()
                .is_conflict()
        );
    })
    .await;
}

#[tokio::test]
async fn typed_and_dynamic_lists_show_the_same_and_pages_one_moment() {
    both(async |client| {
        let pods = client.typed::<Pod>().namespace("default");

        for index in 0..24 {
            client
                .resource(&Resource::of::<Pod>())
                .create(&pod(&format!("p{index:02}")))
                .await
                .unwrap();
        }

        let typed = pods
            .list(&ListOptions {
                limit: 500,
                ..ListOptions::default()
            })
            .await
            .unwrap();

        let names = typed
            .items
            .iter()
            .map(|pod| pod.metadata.name.clone().unwrap());

        let dynamic = pods
            .untyped()
            .list_all(&ListOptions::default())
            .await
            .unwrap();

        assert!(
            names.eq(dynamic
                .items
                .iter()
                .map(|pod| pod.meta().name().to_string()))
        );

        assert!(
            dynamic
                .items
                .iter()
                .all(|pod| pod.get("kind") == Some(&Value::from("Pod")))
        );

        let first = pods
            .untyped()
            .list(&ListOptions {
                limit: 1,
                ..ListOptions::default()
            })
            .await
            .unwrap();
        assert_eq!((first.items.len(), first.remaining), (1, Some(23)));

        client
            .resource(&Resource::of::<Pod>())
            .create(&pod("later"))
            .await
            .unwrap();

        let token = first.continue_token.to_string();
        let rest = ListOptions {
            continue_token: token,
            ..ListOptions::default()
        };

        let rest = pods.untyped().list(&rest).await.unwrap();
        assert_eq!(
            (rest.items.len(), &rest.resource_version),
            (23, &first.resource_version)
        );
    })
    .await;
}

#[tokio::test]
async fn a_watch_delivers_changes_and_initial_events_if_requested() {
    both(async |client| {
        let maps = client.resource(&config_maps()).namespace("default");
        maps.create(&config_map("a", "1")).await.unwrap();

        let options = ListOptions {
            send_initial_events: Some(true),
            resource_version_match: "NotOlderThan".to_string(),
            bookmarks: true,
            ..ListOptions::default()
        };
        let mut watch = maps.watch(&options).await.unwrap();
        assert!(
            matches!(watch.next().await.unwrap(), Some(WatchEvent::Added(map)) if map.meta().name() == "a")
        );

        let end = watch.next().await.unwrap();
        assert!(matches!(end, Some(WatchEvent::Bookmark { initial_events_end: true, .. })), "{end:?}");

        maps.patch("a", &Patch::Merge(value(r#"{"data":{"k":"2"}}"#))).await.unwrap();
        maps.delete("a", &DeleteOptions::default()).await.unwrap();
        assert!(matches!(watch.next().await.unwrap(), Some(WatchEvent::Modified(_))));
        assert!(matches!(watch.next().await.unwrap(), Some(WatchEvent::Deleted(_))));

        let refused = ListOptions { send_initial_events: Some(true), ..ListOptions::default() };
        assert!(maps.watch(&refused).await.err().unwrap().is_invalid());

        let short = ListOptions { timeout_seconds: 1, ..ListOptions::default() };
        assert_eq!(maps.watch(&short).await.unwrap().next().await.unwrap(), None, "it ends cleanly");
    })
    .await;
}

#[tokio::test]
async fn subresources_scale_and_status_are_parts_of_objects() {
    both(async |client| {
        let sets = client
            .resource(&Resource::builtin("apps", "v1", "replicasets"))
            .namespace("default");
        let mut set = sets.create(&replica_set("web", 3)).await.unwrap();

        let scale = sets.clone().subresource("scale");
        assert_eq!(
            scale
                .get("web")
                .await
                .unwrap()
                .at(&["spec", "replicas"])
                .unwrap()
                .as_int(),
            Some(3)
        );

        scale
            .patch("web", &Patch::Merge(value(r#"{"spec":{"replicas":5}}"#)))
            .await
            .unwrap();

        set.as_object_mut()
            .unwrap()
            .object_mut("status")
            .insert("replicas", 2);

        set.meta_mut().members().remove("resourceVersion");

        let shown = sets
            .clone()
            .subresource("status")
            .update(&set)
            .await
            .unwrap();
        assert_eq!(shown.at(&["status", "replicas"]).unwrap().as_int(), Some(2));

        assert_eq!(
            shown.at(&["spec", "replicas"]).unwrap().as_int(),
            Some(5),
            "the status part changes no spec"
        );
    })
    .await;
}

#[tokio::test]
async fn discovery_finds_what_the_catalogue_says() {
    both(async |client| {
        let mapper = Mapper::new(client.discovery());
        for (name, expected) in [
            ("deploy", "deployments.apps"),
            ("po", "pods"),
            ("leases", "leases.coordination.k8s.io"),
        ] {
            assert_eq!(
                mapper.of_name(name).await.unwrap().resource.to_string(),
                expected
            );
        }

        let found = mapper.of_kind("apps", "v1", "ReplicaSet").await.unwrap();
        assert_eq!(
            found.resource,
            Resource::builtin("apps", "v1", "replicasets")
        );

        assert!(found.subresources.iter().any(|part| part == "scale"));

        let served = mapper.served().await.unwrap();
        assert!(served.failed.is_empty() && served.groups.len() > 15);
    })
    .await;
}

#[tokio::test]
async fn typed_objects_are_written_and_read() {
    both(async |client| {
        let maps = client.typed::<ConfigMap>().namespace("default");
        let mut map = ConfigMap::default();
        map.metadata.name = Some("t".to_string());
        map.data = Some([("a".to_string(), "b".to_string())].into());
        let made = maps.create(&map).await.unwrap();
        assert_eq!(made.data, map.data);
        assert_eq!(maps.get("t").await.unwrap(), made);
    })
    .await;
}

#[tokio::test]
async fn component_statuses_are_asked_for_when_they_are_read() {
    both(async |client| {
        let statuses = client.resource(&Resource::builtin("", "v1", "componentstatuses"));
        let all = statuses.list(&ListOptions::default()).await.unwrap();
        let names: Vec<&str> = all
            .items
            .iter()
            .map(|status| status.meta().name())
            .collect();
        assert_eq!(names, ["etcd-0", "controller-manager", "scheduler"]);

        let condition = |status: &Value, field: &str| {
            let conditions = status.get("conditions").unwrap().as_array().unwrap();
            conditions[0]
                .get(field)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let store = statuses.get("etcd-0").await.unwrap();
        assert_eq!(condition(&store, "type").as_deref(), Some("Healthy"));
        assert_eq!(condition(&store, "status").as_deref(), Some("True"));
        assert_eq!(condition(&store, "message").as_deref(), Some("ok"));

        // Nothing of this cluster serves on these ports, but another one on this machine may.
        let scheduler = statuses.get("scheduler").await.unwrap();
        let status = condition(&scheduler, "status").unwrap();
        assert!(["True", "False"].contains(&status.as_str()), "{status}");
        assert!(condition(&scheduler, "message").is_some());

        assert!(statuses.get("kubelet").await.unwrap_err().is_not_found());
        let one = ListOptions {
            field_selector: "metadata.name=etcd-0".to_string(),
            ..ListOptions::default()
        };
        assert_eq!(statuses.list(&one).await.unwrap().items.len(), 1);
    })
    .await;
}
