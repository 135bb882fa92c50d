//! Evicts the victims of preemption, in a task.

use std::sync::Arc;

use coracle_api::Text;

use super::report::Writer;
use super::{EventLoop, TaskResult};
use crate::events::Event;
use crate::framework::Preemption;
use crate::pod::Pod;
use crate::queue::QueuedPod;

/// A pod, and the pods to evict for it.
pub(super) struct Eviction {
    pub(super) queued: QueuedPod,
    pub(super) rejectors: Vec<&'static str>,
    pub(super) preemption: Preemption,
    /// Less important pods nominated to the same node: their nominations are cleared.
    pub(super) lesser: Vec<Arc<Pod>>,
}

/// The result of an eviction.
pub(super) struct Outcome {
    queued: QueuedPod,
    rejectors: Vec<&'static str>,
    all_deleted: bool,
}

impl EventLoop {
    pub(super) fn evict(&mut self, eviction: Eviction) {
        for lesser in &eviction.lesser {
            self.queue.nominations.remove(&lesser.uid);
        }

        let (writer, result_sender) = (self.reporter.writer(), self.result_sender.clone());
        self.tasks.spawn(async move {
            let Eviction {
                queued,
                rejectors,
                preemption,
                lesser,
            } = eviction;

            let all_deleted = evict(&writer, &queued.pod, &preemption, &lesser).await;
            if result_sender
                .send(TaskResult::Evicted(Box::new(Outcome {
                    queued,
                    rejectors,
                    all_deleted,
                })))
                .await
                .is_err()
            {
                tracing::debug!("scheduler stopped; eviction result dropped");
            }
        });
    }

    /// The victims are being deleted: the pod waits for that.
    pub(super) fn evicted(&mut self, outcome: Outcome) {
        let now = self.now();
        let uid: Text = outcome.queued.pod.uid.clone();
        let Some(pod) = self.queue.fail(outcome.queued, outcome.rejectors, now) else {
            return;
        };
        self.queue.nominations.refresh(&pod);
        if !outcome.all_deleted {
            // The victims may stay: a retry is better than waiting for them.
            self.queue
                .handle_event_for(&Event::Activated, now, |other| other.uid == uid);
        }
    }
}

async fn evict(writer: &Writer, pod: &Pod, preemption: &Preemption, lesser: &[Arc<Pod>]) -> bool {
    for other in lesser {
        writer.clear_nomination(other).await;
    }
    let mut all_deleted = true;
    for victim in preemption.victims.iter().filter(|victim| !victim.deleting) {
        all_deleted &= writer.evict(victim, pod, &preemption.node).await;
    }
    all_deleted
}
