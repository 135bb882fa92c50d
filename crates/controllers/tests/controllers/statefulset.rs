//! The StatefulSet controller against a real server, under its upstream identity.

use crate::common;

use common::{Controlled, number};
use coracle_api::Value;
use coracle_client::Patch;
use coracle_testkit::objects::object;
use coracle_testkit::{eventually, run_pods};

async fn complete(cluster: &Controlled, replicas: i64) -> Value {
    eventually(
        &format!("{replicas} pods of the present template"),
        async || {
            let db = cluster.of("apps", "statefulsets").get("db").await.unwrap();
            let counts = [
                "replicas",
                "updatedReplicas",
                "availableReplicas",
                "currentReplicas",
            ];

            let all = counts
                .iter()
                .all(|name| number(&db, &["status", name]) == replicas);

            (all && number(&db, &["status", "observedGeneration"]) == db.meta().generation())
                .then_some(db)
        },
    )
    .await
}

#[tokio::test]
async fn pods_with_claims_come_in_order_are_replaced_and_go() {
    let cluster = Controlled::start().await;
    let ready = object("{phase: Running, conditions: [{type: Ready, status: 'True'}]}");
    let running = run_pods(&cluster.client, move |_| Some(ready.clone()));

    let sets = cluster.of("apps", "statefulsets");
    sets.create(&object(
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\n\
         spec:\n  replicas: 3\n  serviceName: db\n  selector: {matchLabels: {app: db}}\n  \
         persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Retain}\n  \
         template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: a}]}}\n  \
         volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], \
         resources: {requests: {storage: 1Gi}}}}]\n",
    ))
    .await
    .unwrap();

    complete(&cluster, 3).await;
    let claims = cluster.list("persistentvolumeclaims").await;
    let mut names: Vec<&str> = claims.iter().map(|claim| claim.meta().name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["data-db-0", "data-db-1", "data-db-2"]);

    let change = "{spec: {template: {spec: {containers: [{name: c, image: b}]}}}}";
    sets.patch("db", &Patch::Strategic(object(change)))
        .await
        .unwrap();

    let done = eventually("the new revision is the current one", async || {
        let db = complete(&cluster, 3).await;
        let text = |name: &str| {
            db.at(&["status", name])
                .and_then(Value::as_str)
                .map(ToOwned::to_owned)
        };

        (text("currentRevision") == text("updateRevision")
            && cluster.list("pods").await.iter().all(|pod| {
                pod.at(&["spec", "containers"]).unwrap().as_array().unwrap()[0]
                    .get("image")
                    .unwrap()
                    .as_str()
                    == Some("b")
            }))
        .then_some(db)
    })
    .await;
    assert_eq!(number(&done, &["status", "currentReplicas"]), 3);

    sets.patch("db", &Patch::Merge(object("{spec: {replicas: 1}}")))
        .await
        .unwrap();
    complete(&cluster, 1).await;
    assert_eq!(cluster.list("pods").await[0].meta().name(), "db-0");

    let events = cluster.list("events").await;
    let said = |text: &str| {
        events
            .iter()
            .any(|event| event.get("message").unwrap().as_str() == Some(text))
    };

    assert!(
        said("Create Pod db-0 in StatefulSet db successful"),
        "{events:?}"
    );

    assert!(
        said("Create Claim data-db-2 Pod db-2 in StatefulSet db success"),
        "{events:?}"
    );

    running.stop().await;
    cluster.stop().await;
}
