//! The status manager: writes pod statuses to the API.
//!
//! Pod workers store the newest status of their pod here; writer tasks send it, one request per pod
//! at a time, only if it differs from the server's, and retry until it succeeds. Statuses during
//! pod start are delayed a little: most pods run before anyone could read them. When a pod that is
//! being deleted has nothing left on this node, its object is deleted: only the kubelet does that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::resource_version::ResourceVersion;
use coracle_api::{Text, typed};
use coracle_base::sync::Mutex;
use coracle_client::queue::ExponentialLimiter;
use coracle_client::{
    Access, Client, DeleteOptions, Error, Informer, ObjectKey, Patch, Resource, Tasks, Typed,
    WorkQueue,
};
use k8s_openapi::api::core::v1::{Pod, PodStatus};

use crate::mirror_pods::{is_mirror, is_static, reflects};
use crate::pod::PodView;
use crate::status::{is_terminal, merge};

/// Concurrent writes.
const WRITERS: usize = 8;
/// Retry delays.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How long an intermediate status is delayed.
const INTERMEDIATE_DELAY: Duration = Duration::from_millis(250);

/// The status of a pod, from its worker.
#[derive(Clone)]
pub(crate) struct Report {
    pub(crate) pod: Arc<Pod>,
    pub(crate) status: Arc<PodStatus>,
    /// Some of its containers may still run.
    pub(crate) may_run: bool,
    /// Nothing of it remains on this node.
    pub(crate) is_finished: bool,
}

/// Writes statuses. Clones share state.
#[derive(Clone)]
pub(crate) struct StatusManager {
    shared: Arc<Shared>,
}

struct Shared {
    access: Access,
    pods: Informer<Typed<Pod>>,
    queue: WorkQueue<Text>,
    reports: Mutex<BTreeMap<Text, Report>>,
    /// The server's last response; it may be newer than the informer.
    acknowledged: Mutex<BTreeMap<Text, Arc<Pod>>>,
    /// Why the server refused the last status of a pod.
    refused: Mutex<Refusals>,
}

/// The last refusal of each pod.
#[derive(Default)]
struct Refusals(BTreeMap<Text, String>);

impl Refusals {
    /// Whether to log an error: a refusal that lasts until something changes, each text once. Other
    /// errors are temporary.
    fn is_new(&mut self, uid: &Text, error: &Error) -> bool {
        let lasts = error
            .status()
            .is_some_and(|status| (400..500).contains(&status.code));
        if !lasts || error.is_conflict() || error.is_busy() {
            return false;
        }
        let text = error.to_string();
        self.0.insert(uid.clone(), text.clone()) != Some(text)
    }
}

impl StatusManager {
    pub(crate) fn new(client: &Client, pods: Informer<Typed<Pod>>, tasks: &Tasks) -> StatusManager {
        let limiter = ExponentialLimiter::new(FIRST_PAUSE, LONGEST_PAUSE);
        let status_manager = StatusManager {
            shared: Arc::new(Shared {
                access: client.resource(&Resource::of::<Pod>()),
                pods,
                queue: WorkQueue::with_limiter("pod-status", Box::new(limiter)),
                reports: Mutex::default(),
                acknowledged: Mutex::default(),
                refused: Mutex::default(),
            }),
        };

        for _ in 0..WRITERS {
            let writer = status_manager.clone();
            tasks.spawn(async move { writer.write().await });
        }

        status_manager
    }

    /// Queues a status, and replaces an unsent one of the same pod.
    pub(crate) fn publish(&self, report: Report) {
        self.shared.queue.add(self.store(report));
    }

    /// Queues an intermediate status: it is sent after a delay, unless another one replaces it.
    pub(crate) fn publish_delayed(&self, report: Report) {
        self.shared
            .queue
            .add_after(self.store(report), INTERMEDIATE_DELAY);
    }

    fn store(&self, report: Report) -> Text {
        let uid = Text::new(report.pod.uid());
        self.shared.reports.lock().insert(uid.clone(), report);
        uid
    }

    /// Queues the last status again, when the pod's object has changed.
    pub(crate) fn requeue(&self, uid: &str) {
        self.shared.queue.add(Text::new(uid));
    }

    /// Removes a deleted pod.
    pub(crate) fn forget(&self, uid: &str) {
        self.shared.reports.lock().remove(uid);
        self.shared.acknowledged.lock().remove(uid);
        self.shared.refused.lock().0.remove(uid);
        self.shared.queue.forget(&Text::new(uid));
    }

