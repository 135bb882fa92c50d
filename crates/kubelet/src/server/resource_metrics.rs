//! `/metrics/resource`: CPU time and memory of the node, of pods and of containers, each with the
//! time at which it was measured. Autoscalers and `kubectl top` are fed from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::time::Timestamp;
use coracle_cri::v1::{ContainerStats, ContainerStatsFilter};
use coracle_metrics::{Alpha, Kind, Reading, Registry, Stability, Stable};
use coracle_serving::pages;

use super::Server;
use super::answer::Answer;
use super::stats::NodeUsage;
use crate::observed::State;
use crate::pod::PodView as _;

/// A measurement: the value of its labels, and what was measured.
struct Usage {
    labels: Vec<String>,
    since: Option<Timestamp>,
    /// In nanoseconds, and the time of the measurement.
    cpu: Option<(u64, i64)>,
    memory: Option<(u64, i64)>,
}

/// Everything on the page.
struct Usages {
    node: NodeUsage,
    now: Timestamp,
    pods: Vec<Usage>,
    containers: Vec<Usage>,
    failed: bool,
}

pub(super) async fn page(server: &Server) -> Answer {
    let stats = server
        .runtime
        .list_container_stats(ContainerStatsFilter::default())
        .await;
    let (stats, failed) = match stats {
        Ok(stats) => (stats, false),
        Err(error) => {
            tracing::warn!(%error, "cannot list the resource usage of containers");
            (Vec::new(), true)
        }
    };

    let stats = stats
        .into_iter()
        .filter_map(|stats| Some((stats.attributes.as_ref()?.id.clone(), stats)));
    let (pods, containers) = usages(server, &stats.collect());
    let registry = Registry::default();
    register(
        &registry,
        Usages {
            node: NodeUsage::read(),
            now: server.world.now(),
            pods,
            containers,
            failed,
        },
    );
    pages::metrics(&registry)
}

/// Of pods and of their running containers.
fn usages(server: &Server, stats: &BTreeMap<String, ContainerStats>) -> (Vec<Usage>, Vec<Usage>) {
    let (mut pods, mut containers) = (Vec::new(), Vec::new());
    for entry in server.pod_manager.list() {
        let (name, namespace) = (entry.pod.id().name.to_string(), entry.pod.namespace());
        let mut pod = Usage {
            labels: vec![name.clone(), namespace.to_string()],
            since: None,
            cpu: None,
            memory: None,
        };

        for seen in entry.observed.running() {
            let Some(stats) = stats.get(&seen.id) else {
                continue;
            };
            let cpu = stats.cpu.as_ref();
            let cpu = cpu.and_then(|cpu| Some((cpu.usage_core_nano_seconds?.value, cpu.timestamp)));
            let memory = stats.memory.as_ref();
            let memory =
                memory.and_then(|memory| Some((memory.working_set_bytes?.value, memory.timestamp)));

            pod.cpu = sum(pod.cpu, cpu);
            pod.memory = sum(pod.memory, memory);
            containers.push(Usage {
                labels: vec![seen.name.to_string(), name.clone(), namespace.to_string()],
                since: match seen.state {
                    State::Running { since } => Some(since),
                    _ => None,
                },
                cpu,
                memory,
            });
        }
        pods.push(pod);
    }

    (pods, containers)
}

