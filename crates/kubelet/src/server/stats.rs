//! `/stats/summary`: resource usage of pods and the node, from the runtime and the kernel. Unknown
//! values are omitted.

use std::collections::BTreeMap;
use std::fs;

use coracle_api::time::{Duration, Time, Timestamp};
use coracle_cri::v1::{
    ContainerStats, ContainerStatsFilter, CpuUsage, FilesystemUsage, MemoryUsage, UInt64Value,
};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::Server;
use super::answer::{self, Answer};
use super::query::Query;
use crate::observed::State;
use crate::pod::PodView as _;
use crate::pod_manager::Entry;

pub(super) async fn summary(server: &Server, query: &Query) -> Answer {
    let stats = match server
        .runtime
        .list_container_stats(ContainerStatsFilter::default())
        .await
    {
        Ok(stats) => stats,
        Err(error) => {
            let text = format!("failed to list pod stats: {error}");
            return answer::text(StatusCode::INTERNAL_SERVER_ERROR, text);
        }
    };

    let with_files = query.get("only_cpu_and_memory") != Some("true");
    let stats: BTreeMap<String, ContainerStats> = stats
        .into_iter()
        .filter_map(|stats| Some((stats.attributes.as_ref()?.id.clone(), stats)))
        .collect();

    let pods = server.pod_manager.list();
    let pods: Vec<Value> = pods
        .iter()
        .filter_map(|entry| pod(entry, &stats, with_files))
        .collect();

    let node = node(&server.node_name, server.world.now());
    answer::json(json!({"node": node, "pods": pods}).to_string())
}

fn pod(entry: &Entry, stats: &BTreeMap<String, ContainerStats>, with_files: bool) -> Option<Value> {
    let (mut containers, mut cpu, mut memory, mut time) = (Vec::new(), None, None, 0);
    for seen in entry.observed.running() {
        let Some(stats) = stats.get(&seen.id) else {
            continue;
        };
        let State::Running { since } = seen.state else {
            continue;
        };

        let mut shown = json!({"name": seen.name, "startTime": Time(since).text().as_str()});
        if let Some(usage) = &stats.cpu {
            shown["cpu"] = cpu_of(usage);
            cpu = sum(cpu, usage.usage_core_nano_seconds);
            time = time.max(usage.timestamp);
        }

        if let Some(usage) = &stats.memory {
            shown["memory"] = memory_of(usage);
            memory = sum(memory, usage.working_set_bytes);
        }

        if let Some(usage) = stats.writable_layer.as_ref().filter(|_| with_files) {
            shown["rootfs"] = files_of(usage);
        }

        containers.push(shown);
    }

    if containers.is_empty() {
        return None;
    }

    let reference = json!({"name": entry.pod.id().name.as_str(), "namespace": entry.pod.namespace(), "uid": entry.pod.uid()});

    let started = entry
        .observed
        .ready_sandbox()
        .map_or(Timestamp::ZERO, |sandbox| sandbox.created);
    let mut shown = json!({"podRef": reference, "startTime": Time(started).text().as_str(), "containers": containers});

    let time = moment(time);
    if let Some(cpu) = cpu {
        shown["cpu"] = json!({"time": time, "usageCoreNanoSeconds": cpu});
    }

    if let Some(memory) = memory {
        shown["memory"] = json!({"time": time, "workingSetBytes": memory});
    }

    Some(shown)
}

fn sum(so_far: Option<u64>, more: Option<UInt64Value>) -> Option<u64> {
    more.map(|more| so_far.unwrap_or_default().saturating_add(more.value))
        .or(so_far)
}

fn cpu_of(usage: &CpuUsage) -> Value {
    let values = [
        ("usageNanoCores", usage.usage_nano_cores),
        ("usageCoreNanoSeconds", usage.usage_core_nano_seconds),
    ];
    with_time(usage.timestamp, &values)
}