    async fn write(&self) {
        while let Some(job) = self.shared.queue.take().await {
            let uid: Text = (*job).clone();
            let Some(report) = self.shared.reports.lock().get(&uid).cloned() else {
                continue;
            };
            match self.send(&report).await {
                Ok(()) => {
                    self.shared.refused.lock().0.remove(&uid);
                    self.shared.queue.forget(&uid);
                }
                Err(error) => {
                    self.log_failure(&uid, &report.pod, &error);
                    self.shared.queue.add_rate_limited(uid);
                }
            }
        }
    }

    fn log_failure(&self, uid: &Text, pod: &Pod, error: &Error) {
        let pod = pod.id();
        match self.shared.refused.lock().is_new(uid, error) {
            true => {
                tracing::warn!(%pod, %error, "the API server refused the pod's status; retrying")
            }
            false => tracing::debug!(%pod, %error, "pod status not sent; retrying"),
        }
    }

    async fn send(&self, report: &Report) -> Result<(), Error> {
        let Some(mut existing) = self.newest(&report.pod) else {
            return Ok(());
        };
        let access = self.shared.access.clone().namespace(existing.namespace());
        let name = PodView::name(existing.as_ref()).to_owned();

        let wanted = merge::merged(&existing, PodStatus::clone(&report.status), report.may_run);
        if let Some(patch) = merge::patch(&existing, &wanted) {
            let sent = access
                .clone()
                .subresource("status")
                .patch(&name, &Patch::Strategic(patch))
                .await;

            existing = match sent {
                Ok(answer) => self.store_acknowledged(&answer)?,
                // It was deleted, or replaced by another of its name.
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) => return Err(error),
            };
        }

        let is_terminated = is_terminal(existing.pod_status().phase.as_deref());
        if report.is_finished
            && is_terminated
            && existing.is_being_deleted()
            && !is_mirror(&existing)
        {
            let options = DeleteOptions {
                grace_period_seconds: Some(0),
                ..DeleteOptions::only(existing.uid())
            };

            // If another pod has the name by now, the informer reports it before the next retry.
            match access.delete(&name, &options).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }

        Ok(())
    }

    /// The newest known version of the pod; none: it was deleted.
    fn newest(&self, pod: &Pod) -> Option<Arc<Pod>> {
        let key = ObjectKey::new(pod.namespace(), PodView::name(pod));
        let is_it = |cached: &Pod| match is_static(pod) {
            true => reflects(cached, pod),
            false => cached.uid() == pod.uid(),
        };

        let cached = self
            .shared
            .pods
            .get(&key)
            .filter(|cached| is_it(&cached.object))?;
        let acknowledged = self.shared.acknowledged.lock().get(&cached.uid).cloned();
        let newer = acknowledged.filter(|acknowledged| version(acknowledged) > cached.version);

        Some(newer.unwrap_or_else(|| Arc::new(cached.object.0.clone())))
    }

    fn store_acknowledged(&self, answer: &coracle_api::Value) -> Result<Arc<Pod>, Error> {
        let pod: Pod =
            typed::from_tree(answer).map_err(|error| Error::Answer(error.to_string()))?;
        let pod = Arc::new(pod);
        self.shared
            .acknowledged
            .lock()
            .insert(Text::new(pod.uid()), pod.clone());
        Ok(pod)
    }
}

fn version(pod: &Pod) -> ResourceVersion {
    pod.metadata
        .resource_version
        .as_deref()
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use coracle_client::Status;
    use http::StatusCode;

    use super::*;

    #[test]
    fn a_status_that_the_server_refuses_is_told_of_once() {
        let mut refusals = Refusals::default();
        let (one, other) = (Text::new("u1"), Text::new("u2"));

        let mut check = |uid: &Text, code: u16, reason: &str, message: &str, expected: bool| {
            let error = Error::from(Status::new(
                StatusCode::from_u16(code).unwrap(),
                reason,
                message,
            ));

            assert_eq!(
                refusals.is_new(uid, &error),
                expected,
                "{uid} {code} {message}"
            );
        };

        check(&one, 422, "Invalid", "podIP: Invalid value", true);
        check(&one, 422, "Invalid", "podIP: Invalid value", false);
        check(&other, 422, "Invalid", "podIP: Invalid value", true);
        check(&one, 403, "Forbidden", "not this node's pod", true);
        check(&one, 409, "Conflict", "changed", false);
        check(&one, 429, "TooManyRequests", "later", false);
        check(&one, 500, "InternalError", "broken", false);
        check(&one, 403, "Forbidden", "not this node's pod", false);
    }
}
