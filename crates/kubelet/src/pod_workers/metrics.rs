//! Metrics of pod workers, with upstream's names: how long pods take to start, and their workers to
//! sync.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use coracle_api::time::Timestamp;
use coracle_metrics::{Alpha, Buckets, Counters, Histogram, Histograms, metrics};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use tokio::time::Instant;

use crate::pod::{Kind, PodView};

const START_BOUNDS: &[f64] = &[
    0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0,
    300.0, 360.0, 480.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0,
];

metrics! {
    pub(crate) struct PodMetrics {
        worker_starts: Arc<Histogram> = histogram(
            Alpha,
            "kubelet_pod_worker_start_duration_seconds",
            "Time from the arrival of a pod until its first sync in seconds.",
            Buckets::default_seconds(),
        ),
        syncs: Histograms<&'static str> = histograms(
            Alpha,
            "kubelet_pod_worker_duration_seconds",
            "Duration of one sync of a pod in seconds.",
            ["operation_type"],
            Buckets::default_seconds(),
        ),
        starts: Arc<Histogram> = histogram(
            Alpha,
            "kubelet_pod_start_duration_seconds",
            "Time from the arrival of a pod until it runs in seconds.",
            Buckets::seconds(START_BOUNDS),
        ),
        total_starts: Arc<Histogram> = histogram(
            Alpha,
            "kubelet_pod_start_total_duration_seconds",
            "Time from the creation of a pod until the API server has that all its containers run in seconds.",
            Buckets::seconds(START_BOUNDS),
        ),
        objective_starts: Arc<Histogram> = histogram(
            Alpha,
            "kubelet_pod_start_sli_duration_seconds",
            "The same without pulling images and running init containers, of pods without volumes that keep state.",
            Buckets::seconds(START_BOUNDS),
        ),
        containers: Arc<Histogram> = histogram(
            Alpha,
            "kubelet_containers_per_pod_count",
            "Number of containers of pods.",
            Buckets::exponential(1.0, 2.0, 5),
        ),
        started: Counters<&'static str> = counters(
            Alpha,
            "kubelet_started_containers_total",
            "Number of containers started.",
            ["container_type"],
        ),
        not_started: Counters<(&'static str, &'static str)> = counters(
            Alpha,
            "kubelet_started_containers_errors_total",
            "Number of containers that could not be started, by reason.",
            ["code", "container_type"],
        ),
    }
}

impl PodMetrics {
    /// A pod has come to this node.
    pub(super) fn arrived(&self, pod: &Pod) {
        let containers = pod.pod_spec().containers.len();
        self.containers.observe(containers as u64);
    }

    /// A sync of a pod ended: `create` is the first, `update` follows a change, `kill` stops it.
    pub(super) fn synced(&self, operation: &'static str, took: Duration) {
        self.syncs.of(&operation).took(took);
    }

    /// A container was started, or not: then there is a reason.
    pub(super) fn container_started(&self, kind: Kind, failure: Option<&'static str>) {
        let kind = match kind {
            Kind::Init | Kind::Sidecar => "init_container",
            Kind::Main => "container",
            Kind::Ephemeral => "ephemeral_container",
        };
        self.started.of(&kind).inc();
        if let Some(reason) = failure {
            self.not_started.of(&(reason, kind)).inc();
        }
    }
}

/// What is measured of the start of a pod that has not started before.
pub(super) struct Startup {
    arrived: Instant,
    /// Nanoseconds.
    pulling: AtomicU64,
    is_synced: bool,
    runs: bool,
}

impl Startup {
    /// `None`: it was started before this kubelet.
    pub(super) fn of(pod: &Pod) -> Option<Startup> {
        pod.pod_status().start_time.is_none().then(|| Startup {
            arrived: Instant::now(),
            pulling: AtomicU64::new(0),
            is_synced: false,
            runs: false,
        })
    }

    /// The first sync begins.
    pub(super) fn begin_sync(&mut self, metrics: &PodMetrics) {
        if !self.is_synced {
            self.is_synced = true;
            metrics.worker_starts.took(self.arrived.elapsed());
        }
    }

    /// An image was pulled, or found.
    pub(super) fn pulled(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.pulling.fetch_add(nanos, Ordering::Relaxed);
    }

