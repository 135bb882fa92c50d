//! Metrics of the kubelet's pods and of its API, with upstream's names.

use std::sync::Arc;

use coracle_metrics::{Alpha, Buckets, Counters, Gauge, Gauges, Histogram, Histograms, Kind};
use coracle_metrics::{Registry, metrics};
use http::Method;
use tokio::time::Instant;

use crate::mirror_pods::is_static;
use crate::pod_manager::PodManager;

/// The labels of a request: long running, method, path, server type.
type Labels = (bool, &'static str, &'static str, &'static str);

metrics! {
    /// Requests of the kubelet API.
    pub(super) struct RequestMetrics {
        requests: Counters<Labels> = counters(
            Alpha,
            "kubelet_http_requests_total",
            "Number of HTTP requests received.",
            ["long_running", "method", "path", "server_type"],
        ),
        durations: Histograms<Labels> = histograms(
            Alpha,
            "kubelet_http_requests_duration_seconds",
            "Duration of HTTP requests in seconds.",
            ["long_running", "method", "path", "server_type"],
            Buckets::default_seconds(),
        ),
        in_flight: Gauges<Labels> = gauges(
            Alpha,
            "kubelet_http_inflight_requests",
            "Number of HTTP requests in flight.",
            ["long_running", "method", "path", "server_type"],
        ),
    }
}

/// A request that is being answered.
pub(super) struct InFlight {
    began: Instant,
    duration: Arc<Histogram>,
    present: Arc<Gauge>,
}

impl RequestMetrics {
    pub(super) fn begin(&self, method: &Method, path: &str) -> InFlight {
        let path = group(path);
        let lasts = matches!(
            path,
            "attach" | "containerLogs" | "exec" | "portForward" | "run"
        );
        let labels = (lasts, known(method), path, "readwrite");
        self.requests.of(&labels).inc();

        let present = self.in_flight.of(&labels);
        present.add(1);
        InFlight {
            began: Instant::now(),
            duration: self.durations.of(&labels),
            present,
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.present.add(-1);
        self.duration.took(self.began.elapsed());
    }
}

/// The first part of a path that the kubelet serves, so that the labels are few.
fn group(path: &str) -> &'static str {
    const SERVED: [&str; 11] = [
        "attach",
        "containerLogs",
        "exec",
        "healthz",
        "logs",
        "metrics",
        "pods",
        "portForward",
        "run",
        "runningpods",
        "stats",
    ];
    let first = path.trim_start_matches('/').split('/').next();
    let served = SERVED.into_iter().find(|known| Some(*known) == first);
    served.unwrap_or("other")
}

fn known(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        _ => "other",
    }
}

/// Metrics that are read for each page.
pub(super) fn register(registry: &Registry, node: &str, pod_manager: &PodManager) {
    let name = node.to_owned();
    registry.read(
        Alpha,
        "kubelet_node_name",
        Kind::Gauge,
        "The node's name; always 1.",
        ["node"],
        move |reading| reading.add(&[&name], 1.0),
    );

    let pods = pod_manager.clone();
    registry.read(
        Alpha,
        "kubelet_desired_pods",
        Kind::Gauge,
        "Number of pods the kubelet is instructed to run; static ones are not from the API server.",
        ["static"],
        move |reading| {
            let entries = pods.list();
            let (fixed, others): (Vec<_>, Vec<_>) =
                entries.iter().partition(|entry| is_static(&entry.pod));
            reading.add_count(&["true"], fixed.len() as u64);
            reading.add_count(&[""], others.len() as u64);
        },
    );

    let pods = pod_manager.clone();
    registry.read(
        Alpha,
        "kubelet_running_pods",
        Kind::Gauge,
        "Number of pods that have a running pod sandbox.",
        [],
        move |reading| {
            let entries = pods.list();
            let running = entries
                .iter()
                .filter(|entry| entry.observed.ready_sandbox().is_some());
            reading.add_count(&[], running.count() as u64);
        },
    );

    let pods = pod_manager.clone();
    registry.read(
        Alpha,
        "kubelet_running_containers",
        Kind::Gauge,
        "Number of running containers.",
        ["container_state"],
        move |reading| {
            let entries = pods.list();
            let running = entries.iter().map(|entry| entry.observed.running().count());
            reading.add_count(&["running"], running.sum::<usize>() as u64);
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_the_first_part_of_their_path() {
        let registry = Registry::default();
        let requests = RequestMetrics::new(&registry);
        drop(requests.begin(&Method::GET, "/containerLogs/a/b/c"));
        drop(requests.begin(&Method::GET, "/no/such/path"));
        let page = registry.text();
        for line in [
            "kubelet_http_requests_total{long_running=\"true\",method=\"GET\",path=\"containerLogs\",server_type=\"readwrite\"} 1\n",
            "kubelet_http_requests_total{long_running=\"false\",method=\"GET\",path=\"other\",server_type=\"readwrite\"} 1\n",
            "kubelet_http_inflight_requests{long_running=\"false\",method=\"GET\",path=\"other\",server_type=\"readwrite\"} 0\n",
        ] {
            assert!(page.contains(line), "{line}{page}");
        }
    }
}
