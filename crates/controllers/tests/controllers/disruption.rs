//! The disruption controller against a real server, under its upstream identity.

use crate::common;

use common::{Controlled, number};
use coracle_testkit::objects::{object, replica_set};
use coracle_testkit::{eventually, run_pods};

#[tokio::test]
async fn a_budget_reports_allowed_disruptions_and_evictions_use_them_up() {
    let cluster = Controlled::start().await;
    let ready = object("{phase: Running, conditions: [{type: Ready, status: 'True'}]}");
    let running = run_pods(&cluster.client, move |_| Some(ready.clone()));
    cluster
        .of("apps", "replicasets")
        .create(&replica_set("web", 3))
        .await
        .unwrap();

    let budgets = cluster.of("policy", "poddisruptionbudgets");
    budgets
        .create(&object(
            "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n\
             spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}\n",
        ))
        .await
        .unwrap();

    let counted = eventually("one of three may go", async || {
        let web = budgets.get("web").await.unwrap();
        (number(&web, &["status", "disruptionsAllowed"]) == 1).then_some(web)
    })
    .await;
    assert_eq!(number(&counted, &["status", "expectedPods"]), 3);

    assert_eq!(number(&counted, &["status", "desiredHealthy"]), 2);

    let condition = &counted
        .at(&["status", "conditions"])
        .unwrap()
        .as_array()
        .unwrap()[0];

    assert_eq!(
        condition.get("reason").unwrap().as_str(),
        Some("SufficientPods")
    );

    running.stop().await;
    let pods = cluster.list("pods").await;
    let eviction = |name: &str| {
        object(&format!(
            "{{apiVersion: policy/v1, kind: Eviction, metadata: {{name: {name}, namespace: default}}}}"
        ))
    };

    let evict = cluster.of("", "pods").subresource("eviction");
    let first = pods[0].meta().name();
    evict.create_below(first, &eviction(first)).await.unwrap();
    let second = pods[1].meta().name();
    let refused = evict
        .create_below(second, &eviction(second))
        .await
        .unwrap_err();
    assert!(refused.is_busy(), "{refused}");

    eventually("none may go", async || {
        let web = budgets.get("web").await.unwrap();
        (number(&web, &["status", "disruptionsAllowed"]) == 0).then_some(())
    })
    .await;

    cluster.stop().await;
}