fn sum(one: Option<(u64, i64)>, other: Option<(u64, i64)>) -> Option<(u64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.saturating_add(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

/// What has several series of one sort.
type Read = fn(&Usage) -> Option<(f64, i64)>;

fn register(registry: &Registry, usages: Usages) {
    let usages = Arc::new(usages);
    let add = |stability: Stability,
               name: &'static str,
               kind: Kind,
               help: &'static str,
               read: fn(&Usages, &mut Reading)| {
        let usages = Arc::clone(&usages);
        registry.read(stability, name, kind, help, [], move |reading| {
            read(&usages, reading);
        });
    };

    add(
        Stable,
        "node_cpu_usage_seconds_total",
        Kind::Counter,
        "Cumulative cpu time consumed by the node in core-seconds",
        |all, reading| {
            if let Some(nanos) = all.node.cpu_nanos {
                reading.add_at(&[], seconds(nanos), millis(all.now));
            }
        },
    );
    add(
        Stable,
        "node_memory_working_set_bytes",
        Kind::Gauge,
        "Current working set of the node in bytes",
        |all, reading| {
            if let Some(bytes) = all.node.working_set() {
                reading.add_at(&[], float(bytes), millis(all.now));
            }
        },
    );
    add(
        Stable,
        "resource_scrape_error",
        Kind::Gauge,
        "1 if there was an error while getting container metrics, 0 otherwise",
        |all, reading| reading.add(&[], f64::from(u8::from(all.failed))),
    );
    add(
        Alpha,
        "scrape_error",
        Kind::Gauge,
        "(Deprecated since 1.29.0) 1 if there was an error while getting container metrics, 0 otherwise",
        |all, reading| reading.add(&[], f64::from(u8::from(all.failed))),
    );

    let cpu: Read = |usage| {
        usage
            .cpu
            .map(|(nanos, at)| (seconds(nanos), at / 1_000_000))
    };
    let memory: Read = |usage| {
        usage
            .memory
            .map(|(bytes, at)| (float(bytes), at / 1_000_000))
    };
    of_containers(registry, &usages, cpu, memory);
    of_pods(registry, &usages, cpu, memory);
}

fn of_containers(registry: &Registry, usages: &Arc<Usages>, cpu: Read, memory: Read) {
    let labels = ["container", "pod", "namespace"];
    let all = Arc::clone(usages);
    registry.read(
        Stable,
        "container_start_time_seconds",
        Kind::Gauge,
        "Start time of the container since unix epoch in seconds",
        labels,
        move |reading| {
            for usage in &all.containers {
                if let Some(since) = usage.since {
                    reading.add(&texts(usage), since_1970(since));
                }
            }
        },
    );

    let all = Arc::clone(usages);
    registry.read(
        Stable,
        "container_cpu_usage_seconds_total",
        Kind::Counter,
        "Cumulative cpu time consumed by the container in core-seconds",
        labels,
        move |reading| add_all(reading, &all.containers, cpu),
    );

    let all = Arc::clone(usages);
    registry.read(
        Stable,
        "container_memory_working_set_bytes",
        Kind::Gauge,
        "Current working set of the container in bytes",
        labels,
        move |reading| add_all(reading, &all.containers, memory),
    );
}

fn of_pods(registry: &Registry, usages: &Arc<Usages>, cpu: Read, memory: Read) {
    let labels = ["pod", "namespace"];
    let all = Arc::clone(usages);
    registry.read(
        Stable,
        "pod_cpu_usage_seconds_total",
        Kind::Counter,
        "Cumulative cpu time consumed by the pod in core-seconds",
        labels,
        move |reading| add_all(reading, &all.pods, cpu),
    );

    let all = Arc::clone(usages);
    registry.read(
        Stable,
        "pod_memory_working_set_bytes",
        Kind::Gauge,
        "Current working set of the pod in bytes",
        labels,
        move |reading| add_all(reading, &all.pods, memory),
    );
}

fn add_all(reading: &mut Reading, usages: &[Usage], read: Read) {
    for usage in usages {
        if let Some((number, millis)) = read(usage) {
            reading.add_at(&texts(usage), number, millis);
        }
    }
}

fn texts(usage: &Usage) -> Vec<&str> {
    usage.labels.iter().map(String::as_str).collect()
}

fn seconds(nanos: u64) -> f64 {
    std::time::Duration::from_nanos(nanos).as_secs_f64()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "2^53 bytes are more than any machine has"
)]
fn float(bytes: u64) -> f64 {
    bytes as f64
}

fn millis(at: Timestamp) -> i64 {
    at.unix_seconds() * 1000 + i64::from(at.subsec_nanos() / 1_000_000)
}

fn since_1970(at: Timestamp) -> f64 {
    let seconds = u64::try_from(at.unix_seconds()).unwrap_or_default();
    std::time::Duration::new(seconds, at.subsec_nanos()).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_upstreams() {
        let usage = |labels: &[&str], cpu| Usage {
            labels: labels.iter().map(ToString::to_string).collect(),
            since: Some(Timestamp::from_unix(1_700_000_000, 500_000_000)),
            cpu,
            memory: Some((4096, 1_700_000_002_000_000_000)),
        };
        let registry = Registry::default();
        register(
            &registry,
            Usages {
                node: NodeUsage {
                    cpu_nanos: Some(2_500_000_000),
                    memory: None,
                },
                now: Timestamp::from_unix(1_700_000_003, 7_000_000),
                pods: vec![usage(
                    &["p", "n"],
                    Some((500_000_000, 1_700_000_001_000_000_000)),
                )],
                containers: vec![usage(&["c", "p", "n"], None)],
                failed: false,
            },
        );

        let text = registry.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                r#"container_memory_working_set_bytes{container="c",namespace="n",pod="p"} 4096 1700000002000"#,
                r#"container_start_time_seconds{container="c",namespace="n",pod="p"} 1.7000000005e+09"#,
                "node_cpu_usage_seconds_total 2.5 1700000003007",
                r#"pod_cpu_usage_seconds_total{namespace="n",pod="p"} 0.5 1700000001000"#,
                r#"pod_memory_working_set_bytes{namespace="n",pod="p"} 4096 1700000002000"#,
                "resource_scrape_error 0",
                "scrape_error 0",
            ]
        );
        assert!(text.contains(
            "# HELP node_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the node in core-seconds\n\
             # TYPE node_cpu_usage_seconds_total counter\n"
        ));
    }
}
