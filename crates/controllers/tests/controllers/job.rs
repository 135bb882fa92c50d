//! The Job controller against a real server, under its upstream identity.

use crate::common;

use common::{Controlled, number};
use coracle_api::Value;
use coracle_testkit::objects::object;
use coracle_testkit::{eventually, run_pods};

fn condition(job: &Value, kind: &str) -> Option<String> {
    let conditions = job.at(&["status", "conditions"])?.as_array()?;
    let text =
        |one: &Value, name: &str| one.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
    let found = conditions
        .iter()
        .find(|one| text(one, "type").as_deref() == Some(kind))?;
    text(found, "reason")
}

async fn finished(cluster: &Controlled, name: &str, kind: &str) -> Value {
    eventually(&format!("{name} is {kind}"), async || {
        let job = cluster.of("batch", "jobs").get(name).await.unwrap();
        condition(&job, kind).is_some().then_some(job)
    })
    .await
}

fn job(name: &str, spec: &str) -> Value {
    object(&format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}}}\n\
         spec: {{{spec}, template: {{spec: {{restartPolicy: Never, containers: [{{name: c, image: i}}]}}}}}}\n"
    ))
}

#[tokio::test]
async fn jobs_run_to_their_end_and_count_each_pod_once() {
    let cluster = Controlled::start().await;
    let becomes = |pod: &Value| {
        let fails = pod.meta().name().starts_with("bad-");
        Some(object(if fails {
            "{phase: Failed}"
        } else {
            "{phase: Succeeded}"
        }))
    };
    let running = run_pods(&cluster.client, becomes);

    let jobs = cluster.of("batch", "jobs");
    jobs.create(&job("sum", "completions: 4, parallelism: 2"))
        .await
        .unwrap();
    jobs.create(&job(
        "parts",
        "completions: 3, parallelism: 3, completionMode: Indexed",
    ))
    .await
    .unwrap();

    jobs.create(&job("bad", "backoffLimit: 0")).await.unwrap();

    let sum = finished(&cluster, "sum", "Complete").await;
    assert_eq!(number(&sum, &["status", "succeeded"]), 4);
    assert_eq!(
        condition(&sum, "SuccessCriteriaMet").as_deref(),
        Some("CompletionsReached")
    );

    let parts = finished(&cluster, "parts", "Complete").await;
    assert_eq!(
        parts.at(&["status", "completedIndexes"]).unwrap().as_str(),
        Some("0-2")
    );

    let bad = finished(&cluster, "bad", "Failed").await;
    assert_eq!(
        condition(&bad, "Failed").as_deref(),
        Some("BackoffLimitExceeded")
    );

    assert_eq!(number(&bad, &["status", "failed"]), 1);

    let pods = eventually("nothing is held any more", async || {
        let pods = cluster.list("pods").await;
        pods.iter()
            .all(|pod| pod.meta().finalizers().next().is_none())
            .then_some(pods)
    })
    .await;
    assert_eq!(pods.len(), 8, "no pod was made twice");

    let of_parts = pods
        .iter()
        .find(|pod| pod.meta().name().starts_with("parts-1-"))
        .unwrap();

    assert_eq!(
        of_parts.at(&["spec", "hostname"]).unwrap().as_str(),
        Some("parts-1")
    );

    eventually("all events are recorded", async || {
        let events = cluster.list("events").await;
        let said = |text: &str| {
            events
                .iter()
                .any(|event| event.get("message").unwrap().as_str() == Some(text))
        };
        (said("Job completed") && said("Job has reached the specified backoff limit")).then_some(())
    })
    .await;

    running.stop().await;
    cluster.stop().await;
}
