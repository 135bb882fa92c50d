//! One attempt to schedule a pod: a cycle and its consequences.

use std::sync::Arc;

use tokio::time::Instant;

use super::binding::Binding;
use super::metrics::AttemptResult;
use super::report::FailureReport;
use super::{EventLoop, eviction};
use crate::cycle::{Nomination, Placement, Timing, Unfit, Unschedulable, schedule};
use crate::framework::{Cycle, Profile, Refusal};
use crate::queue::{NO_NODES, QueuedPod};

impl EventLoop {
    /// Takes the next pod and tries to schedule it.
    pub(super) fn attempt(&mut self) {
        let Some(queued) = self.queue.pop(self.now()) else {
            return;
        };

        let pod = Arc::clone(&queued.pod);
        if pod.deleting {
            self.reporter.skipped(&pod);
            self.queue.done(&pod.uid);
            return;
        }

        let profile = self.queue.profile(&pod).cloned();
        let Some(profile) = profile.filter(|_| !self.cache.is_assumed(&pod.uid)) else {
            self.queue.done(&pod.uid);
            return;
        };

        self.attempt_began = Instant::now();
        self.cache.refresh();
        let cycle = Cycle {
            pod: &pod,
            cache: &self.cache,
            nominations: &self.queue.nominations,
        };

        let mut timing = Timing::new(Instant::now);
        let (search, rng) = (&mut self.search, &mut self.rng);
        let chosen = schedule(&profile, cycle, search, rng, &mut timing);
        self.metrics.chose(self.attempt_began.elapsed());
        self.metrics.ran(&profile.name, &timing);

        match chosen {
            Ok(placement) => self.place(&profile, queued, &placement),
            Err(Unschedulable::NoNodes) => {
                let why = FailureReport::unschedulable(String::from(
                    "no nodes available to schedule pods",
                ));
                self.refuse(queued, vec![NO_NODES], &why, &Nomination::Clear);
            }
            Err(Unschedulable::Failed(error)) => {
                self.refuse(
                    queued,
                    Vec::new(),
                    &FailureReport::error(error),
                    &Nomination::Clear,
                );
            }
            Err(Unschedulable::Unfit(unfit)) => self.unfit(queued, *unfit),
        }
    }

    fn unfit(&mut self, queued: QueuedPod, unfit: Unfit) {
        let rejectors: Vec<_> = unfit.diagnosis.rejectors.iter().copied().collect();
        let why = FailureReport::unschedulable(unfit.diagnosis.message());
        match unfit.preemption {
            None => self.refuse(queued, rejectors, &why, &unfit.nomination),
            Some(preemption) => {
                let lesser = self.queue.nominations.on(&preemption.node).iter();
                let lesser = lesser
                    .filter(|other| other.priority < queued.pod.priority)
                    .cloned()
                    .collect();

                self.count_attempt(&queued, AttemptResult::Unschedulable);
                self.metrics.preempts(preemption.victims.len());
                self.queue.nominations.set(&queued.pod, &preemption.node);
                self.reporter.failed(&queued.pod, &why, &unfit.nomination);

                // It stays in flight: the deletion of the victims must not be missed before the pod
                // waits for it.
                let eviction = eviction::Eviction {
                    queued,
                    rejectors,
                    preemption,
                    lesser,
                };
                self.evict(eviction);
            }
        }
    }

    fn count_attempt(&self, queued: &QueuedPod, result: AttemptResult) {
        let took = self.attempt_began.elapsed();
        let profile = &queued.pod.scheduler_name;
        self.metrics.attempted(profile, result, took);
    }

    /// Returns the pod to the queue and reports why.
    pub(super) fn refuse(
        &mut self,
        queued: QueuedPod,
        rejectors: Vec<&'static str>,
        why: &FailureReport,
        nomination: &Nomination,
    ) {
        self.count_attempt(&queued, why.result());
        let Some(pod) = self.queue.fail(queued, rejectors, self.now()) else {
            return;
        };
        match nomination {
            Nomination::Keep => self.queue.nominations.refresh(&pod),
            Nomination::Clear => self.queue.nominations.remove(&pod.uid),
            Nomination::Set(node) => self.queue.nominations.set(&pod, node),
        }
        self.reporter.failed(&pod, why, nomination);
    }

    /// The pod has a node: it is assumed there, and bound by another task.
    fn place(&mut self, profile: &Arc<Profile>, queued: QueuedPod, placement: &Placement) {
        let pod = Arc::new(queued.pod.on(&placement.node));
        self.cache.assume(Arc::clone(&pod));
        self.queue.nominations.remove(&pod.uid);
        self.reporter.placed(&pod, placement);

        self.queue.done(&pod.uid);
        self.bind(Binding {
            profile: Arc::clone(profile),
            pod,
            queued,
            began: self.attempt_began,
        });
    }

    /// The chosen node failed after all.
    pub(super) fn undo_placement(
        &mut self,
        queued: QueuedPod,
        plugin: &'static str,
        refusal: Refusal,
    ) {
        self.forget(&queued.pod.uid);

        let (rejectors, why) = match refusal {
            Refusal::NotNow(reasons) | Refusal::Never(reasons) => {
                let reasons = reasons.join(", ");
                (
                    vec![plugin],
                    FailureReport::unschedulable(format!("0/1 nodes are available: 1 {reasons}.")),
                )
            }
            Refusal::Failed(error) => (Vec::new(), FailureReport::error(error)),
        };
        self.refuse(queued, rejectors, &why, &Nomination::Clear);
    }
}
