//! The ReplicationController controller against a real server, under its upstream identity.

use crate::common;

use common::{Controlled, number};
use coracle_api::owner::controller_of;
use coracle_testkit::eventually;
use coracle_testkit::objects::object;

#[tokio::test]
async fn it_keeps_its_pods_as_a_replica_set_does() {
    let cluster = Controlled::start().await;
    let controllers = cluster.of("", "replicationcontrollers");
    let made = controllers
        .create(&object(
            "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: web}\n\
             spec:\n  replicas: 2\n  selector: {app: web}\n  \
             template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}\n",
        ))
        .await
        .unwrap();

    let status = eventually("two pods are counted", async || {
        let web = controllers.get("web").await.unwrap();
        (number(&web, &["status", "replicas"]) == 2).then_some(web)
    })
    .await;
    assert_eq!(number(&status, &["status", "fullyLabeledReplicas"]), 2);

    assert_eq!(status.at(&["status", "terminatingReplicas"]), None);

    for pod in cluster.list("pods").await {
        let owner = controller_of(pod.meta()).unwrap();
        assert_eq!(
            (owner.api_version, owner.kind, owner.uid),
            ("v1", "ReplicationController", made.meta().uid())
        );
    }

    let events = eventually("both have events", async || {
        let events = cluster.list("events").await;
        (events.len() == 2).then_some(events)
    })
    .await;

    assert_eq!(
        events[0].at(&["source", "component"]).unwrap().as_str(),
        Some("replication-controller")
    );

    cluster.stop().await;
}