fn memory_of(usage: &MemoryUsage) -> Value {
    let values = [
        ("availableBytes", usage.available_bytes),
        ("usageBytes", usage.usage_bytes),
        ("workingSetBytes", usage.working_set_bytes),
        ("rssBytes", usage.rss_bytes),
        ("pageFaults", usage.page_faults),
        ("majorPageFaults", usage.major_page_faults),
    ];
    with_time(usage.timestamp, &values)
}

fn files_of(usage: &FilesystemUsage) -> Value {
    with_time(
        usage.timestamp,
        &[
            ("usedBytes", usage.used_bytes),
            ("inodesUsed", usage.inodes_used),
        ],
    )
}

fn with_time(time: i64, values: &[(&str, Option<UInt64Value>)]) -> Value {
    let values = values
        .iter()
        .filter_map(|(name, value)| Some(((*name).to_owned(), json!(value.as_ref()?.value))));
    let time = ("time".to_owned(), Value::String(moment(time)));
    Value::Object(std::iter::once(time).chain(values).collect::<Map<_, _>>())
}

/// Nanoseconds since 1970, as CRI has it.
fn moment(nanos: i64) -> String {
    Time(Timestamp::from_unix(0, 0) + Duration::from_nanos(nanos))
        .text()
        .to_string()
}

/// Usage of the whole node, from the kernel.
fn node(name: &str, now: Timestamp) -> Value {
    let now = Time(now).text().to_string();
    let mut node = json!({"nodeName": name});
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    if let Some(booted) = number_after(&stat, "btime ") {
        let booted = Timestamp::from_unix(i64::try_from(booted).unwrap_or_default(), 0);
        node["startTime"] = Value::String(Time(booted).text().to_string());
    }

    let usage = NodeUsage::read();
    if let Some(busy) = usage.cpu_nanos {
        node["cpu"] = json!({"time": now, "usageCoreNanoSeconds": busy});
    }
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let of_no_file = number_after(&memory, "AnonPages:").map(|kibi| kibi.saturating_mul(1024));
    if let Some((total, free, available)) = usage.memory {
        node["memory"] = json!({
            "time": now,
            "availableBytes": available,
            "usageBytes": total.saturating_sub(free),
            "workingSetBytes": total.saturating_sub(available),
            "rssBytes": of_no_file,
        });
    }

    node
}

/// What the whole node uses, as the kernel counts it.
pub(super) struct NodeUsage {
    pub(super) cpu_nanos: Option<u64>,
    /// All, free and available bytes.
    pub(super) memory: Option<(u64, u64, u64)>,
}

impl NodeUsage {
    pub(super) fn read() -> NodeUsage {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let bytes =
            |name| number_after(&memory, name).map(|kibibytes| kibibytes.saturating_mul(1024));
        let found = bytes("MemTotal:").zip(bytes("MemFree:"));
        let found = found.zip(bytes("MemAvailable:"));
        NodeUsage {
            cpu_nanos: busy_nanos(&stat),
            memory: found.map(|((total, free), available)| (total, free, available)),
        }
    }

    /// Memory that cannot be taken back.
    pub(super) fn working_set(&self) -> Option<u64> {
        let (total, _, available) = self.memory?;
        Some(total.saturating_sub(available))
    }
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// CPU time of all processors. The kernel counts in hundredths of a second.
fn busy_nanos(stat: &str) -> Option<u64> {
    let counts = stat.lines().next()?.strip_prefix("cpu ")?;
    let counts: Vec<u64> = counts
        .split_whitespace()
        .map_while(|count| count.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
    let busy = [0, 1, 2, 5, 6, 7]
        .into_iter()
        .filter_map(|at| counts.get(at))
        .sum::<u64>();
    Some(busy.saturating_mul(10_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_counters_are_parsed() {
        let stat = "cpu  100 1 10 5000 50 2 3 4 0 0\ncpu0 1 1 1 1\nbtime 1700000000\n";
        assert_eq!(busy_nanos(stat), Some(120 * 10_000_000));
        assert_eq!(number_after(stat, "btime "), Some(1_700_000_000));
        assert_eq!(
            number_after("MemTotal:       32 kB\n", "MemTotal:"),
            Some(32)
        );
        assert_eq!(busy_nanos(""), None);
    }
}
