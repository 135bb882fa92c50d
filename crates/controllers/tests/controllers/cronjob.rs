//! The CronJob and TTL-after-finished controllers against a real server, under their upstream
//! identities.

use crate::common;

use common::{Controlled, number};
use coracle_api::Value;
use coracle_api::owner::controller_of;
use coracle_client::{ListOptions, Patch};
use coracle_testkit::objects::object;
use coracle_testkit::{eventually, run_pods};

#[tokio::test]
async fn a_job_is_created_on_schedule_and_deleted_after_its_ttl() {
    let cluster = Controlled::start().await;
    let running = run_pods(&cluster.client, |_| Some(object("{phase: Succeeded}")));

    let crons = cluster.of("batch", "cronjobs");
    let made = crons
        .create(&object(
            "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: tick}\n\
             spec:\n  schedule: '* * * * *'\n  suspend: true\n  \
             jobTemplate: {metadata: {labels: {of: tick}}, spec: {ttlSecondsAfterFinished: 1, template: {spec: \
             {restartPolicy: Never, containers: [{name: c, image: i}]}}}}\n",
        ))
        .await
        .unwrap();

    // As if the last Job had been long ago: one is due at once.
    let mut past = made.clone();
    past.as_object_mut().unwrap().insert(
        "status",
        object("{lastScheduleTime: '2026-01-01T00:00:00Z'}"),
    );

    crons
        .clone()
        .subresource("status")
        .update(&past)
        .await
        .unwrap();

    crons
        .patch("tick", &Patch::Merge(object("{spec: {suspend: false}}")))
        .await
        .unwrap();

    let jobs = cluster.of("batch", "jobs");
    let job = eventually("a Job begins", async || {
        jobs.list_all(&ListOptions::default())
            .await
            .unwrap()
            .items
            .into_iter()
            .next()
    })
    .await;
    assert!(job.meta().name().starts_with("tick-"));

    assert_eq!(job.meta().label("of"), Some("tick"));
    assert_eq!(number(&job, &["spec", "ttlSecondsAfterFinished"]), 1);
    assert!(
        job.meta()
            .annotation("batch.kubernetes.io/cronjob-scheduled-timestamp")
            .is_some()
    );

    assert_eq!(controller_of(job.meta()).unwrap().uid, made.meta().uid());

    eventually("its success is noted", async || {
        let tick = crons.get("tick").await.unwrap();
        tick.at(&["status", "lastSuccessfulTime"])
            .and_then(Value::as_str)
            .map(|_| ())
    })
    .await;

    eventually("it is being deleted", async || {
        let job = jobs.find(job.meta().name()).await.unwrap();
        job.is_none_or(|job| job.meta().is_being_deleted())
            .then_some(())
    })
    .await;

    eventually("its creation has an event", async || {
        let message = format!("Created job {}", job.meta().name());
        let events = cluster.list("events").await;
        let said =
            |event: &Value| event.get("message").and_then(Value::as_str) == Some(message.as_str());
        events.iter().any(said).then_some(())
    })
    .await;

    running.stop().await;
    cluster.stop().await;
}
