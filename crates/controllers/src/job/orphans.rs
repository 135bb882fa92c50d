//! Removes the tracking finalizer from pods that no Job will count: it was deleted, or has
//! finished.

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_client::{Access, Cached, Change, Error, Informer, ObjectKey, Resource, WorkQueue};

use super::act::{is_gone, untrack_patch};
use super::{ACCOUNT, JOBS};
use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::views::{BY_CONTROLLER, Job, Pod};

/// Removes finalizers. Its keys are pods.
struct Orphans {
    jobs: Informer<Job>,
    pods: Informer<Pod>,
    pod_access: Access,
}

/// A pod, and its Job if it exists.
struct TrackedPod {
    pod: Arc<Cached<Pod>>,
    job: Option<Arc<Cached<Job>>>,
}

/// The finalizer could not be removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot remove tracking finalizer from pod")]
struct UntrackError(#[source] Error);

/// Runs it. Never returns.
pub(super) async fn run(context: &Context) {
    let queue = WorkQueue::new("job_orphan_pod");
    let jobs: Informer<Job> = context
        .informers
        .of(&Resource::builtin("batch", "v1", JOBS));
    let pods_of = Resource::builtin("", "v1", "pods");
    let pods: Informer<Pod> = context.informers.of(&pods_of);
    let mut feeds = Feeds::new();

    let (all, woken) = (pods.clone(), queue.clone());
    feeds.follow(&jobs, move |change| {
        let ended = match change {
            Change::Deleted { object, .. } => object,
            Change::Added { object, .. } | Change::Updated { new: object, .. }
                if object.finished().is_some() =>
            {
                object
            }
            _ => return,
        };

        for pod in all.by_index(BY_CONTROLLER, &ended.uid).unwrap_or_default() {
            woken.add(pod.key.clone());
        }
    });

    let woken = queue.clone();
    feeds.follow(&pods, move |change| {
        if let Some(pod) = change.object().filter(|pod| pod.is_tracked) {
            woken.add(pod.key.clone());
        }
    });

    let pod_access = context.client(ACCOUNT).resource(&pods_of);
    Runner::new(
        Orphans {
            jobs,
            pods,
            pod_access,
        },
        queue,
        context,
    )
    .run(feeds, 1)
    .await;
}

/// Whether no Job will count the pod: it has no controller, or its Job was deleted or has finished.
fn is_orphan(held: &TrackedPod) -> bool {
    let Some(owner) = &held.pod.controller else {
        return true;
    };
    let is_job = owner.kind == "Job" && owner.api_version.starts_with("batch/");
    is_job
        && held
            .job
            .as_ref()
            .is_none_or(|job| !job.is_foreign() && job.finished().is_some())
}

#[async_trait]
impl Controller for Orphans {
    type Key = ObjectKey;
    type Observed = TrackedPod;
    type Plan = bool;
    type Error = UntrackError;

    const NAME: &'static str = "job-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<TrackedPod> {
        let Some(pod) = self.pods.get(key).filter(|pod| pod.is_tracked) else {
            return Observation::Absent;
        };
        let job = pod.controller.as_ref().and_then(|owner| {
            let job = self
                .jobs
                .get(&ObjectKey::new(&key.namespace, &owner.name))?;
            (job.uid == owner.uid).then_some(job)
        });

        Observation::Present {
            uid: pod.uid.clone(),
            observed: TrackedPod { pod, job },
        }
    }

    fn plan(held: &TrackedPod, _: Timestamp) -> bool {
        is_orphan(held)
    }

    async fn act(
        &self,
        key: &ObjectKey,
        held: TrackedPod,
        untracks: bool,
    ) -> Result<Requeue, UntrackError> {
        if untracks {
            let pods = self.pod_access.clone().namespace(&key.namespace);
            match pods.patch(&key.name, &untrack_patch(&held.pod)).await {
                Err(error) if !is_gone(&error) => return Err(UntrackError(error)),
                _ => {}
            }
        }
        Ok(Requeue::OnEvent)
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn a_pod_is_untracked_when_no_job_will_count_it() {
        let check = |owner: &str, job: Option<&str>, expected: bool| {
            let parse = |text: String| json::parse(text.as_bytes()).unwrap();
            let pod = parse(format!(
                r#"{{"metadata":{{"name":"p","ownerReferences":[{owner}]}}}}"#
            ));
            let job = job.map(|text| parse(format!(r#"{{"metadata":{{"name":"j"}},{text}}}"#)));
            let held = TrackedPod {
                pod: Arc::new(Cached::of(pod).unwrap()),
                job: job.map(|job| Arc::new(Cached::of(job).unwrap())),
            };

            assert_eq!(
                is_orphan(&held),
                expected,
                "{owner} {held:?}",
                held = held.job
            );
        };

        let of_job =
            r#"{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"u","controller":true}"#;
        let of_other =
            r#"{"apiVersion":"x/v1","kind":"Job","name":"j","uid":"u","controller":true}"#;
        let complete = r#""status":{"conditions":[{"type":"Complete","status":"True"}]}"#;
        check("", None, true);
        check(of_job, None, true);

        check(of_other, None, false);
        check(of_job, Some(r#""status":{}"#), false);

        check(of_job, Some(complete), true);
        check(
            of_job,
            Some(&format!(
                r#""spec":{{"managedBy":"example.com/x"}},{complete}"#
            )),
            false,
        );
    }
}
