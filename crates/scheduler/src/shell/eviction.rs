//! Evicts the victims of preemption, in a task.

use std::sync::Arc;

use coracle_api::Text;

use super::report::Writer;
use super::{Loop, News};
use crate::events::Event;
use crate::framework::Room;
use crate::pod::Pod;
use crate::queue::QueuedPod;

/// A pod, and the pods to evict for it.
pub(super) struct Eviction {
    pub(super) queued: QueuedPod,
    pub(super) rejectors: Vec<&'static str>,
    pub(super) room: Room,
    /// Less important pods nominated to the same node: their nominations are cleared.
    pub(super) lesser: Vec<Arc<Pod>>,
}

/// The result of an eviction.
pub(super) struct Outcome {
    queued: QueuedPod,
    rejectors: Vec<&'static str>,
    all_told: bool,
}

impl Loop {
    pub(super) fn evict(&mut self, eviction: Eviction) {
        for lesser in &eviction.lesser {
            self.queue.nominations.remove(&lesser.uid);
        }

        let (writer, told) = (self.reporter.writer(), self.told.clone());
        self.tasks.spawn(async move {
            let Eviction {
                queued,
                rejectors,
                room,
                lesser,
            } = eviction;

            let all_told = evict(&writer, &queued.pod, &room, &lesser).await;
            if told
                .send(News::Evicted(Box::new(Outcome {
                    queued,
                    rejectors,
                    all_told,
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
        if !outcome.all_told {
            // The victims may stay: a retry is better than waiting for them.
            self.queue
                .happened_for(&Event::Anything, now, |other| other.uid == uid);
        }
    }
}

async fn evict(writer: &Writer, pod: &Pod, room: &Room, lesser: &[Arc<Pod>]) -> bool {
    for other in lesser {
        writer.clear_nomination(other).await;
    }
    let mut all_told = true;
    for victim in room.victims.iter().filter(|victim| !victim.deleting) {
        all_told &= writer.evict(victim, pod, &room.node).await;
    }
    all_told
}
