//! Jobs: each pod that ends is counted exactly once.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::owner::controller_of;
use coracle_client::{DeleteOptions, Propagation};
use coracle_testkit::objects::object;
use coracle_testkit::simulation::actions::{self, SUCCEEDED, number, phase};
use coracle_testkit::simulation::{Change, History, Objects, Others, Process, Scenario};

use super::{begin, holds};
use crate::views::JOB_TRACKING;

struct Runs;

fn job(others: &Others) -> Value {
    let (completions, parallelism) = (1 + others.rng.below(4), 1 + others.rng.below(3));
    object(&format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: sum}}\n\
         spec:\n  completions: {completions}\n  parallelism: {parallelism}\n  \
         template: {{spec: {{restartPolicy: Never, containers: [{{name: c, image: i}}]}}}}\n"
    ))
}

fn is_held(pod: &Value) -> bool {
    pod.meta().has_finalizer(JOB_TRACKING)
}

fn has_finished(job: &Value) -> bool {
    let conditions = job
        .at(&["status", "conditions"])
        .and_then(Value::as_array)
        .unwrap_or_default();

    let kind = |condition: &Value| {
        condition
            .get("type")
            .and_then(Value::as_str)
            .map(str::to_string)
    };

    conditions
        .iter()
        .filter_map(kind)
        .any(|kind| kind == "Complete" || kind == "Failed")
}

#[async_trait(?Send)]
impl Scenario for Runs {
    fn begin(&self, process: &Process) {
        begin!(process, crate::job::run);
    }

    async fn prepare(&self, others: &Others) {
        others
            .of("batch", "v1", "jobs")
            .create(&job(others))
            .await
            .unwrap();
    }

    async fn act(&self, others: &Others) {
        let (jobs, pods) = (
            others.of("batch", "v1", "jobs"),
            others.of("", "v1", "pods"),
        );

        match others.rng.below(10) {
            0..=4 => actions::advance_pod(others, &pods).await,
            5 | 6 => actions::delete_any(others, &pods).await,
            7 => {
                let background = DeleteOptions {
                    propagation: Some(Propagation::Background),
                    ..DeleteOptions::default()
                };
                drop(jobs.delete("sum", &background).await);
                drop(jobs.create(&job(others)).await);
            }
            8 => drop(actions::set_all_pod_statuses(&pods, SUCCEEDED).await),
            _ => {}
        }
    }

    async fn attend(&self, others: &Others) -> bool {
        actions::set_all_pod_statuses(&others.of("", "v1", "pods"), SUCCEEDED).await
    }

    fn always(&self, history: &History) -> Result<(), String> {
        let mut tally: BTreeMap<String, Tally> = BTreeMap::new();
        let mut last = Objects::default();
        history.replay(|change, objects| {
            last = objects.clone();
            note(&mut tally, change, objects);
            let ("jobs", Some(job)) = (change.resource.as_str(), &change.after) else {
                return Ok(());
            };

            tally
                .entry(job.meta().uid().to_string())
                .or_default()
                .check(job)
        })?;

        last.of("jobs")
            .try_for_each(|job| match tally.get(job.meta().uid()) {
                Some(tally) => tally.check_all(job),
                None => Ok(()),
            })
    }

    fn settled(&self, objects: &Objects) -> Result<(), String> {
        if let Some(job) = objects.of("jobs").find(|job| !has_finished(job)) {
            return Err(format!("{} has not finished", job.meta().name()));
        }
        if let Some(pod) = objects.of("pods").find(|pod| is_held(pod)) {
            return Err(format!("{} is still held", pod.meta().name()));
        }
        Ok(())
    }
}

/// The true history of a Job's pods.
#[derive(Default)]
struct Tally {
    succeeded: BTreeSet<String>,
    /// Failed, or deleted before they ended.
    failed: BTreeSet<String>,
    /// How many of both lost their finalizer while the Job was active: they had to be counted
    /// before.
    untracked: usize,
}

/// Notes a change of a pod.
fn note(tally: &mut BTreeMap<String, Tally>, change: &Change, objects: &Objects) {
    let ("pods", Some(pod)) = (
        change.resource.as_str(),
        change.after.as_ref().or(change.before.as_ref()),
    ) else {
        return;
    };

    let Some(owner) = controller_of(pod.meta()) else {
        return;
    };
    let tally = tally.entry(owner.uid.to_string()).or_default();

    let uid = pod.meta().uid().to_string();
    match phase(pod) {
        "Succeeded" => drop(tally.succeeded.insert(uid.clone())),
        "Failed" => drop(tally.failed.insert(uid.clone())),
        _ if pod.meta().is_being_deleted() => drop(tally.failed.insert(uid.clone())),
        _ => {}
    }

    let was_held = change.before.as_ref().is_some_and(is_held);
    let is_untracked = was_held && !change.after.as_ref().is_some_and(is_held);
    let goes_on = objects
        .of("jobs")
        .any(|job| job.meta().uid() == owner.uid && !has_finished(job));
    if is_untracked && goes_on && matches!(phase(pod), "Succeeded" | "Failed") {
        tally.untracked += 1;
    }
}

impl Tally {
    /// Nothing is counted that did not happen, and nothing twice.
    fn check(&self, job: &Value) -> Result<(), String> {
        let said = |name: &str| {
            let on_their_way = job
                .at(&["status", "uncountedTerminatedPods", name])
                .and_then(Value::as_array);
            number(job, &["status", name]) + as_int(on_their_way.unwrap_or_default().len())
        };
        let (succeeded, failed) = (said("succeeded"), said("failed"));

        // A pod that succeeds while it is deleted may count as either, but only once.
        let ended = as_int(self.succeeded.union(&self.failed).count());
        let truth = (as_int(self.succeeded.len()), as_int(self.failed.len()));
        if succeeded > truth.0 || failed > truth.1 || succeeded + failed > ended {
            return Err(format!(
                "{succeeded} and {failed} are counted, of {truth:?}, {ended} together"
            ));
        }

        Ok(())
    }

    /// No pod lost its finalizer uncounted.
    fn check_all(&self, job: &Value) -> Result<(), String> {
        let counted = number(job, &["status", "succeeded"]) + number(job, &["status", "failed"]);
        match counted < as_int(self.untracked) {
            true => Err(format!(
                "{counted} are counted, and {} were let go",
                self.untracked
            )),
            false => Ok(()),
        }
    }
}

fn as_int(count: usize) -> i64 {
    i64::try_from(count).unwrap()
}

#[test]
fn each_pod_is_counted_once_and_every_job_ends() {
    holds(&Runs);
}
