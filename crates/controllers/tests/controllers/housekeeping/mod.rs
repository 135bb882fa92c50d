//! The housekeeping controllers (garbage collection, namespaces, quotas, accounts, certificates)
//! against a real server, under their upstream identities.

mod certificates;
use crate::common;
mod garbage_collector;

use common::{Controlled, authority};
use coracle_api::Value;
use coracle_api::codec::json;
use coracle_client::{Access, DeleteOptions, Patch, Resource};
use coracle_testkit::eventually;
use coracle_testkit::objects::object;

fn merge(text: &str) -> Patch {
    Patch::Merge(json::parse(text.as_bytes()).unwrap())
}

fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    object.at(path).and_then(Value::as_str).unwrap_or_default()
}

fn of_cluster(cluster: &Controlled, group: &str, plural: &str) -> Access {
    cluster
        .client
        .resource(&Resource::builtin(group, "v1", plural))
}

async fn create(cluster: &Controlled, group: &str, plural: &str, yaml: &str) -> Value {
    of_cluster(cluster, group, plural)
        .create(&object(yaml))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_namespace_that_is_deleted_is_emptied_and_says_what_holds_it() {
    let cluster = Controlled::start().await;
    let namespaces = of_cluster(&cluster, "", "namespaces");
    create(
        &cluster,
        "",
        "namespaces",
        "{apiVersion: v1, kind: Namespace, metadata: {name: zoux}}",
    )
    .await;

    for (group, plural, yaml) in [
        (
            "",
            "configmaps",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: zoux, finalizers: [test/held]}}",
        ),
        (
            "",
            "secrets",
            "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: zoux}}",
        ),
        (
            "",
            "pods",
            "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: zoux}, spec: {containers: [{name: c, image: i}]}}",
        ),
        (
            "coordination.k8s.io",
            "leases",
            "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l, namespace: zoux}}",
        ),
    ] {
        create(&cluster, group, plural, yaml).await;
    }

    namespaces
        .delete("zoux", &DeleteOptions::default())
        .await
        .unwrap();

    let held = eventually("the namespace says what holds it", async || {
        let namespace = namespaces.get("zoux").await.unwrap();
        let conditions = namespace
            .at(&["status", "conditions"])?
            .as_array()?
            .to_vec();

        conditions.into_iter().find(|one| {
            text(one, &["type"]) == "NamespaceFinalizersRemaining"
                && text(one, &["status"]) == "True"
        })
    })
    .await;

    assert_eq!(
        text(&held, &["message"]),
        "Some content in the namespace has finalizers remaining: test/held in 1 resource instances"
    );

    let left = of_cluster(&cluster, "", "configmaps").namespace("zoux");
    let refused = left
        .create(&object(
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: new}}",
        ))
        .await
        .unwrap_err();
    assert!(refused.has_cause("NamespaceTerminating"), "{refused}");

    for (group, plural) in [
        ("", "secrets"),
        ("", "pods"),
        ("coordination.k8s.io", "leases"),
        ("", "serviceaccounts"),
    ] {
        let found = of_cluster(&cluster, group, plural).namespace("zoux");
        assert!(
            found
                .list_all(&Default::default())
                .await
                .unwrap()
                .items
                .is_empty(),
            "{plural}"
        );
    }

    left.patch("held", &merge(r#"{"metadata":{"finalizers":[]}}"#))
        .await
        .unwrap();
    eventually("the namespace is gone", async || {
        namespaces
            .find("zoux")
            .await
            .unwrap()
            .is_none()
            .then_some(())
    })
    .await;

    cluster.stop().await;
}

#[tokio::test]
async fn every_namespace_has_the_authority_and_gets_it_back() {
    let cluster = Controlled::start().await;
    let config_maps = cluster.of("", "configmaps");
    let is_there = async || {
        let found = config_maps.find("kube-root-ca.crt").await.unwrap()?;
        (text(&found, &["data", "ca.crt"]) == authority().0).then_some(())
    };
    eventually("it is there", is_there).await;

    config_maps
        .patch("kube-root-ca.crt", &merge(r#"{"data":{"ca.crt":"false"}}"#))
        .await
        .unwrap();

    eventually("it is put right", is_there).await;
    config_maps
        .delete("kube-root-ca.crt", &DeleteOptions::default())
        .await
        .unwrap();

    eventually("it is made again", is_there).await;
    cluster.stop().await;
}

#[tokio::test]
async fn roles_gather_the_rules_of_those_that_they_select() {
    let cluster = Controlled::start().await;
    let group = "rbac.authorization.k8s.io";

    let roles = of_cluster(&cluster, group, "clusterroles");
    let has = async |role: &str, resource: &str| {
        let role = roles.get(role).await.unwrap();
        let rules = role
            .get("rules")
            .and_then(Value::as_array)
            .unwrap_or_default();

        rules.iter().any(|rule| {
            let resources = rule
                .get("resources")
                .and_then(Value::as_array)
                .unwrap_or_default();
            resources.iter().any(|one| one.as_str() == Some(resource))
        })
    };

    eventually("the roles of the beginning are gathered", async || {
        has("view", "pods").await.then_some(())
    })
    .await;

    create(
        &cluster,
        group,
        "clusterroles",
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: gadgets, labels: \
         {rbac.authorization.k8s.io/aggregate-to-view: 'true'}}, rules: [{apiGroups: [x.io], resources: [gadgets], \
         verbs: [get]}]}",
    )
    .await;

    eventually("a new role is gathered", async || {
        has("view", "gadgets").await.then_some(())
    })
    .await;

    // An aggregated role is aggregated in turn.
    eventually("by those above as well", async || {
        has("admin", "gadgets").await.then_some(())
    })
    .await;

    roles
        .delete("gadgets", &DeleteOptions::default())
        .await
        .unwrap();

    eventually("a role that is gone is not", async || {
        (!has("view", "gadgets").await).then_some(())
    })
    .await;

    cluster.stop().await;
}

#[tokio::test]
async fn a_quota_reports_its_usage_and_releases_what_is_deleted() {
    let cluster = Controlled::start().await;
    let quotas = cluster.of("", "resourcequotas");
    let kept = cluster.of("", "configmaps");
    kept.create(&object(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: first}}",
    ))
    .await
    .unwrap();

    quotas
        .create(&object(
            "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {pods: 1, requests.cpu: 1, \
             count/secrets: 2}}}",
        ))
        .await
        .unwrap();

    let says = async |expected: [&str; 3]| {
        eventually(&format!("the quota says {expected:?}"), async || {
            let quota = quotas.get("q").await.unwrap();
            let used = ["pods", "requests.cpu", "count/secrets"]
                .map(|name| text(&quota, &["status", "used", name]).to_string());
            (used == expected).then_some(())
        })
        .await;
    };
    says(["0", "0", "0"]).await;

    let pods = cluster.of("", "pods");

    let pod = |name: &str| {
        object(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [{{name: c, image: i, \
             resources: {{requests: {{cpu: 500m}}}}}}]}}}}"
        ))
    };
    pods.create(&pod("one")).await.unwrap();

    says(["1", "500m", "0"]).await;
    let refused = pods.create(&pod("two")).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("exceeded quota: q, requested: pods=1"),
        "{refused}"
    );

    // An ended pod frees quota.
    let ended = r#"{"status":{"phase":"Succeeded"}}"#;
    pods.clone()
        .subresource("status")
        .patch("one", &merge(ended))
        .await
        .unwrap();

    says(["0", "0", "0"]).await;
    pods.create(&pod("two")).await.unwrap();
    says(["1", "500m", "0"]).await;

    // The pod garbage collector may be quicker: it deletes terminating pods without a node.
    let deleted = pods.delete("two", &DeleteOptions::default()).await;
    assert!(deleted.map_or_else(|error| error.is_not_found(), |_| true));

    says(["0", "0", "0"]).await;
    let secrets = cluster.of("", "secrets");
    secrets
        .create(&object(
            "{apiVersion: v1, kind: Secret, metadata: {name: s}}",
        ))
        .await
        .unwrap();

    says(["0", "0", "1"]).await;
    secrets
        .delete("s", &DeleteOptions::default())
        .await
        .unwrap();

    says(["0", "0", "0"]).await;
    quotas
        .patch("q", &merge(r#"{"spec":{"hard":{"pods":"5"}}}"#))
        .await
        .unwrap();

    eventually("the limit is the new one", async || {
        (text(&quotas.get("q").await.unwrap(), &["status", "hard", "pods"]) == "5").then_some(())
    })
    .await;

    cluster.stop().await;
}

fn claim(name: &str) -> Value {
    object(&format!(
        "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {name}}}, spec: {{accessModes: \
         [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}}}"
    ))
}

fn volume(name: &str) -> Value {
    object(&format!(
        "{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: {name}}}, spec: {{capacity: {{storage: 1Gi}}, \
         accessModes: [ReadWriteOnce], hostPath: {{path: /x}}}}}}"
    ))
}

/// The protection finalizer is removed manually, and restored.
async fn gets_it_back(of: &Access, name: &str, finalizer: &str) {
    of.patch(name, &merge(r#"{"metadata":{"finalizers":null}}"#))
        .await
        .unwrap();
    eventually("it is protected", async || {
        of.get(name)
            .await
            .unwrap()
            .meta()
            .has_finalizer(finalizer)
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_claim_stays_while_a_pod_has_it_and_a_volume_while_a_claim_has_it() {
    let cluster = Controlled::start().await;
    let (claims, pods) = (
        cluster.of("", "persistentvolumeclaims"),
        cluster.of("", "pods"),
    );

    let volumes = of_cluster(&cluster, "", "persistentvolumes");
    claims.create(&claim("c")).await.unwrap();
    pods.create(&object(
        "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: node-1, containers: [{name: c, image: i}], \
         volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}",
    ))
    .await
    .unwrap();

    gets_it_back(&claims, "c", "kubernetes.io/pvc-protection").await;
    claims.delete("c", &DeleteOptions::default()).await.unwrap();

    // The controller has processed this one: it has processed one that was created later.
    claims.create(&claim("later")).await.unwrap();
    gets_it_back(&claims, "later", "kubernetes.io/pvc-protection").await;
    assert!(claims.get("c").await.unwrap().meta().is_being_deleted());

    pods.delete(
        "p",
        &DeleteOptions {
            grace_period_seconds: Some(0),
            ..DeleteOptions::default()
        },
    )
    .await
    .unwrap();

    eventually("the claim is gone", async || {
        claims.find("c").await.unwrap().is_none().then_some(())
    })
    .await;

    volumes.create(&volume("v")).await.unwrap();
    let statuses = volumes.clone().subresource("status");
    statuses
        .patch("v", &merge(r#"{"status":{"phase":"Bound"}}"#))
        .await
        .unwrap();

    volumes
        .delete("v", &DeleteOptions::default())
        .await
        .unwrap();

    volumes.create(&volume("later")).await.unwrap();
    gets_it_back(&volumes, "later", "kubernetes.io/pv-protection").await;
    assert!(volumes.get("v").await.unwrap().meta().is_being_deleted());

    statuses
        .patch("v", &merge(r#"{"status":{"phase":"Released"}}"#))
        .await
        .unwrap();

    eventually("the volume is gone", async || {
        volumes.find("v").await.unwrap().is_none().then_some(())
    })
    .await;

    cluster.stop().await;
}

#[tokio::test]
async fn a_volume_attributes_class_stays_while_a_claim_or_a_volume_names_it() {
    let cluster = Controlled::start().await;
    let claims = cluster.of("", "persistentvolumeclaims");
    let volumes = of_cluster(&cluster, "", "persistentvolumes");
    let classes = of_cluster(&cluster, "storage.k8s.io", "volumeattributesclasses");
    let class = |name: &str| {
        object(&format!(
            "{{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {{name: {name}}}, driverName: \
             csi.example.com, parameters: {{iops: '1'}}}}"
        ))
    };

    claims
        .create(&object(
            "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {accessModes: [ReadWriteOnce], \
             resources: {requests: {storage: 1Gi}}, volumeAttributesClassName: gold}}",
        ))
        .await
        .unwrap();
    volumes
        .create(&object(
            "{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {capacity: {storage: 1Gi}, \
             accessModes: [ReadWriteOnce], volumeAttributesClassName: gold, csi: {driver: csi.example.com, \
             volumeHandle: h}}}",
        ))
        .await
        .unwrap();
    classes.create(&class("gold")).await.unwrap();
    gets_it_back(&classes, "gold", "kubernetes.io/vac-protection").await;

    classes
        .delete("gold", &DeleteOptions::default())
        .await
        .unwrap();
    claims.delete("c", &DeleteOptions::default()).await.unwrap();
    eventually("the claim is gone", async || {
        claims.find("c").await.unwrap().is_none().then_some(())
    })
    .await;

    // The controller has processed the claim's deletion: it has processed one that came later.
    classes.create(&class("later")).await.unwrap();
    gets_it_back(&classes, "later", "kubernetes.io/vac-protection").await;
    assert!(classes.get("gold").await.unwrap().meta().is_being_deleted());

    volumes
        .delete("v", &DeleteOptions::default())
        .await
        .unwrap();
    eventually("the class is gone", async || {
        classes.find("gold").await.unwrap().is_none().then_some(())
    })
    .await;

    cluster.stop().await;
}
