//! Statuses on their way to the API.
//!
//! Workers leave the newest status of their pods here and go on; tasks of this module send it, each
//! pod's one after the other, only where it differs from what the server has, and again until it
//! arrives. What a pod is while it is being made is sent when that takes longer than a moment: most
//! pods run before anybody could have read it. When a pod that is being deleted has nothing left on
//! this node, its object is deleted for good: nobody else may do that.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coracle_api::resource_version::ResourceVersion;
use coracle_api::{Text, typed};
use coracle_client::queue::ExponentialLimiter;
use coracle_client::{
    Access, Client, DeleteOptions, Error, Informer, ObjectKey, Patch, Resource, Tasks, Typed,
    WorkQueue,
};
use k8s_openapi::api::core::v1::{Pod, PodStatus};

use crate::mirrors::{is_mirror, is_static, reflects};
use crate::pod::PodView;
use crate::status::{is_terminal, merge};

/// How many pods are written at once.
const WRITERS: usize = 8;
/// Pauses before a status that could not be sent is sent again.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How long a status that will soon be another one waits for that.
const MEANWHILE: Duration = Duration::from_millis(250);

/// The status of a pod, as its worker has it.
#[derive(Clone)]
pub(crate) struct Report {
    pub(crate) pod: Arc<Pod>,
    pub(crate) status: Arc<PodStatus>,
    /// Something of it may still run.
    pub(crate) may_run: bool,
    /// Nothing of it is left on this node.
    pub(crate) is_finished: bool,
}

/// Where statuses are left. Clones are the same.
#[derive(Clone)]
pub(crate) struct Publisher {
    shared: Arc<Shared>,
}

struct Shared {
    access: Access,
    pods: Informer<Typed<Pod>>,
    queue: WorkQueue<Text>,
    reports: Mutex<BTreeMap<Text, Report>>,
    /// What the server answered last; it may be newer than what has been heard of.
    answered: Mutex<BTreeMap<Text, Arc<Pod>>>,
    /// Why the server did not take the status of a pod the last time.
    refused: Mutex<Refusals>,
}

/// By pod.
#[derive(Default)]
struct Refusals(BTreeMap<Text, String>);

impl Refusals {
    /// Whether people are to hear of it. What the server does not take it will not take the next
    /// time either, until something changes: that is told, each refusal once. All else passes.
    fn is_news(&mut self, uid: &Text, error: &Error) -> bool {
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

impl Publisher {
    pub(crate) fn new(client: &Client, pods: Informer<Typed<Pod>>, tasks: &Tasks) -> Publisher {
        let limiter = ExponentialLimiter::new(FIRST_PAUSE, LONGEST_PAUSE);
        let publisher = Publisher {
            shared: Arc::new(Shared {
                access: client.resource(&Resource::of::<Pod>()),
                pods,
                queue: WorkQueue::with_limiter("pod-status", Box::new(limiter)),
                reports: Mutex::default(),
                answered: Mutex::default(),
                refused: Mutex::default(),
            }),
        };

        for _ in 0..WRITERS {
            let writer = publisher.clone();
            tasks.spawn(async move { writer.write().await });
        }

        publisher
    }

    /// Leaves a status; an older one of the same pod that has not been sent yet is not sent any
    /// more.
    pub(crate) fn publish(&self, report: Report) {
        self.shared.queue.add(self.keep(report));
    }

    /// Leaves a status that the next one will soon take the place of. It is sent where that takes
    /// long.
    pub(crate) fn publish_meanwhile(&self, report: Report) {
        self.shared.queue.add_after(self.keep(report), MEANWHILE);
    }

    fn keep(&self, report: Report) -> Text {
        let uid = Text::new(report.pod.uid());
        lock(&self.shared.reports).insert(uid.clone(), report);
        uid
    }

    /// What a pod's status is on has changed: it may be known there, or not any more.
    pub(crate) fn again(&self, uid: &str) {
        self.shared.queue.add(Text::new(uid));
    }

    /// A pod is gone.
    pub(crate) fn forget(&self, uid: &str) {
        lock(&self.shared.reports).remove(uid);
        lock(&self.shared.answered).remove(uid);
        lock(&self.shared.refused).0.remove(uid);
        self.shared.queue.forget(&Text::new(uid));
    }

    async fn write(&self) {
        while let Some(job) = self.shared.queue.take().await {
            let uid: Text = (*job).clone();
            let Some(report) = lock(&self.shared.reports).get(&uid).cloned() else {
                continue;
            };
            match self.send(&report).await {
                Ok(()) => {
                    lock(&self.shared.refused).0.remove(&uid);
                    self.shared.queue.forget(&uid);
                }
                Err(error) => {
                    self.tell(&uid, &report.pod, &error);
                    self.shared.queue.add_rate_limited(uid);
                }
            }
        }
    }

    fn tell(&self, uid: &Text, pod: &Pod, error: &Error) {
        let pod = pod.id();
        match lock(&self.shared.refused).is_news(uid, error) {
            true => {
                tracing::warn!(%pod, %error, "the API server refused the pod's status; retrying")
            }
            false => tracing::debug!(%pod, %error, "pod status not sent; retrying"),
        }
    }

    async fn send(&self, report: &Report) -> Result<(), Error> {
        let Some(mut there) = self.newest(&report.pod) else {
            return Ok(());
        };
        let access = self.shared.access.clone().namespace(there.namespace());
        let name = PodView::name(there.as_ref()).to_owned();

        let wanted = merge::merged(&there, PodStatus::clone(&report.status), report.may_run);
        if let Some(patch) = merge::patch(&there, &wanted) {
            let sent = access
                .clone()
                .subresource("status")
                .patch(&name, &Patch::Strategic(patch))
                .await;

            there = match sent {
                Ok(answer) => self.remember(&answer)?,
                // Gone, or another of its name: not ours to tell about.
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) => return Err(error),
            };
        }

        let is_over = is_terminal(there.pod_status().phase.as_deref());
        if report.is_finished && is_over && there.is_being_deleted() && !is_mirror(&there) {
            let options = DeleteOptions {
                grace_period_seconds: Some(0),
                ..DeleteOptions::only(there.uid())
            };

            // When the name is another pod's by now, we hear of that before the next try.
            match access.delete(&name, &options).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }

        Ok(())
    }

    /// The newest version of the pod that is known; none: it is gone.
    fn newest(&self, pod: &Pod) -> Option<Arc<Pod>> {
        let key = ObjectKey::new(pod.namespace(), PodView::name(pod));
        let is_it = |heard: &Pod| match is_static(pod) {
            true => reflects(heard, pod),
            false => heard.uid() == pod.uid(),
        };

        let heard = self
            .shared
            .pods
            .get(&key)
            .filter(|heard| is_it(&heard.object))?;
        let answered = lock(&self.shared.answered).get(&heard.uid).cloned();
        let newer = answered.filter(|answered| version(answered) > heard.version);

        Some(newer.unwrap_or_else(|| Arc::new(heard.object.0.clone())))
    }

    fn remember(&self, answer: &coracle_api::Value) -> Result<Arc<Pod>, Error> {
        let pod: Pod =
            typed::from_tree(answer).map_err(|error| Error::Answer(error.to_string()))?;
        let pod = Arc::new(pod);
        lock(&self.shared.answered).insert(Text::new(pod.uid()), pod.clone());
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
                refusals.is_news(uid, &error),
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