    /// The pod is in the phase Running.
    pub(super) fn runs(&mut self, metrics: &PodMetrics) {
        if !self.runs {
            self.runs = true;
            metrics.starts.took(self.arrived.elapsed());
        }
    }

    /// Counts the start if the API server has that all containers run; whether it does.
    pub(super) fn is_complete(&self, pod: &Pod, now: Timestamp, metrics: &PodMetrics) -> bool {
        let status = pod.pod_status();
        let containers = status.container_statuses.as_deref().unwrap_or_default();
        if containers.is_empty() || !containers.iter().all(is_running) {
            return false;
        }

        if let Some(created) = &pod.metadata.creation_timestamp {
            let created = Timestamp::from_unix(created.0.as_second(), 0);
            let total = now.since(created).to_std().unwrap_or_default();
            metrics.total_starts.took(total);

            if !keeps_state(pod) {
                let init = status.init_container_statuses.iter().flatten();
                let init: Duration = init.map(run_time).sum();
                let pulling = Duration::from_nanos(self.pulling.load(Ordering::Relaxed));
                let own = total.saturating_sub(pulling).saturating_sub(init);
                metrics.objective_starts.took(own);
            }
        }

        true
    }
}

fn is_running(status: &ContainerStatus) -> bool {
    let state = status.state.as_ref();
    let running = state.and_then(|state| state.running.as_ref());
    running.is_some_and(|running| running.started_at.is_some())
}

/// How long a container ran that has ended.
fn run_time(status: &ContainerStatus) -> Duration {
    let state = status.state.as_ref();
    let ended = state.and_then(|state| state.terminated.as_ref());
    let times = ended.and_then(|ended| ended.started_at.as_ref().zip(ended.finished_at.as_ref()));
    let seconds = times.map(|(began, ended)| ended.0.as_second() - began.0.as_second());
    Duration::from_secs(
        seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .unwrap_or(0),
    )
}

/// Whether the pod has volumes whose content outlives it.
fn keeps_state(pod: &Pod) -> bool {
    let mut volumes = pod.pod_spec().volumes.iter().flatten();
    volumes.any(|volume| {
        volume.secret.is_none()
            && volume.config_map.is_none()
            && volume.downward_api.is_none()
            && volume.empty_dir.is_none()
            && volume.projected.is_none()
    })
}

#[cfg(test)]
mod tests {
    use coracle_metrics::Registry;
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: &Value, volumes: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"containers": [{"name": "c"}], "volumes": volumes},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn the_time_of_pulls_and_init_containers_is_not_the_nodes() {
        let status = json!({
            "containerStatuses": [{
                "name": "c", "ready": true, "restartCount": 0, "image": "i", "imageID": "",
                "state": {"running": {"startedAt": "2026-01-01T00:00:09Z"}},
            }],
            "initContainerStatuses": [{
                "name": "i", "ready": true, "restartCount": 0, "image": "i", "imageID": "",
                "state": {"terminated": {
                    "exitCode": 0,
                    "startedAt": "2026-01-01T00:00:02Z", "finishedAt": "2026-01-01T00:00:05Z",
                }},
            }],
        });
        let now = Timestamp::from_unix(1_767_225_610, 0);
        let startup = Startup::of(&pod(&json!({}), &json!([]))).unwrap();
        startup.pulled(Duration::from_secs(4));

        let check = |pod: &Pod, expected: [&str; 2]| {
            let registry = Registry::default();
            let metrics = PodMetrics::new(&registry);
            startup.is_complete(pod, now, &metrics);
            let page = registry.text();
            let sum = |name: &str| {
                let prefix = format!("{name}_sum ");
                let line = page.lines().find_map(|line| line.strip_prefix(&prefix));
                line.unwrap_or_default().to_owned()
            };
            let sums = [
                sum("kubelet_pod_start_total_duration_seconds"),
                sum("kubelet_pod_start_sli_duration_seconds"),
            ];
            assert_eq!(sums, expected);
        };

        check(&pod(&json!({}), &json!([])), ["0", "0"]);
        check(&pod(&status, &json!([])), ["10", "3"]);
        let volumes = json!([{"name": "v", "hostPath": {"path": "/"}}]);
        check(&pod(&status, &volumes), ["10", "0"]);
    }
}
