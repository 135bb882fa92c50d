//! The metrics of the scheduler, with upstream's names.

use std::sync::Arc;
use std::time::Duration;

use coracle_metrics::{
    Alpha, Beta, Buckets, Counter, Counters, Gauge, Gauges, Histogram, Histograms, Registry,
    Stable, metrics,
};

use crate::cache::Cache;
use crate::cycle::{Point, Status, Timing};
use crate::framework::Profile;
use crate::queue::Queue;

/// The name of a profile, and the result of an attempt.
type Attempt = (Arc<str>, &'static str);

type Name = &'static str;

metrics! {
    struct Counted {
        attempts: Counters<Attempt> = counters(
            Stable,
            "scheduler_schedule_attempts_total",
            "Number of attempts to schedule pods by result: no node fits an unschedulable pod, and an error is a failure of the scheduler.",
            ["profile", "result"],
        ),
        attempt_durations: Histograms<Attempt> = histograms(
            Stable,
            "scheduler_scheduling_attempt_duration_seconds",
            "Duration of attempts to schedule pods in seconds, with binding.",
            ["profile", "result"],
            Buckets::exponential_seconds(0.001, 2.0, 15),
        ),
        algorithm_durations: Arc<Histogram> = histogram(
            Alpha,
            "scheduler_scheduling_algorithm_duration_seconds",
            "Duration of choosing a node in seconds.",
            Buckets::exponential_seconds(0.001, 2.0, 15),
        ),
        points: Histograms<(Name, Arc<str>, Name)> = histograms(
            Stable,
            "scheduler_framework_extension_point_duration_seconds",
            "Duration of all plugins of an extension point in seconds.",
            ["extension_point", "profile", "status"],
            Buckets::exponential_seconds(0.0001, 2.0, 12),
        ),
        plugins: Histograms<(Name, Name, Name)> = histograms(
            Alpha,
            "scheduler_plugin_execution_duration_seconds",
            "Duration of a plugin at an extension point in seconds; filters are measured together.",
            ["extension_point", "plugin", "status"],
            Buckets::exponential_seconds(0.00001, 1.5, 20),
        ),
        incoming: Counters<(Name, Name)> = counters(
            Stable,
            "scheduler_queue_incoming_pods_total",
            "Number of pods that were added to a queue, by queue and by the event that moved them.",
            ["event", "queue"],
        ),
        unschedulable: Gauges<(Name, Arc<str>)> = gauges(
            Alpha,
            "scheduler_unschedulable_pods",
            "Number of waiting pods that a plugin rejected last; a pod counts for each of them.",
            ["plugin", "profile"],
        ),
        pod_attempts: Arc<Histogram> = histogram(
            Stable,
            "scheduler_pod_scheduling_attempts",
            "Number of attempts until a pod was scheduled.",
            Buckets::exponential(1.0, 2.0, 5),
        ),
        pod_durations: Histograms<&'static str> = histograms(
            Beta,
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from the arrival of a pod until it was bound in seconds, by the number of attempts.",
            ["attempts"],
            Buckets::exponential_seconds(0.01, 2.0, 20),
        ),
        preemptions: Arc<Counter> = counter(
            Stable,
            "scheduler_preemption_attempts_total",
            "Number of attempts to preempt pods.",
        ),
        victims: Arc<Histogram> = histogram(
            Stable,
            "scheduler_preemption_victims",
            "Number of pods chosen for preemption at a time.",
            Buckets::exponential(1.0, 2.0, 7),
        ),
        pending: Gauges<&'static str> = gauges(
            Stable,
            "scheduler_pending_pods",
            "Number of pending pods by queue: active, in backoff, unschedulable, gated.",
            ["queue"],
        ),
        cache_size: Gauges<&'static str> = gauges(
            Alpha,
            "scheduler_cache_size",
            "Number of nodes, of pods, and of pods whose binding is not confirmed, in the cache.",
            ["type"],
        ),
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptResult {
    Scheduled,
    Unschedulable,
    Error,
}

impl AttemptResult {
    fn name(self) -> &'static str {
        match self {
            AttemptResult::Scheduled => "scheduled",
            AttemptResult::Unschedulable => "unschedulable",
            AttemptResult::Error => "error",
        }
    }
}

/// The metrics of the event loop.
pub(super) struct Metrics {
    counted: Counted,
    profiles: Vec<Arc<str>>,
    /// Gauges that are set after each step.
    queues: [Arc<Gauge>; 4],
    cache: [Arc<Gauge>; 3],
}

impl Metrics {
    pub(super) fn new(registry: &Registry, profiles: &[Arc<Profile>]) -> Metrics {
        let counted = Counted::new(registry);
        Metrics {
            profiles: profiles
                .iter()
                .map(|profile| (*profile.name).into())
                .collect(),
            queues: ["active", "backoff", "unschedulable", "gated"]
                .map(|name| counted.pending.of(&name)),
            cache: ["nodes", "pods", "assumed_pods"].map(|name| counted.cache_size.of(&name)),
            counted,
        }
    }

    /// An attempt for a pod of this profile ended.
    pub(super) fn attempted(&self, profile: &str, result: AttemptResult, took: Duration) {
        let key = (self.profile(profile), result.name());
        self.counted.attempts.of(&key).inc();
        self.counted.attempt_durations.of(&key).took(took);
    }

    fn profile(&self, name: &str) -> Arc<str> {
        let known = self.profiles.iter().find(|known| ***known == *name);
        known.map_or_else(|| Arc::from(name), Arc::clone)
    }

    /// A cycle of this profile ran.
    pub(super) fn ran(&self, profile: &str, timing: &Timing) {
        for (point, status, took) in &timing.points {
            self.reached(profile, *point, *status, *took);
        }
        for (point, plugin, status, took) in &timing.plugins {
            let key = (point.name(), *plugin, status.name());
            self.counted.plugins.of(&key).took(*took);
        }
    }

    /// The plugins of an extension point ran.
    pub(super) fn reached(&self, profile: &str, point: Point, status: Status, took: Duration) {
        let key = (point.name(), self.profile(profile), status.name());
        self.counted.points.of(&key).took(took);
    }

    /// A node was chosen, or found that there is none.
    pub(super) fn chose(&self, took: Duration) {
        self.counted.algorithm_durations.took(took);
    }

    /// A pod was bound after so many attempts, so long after it arrived.
    pub(super) fn bound(&self, attempts: u32, took: Duration) {
        self.counted.pod_attempts.observe(attempts.into());
        self.counted.pod_durations.of(&label(attempts)).took(took);
    }

    pub(super) fn preempts(&self, victims: usize) {
        self.counted.preemptions.inc();
        self.counted.victims.observe(victims as u64);
    }

    /// Shows how much waits, and how much is known.
    pub(super) fn show(&self, queue: &mut Queue, cache: &Cache) {
        for (event, destination) in queue.take_moves() {
            let key = (event, destination.name());
            self.counted.incoming.of(&key).inc();
        }
        for (plugin, profile, pods) in queue.take_rejected() {
            let key = (plugin, self.profile(profile));
            self.counted.unschedulable.of(&key).set(pods);
        }

        let lengths = queue.lengths();
        let now = [
            lengths.active,
            lengths.backing_off,
            lengths.parked,
            lengths.gated,
        ];
        for (gauge, number) in self.queues.iter().zip(now) {
            gauge.set(i64::try_from(number).unwrap_or(i64::MAX));
        }

        let now = [cache.node_count(), cache.pod_count(), cache.assumed_count()];
        for (gauge, number) in self.cache.iter().zip(now) {
            gauge.set(i64::try_from(number).unwrap_or(i64::MAX));
        }
    }
}

/// A number of attempts as a label: from 15 on they are one.
fn label(attempts: u32) -> &'static str {
    const LABELS: [&str; 16] = [
        "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15+",
    ];
    let place = usize::try_from(attempts).unwrap_or(usize::MAX);
    LABELS[place.min(LABELS.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_attempts_are_one_label() {
        let labels = [0, 1, 14, 15, u32::MAX].map(label);
        assert_eq!(labels, ["0", "1", "14", "15+", "15+"]);
    }
}
